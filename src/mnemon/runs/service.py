"""Runs: turns that a client starts and does not wait for. Start, stop, steer, look.

What is known of a run is its row (`store/works.py`); what was said stands in the transcript.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, replace
from typing import Protocol

from mnemon.core import errors
from mnemon.core.records import Idempotency, StoredMessage, TurnRequest
from mnemon.runs import chains
from mnemon.runs.kept import Kept, Shown
from mnemon.store import works
from mnemon.store.base import Tx
from mnemon.store.idempotency import Records
from mnemon.store.messages import Messages
from mnemon.store.sessions import Sessions
from mnemon.store.works import Work, Works
from mnemon.turn import resolve
from mnemon.turn.pipeline import Turns
from mnemon.turn.running import Running, Wire

HEAR_SECONDS = 0.5


class RunWire(Wire, Shown, Protocol):
    """How the edge shows a run."""

    run_id: str
    over: bool
    """Whether its last event is made."""
    steers: list[str]
    """What was said to it so far."""

    def steered(self, text: str) -> bytes:
        """Take note of what was said to it; the event that says so."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A run as it stands, and the messages of its turn."""

    work: Work
    said: list[StoredMessage]


class Runs:
    """The runs of this process, and the way to those of others. One for each process."""

    def __init__(self, turns: Turns) -> None:
        self.turns = turns
        self.driver = turns.parts.driver
        self.clock = turns.parts.clock
        self.here: dict[tuple[str, str], tuple[Running, RunWire]] = {}
        self.hearing: asyncio.Task[None] | None = None

    async def open(self) -> None:
        if self.driver.shared:
            self.hearing = asyncio.create_task(self._listen())

    def close(self) -> None:
        if self.hearing:
            self.hearing.cancel()

    # -- start --------------------------------------------------------------------------------------------------------------

    def prepare(self, tx: Tx, request: TurnRequest, wire: RunWire, *, previous: str | None) -> TurnRequest:
        """Write the run down as queued: what its turn is to be. Raises what can be known by now to be wrong with it."""
        if self.turns.stopping:
            raise errors.Stopped("the server is shutting down; send the request again")
        sessions = Sessions(tx, request.tenant)
        if previous is not None:
            request = chains.continued(tx, request, previous)
        lineage, _ = resolve.locate(sessions, request)
        if request.after is None and any(message.role == "tool" for message in request.messages):
            resolve.look(tx, request, tails=self.turns.parts.tails)  # a result that answers nothing is refused before it is a run
        session_id = lineage.tip if lineage else request.identity.session_id
        Works(tx, request.tenant).begin(
            wire.run_id, "run", status="queued", body=wire.shown(), session_id=session_id, owner=self.driver.owner, at=self.clock()
        )
        return request

    def start(self, request: TurnRequest, wire: RunWire) -> Running:
        """Begin what was prepared."""
        keeper = Kept(tenant=request.tenant, name=wire.run_id, kind="run", owner=self.driver.owner, wire=wire, early=True)
        running, _ = self.turns.start(request, wire, keeper)
        place = request.tenant, wire.run_id
        self.here[place] = running, wire
        if running.task:
            running.task.add_done_callback(lambda _task: self.here.pop(place, None))
        return running

    async def refused(self, request: TurnRequest, run_id: str, idempotency: Idempotency | None) -> None:
        """Forget one that was not to wait for its session, and would have had to."""

        def work(tx: Tx) -> None:
            Works(tx, request.tenant).delete(run_id)
            if idempotency:
                Records(tx, request.tenant).drop(idempotency)

        await self.driver.write(work)

    # -- look, stop, steer --------------------------------------------------------------------------------------------------

    async def get(self, tenant: str, run_id: str) -> Seen:
        """A run and what it said. Raises `NotFound`."""
        seen = await self.driver.read(lambda tx: see(tx, tenant, run_id))
        here = self.here.get((tenant, run_id))
        return replace(seen, work=replace(seen.work, body=here[1].shown())) if here and not seen.work.ended else seen

    async def stop(self, tenant: str, run_id: str) -> Work:
        """Stop it, wherever it runs; how it stands then. One that has ended is left as it is. Raises `NotFound`."""

        def work(tx: Tx) -> Work:
            mine = Works(tx, tenant)
            if not mine.get(run_id, "run").ended:
                mine.stop(run_id)
            return mine.get(run_id, "run")

        found = await self.driver.write(work)
        if not found.ended:
            self.turns.cancel(tenant, run_id)
        return found

    def steer(self, tx: Tx, tenant: str, run_id: str, text: str) -> None:
        """Say something to it while it runs, wherever that is. Raises `NotFound` and `Conflict`."""
        mine = Works(tx, tenant)
        mine.get(run_id, "run")
        here = self.here.get((tenant, run_id))
        if (here and here[1].over) or not mine.steer(run_id, text):
            message = "the run takes nothing in: only one whose status is running does"
            raise errors.Conflict(message, code="run_not_accepting_steer", param="run_id")

    async def hear(self) -> None:
        """Let those who watch the runs of this process see what was said to them."""
        for tenant, run_id, said in await self.driver.read(self._said) if self.here else ():
            here = self.here.get((tenant, run_id))
            if here is None or here[1].over:
                continue
            running, wire = here
            for text in said[len(wire.steers) :]:
                running.push(wire.steered(text))

    async def _listen(self) -> None:
        """Pass on what was said to runs of this process through others."""
        while True:
            await asyncio.sleep(HEAR_SECONDS)
            with contextlib.suppress(errors.StoreError):
                await self.hear()

    def _said(self, tx: Tx) -> list[tuple[str, str, tuple[str, ...]]]:
        return works.steered(tx, owner=self.driver.owner)


def see(tx: Tx, tenant: str, run_id: str) -> Seen:
    return with_messages(tx, tenant, Works(tx, tenant).get(run_id, "run"))


def with_messages(tx: Tx, tenant: str, work: Work) -> Seen:
    """The run with the messages of its turn."""
    if work.lineage is None or work.first is None or work.last is None:
        return Seen(work=work, said=[])
    return Seen(work=work, said=Messages(tx, tenant, work.lineage).between(work.first, work.last))
