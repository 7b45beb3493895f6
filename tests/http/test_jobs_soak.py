"""Two workers on one database, killed at random while a held clock runs through changes of the clock: no instant is lost or doubled.

Shortened by default; `pytest tests/http/test_jobs_soak.py --soak` runs 30 days of 200 jobs with 500 kills.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mnemon.app import open_parts
from mnemon.config import Settings
from mnemon.core.records import Identity, Json
from mnemon.jobs import shown
from mnemon.jobs.desk import Desk
from mnemon.jobs.schedule import LATE_SECONDS
from mnemon.jobs.wishes import Rules, restored
from mnemon.jobs.worker import Worker
from mnemon.model.scripted import Scripted
from mnemon.store import jobs as store
from mnemon.store.base import Driver, Tx
from mnemon.store.jobs import Jobs, Occurrence, Occurrences
from mnemon.store.messages import Messages
from mnemon.store.sessions import Sessions
from mnemon.turn.pipeline import Turns
from tests.store.steps import opened

TENANT = "soak"
START = datetime(2026, 10, 24, 10, tzinfo=UTC).timestamp()  # Berlin sets its clock back the night after, New York a week later
DAY = 86_400.0
ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "UTC")
RULES = Rules(zone="UTC", private=False, check_model=lambda _name: None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much of it."""

    days: int
    jobs: int
    kills: int


SHORT, WHOLE = Size(days=2, jobs=14, kills=16), Size(days=30, jobs=200, kills=500)


@dataclass(slots=True)
class Held:
    """A clock that moves when it is told to."""

    now: float

    def __call__(self) -> float:
        return self.now


