"""The plan: which instants have come, who works on them, and what a run's end means for its job. Units of work, and no clock.

Every planned instant gets exactly one row, written by whoever is first to see that it has come, in the transaction that moves the plan on.
Of several that were missed the newest may run (`missed: once`); the others are skipped, each with the reason.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace

from mnemon.core import errors
from mnemon.jobs.schedule import LATE_SECONDS
from mnemon.jobs.wishes import Wish, restored
from mnemon.store import jobs as store
from mnemon.store.base import Tx
from mnemon.store.jobs import Claim, End, Job, Jobs, Occurrences

JOBS_AT_ONCE = 50
INSTANTS_AT_ONCE = 200
MOST_FAILURES = 5
MOST_DEATHS = 5

MISSED = "its instant passed while nobody could run it"
OVERTAKEN = "it had not begun when the next instant came"
WAITING = "the run before it had not begun"
ENOUGH = "the job has run as often as it was to"
PAUSED = "the job was paused before it began"


def plan(tx: Tx, *, now: float) -> int:
    """Give every instant that has come its row; how many there were. A job that is far behind catches up in several rounds."""
    return sum(planned(tx, tenant, job, now=now) for tenant, job in store.due(tx, now=now, limit=JOBS_AT_ONCE))


def planned(tx: Tx, tenant: str, name: str, *, now: float) -> int:
    jobs, occurrences = Jobs(tx, tenant), Occurrences(tx, tenant)
    job, count = jobs.held(name), 0
    while job and job.next_run_at is not None and job.next_run_at <= now and count < INSTANTS_AT_ONCE:
        instant = job.next_run_at
        try:
            wish = restored(job.body)
            following = wish.schedule.next(instant)
        except (KeyError, ValueError) as error:  # its zone is gone from this machine: that must not stop all others
            jobs.save(replace(job.ended(well=False), last_status="error", last_error=f"its schedule cannot be read here: {error}"))
            break
        if not jobs.advance(name, planned=instant, following=following):
            break
        reason = why_not(occurrences, job, wish, following=following, now=now)
        occurrences.add(name, planned=instant, at=now, skipped=reason)
        job, count = replace(job, next_run_at=following), count + 1
        if reason and following is None:
            jobs.save(over(occurrences, replace(job, last_status="error", last_error=f"skipped: {reason}")))
    return count


def why_not(occurrences: Occurrences, job: Job, wish: Wish, *, following: float | None, now: float) -> str:
    """Why the instant that has come is skipped; nothing if it is not."""
    instant = job.next_run_at or 0.0
    if following is not None and following <= now:
        return MISSED if now - instant > LATE_SECONDS else OVERTAKEN
    if wish.missed == "skip" and now - instant > LATE_SECONDS:
        return MISSED
    open_, waiting = occurrences.open(job.id)
    if waiting:
        return WAITING
    return ENOUGH if job.times is not None and job.completed + open_ >= job.times else ""


def over(occurrences: Occurrences, job: Job) -> Job:
    """A job whose plan has no more instants, once nothing of it is open."""
    return job if job.next_run_at is not None or occurrences.open(job.id)[0] else job.ended(well=job.last_status == "ok")


def claimed(tx: Tx, *, owner: int, room: int, now: float) -> list[tuple[Claim, Wish]]:
    """Become the owner of what waits, as much as there is room for."""
    found, busy = [], set()
    for waiting in store.waiting(tx, limit=room):
        job = Jobs(tx, waiting.tenant).find(waiting.job)
        if job is None or (waiting.tenant, waiting.job) in busy:
            continue
        if claim := Occurrences(tx, waiting.tenant).claim(waiting, owner=owner, at=now):
            busy.add((waiting.tenant, waiting.job))
            found.append((claim, restored(job.body)))
    return found


def recover(tx: Tx, *, owner: int, live: Container[str], now: float) -> int:
    """Take what the dead left, and what this process does not know of any more, back into the queue; how much."""
    count = 0
    for each in store.owners(tx):
        if each != owner and tx.alive(each):
            continue
        for claim in store.owned(tx, owner=each):
            if each != owner or claim.id not in live:
                put_back(tx, claim, owner=each, now=now)
                count += 1
    return count


def put_back(tx: Tx, claim: Claim, *, owner: int, now: float) -> str:
    """Whoever worked on it died, or failed by itself: it is taken up again, unless that is no use any more. What became of it."""
    job = Jobs(tx, claim.tenant).held(claim.job)
    if job is None:
        return "lost"
    reason = ""
    if claim.deaths + 1 >= MOST_DEATHS:
        reason = f"it was taken up {MOST_DEATHS} times, and never came to its end"
    elif claim.planned is not None and job.state == "paused":
        reason = "its process ended, and the job is paused"
    elif claim.planned is not None and restored(job.body).missed == "skip" and now - claim.planned > LATE_SECONDS:
        reason = f"its process ended, and {MISSED}"
    if not reason:
        return "queued" if Occurrences(tx, claim.tenant).release(claim, owner=owner, died=True) else "lost"
    end = End(status="interrupted", at=now, error={"code": "interrupted", "message": reason}, deliver=bool(restored(job.body).webhook))
    return "interrupted" if finish(tx, claim, end, owner=owner) else "lost"


def finish(tx: Tx, claim: Claim, end: End, *, owner: int) -> bool:
    """Write down how a run ended and what that means for its job; False, and nothing, if it is not this owner's any more.

    The job is held first, as everywhere, so that no two transactions wait for each other.
    """
    jobs, occurrences = Jobs(tx, claim.tenant), Occurrences(tx, claim.tenant)
    job = jobs.held(claim.job)
    if job is None or not occurrences.end(claim, end, owner=owner):
        return False
    well = end.status == "done"
    said = None if well else str((end.error or {}).get("message"))
    job = replace(
        job,
        completed=job.completed + 1,
        failures=0 if well else job.failures + 1,
        last_run_at=end.at,
        last_status="ok" if well else "error",
        last_error=said,
    )
    if job.exhausted:
        occurrences.withdraw(job.id, ENOUGH, at=end.at)
        job = job.ended(well=well)
    elif job.failures >= MOST_FAILURES and job.enabled:
        reason = f"{job.failures} runs in a row failed; the last one: {said}"
        job = paused(occurrences, job, reason, at=end.at)
    else:
        job = over(occurrences, job)
    jobs.save(job)
    return True


def paused(occurrences: Occurrences, job: Job, reason: str | None, *, at: float) -> Job:
    """A job that does not fire until it is resumed; what was planned and has not begun is skipped."""
    occurrences.withdraw(job.id, PAUSED, at=at)
    return replace(job, state="paused", enabled=False, next_run_at=None, paused_at=at, paused_reason=reason)


def resumed(job: Job, *, at: float) -> Job:
    """A job that fires again, from its next instant on. Raises `Conflict` if there is none."""
    wish = restored(job.body)
    following = wish.schedule.next(at)
    if job.exhausted or following is None:
        reason = "has run as often as it was to" if job.exhausted else "has no instant left in its schedule"
        raise errors.Conflict(f"the job {reason}; change its schedule or its repeat", code="job_completed", param="job_id")
    return replace(job, state="scheduled", enabled=True, next_run_at=following, paused_at=None, paused_reason=None, failures=0)
