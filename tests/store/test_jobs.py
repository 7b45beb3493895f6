"""Jobs and occurrences in both databases: one row for an instant, one owner, one end."""

from __future__ import annotations

import asyncio
import contextlib
import re
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mnemon.core import errors
from mnemon.core.records import Identity, Json
from mnemon.jobs import planning
from mnemon.jobs.desk import Desk
from mnemon.jobs.firing import Firing
from mnemon.jobs.schedule import LATE_SECONDS
from mnemon.jobs.wishes import Rules, restored
from mnemon.store import base
from mnemon.store import jobs as store
from mnemon.store.base import Driver, Tx
from mnemon.store.jobs import Claim, End, Jobs, Occurrence, Occurrences
from tests.store import steps

NOW = 1_800_000_000.0
DESK = Desk(Rules(zone="UTC", private=False, check_model=lambda _name: None))
OWNER, GONE = 11, 12  # numbers that no living process bears


async def made(driver: Driver, **fields: Any) -> str:
    """A job that was made at `NOW`."""
    wish: Json = {"name": "n", "prompt": "p", "schedule": "every 1h", **fields}
    job: Json = await driver.write(lambda tx: DESK.add(tx, "t", wish, identity=Identity(), origin={}, now=NOW))
    return str(job["id"])


async def rows(driver: Driver, job: str) -> list[Occurrence]:
    """Its occurrences, oldest first."""
    return await driver.read(lambda tx: Occurrences(tx, "t").page(job, limit=1000)[::-1])


async def claimed(driver: Driver, owner: int, now: float = NOW) -> list[Claim]:
    """What an owner takes."""
    return [claim for claim, _ in await driver.write(lambda tx: planning.claimed(tx, owner=owner, room=100, now=now))]


async def finish(driver: Driver, claim: Claim, owner: int, status: str = "done", at: float = NOW) -> bool:
    """End an occurrence."""
    end = End(status=status, at=at, error=None if status == "done" else {"code": "x", "message": "why"})  # type: ignore[arg-type]
    return await driver.write(lambda tx: planning.finish(tx, claim, end, owner=owner))


async def test_an_instant_gets_one_row_however_many_plan(driver: Driver) -> None:
    """Several plan at once: each instant that has come has one row, and the plan has moved on."""
    job = await made(driver)
    counts = await asyncio.gather(*(driver.write(lambda tx: planning.plan(tx, now=NOW + 3600)) for _ in range(8)))
    assert sum(counts) == 1
    (row,) = await rows(driver, job)
    assert (row.planned, row.status) == (NOW + 3600, "queued")
    assert (await driver.read(lambda tx: Jobs(tx, "t").get(job))).next_run_at == NOW + 7200


async def test_an_occurrence_has_one_owner(driver: Driver) -> None:
    """Of many that claim it one gets it, and only that one ends it."""
    job = await made(driver)
    await driver.write(lambda tx: DESK.run(tx, "t", job, now=NOW))
    found = await asyncio.gather(*(claimed(driver, owner) for owner in range(100, 108)))
    ((owner, claim),) = [(100 + i, each[0]) for i, each in enumerate(found) if each]
    assert not await finish(driver, claim, owner + 1)
    assert await finish(driver, claim, owner)
    assert not await finish(driver, claim, owner)
    assert (await rows(driver, job))[0].status == "done"


async def test_an_owner_thought_dead_comes_too_late(driver: Driver) -> None:
    """Its token is not that of the next owner: it writes nothing, and the job counts one run."""
    job = await made(driver)
    await driver.write(lambda tx: DESK.run(tx, "t", job, now=NOW))
    (old,) = await claimed(driver, GONE)
    assert await driver.write(lambda tx: planning.recover(tx, owner=OWNER, live=(), now=NOW)) == 1
    (new,) = await claimed(driver, OWNER)
    assert new.token == old.token + 1
    assert not await finish(driver, old, GONE)
    assert not await driver.write(lambda tx: Occurrences(tx, "t").release(old, owner=GONE, died=True))
    assert await finish(driver, new, OWNER)
    assert (await driver.read(lambda tx: Jobs(tx, "t").get(job))).completed == 1


async def test_the_living_keep_what_is_theirs(driver: Driver) -> None:
    """What a living process works on is not taken from it; what this one does not know of any more is."""
    job = await made(driver)
    await driver.write(lambda tx: DESK.run(tx, "t", job, now=NOW))
    (mine,) = await claimed(driver, driver.owner)
    assert await driver.write(lambda tx: planning.recover(tx, owner=OWNER, live=(), now=NOW)) == 0
    assert await driver.write(lambda tx: planning.recover(tx, owner=driver.owner, live={mine.id}, now=NOW)) == 0
    assert await driver.write(lambda tx: planning.recover(tx, owner=driver.owner, live=(), now=NOW)) == 1