class Process:
    """A worker that can die: from one moment to the next the database hears nothing of it any more."""

    def __init__(self, settings: Settings, clock: Held) -> None:
        model = Scripted(self._reply)
        self.parts = open_parts(settings, model, upstream=True, clock=clock)
        self.model = model
        self.turns = Turns(self.parts)
        self.worker = Worker(
            driver=self.parts.driver, turns=self.turns, metrics=self.parts.metrics, clock=clock, model="mnemon", private=False
        )

    async def _reply(self, _request: Json) -> str:
        self.model.requests.clear()
        await asyncio.sleep(random.choice((0, 0, 0.001, 0.004)))
        return "Done."

    async def open(self) -> Process:
        """Begin."""
        await self.parts.driver.open()
        await self.turns.open()
        return self

    async def kill(self) -> None:
        """End without a word: what it was about to write is not written."""
        await self.parts.driver.close()
        tasks = [*self.worker.tasks, *(r.task for r in self.turns.running if r.task), *self.turns.tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.turns.journal.close()


def schedule_of(number: int, dice: random.Random) -> tuple[str, str]:
    """A schedule and its zone: most of them daily, many in the night in which the clock is set."""
    zone = dice.choice(ZONES)
    if number % 10 == 0:
        return dice.choice(["0 * * * *", "*/30 1-3 * * *", "every 1h"]), zone
    if number % 5 == 0:
        return dice.choice(["every 8h", "15 */6 * * *"]), zone
    return f"{dice.randrange(60)} {dice.choice([1, 2, 2, 2, 3, dice.randrange(24)])} * * *", zone


async def made(driver: Driver, size: Size, dice: random.Random) -> list[str]:
    """The jobs."""
    found = []
    for number in range(size.jobs):
        text, zone = schedule_of(number, dice)
        wish = {
            "name": f"job {number}",
            "schedule": text,
            "timezone": zone,
            "prompt": f"Job {number}.",
            "missed": dice.choice(["once", "skip"]),
        }

        def add(tx: Tx, wish: Json = wish) -> str:
            return str(Desk(RULES).add(tx, TENANT, wish, identity=Identity(), origin={}, now=START)["id"])

        found.append(await driver.write(add))
    return found


async def settle(processes: list[Process | None]) -> None:
    """A round of every worker that lives, and some time for what it began."""
    for process in processes:
        if process:
            await process.worker.step()
    await asyncio.sleep(random.choice((0, 0.002, 0.01)))


async def lived_through(settings: Settings, driver: Driver, size: Size, dice: random.Random) -> int:
    """Let the days pass; how many processes died."""
    clock = Held(START)
    processes: list[Process | None] = [await Process(settings, clock).open() for _ in range(2)]
    end, kills = START + size.days * DAY, 0
    fates = sorted(START + dice.random() * size.days * DAY for _ in range(size.kills))
    while clock.now < end or await unfinished(driver, clock.now):
        while fates and fates[0] <= clock.now:
            fates.pop(0)
            victim = dice.randrange(2)
            if (doomed := processes[victim]) is None:
                continue
            if dice.random() < 0.7:  # amid its work
                await doomed.worker.step()
                await asyncio.sleep(dice.choice((0, 0.001, 0.003)))
            await doomed.kill()
            processes[victim], kills = None, kills + 1
        if clock.now >= end:
            fates.clear()
        for index, process in enumerate(processes):
            if process is None and (dice.random() < 0.5 or clock.now >= end):
                processes[index] = await Process(settings, clock).open()
        await settle(processes)
        if not await unfinished(driver, clock.now) or dice.random() < 0.2:
            ahead = await driver.read(store.next_at)
            clock.now = min(end, max(clock.now + 1, (ahead or end) + dice.choice((0.0, 0.0, 1.0, 30.0, LATE_SECONDS + 60))))
    for process in processes:
        if process:
            await process.worker.gather()
            await process.kill()
    return kills


async def unfinished(driver: Driver, now: float) -> bool:
    """Whether anything is due, waits or is under way."""
    return await driver.read(lambda tx: bool(store.due(tx, now=now, limit=1) or store.waiting(tx, limit=1) or store.owners(tx)))


def seen(tx: Tx, name: str) -> tuple[list[Occurrence], list[tuple[str, str]]]:
    """What became of a job, and its transcript."""
    rows = Occurrences(tx, TENANT).page(name, limit=100_000)
    lineage = Sessions(tx, TENANT).lineage_of(f"job:{name}")
    said = Messages(tx, TENANT, lineage.id).page(limit=100_000, offset=0) if lineage else []
    return rows, [(m.role, m.text) for m in said]


async def test_every_instant_has_exactly_one_end(tmp_path: Path, database_url: str, request: pytest.FixtureRequest) -> None:
    """Through kills and changes of the clock each planned instant has one row, ended, and each that is done one turn in the transcript."""
    size = WHOLE if request.config.getoption("--soak") else SHORT
    dice = random.Random(6)
    settings = Settings(data_dir=tmp_path, database_url=database_url, memory_provider="none", context_budget=2000, recall_tokens=100)
    async with opened(database_url) as driver:
        names = await made(driver, size, dice)
        kills = await lived_through(settings, driver, size, dice)
        ends: Counter[str] = Counter()
        for name in names:
            job = await driver.read(lambda tx, name=name: Jobs(tx, TENANT).get(name))  # type: ignore[misc] # a default is no name of Tx
            rows, said = await driver.read(lambda tx, name=name: seen(tx, name))  # type: ignore[misc] # the same
            expected = [at for at in restored(job.body).schedule.upcoming(START, 3000) if at <= START + size.days * DAY]
            assert sorted(row.planned or 0.0 for row in rows) == expected, name
            assert all(row.finished_at is not None and row.status in ("done", "skipped", "interrupted") for row in rows)
            assert all(shown.reason(row) for row in rows if row.status != "done")
            done = [row for row in rows if row.status == "done"]
            assert [role for role, _ in said] == ["user", "assistant"] * len(done)
            assert len({row.receipt for row in done}) == len(done)
            ends.update(row.status if row.status == "done" else f"{row.status}: {shown.reason(row)}" for row in rows)
    assert kills > size.kills // 2
    assert ends["done"] > sum(ends.values()) * 0.7, ends
    print(dict(ends), kills)  # noqa: T201 - with -s, what happened
