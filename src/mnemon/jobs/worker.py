"""The worker: sleeps until something is due, then starts it. Any number of them share one database.

Idle it looks at a number ten times a second, and into the database every two seconds. What it does is said in `planning`; what a run is,
in `firing`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any

from mnemon.core import errors
from mnemon.core.clock import Clock
from mnemon.core.metrics import Metrics
from mnemon.jobs import delivery, firing, planning
from mnemon.jobs.wishes import Wish
from mnemon.store import jobs as store
from mnemon.store.base import Driver, Tx
from mnemon.store.jobs import Claim
from mnemon.turn.pipeline import Turns

log = logging.getLogger("mnemon.jobs")

AT_ONCE = 16
DELIVERIES_AT_ONCE = 16
LOOK_SECONDS = 0.1
CHECK_SECONDS = 2.0
STOP_SECONDS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What there is to do. What is `lost` runs here and is not ours any more: its job was deleted, or somebody took it over."""

    due: bool
    deserted: bool
    waiting: bool
    deliveries: list[tuple[str, str, float]]
    next_at: float | None
    lost: list[Claim]


class Worker:
    """Runs the jobs of all tenants. One for each process."""

    def __init__(self, *, driver: Driver, turns: Turns, metrics: Metrics, clock: Clock, model: str, private: bool) -> None:
        self.driver = driver
        self.turns = turns
        self.metrics = metrics
        self.clock = clock
        self.model = model
        self.private = private
        self.live: dict[str, Claim] = {}
        self.posting: set[str] = set()
        self.tasks: set[asyncio.Task[None]] = set()
        self.loop: asyncio.Task[None] | None = None
        self.stamp = -1
        self.next_at: float | None = None
        self.checked_at = 0.0
        self.stirred = True
        self.bell = asyncio.Event()

    def open(self) -> None:
        self.loop = asyncio.create_task(self._forever())

    def call(self) -> None:
        """Look at once: somebody here asked for something. Others hear of it by the stamp."""
        self.bell.set()

    async def close(self) -> None:
        """Begin nothing more. What runs is the turns' to end; it is taken up again by whoever comes next."""
        if self.loop:
            self.loop.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self.loop

    async def gather(self) -> None:
        """Wait for what was started to be over, once the turns are closed."""
        if self.tasks:
            _, slow = await asyncio.wait(self.tasks, timeout=STOP_SECONDS)
            for task in slow:
                task.cancel()

    async def _forever(self) -> None:
        while True:
            try:
                if self._told():
                    await self._claim()
                if self._called():
                    await self.step()
            except errors.StoreError:  # the database is away: what is due stays due
                self.stirred = True
                log.warning("jobs wait for the database", exc_info=True)
                await asyncio.sleep(CHECK_SECONDS)
            except Exception:  # the edge of the worker: one job that cannot be understood must not stop all others
                log.exception("a step of the jobs' worker failed")
                await asyncio.sleep(CHECK_SECONDS)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await self.bell.wait()

    def _told(self) -> bool:
        """Whether somebody changed a job, or wants one to run: that is looked for first, since somebody may be waiting for it."""
        stamp, before = self.driver.stamp(store.TOPIC), self.stamp
        told = stamp != before or self.bell.is_set()
        self.stamp = stamp
        self.bell.clear()
        self.stirred |= told
        return told

    def _called(self) -> bool:
        """Whether it is time to look into the database: something changed, is due, or it was long ago."""
        now = self.clock()
        due = self.next_at is not None and self.next_at <= now
        return self.stirred or due or not 0 <= now - self.checked_at < CHECK_SECONDS

    async def step(self) -> None:
        """Do all there is to do at this moment, as far as there is room."""
        now = self.clock()
        self.stirred, self.checked_at = False, now
        found = await self.driver.read(partial(self._look, now=now))
        if found.deserted:
            taken = await self.driver.write(partial(planning.recover, owner=self.driver.owner, live=self.live.keys(), now=now))
            if taken:
                log.warning("%d runs of jobs were left by a process that ended", taken)
        if found.due:
            await self.driver.write(partial(planning.plan, now=now))
        if found.due or found.deserted or found.waiting:
            await self._claim()
        for tenant, name, due in found.deliveries:
            if name not in self.posting and len(self.posting) < DELIVERIES_AT_ONCE:
                self.posting.add(name)
                self._do(self._deliver(tenant, name, due))
        self.next_at = found.next_at
        self.stirred = found.due  # there may be more, and the next instant is another one now
        for claim in found.lost:
            self.turns.cancel(claim.tenant, claim.id)

    async def _claim(self) -> None:
        """Begin with what waits, as much as there is room for; nothing once the turns are being closed."""
        room = 0 if self.turns.stopping else AT_ONCE - len(self.live)
        if room:
            for claim, wish in await self.driver.write(
                partial(planning.claimed, owner=self.driver.owner, room=room, now=self.clock()), durable=False
            ):
                self._start(claim, wish)

    def _look(self, tx: Tx, *, now: float) -> Look:
        live = dict(self.live)  # before it is asked what is ours: what begins meanwhile is not taken for lost
        owners = store.owners(tx)
        mine = self.driver.owner
        ours = {claim.id for claim in store.owned(tx, owner=mine)} if mine in owners else set()
        return Look(
            due=bool(store.due(tx, now=now, limit=1)),
            deserted=bool(ours - self.live.keys()) or any(owner != mine and not tx.alive(owner) for owner in owners),
            waiting=bool(store.waiting(tx, limit=1)),
            deliveries=store.deliveries(tx, now=now, limit=DELIVERIES_AT_ONCE),
            next_at=store.next_at(tx),
            lost=[claim for name, claim in live.items() if name not in ours],
        )

    def _start(self, claim: Claim, wish: Wish) -> None:
        self.live[claim.id] = claim
        self._do(self._run(claim, wish))

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _run(self, claim: Claim, wish: Wish) -> None:
        """See a run to its end."""
        keeper = firing.Firing(claim=claim, wish=wish, owner=self.driver.owner)
        self.metrics.add("mnemon_job_runs_running", 1)
        try:
            running, _ = self.turns.start(firing.request(claim, wish, model=self.model), firing.Unwatched(), keeper)
            try:
                async with asyncio.timeout(wish.timeout):
                    await running.result()
            except TimeoutError:
                keeper.late = True
                running.cancel()
                await running.result()
        except errors.MnemonError as error:
            if keeper.became == "lost" and isinstance(error, errors.Stopped):  # no turn began
                await self._give_back(keeper, error)
            log.info("a run of a job ended with %s: %s", error.code, error.message)
        finally:
            self.live.pop(claim.id, None)
            self.stirred = True
            self.metrics.add("mnemon_job_runs_running", -1)
            self.metrics.add("mnemon_job_runs_total", 1, outcome=keeper.became)

    async def _give_back(self, keeper: firing.Firing, error: errors.MnemonError) -> None:
        now = self.clock()
        with contextlib.suppress(errors.StoreError):
            await self.driver.write(lambda tx: keeper.failed(tx, error, number=1, frames=b"", at=now))

    async def _deliver(self, tenant: str, name: str, due: float) -> None:
        """Make one try of a delivery."""
        try:
            now = self.clock()
            parcel = await self.driver.write(lambda tx: delivery.taken(tx, tenant, name, due=due, now=now))
            if parcel:
                receipt = await delivery.post(parcel, private=self.private, now=now)
                after = self.clock()
                state = await self.driver.write(lambda tx: delivery.noted(tx, parcel, receipt, now=after))
                self.metrics.add("mnemon_job_deliveries_total", 1, outcome="retried" if state == "pending" else state)
        except errors.StoreError:
            log.warning("a delivery could not be written down; it will be made again", exc_info=True)
        finally:
            self.posting.discard(name)
            self.stirred = True