async def test_a_run_that_ends_its_processes_is_given_up(driver: Driver) -> None:
    """After so many deaths it is interrupted, with the reason."""
    job = await made(driver)
    await driver.write(lambda tx: DESK.run(tx, "t", job, now=NOW))
    for _ in range(planning.MOST_DEATHS):
        assert await claimed(driver, GONE)
        await driver.write(lambda tx: planning.recover(tx, owner=OWNER, live=(), now=NOW))
    (row,) = await rows(driver, job)
    assert (row.status, row.token) == ("interrupted", planning.MOST_DEATHS)
    assert "taken up 5 times" in str(row.error)


async def test_a_run_that_this_server_fails_at_is_tried_again_and_given_up(driver: Driver) -> None:
    """A failure of the database is no failure of the job, but not for ever; a stop of the server does not count."""
    job = await made(driver)
    await driver.write(lambda tx: DESK.run(tx, "t", job, now=NOW))
    outcomes = []
    for error in (errors.Stopped("stop"), *[errors.Unavailable("gone")] * planning.MOST_DEATHS):
        (claim,) = await claimed(driver, driver.owner)
        wish = restored((await driver.read(lambda tx: Jobs(tx, "t").get(job))).body)
        firing = Firing(claim=claim, wish=wish, owner=driver.owner)
        await driver.write(lambda tx, f=firing, e=error: f.failed(tx, e, number=1, frames=b"", at=NOW))  # type: ignore[misc] # defaults are no names of Tx
        outcomes.append(firing.became)
    assert outcomes == ["queued"] * planning.MOST_DEATHS + ["interrupted"]


async def test_a_job_that_cannot_be_read_stops_no_other(driver: Driver) -> None:
    """A zone that this machine does not know any more ends its job with the reason; the others fire."""
    broken, whole = await made(driver, timezone="Asia/Tokyo", schedule="@hourly"), await made(driver)

    def spoil(tx: Tx) -> None:
        found = Jobs(tx, "t").get(broken)
        Jobs(tx, "t").save(replace(found, body=found.body.replace("Asia/Tokyo", "Asia/Atlantis")))

    await driver.write(spoil)
    await driver.write(lambda tx: planning.plan(tx, now=NOW + 3600))
    assert len(await rows(driver, whole)) == 1
    found = await driver.read(lambda tx: Jobs(tx, "t").get(broken))
    assert (found.state, found.next_run_at) == ("error", None)
    assert "cannot be read" in str(found.last_error)


@pytest.mark.parametrize(("missed", "last"), [("once", "queued"), ("skip", "skipped")])
async def test_missed_instants(driver: Driver, missed: str, last: str) -> None:
    """Of those that passed while nobody could run them, the newest is made up for, or none; each has its row with the reason."""
    job = await made(driver, missed=missed)
    late = NOW + 5 * 3600 + LATE_SECONDS + 1
    await driver.write(lambda tx: planning.plan(tx, now=late))
    found = await rows(driver, job)
    assert [row.planned for row in found] == [NOW + 3600 * n for n in range(1, 6)]
    assert [row.status for row in found] == ["skipped"] * 4 + [last]
    assert all(row.error and row.error["message"] == planning.MISSED for row in found if row.status == "skipped")


async def test_a_job_far_behind_catches_up_in_rounds(driver: Driver) -> None:
    """A year of missed hours is planned in several transactions, none of them endless."""
    job = await made(driver)
    rounds = 0
    while await driver.write(lambda tx: planning.plan(tx, now=NOW + 1000 * 3600)):
        rounds += 1
    assert rounds == 5
    assert len(await driver.read(lambda tx: Occurrences(tx, "t").page(job, limit=2000))) == 1000


async def test_a_run_that_has_not_ended_holds_the_next(driver: Driver) -> None:
    """One waits, any more are skipped, and what waits begins when the run has ended."""
    job = await made(driver)
    await driver.write(lambda tx: planning.plan(tx, now=NOW + 3600))
    (first,) = await claimed(driver, driver.owner, NOW + 3600)
    for hour in (2, 3):
        await driver.write(lambda tx, at=NOW + 3600 * hour: planning.plan(tx, now=at))  # type: ignore[misc] # a default is no name of Tx
        assert await claimed(driver, driver.owner) == []
    assert [row.status for row in await rows(driver, job)] == ["running", "queued", "skipped"]
    await finish(driver, first, driver.owner)
    assert len(await claimed(driver, driver.owner)) == 1


