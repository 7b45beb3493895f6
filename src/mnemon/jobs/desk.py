"""What may be done with jobs, whoever asks: HTTP and the command line. Units of work that answer with what clients see."""

from __future__ import annotations

from dataclasses import replace

from mnemon.core import errors, ids
from mnemon.core.records import Identity, Json
from mnemon.jobs import planning, shown, wishes
from mnemon.jobs.wishes import Rules, Wish, restored
from mnemon.store.base import Tx
from mnemon.store.jobs import Job, Jobs, Occurrences
from mnemon.store.sessions import Sessions


class Desk:
    """The jobs of all tenants, under the rules of this server."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules

    def add(self, tx: Tx, tenant: str, given: Json, *, identity: Identity, origin: dict[str, str], now: float) -> Json:
        """Make a job. Raises `Invalid` with the field; then nothing is stored."""
        wish, times, enabled = wishes.wished(given, identity, rules=self.rules, origin=origin, now=now)
        check_session(tx, tenant, wish)
        name = ids.job()
        wish = with_secret(wish)
        Jobs(tx, tenant).add(name, body=wish.stored(), next_run_at=first(wish, now), times=times, at=now)
        return self.get(tx, tenant, name, now=now) if enabled else self.pause(tx, tenant, name, now=now)

    def get(self, tx: Tx, tenant: str, name: str, *, now: float) -> Json:
        return self._shown(tx, Jobs(tx, tenant).get(name), now=now)

    def page(self, tx: Tx, tenant: str, *, everything: bool, limit: int, offset: int, now: float) -> list[Json]:
        """Oldest first; without `everything` only those that fire."""
        return [self._shown(tx, job, now=now) for job in Jobs(tx, tenant).page(everything=everything, limit=limit, offset=offset)]

    def change(self, tx: Tx, tenant: str, name: str, given: Json, *, now: float) -> Json:
        """Change a job. Raises `Invalid` with the field; then nothing is changed."""
        jobs, job = Jobs(tx, tenant), held(tx, tenant, name)
        old = restored(job.body)
        wish = with_secret(wishes.changed(old, given, rules=self.rules, now=now))
        job = replace(job, body=wish.stored())
        if "schedule" in given:
            job = replace(job, state="scheduled", enabled=True, paused_at=None, paused_reason=None) if not waits(job) else job
            if wish.schedule.kind == "once" or old.schedule.kind == "once":
                job = replace(job, times=None, completed=0)
        if "repeat" in given or wish.schedule.kind == "once":
            job = replace(job, times=wishes.times(given, wish.schedule))
        if given.get("enabled") is False and job.state != "paused":
            job = planning.paused(Occurrences(tx, tenant), job, None, at=now)
        elif given.get("enabled") is True and not job.enabled:
            job = planning.resumed(job, at=now)
        jobs.save(replanned(tx, job, wish, now=now, anew=bool({"schedule", "timezone"} & given.keys())))
        return self.get(tx, tenant, name, now=now)

    def delete(self, tx: Tx, tenant: str, name: str) -> None:
        Jobs(tx, tenant).delete(name)

    def pause(self, tx: Tx, tenant: str, name: str, *, now: float) -> Json:
        job = held(tx, tenant, name)
        if job.state not in ("completed", "error", "paused"):
            Jobs(tx, tenant).save(planning.paused(Occurrences(tx, tenant), job, None, at=now))
        return self.get(tx, tenant, name, now=now)

    def resume(self, tx: Tx, tenant: str, name: str, *, now: float) -> Json:
        """Fire again from the next instant on. Raises `Conflict` if there is none."""
        job = held(tx, tenant, name)
        if not job.enabled:
            Jobs(tx, tenant).save(planning.resumed(job, at=now))
        return self.get(tx, tenant, name, now=now)

    def run(self, tx: Tx, tenant: str, name: str, *, now: float) -> Json:
        """Run it now, beside its plan; it counts toward `repeat`. Raises `Conflict` if it has run as often as it was to."""
        job = held(tx, tenant, name)
        occurrences = Occurrences(tx, tenant)
        if job.times is not None and job.completed + occurrences.open(name)[0] >= job.times:
            raise errors.Conflict("the job has run as often as it was to; change its repeat", code="job_completed", param="job_id")
        occurrences.add(name, planned=None, at=now)
        return self.get(tx, tenant, name, now=now)

    def runs(self, tx: Tx, tenant: str, name: str, *, limit: int, offset: int) -> list[Json]:
        """What became of every instant, newest first."""
        wish = restored(Jobs(tx, tenant).get(name).body)
        return [shown.run(found, wish) for found in Occurrences(tx, tenant).page(name, limit=limit, offset=offset)]

    def _shown(self, tx: Tx, job: Job, *, now: float) -> Json:
        latest = Occurrences(tx, job.tenant).page(job.id, limit=1)
        return shown.job(job, latest[0] if latest else None, now=now)


def held(tx: Tx, tenant: str, name: str) -> Job:
    """A job that is about to be changed. Raises `NotFound`."""
    Jobs(tx, tenant).held(name)
    return Jobs(tx, tenant).get(name)


def waits(job: Job) -> bool:
    """Whether somebody paused it: then a new schedule alone does not wake it."""
    return job.state == "paused"


def replanned(tx: Tx, job: Job, wish: Wish, *, now: float, anew: bool) -> Job:
    """A changed job with its next instant, or at its end."""
    if job.exhausted:
        Occurrences(tx, job.tenant).withdraw(job.id, planning.ENOUGH, at=now)
        return job.ended(well=job.last_status != "error")
    return replace(job, next_run_at=first(wish, now)) if anew and job.enabled else job


def first(wish: Wish, now: float) -> float | None:
    """The first instant of a plan that begins now; one that is just past is now."""
    return wish.schedule.at if wish.schedule.kind == "once" else wish.schedule.next(now)


def check_session(tx: Tx, tenant: str, wish: Wish) -> None:
    """A session that belongs to another key is nobody else's to run in. Raises `Invalid`."""
    lineage = Sessions(tx, tenant).lineage_of(wish.session_id) if wish.session_id else None
    if lineage and None not in (lineage.session_key, wish.session_key) and lineage.session_key != wish.session_key:
        raise wishes.wrong("session_id", "belongs to another session key", code="foreign_session")


def with_secret(wish: Wish) -> Wish:
    """What is delivered is signed, so a job that delivers has a secret to do it with."""
    return replace(wish, secret=ids.webhook_secret()) if wish.webhook and not wish.secret else wish
