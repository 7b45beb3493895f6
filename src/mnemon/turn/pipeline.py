"""Turns: resolve → recall and assemble → call → commit, each in its order, each to its end.

A turn runs in a task of its own and writes into a `Running`; the HTTP response only watches. So a client that goes away stops nothing
that belongs to a session, and a retry can join.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import replace
from functools import partial
from typing import Any

from mnemon.core import errors, ids
from mnemon.core.records import Effective, Prompt, TurnRequest
from mnemon.store import works
from mnemon.store.base import Tx
from mnemon.store.idempotency import Record, stream_of
from mnemon.turn import branching, commands, elsewhere, resolve
from mnemon.turn.answer import LAST_WORD_SECONDS, Answer, to_its_end
from mnemon.turn.gates import Gates, Place, busy
from mnemon.turn.journal import Journal
from mnemon.turn.keeping import Keeper
from mnemon.turn.parts import Parts
from mnemon.turn.prompt import prompt_for
from mnemon.turn.pulse import Pulse
from mnemon.turn.running import Running, Wire, split_frames

log = logging.getLogger("mnemon.turn")

FIRST_WAIT = 0.02
LONGEST_WAIT = 0.25
PING_SECONDS = 15
HEED_SECONDS = 0.5
GIVE_BACK_SECONDS = 2 * LAST_WORD_SECONDS + 1  # a commit, then giving back, and some slack


class Turns:
    """Runs turns. One for each process."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.gates = Gates()
        self.pulse = Pulse()
        self.running: set[Running] = set()
        self.by_slot: dict[bytes, Running] = {}
        self.by_name: dict[tuple[str, str], Running] = {}
        self.journal = Journal(parts.driver, parts.clock)
        self.stopping = False
        self.hurry = asyncio.Event()
        self.tasks: list[asyncio.Task[None]] = []

    async def open(self) -> None:
        await self.settle()
        self.tasks = [asyncio.create_task(self._ping())]
        if self.parts.driver.shared:
            self.tasks.append(asyncio.create_task(self._heed()))

    async def close(self, patience: float) -> None:
        """Let turns in flight end, at most so long or until `hurry` is set; then stop them, which gives their sessions back."""
        if self.stopping:
            return
        self.stopping = True
        for own in self.tasks:
            own.cancel()
        tasks = [r.task for r in self.running if r.task]
        if tasks:
            hurried = asyncio.ensure_future(self.hurry.wait())
            ends: list[asyncio.Future[Any]] = [asyncio.gather(*tasks, return_exceptions=True), hurried]
            await asyncio.wait(ends, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
            hurried.cancel()
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks, timeout=GIVE_BACK_SECONDS)
        self.journal.close()

    async def _ping(self) -> None:
        while True:
            await asyncio.sleep(PING_SECONDS)
            for running in list(self.running):
                running.ping()

    async def _heed(self) -> None:
        """Stop what somebody asked another server to stop, and let others have what is not needed here any more."""
        while True:
            await asyncio.sleep(HEED_SECONDS)
            with contextlib.suppress(errors.StoreError):
                await self._repay()
                for tenant, name in await self.parts.driver.read(self._to_stop) if self.by_name else ():
                    self.cancel(tenant, name)

    async def _repay(self) -> None:
        """Give back what failed turns could not."""
        driver, owed = self.parts.driver, self.parts.owed
        while owed:
            begun = owed[0]
            claim = begun.request.idempotency
            if claim and claim.slot in self.by_slot:  # by now it is the claim of a turn that runs
                begun = replace(begun, request=replace(begun.request, idempotency=None))
            await driver.write(partial(begun.undo, owner=driver.owner), durable=False)
            owed.pop(0)

    async def settle(self) -> None:
        """Write down that works which nobody is at any more were interrupted."""
        driver, known = self.parts.driver, set(self.by_name)

        def work(tx: Tx) -> None:
            works.settle(tx, now=self.parts.clock())
            works.forgotten(tx, owner=driver.owner, known=known, now=self.parts.clock())

        await driver.write(work)

    def _to_stop(self, tx: Tx) -> list[tuple[str, str]]:
        return works.to_stop(tx, owner=self.parts.driver.owner)

    def cancel(self, tenant: str, name: str) -> bool:
        """Stop the turn of this name, if it runs here."""
        running = self.by_name.get((tenant, name))
        if running:
            running.cancel()
        return running is not None

    def start(self, request: TurnRequest, wire: Wire, keeper: Keeper | None = None) -> tuple[Running, bool]:
        """Begin a turn, or join the one that runs with the same idempotency key: the turn, and whether it was joined."""
        if self.stopping:
            raise errors.Stopped("the server is shutting down; send the request again")
        wanted = request.idempotency
        if wanted and (joined := self.by_slot.get(wanted.slot)) and not joined.cancelled:
            if joined.fingerprint != wanted.fingerprint:
                message = f"the Idempotency-Key {wanted.key!r} is in use with another body"
                raise errors.Conflict(message, code="idempotency_key_conflict", param="Idempotency-Key")
            self.parts.metrics.add("mnemon_replays_total")
            return joined, True
        running = Running(
            numbered=request.stream and not request.stateless, fingerprint=wanted.fingerprint if wanted else None, keeper=keeper
        )
        self.running.add(running)
        if wanted:
            self.by_slot[wanted.slot] = running
        if keeper:
            self.by_name[request.tenant, keeper.name] = running
        running.task = asyncio.create_task(self._guarded(request, wire, running))
        return running, False

    async def preview(self, request: TurnRequest) -> tuple[resolve.Begun, Prompt]:
        """What would be sent for this request: no model call, no write."""
        begun = await self.parts.driver.read(lambda tx: resolve.look(tx, request, tails=self.parts.tails))
        return begun, await prompt_for(self.parts, begun)

    async def _guarded(self, request: TurnRequest, wire: Wire, running: Running) -> None:
        """Run a turn to its end, whatever the end is."""
        metrics, started = self.parts.metrics, self.parts.clock()
        metrics.add("mnemon_turns_running", 1)
        failure: errors.MnemonError | None = None
        try:
            await self._in_order(request, wire, running)
        except errors.MnemonError as error:
            failure = error
            if isinstance(error, errors.ModelError):
                self.pulse.failed(error, self.parts.clock())
        except asyncio.CancelledError:
            if not running.cancelled:
                failure = errors.Stopped("the server stopped before the turn ended; send the request again")
                raise
            failure = errors.Cancelled("the turn was stopped before it ended")
        except Exception:  # the edge of a turn: whatever it was, the log has it, and those who watch must see an end
            log.exception("a turn failed")
            failure = errors.MnemonError("the server failed; its log says why")
        finally:
            try:
                if failure:
                    await self._failed(failure, wire, running)
            finally:
                self._over(request, running)
                if isinstance(failure, (errors.ModelError, errors.StoreError)):
                    log.warning("a turn failed with %s: %s (%s)", failure.code, failure.message, cause_of(failure))
                metrics.add("mnemon_turns_running", -1)
                metrics.add("mnemon_turns_total", 1, outcome=type(failure).code if failure else "done")
                metrics.add("mnemon_turn_seconds_sum", self.parts.clock() - started)

    def _over(self, request: TurnRequest, running: Running) -> None:
        """Nobody finds it any more."""
        self.running.discard(running)
        if request.idempotency and self.by_slot.get(request.idempotency.slot) is running:
            del self.by_slot[request.idempotency.slot]
        if running.keeper:
            del self.by_name[request.tenant, running.keeper.name]

    async def _failed(self, failure: errors.MnemonError, wire: Wire, running: Running) -> None:
        """Write down that the turn failed, and only then let it be seen; also if it is told to stop meanwhile."""
        frames = running.numbered_frames(wire.failure(failure))
        try:
            await self.journal.leave(running)
            if running.keeper and running.keeper.early:
                await self._keep_failure(running.keeper, failure, *running.unlogged(frames))
        finally:
            running.fail(failure, frames)

    async def _keep_failure(self, keeper: Keeper, failure: errors.MnemonError, number: int, frames: bytes) -> None:
        now = self.parts.clock()
        try:
            async with asyncio.timeout(LAST_WORD_SECONDS):
                await self.parts.driver.write(lambda tx: keeper.failed(tx, failure, number=number, frames=frames, at=now))
        except (errors.StoreError, TimeoutError):
            log.warning("the end of %s could not be written down; it will be found interrupted", keeper.name, exc_info=True)

    async def _in_order(self, request: TurnRequest, wire: Wire, running: Running) -> None:
        if request.stateless:
            await self._turn(request, wire, running, None)
            return
        name = request.identity.session_id or resolve.unnamed(request)
        async with self.gates.hold((request.tenant, name), reject=request.reject_if_busy) as place:
            await self._turn(request, wire, running, place)

    async def _turn(self, request: TurnRequest, wire: Wire, running: Running, place: Place | None) -> None:
        token = ids.turn()
        self.parts.driver.enter(token)
        try:
            found = await self._resolve(request, wire, running, place, token=token)
            if isinstance(found, resolve.Overtaken):
                async with branching.branch(self.parts, request) as branch:
                    await self._turn(branch, wire, running, place)
            elif isinstance(found, Record):
                self._replay(found, request, running)
            elif isinstance(found, resolve.Begun):
                self._log(request, running)
                await Answer(self.parts, found, wire, running, journal=self.journal).run()
                if not request.silent:
                    self.pulse.answered(self.parts.clock())
            else:
                await elsewhere.follow(self.parts.driver, request, running, clock=self.parts.clock)
        finally:
            self.parts.driver.leave(token)

    def _log(self, request: TurnRequest, running: Running) -> None:
        """What can be followed from elsewhere, or read after the end of this process, goes into the event log."""
        names = [running.keeper.name] if running.keeper and running.announced else []
        if request.stream and request.idempotency and self.parts.driver.shared:
            names.append(stream_of(request.idempotency))
        if names:
            self.journal.watch(running, [(request.tenant, name) for name in names])

    async def _resolve(
        self, request: TurnRequest, wire: Wire, running: Running, place: Place | None, *, token: str
    ) -> resolve.Begun | resolve.Elsewhere | resolve.Overtaken | Record:
        """Wait until the session is ours, or the answer is known."""
        parts, driver = self.parts, self.parts.driver
        if commands.asked(request):
            return await commands.carry_out(driver, request, wire, running.keeper, now=parts.clock(), numbering=running.numbering)
        if request.stateless and not request.idempotency:
            return resolve.look_stateless(request)
        wait = FIRST_WAIT
        while True:
            found = await self._begin(request, wire, running, token=token)
            if place and isinstance(found, resolve.Begun):
                self.gates.writing(place, (request.tenant, found.lease))
            if not isinstance(found, resolve.Busy):
                return found
            if request.reject_if_busy:
                raise busy()
            if place and await self.gates.behind(place, (request.tenant, found.lease)):
                wait = FIRST_WAIT
            else:  # its writer is in another process
                await asyncio.sleep(wait)
                wait = min(wait * 2, LONGEST_WAIT)

    async def _begin(self, request: TurnRequest, wire: Wire, running: Running, *, token: str) -> resolve.Found:
        """Try to become the writer. Who is stopped meanwhile gives back what the database may still have granted."""
        parts, driver = self.parts, self.parts.driver
        work = driver.begin(
            lambda tx: resolve.begin(
                tx, request, keeper=running.keeper, owner=driver.owner, token=token, tails=parts.tails, now=parts.clock()
            ),
            writes=request.idempotency is not None or running.announced,
        )
        granted = asyncio.ensure_future(work)
        try:
            return await asyncio.shield(granted)
        except asyncio.CancelledError:
            with contextlib.suppress(errors.MnemonError):
                found = await to_its_end(granted)
                if isinstance(found, resolve.Begun):
                    await Answer(parts, found, wire, running, journal=self.journal).give_back()
            raise

    def _replay(self, record: Record, request: TurnRequest, running: Running) -> None:
        running.replayed = record.replayed
        if record.replayed:
            self.parts.metrics.add("mnemon_replays_total")
        running.effective = Effective(**record.headers)
        if request.stream:
            frames = split_frames(record.body)
            if request.resume_after > len(frames):
                message = f"Last-Event-ID is {request.resume_after}, but the stream ended with frame {len(frames)}"
                raise errors.Invalid(message, code="invalid_last_event_id", param="Last-Event-ID")
            running.finish(frames, b"")
        else:
            running.finish([], record.body)


def cause_of(error: BaseException) -> str:
    """What lies behind an error, for the log: never for a client."""
    while error.__cause__ is not None:
        error = error.__cause__
    return f"{type(error).__name__}: {error}"