async def test_a_pause_withdraws_what_was_planned(driver: Driver) -> None:
    """An instant that had come and not begun is skipped when the job is paused; a run by hand is not."""
    job = await made(driver)
    await driver.write(lambda tx: planning.plan(tx, now=NOW + 3600))
    await driver.write(lambda tx: DESK.run(tx, "t", job, now=NOW))
    await driver.write(lambda tx: DESK.pause(tx, "t", job, now=NOW + 3601))
    assert {(row.planned is None, row.status) for row in await rows(driver, job)} == {(True, "queued"), (False, "skipped")}
    assert await driver.read(store.next_at) is None


async def test_a_one_shot_that_was_skipped_is_over(driver: Driver) -> None:
    """A job whose only instant was missed says so, and does not stay scheduled for ever."""
    job = await made(driver, schedule="30m", missed="skip")
    await driver.write(lambda tx: planning.plan(tx, now=NOW + 86_400))
    found = await driver.read(lambda tx: Jobs(tx, "t").get(job))
    assert (found.state, found.enabled, found.last_error) == ("error", False, f"skipped: {planning.MISSED}")


async def test_the_limit_holds_though_runs_overlap(driver: Driver) -> None:
    """What is under way counts toward `repeat`: a planned instant beyond it is skipped, a run by hand refused."""
    job = await made(driver, repeat=1)
    await driver.write(lambda tx: DESK.run(tx, "t", job, now=NOW))
    (claim,) = await claimed(driver, driver.owner)
    with pytest.raises(errors.Conflict):
        await driver.write(lambda tx: DESK.run(tx, "t", job, now=NOW))
    await driver.write(lambda tx: planning.plan(tx, now=NOW + 3600))
    await finish(driver, claim, driver.owner)
    found = await driver.read(lambda tx: Jobs(tx, "t").get(job))
    assert (found.state, found.completed, found.next_run_at) == ("completed", 1, None)
    assert sorted(row.status for row in await rows(driver, job)) == ["done", "skipped"]


async def test_a_deleted_job_takes_its_rows_along(driver: Driver) -> None:
    """Who works on it comes too late."""
    job = await made(driver)
    await driver.write(lambda tx: DESK.run(tx, "t", job, now=NOW))
    (claim,) = await claimed(driver, driver.owner)
    await driver.write(lambda tx: DESK.delete(tx, "t", job))
    assert not await finish(driver, claim, driver.owner)
    assert await driver.read(store.owners) == []


async def test_jobs_are_their_tenants(driver: Driver) -> None:
    """Nothing of one tenant's jobs is found by another's name."""
    job = await made(driver)
    with pytest.raises(errors.NotFound):
        await driver.read(lambda tx: Jobs(tx, "other").get(job))
    with pytest.raises(errors.NotFound):
        await driver.write(lambda tx: Jobs(tx, "other").delete(job))


async def test_a_wish_is_stored_whole(driver: Driver) -> None:
    """What was wanted is read back as it was."""
    job = await made(driver, instructions="Be brief.", model="m", timeout=5, max_tokens=7, memory="read", timezone="Asia/Tokyo")
    wish = restored((await driver.read(lambda tx: Jobs(tx, "t").get(job))).body)
    assert (wish.instructions, wish.model, wish.timeout, wish.max_tokens, wish.memory) == ("Be brief.", "m", 5.0, 7, "read")
    assert (wish.schedule.zone, wish.schedule.minutes, wish.schedule.start) == ("Asia/Tokyo", 60, NOW)


QUESTIONS = (
    *("jobs_due", "jobs_next", "occurrences_waiting", "occurrences_to_deliver", "occurrences_next_delivery", "occurrences_owners"),
    *("occurrences_open", "occurrences_of_owner", "occurrences_page", "occurrences_withdraw"),
)
READ_WHOLE = re.compile(r"SCAN \w+\b(?! USING)|SEARCH \w+ USING (?:PRIMARY KEY|(?:COVERING )?INDEX \w+) \(tenant=\?\)")


async def test_what_is_due_is_an_index_look_up(tmp_path: Path) -> None:
    """No question that a worker asks again and again reads a table, or all there is of a tenant, from end to end."""
    async with steps.opened(f"sqlite:///{tmp_path}/mnemon.db") as driver:
        with contextlib.closing(sqlite3.connect(tmp_path / "mnemon.db")) as connection:
            texts = base.statements("sqlite")
            for name in QUESTIONS:
                given = dict.fromkeys(re.findall(r"(?<!:):([a-z_]+)", texts[name]), 1)
                plan = [row[3] for row in connection.execute("EXPLAIN QUERY PLAN " + texts[name], given)]
                assert not any(map(READ_WHOLE.search, plan)), (name, plan)
        assert driver.name == "sqlite"
