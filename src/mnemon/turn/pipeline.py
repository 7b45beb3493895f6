"""One turn, from the request to the commit: resolve → recall and assemble → call → commit.

The turn runs in a task of its own and writes into a `Running`; the HTTP response only watches. So a client that goes away stops nothing
that belongs to a session, and a retry can join. No transaction is open while the model is called.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import dataclass, replace
from typing import Any

from mnemon.context import assemble, compress, tokens
from mnemon.core import errors, ids
from mnemon.core.clock import Clock
from mnemon.core.metrics import Metrics
from mnemon.core.records import Effective, Json, Message, Prompt, StoredMessage, TurnRequest
from mnemon.memory.base import Memory, Query
from mnemon.model.base import Model
from mnemon.store.base import Driver
from mnemon.store.idempotency import Record, Records
from mnemon.store.leases import Leases
from mnemon.turn import commands, commit, elsewhere, reply, resolve
from mnemon.turn.gates import Gates, busy
from mnemon.turn.naming import Names
from mnemon.turn.running import Running, Wire, split_frames

log = logging.getLogger("mnemon.turn")

FIRST_WAIT = 0.02
LONGEST_WAIT = 0.25
PING_SECONDS = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How large a prompt may be, and what of it may be what."""

    budget: int
    recall_tokens: int
    compress_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A finished turn: what `Wire` renders."""

    reply: Json
    finish_reason: str
    usage: Json
    effective: Effective
    whole: Json


class Turns:
    """Runs turns. One for each process."""

    def __init__(
        self, *, driver: Driver, model: Model, memory: Memory, counter: tokens.Counter, names: Names, limits: Limits, clock: Clock, metrics: Metrics
    ) -> None:
        self.driver = driver
        self.model = model
        self.memory = memory
        self.counter = counter
        self.names = names
        self.limits = limits
        self.clock = clock
        self.metrics = metrics
        self.gates = Gates()
        self.running: set[Running] = set()
        self.by_slot: dict[bytes, Running] = {}
        self.tokens: set[str] = set()
        self.stopping = False
        self.pinger: asyncio.Task[None] | None = None

    async def open(self) -> None:
        self.pinger = asyncio.create_task(self._ping())

    async def close(self, patience: float) -> None:
        """Let turns in flight end, at most so long; then stop them, which gives their sessions back."""
        self.stopping = True
        if self.pinger:
            self.pinger.cancel()
        tasks = [r.task for r in self.running if r.task]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=patience)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _ping(self) -> None:
        while True:
            await asyncio.sleep(PING_SECONDS)
            for running in list(self.running):
                running.ping()

    def start(self, request: TurnRequest, wire: Wire) -> Running:
        """Begin a turn, or join the one that runs with the same idempotency key."""
        if self.stopping:
            raise errors.Stopped("the server is shutting down; send the request again")  # noqa: EM101
        wanted = request.idempotency
        if wanted and (joined := self.by_slot.get(wanted.slot)):
            if joined.fingerprint != wanted.fingerprint:
                message = f"the Idempotency-Key {wanted.key!r} is in use with another body"
                raise errors.Conflict(message, code="idempotency_key_conflict", param="Idempotency-Key")
            joined.replayed = True
            self.metrics.add("mnemon_replays_total")
            return joined
        running = Running(numbered=request.stream and not request.stateless, fingerprint=wanted.fingerprint if wanted else None)
        self.running.add(running)
        if wanted:
            self.by_slot[wanted.slot] = running
        running.task = asyncio.create_task(self._guarded(request, wire, running))
        return running

    async def preview(self, request: TurnRequest) -> tuple[resolve.Begun, Prompt]:
        """What would be sent for this request: no model call, no write."""
        begun = await self.driver.read(lambda tx: resolve.look(tx, request))
        return begun, await self._assemble(begun)

    async def _guarded(self, request: TurnRequest, wire: Wire, running: Running) -> None:
        """Run a turn to its end, whatever the end is."""
        started = self.clock()
        self.metrics.add("mnemon_turns_running", 1)
        outcome = "failed"
        try:
            await self._in_order(request, wire, running)
            outcome = "done"
        except errors.MnemonError as error:
            running.fail(error, wire.failure(error))
        except asyncio.CancelledError:
            outcome = "cancelled"
            error = errors.Stopped("the server stopped before the turn ended; send the request again")
            running.fail(error, wire.failure(error))
            raise
        except Exception:
            log.exception("a turn failed")
            error = errors.MnemonError("the server failed; its log says why")
            running.fail(error, wire.failure(error))
        finally:
            self.running.discard(running)
            if request.idempotency and self.by_slot.get(request.idempotency.slot) is running:
                del self.by_slot[request.idempotency.slot]
            self.metrics.add("mnemon_turns_running", -1)
            self.metrics.add("mnemon_turns_total", 1, outcome=outcome)
            self.metrics.add("mnemon_turn_seconds_sum", self.clock() - started)

    async def _in_order(self, request: TurnRequest, wire: Wire, running: Running) -> None:
        if request.stateless:
            await self._turn(request, wire, running)
            return
        identity = request.identity
        name = (request.tenant, identity.session_id, None if identity.session_id else identity.session_key)
        async with self.gates.hold(name, reject=request.reject_if_busy):
            await self._turn(request, wire, running)

    async def _turn(self, request: TurnRequest, wire: Wire, running: Running) -> None:
        if commands.asked(request):
            found = await commands.carry_out(self.driver, request, wire, now=self.clock(), numbering=running.numbering)
        elif request.stateless and not request.idempotency:
            found = resolve.look_stateless(request)
        else:
            found = await self._begin(request, running)
        if isinstance(found, Record):
            self._replay(found, request, running)
        elif isinstance(found, resolve.Elsewhere):
            await elsewhere.follow(self.driver, request, running, clock=self.clock)
        else:
            await self._answer(found, wire, running)

    async def _begin(self, request: TurnRequest, running: Running) -> resolve.Found:
        """Wait until the session is ours, or the answer is known."""
        token = ids.turn()
        wait = FIRST_WAIT
        while True:
            found = await self.driver.write(
                lambda tx: resolve.begin(tx, request, owner=self.driver.owner, token=token, ours=self.tokens, now=self.clock()), durable=False
            )
            if not isinstance(found, resolve.Busy):
                return found
            if request.reject_if_busy:
                raise busy()
            await asyncio.sleep(wait)
            wait = min(wait * 2, LONGEST_WAIT)

    def _replay(self, record: Record, request: TurnRequest, running: Running) -> None:
        self.metrics.add("mnemon_replays_total")
        running.replayed = record.replayed
        running.effective = Effective(**record.headers)
        if request.stream:
            running.finish(split_frames(record.body), b"")
        else:
            running.finish([], record.body)

    async def _answer(self, begun: resolve.Begun, wire: Wire, running: Running) -> None:
        """The turn proper. If it fails, its lease and its claim on the idempotency key are given back."""
        self.tokens.add(begun.token)
        try:
            prompt = await self._assemble(begun)
            running.effective = Effective(session_id=begun.session_id, session_key=begun.session_key)
            for frame in wire.begin(running.effective) if begun.request.stream else ():
                running.push(frame)
            outcome = await self._call(begun, prompt, wire, running)
            await self._commit(begun, prompt, outcome, wire, running)
        except BaseException:
            await self._give_back(begun)
            raise
        finally:
            self.tokens.discard(begun.token)
        if not self.counter.loaded:
            self.counter.warm()

    async def _assemble(self, begun: resolve.Begun) -> Prompt:
        request = begun.request
        recalled = []
        asked = newest_user_text(begun)
        for scope in begun.scopes if asked else ():
            lineage = begun.lineage.id if begun.lineage else 0
            live = begun.history[0].position - 1 if begun.history else begun.compacted_to
            query = Query(tenant=request.tenant, scope=scope, lineage=lineage, live=live, text=asked, identity=request.identity)
            recalled += await self.memory.recall(query)
        material = assemble.Material(
            system_prompt=begun.lineage.system_prompt if begun.lineage else None,
            system=request.system(),
            state=begun.state,
            history=begun.history,
            new=begun.new,
            recalled=recalled,
            params=request.params,
        )
        if not self.counter.loaded and assemble.roughly(material) > self.limits.budget // 2:
            await asyncio.to_thread(self.counter.ready)
        return assemble.assemble(material, counter=self.counter, budget=self.limits.budget, recall_tokens=self.limits.recall_tokens)

    async def _call(self, begun: resolve.Begun, prompt: Prompt, wire: Wire, running: Running) -> Outcome:
        request = begun.request
        body: Json = {**request.params, "model": await self.names.upstream(request.model), "messages": prompt.messages}
        self.metrics.add("mnemon_prompt_tokens_total", prompt.tokens)
        if not request.stream:
            whole = await self.model.complete(body)
            choice = whole["choices"][0]
            message = choice["message"]
            return self._outcome(begun, prompt, message, choice.get("finish_reason"), whole.get("usage"), whole)
        body |= {"stream": True, "stream_options": {**(request.params.get("stream_options") or {}), "include_usage": True}}
        collected = reply.Reply()
        flusher = elsewhere.Flusher(self.driver, request, running) if self.driver.shared and request.idempotency else None
        async with contextlib.aclosing(self.model.stream(body)) as chunks:
            async for chunk in chunks:
                collected.add(chunk)
                frame = wire.chunk(chunk)
                if frame:
                    running.push(frame)
                    if flusher:
                        await flusher.pushed()
        return self._outcome(begun, prompt, collected.message(), collected.finish_reason, collected.usage, {})

    def _outcome(self, begun: resolve.Begun, prompt: Prompt, message: Json, finish: str | None, usage: Json | None, whole: Json) -> Outcome:
        estimate = tokens.message_tokens(self.counter, message) if not usage else 0
        kept = begun.lease is not None
        return Outcome(
            reply=message,
            finish_reason=finish or "stop",
            usage=reply.counted(usage, prompt=prompt.tokens, completion=estimate),
            effective=Effective(
                session_id=begun.session_id,
                parent_session_id=begun.lineage.parent if begun.lineage else None,
                session_key=begun.session_key,
                receipt_id=ids.receipt() if kept else None,
            ),
            whole=whole,
        )

    async def _commit(self, begun: resolve.Begun, prompt: Prompt, outcome: Outcome, wire: Wire, running: Running) -> None:
        """Make the turn durable, and only then let its end be seen."""
        request, now = begun.request, self.clock()
        messages: tuple[StoredMessage, ...] = ()
        compaction = None
        if begun.lease is not None:
            messages = self._messages(begun, outcome, now)
            compaction = await self._compaction(begun, messages)
        if compaction:
            child = replace(outcome.effective, session_id=ids.session(), parent_session_id=begun.session_id, compressed=True)
            outcome = replace(outcome, effective=child)
            self.metrics.add("mnemon_compressions_total")
        if request.stream:
            first = len(running.frames)
            frames = [running.numbering(first + i, frame) for i, frame in enumerate(wire.finish(outcome))]
            body = b""
        else:
            frames, body = [], wire.whole(outcome)
        record = None
        if request.idempotency:
            record = Record(headers=outcome.effective.as_json(), body=b"".join([*running.frames, *frames]) if request.stream else body)
        if begun.lease is not None or record:
            result = commit.Result(
                begun=begun,
                messages=messages,
                plans=self.memory.prepare([m.message for m in messages]),
                usage=outcome.usage,
                effective=outcome.effective,
                compaction=compaction,
                receipt=self._receipt(begun, prompt, outcome, messages, now),
                record=record,
                at=now,
            )
            await self.driver.write(lambda tx: commit.commit(tx, result, self.memory))
        running.effective = outcome.effective
        running.finish(frames, body)

    def _messages(self, begun: resolve.Begun, outcome: Outcome, now: float) -> tuple[StoredMessage, ...]:
        """What the turn adds to the transcript: the client's new messages and the reply."""
        said = [*begun.new, Message(reply.stored_form(outcome.reply))]
        last = len(said) - 1
        return tuple(
            StoredMessage(
                message=message,
                position=begun.next_position + index,
                at=now,
                session_id=str(begun.session_id),
                tokens=tokens.message_tokens(self.counter, message.body) if self.counter.loaded else None,
                finish_reason=outcome.finish_reason if index == last else None,
            )
            for index, message in enumerate(said)
        )

    async def _compaction(self, begun: resolve.Begun, messages: tuple[StoredMessage, ...]) -> compress.Compaction | None:
        live = [*begun.history, *messages]
        if not self.counter.loaded:
            if sum(len(m.text) for m in live) <= self.limits.budget * self.limits.compress_at / 2:
                return None
            await asyncio.to_thread(self.counter.ready)
        return compress.plan(live, begun.state, counter=self.counter, budget=self.limits.budget, compress_at=self.limits.compress_at)

    def _receipt(self, begun: resolve.Begun, prompt: Prompt, outcome: Outcome, messages: tuple[StoredMessage, ...], now: float) -> Json:
        return {
            "id": outcome.effective.receipt_id,
            "object": "mnemon.receipt",
            "created_at": now,
            "session_id": begun.session_id,
            "session_key": begun.session_key,
            "model": begun.request.model,
            "finish_reason": outcome.finish_reason,
            "usage": outcome.usage,
            "compressed": outcome.effective.compressed,
            "stored": {"from_position": messages[0].position, "to_position": messages[-1].position} if messages else None,
            "prompt": prompt.account(),
        }

    async def _give_back(self, begun: resolve.Begun) -> None:
        """Undo what `begin` did. The process's death would do the same."""
        request = begun.request
        if begun.lease is None and not request.idempotency:
            return

        def undo(tx: Any) -> None:
            if begun.lease is not None:
                Leases(tx, request.tenant).give_up(begun.lease, begun.token)
            if request.idempotency:
                Records(tx, request.tenant).give_up(request.idempotency, owner=self.driver.owner)

        try:
            await self.driver.write(undo, durable=False)
        except errors.StoreError:
            log.warning("a lease could not be given back; it ends with this process", exc_info=True)


def newest_user_text(begun: resolve.Begun) -> str:
    """What recall is asked for. While tools are at work, that is still the user's question before them."""
    said = [m.text for m in begun.new if m.role == "user"] or [m.text for m in begun.history if m.role == "user"]
    return said[-1] if said else ""
