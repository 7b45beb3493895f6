"""The turn proper: prompt, call, commit. One object for each turn.

No transaction is open while the model is called. What the client sees of the end, it sees after the commit.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from mnemon.context import compress, tokens
from mnemon.core import errors, ids
from mnemon.core.records import Effective, Json, Message, Prompt, Stated, StoredMessage
from mnemon.store.idempotency import Record
from mnemon.turn import commit, reply
from mnemon.turn.journal import Journal
from mnemon.turn.parts import Parts
from mnemon.turn.prompt import COUNTED_IN_A_THREAD, prompt_for
from mnemon.turn.resolve import Begun
from mnemon.turn.running import Outcome, Running, Wire
from mnemon.turn.tails import Version

log = logging.getLogger("mnemon.turn")

T = TypeVar("T")

NOTHING_USED = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
LAST_WORD_SECONDS = 2.0  # for the database to answer a turn that must stop


class Answer:
    """Carries one turn from its prompt to its commit."""

    def __init__(self, parts: Parts, begun: Begun, wire: Wire, running: Running, *, journal: Journal) -> None:
        self.parts = parts
        self.journal = journal
        self.begun = begun
        self.request = begun.request
        self.wire = wire
        self.running = running

    async def run(self) -> None:
        """If it fails, the lease and the claim on the idempotency key are given back."""
        begun, parts = self.begun, self.parts
        try:
            prompt = Prompt(messages=[], tokens=0, budget=parts.limits.budget, blocks=())
            if not self.request.silent:
                prompt = await prompt_for(parts, begun)
                parts.metrics.add("mnemon_prompt_tokens_total", prompt.tokens)
            self.running.effective = Effective(session_id=begun.session_id, session_key=begun.session_key)
            await self._commit(prompt, await self._call(prompt))
        except BaseException:
            await self.give_back()
            raise
        if not parts.counter.loaded:
            parts.counter.warm()

    # -- call -----------------------------------------------------------------------------------------------------------

    async def _call(self, prompt: Prompt) -> Outcome:
        request = self.request
        if request.silent:
            return self._outcome(prompt, {}, None, {"usage": NOTHING_USED})
        body: Json = {**request.params, "model": await self.parts.names.upstream(request.model), "messages": prompt.messages}
        if request.stream:
            return await self._stream(prompt, body)
        whole = await self.parts.model.complete(body)
        choice = whole["choices"][0]
        return self._outcome(prompt, choice["message"], choice.get("finish_reason"), whole)

    async def _stream(self, prompt: Prompt, body: Json) -> Outcome:
        request, running, wire = self.request, self.running, self.wire
        for frame in wire.begin(running.effective):
            running.push(frame)
        body |= {"stream": True, "stream_options": {**(request.params.get("stream_options") or {}), "include_usage": True}}
        collected = reply.Reply()
        async with contextlib.aclosing(self.parts.model.stream(body)) as chunks:
            async for chunk in chunks:
                collected.add(chunk)
                for frame in wire.chunk(chunk):
                    running.push(frame)
        return self._outcome(prompt, collected.message(), collected.finish_reason, {"usage": collected.usage})

    def _outcome(self, prompt: Prompt, message: Json, finish: str | None, whole: Json) -> Outcome:
        begun, usage = self.begun, whole.get("usage")
        estimate = tokens.message_tokens(self.parts.counter, message) if not usage else 0
        return Outcome(
            reply=message,
            finish_reason=finish or "stop",
            usage=reply.counted(usage, prompt=prompt.tokens, completion=estimate),
            effective=Effective(
                session_id=begun.session_id,
                parent_session_id=begun.lineage.parent if begun.lineage else None,
                session_key=begun.session_key,
                receipt_id=ids.receipt() if begun.lease is not None else None,
            ),
            whole=whole,
            root=begun.lineage.root if begun.lineage else begun.session_id,
            first=begun.next_position,
        )

    # -- commit -----------------------------------------------------------------------------------------------------------

    async def _commit(self, prompt: Prompt, outcome: Outcome) -> None:
        """Make the turn durable, and only then let its end be seen."""
        begun, running, now = self.begun, self.running, self.parts.clock()
        messages = self._messages(outcome, now) if begun.lease is not None else ()
        compaction = await self._compaction(messages) if messages else None
        if compaction:
            child = replace(outcome.effective, session_id=ids.session(), parent_session_id=begun.session_id, compressed=True)
            outcome = replace(outcome, effective=child)
            self.parts.metrics.add("mnemon_compressions_total")
        frames, body = self._rendered(outcome)
        await self.journal.leave(running)
        record = None
        if self.request.idempotency:
            record = Record(headers=outcome.effective.as_json(), body=b"".join([*running.frames, *frames]) if self.request.stream else body)
        number, rest = running.unlogged(frames) if running.keeper else (1, b"")
        if messages or record:
            memory = self.parts.memory
            result = commit.Result(
                begun=begun,
                messages=messages,
                rows=commit.hashed(messages, begun.chain),
                plans=await self._plans(messages, now),
                usage=outcome.usage,
                effective=outcome.effective,
                compaction=compaction,
                receipt=self._receipt(prompt, outcome, messages),
                record=record,
                at=now,
                keeper=running.keeper,
                number=number,
                frames=rest,
            )
            learned = await to_its_end(self.parts.driver.write(lambda tx: commit.commit(tx, result, memory)))
            if learned:
                memory.committed(*learned)
                self._keep_tail(result, learned[0].lineage)
        running.effective = outcome.effective
        running.finish(frames, body)

    def _keep_tail(self, result: commit.Result, lineage: int) -> None:
        """The next turn of this conversation will want the transcript as it is now."""
        begun = self.begun
        upto = result.compaction.upto if result.compaction else begun.compacted_to
        branches = (begun.lineage.branches if begun.lineage else 0) + (begun.cut is not None)
        erasures = begun.lineage.erasures if begun.lineage else 0
        live = [m for m in (*begun.history, *result.messages) if m.position > upto]
        version = Version(chain=result.rows[-1][2], compacted_to=upto, branches=branches, erasures=erasures)
        self.parts.tails.keep(lineage, version, live)

    async def _plans(self, messages: tuple[StoredMessage, ...], now: float) -> list[Any]:
        """What memory will make of each message; nothing at all for a turn that it is not to learn from."""
        if not self.request.learns:
            return []
        said, origin = [m.message for m in messages], self.request.origin
        if sum(len(m.text) for m in messages) > COUNTED_IN_A_THREAD:
            return await asyncio.to_thread(self.parts.memory.prepare, said, at=now, origin=origin)
        return self.parts.memory.prepare(said, at=now, origin=origin)

    def _rendered(self, outcome: Outcome) -> tuple[list[bytes], bytes]:
        """The last frames of a stream, numbered; or the whole body."""
        if not self.request.stream:
            return [], self.wire.whole(outcome)
        return self.running.numbered_frames(self.wire.finish(outcome)), b""

    def _messages(self, outcome: Outcome, now: float) -> tuple[StoredMessage, ...]:
        """What the turn adds to the transcript: the client's new messages and the reply."""
        begun, counter = self.begun, self.parts.counter
        said = [*begun.new] if self.request.silent else [*begun.new, Message(reply.stored_form(outcome.reply))]
        return tuple(
            StoredMessage(
                message=message,
                position=begun.next_position + index,
                at=now,
                session_id=str(begun.session_id),
                tokens=tokens.message_tokens(counter, message.body) if counter.loaded else None,
                counted_by=counter.name,
                finish_reason=outcome.finish_reason if index == len(begun.new) else None,
                origin="" if begun.request.origin == "user" else begun.request.origin,
            )
            for index, message in enumerate(said)
        )

    async def _compaction(self, messages: tuple[StoredMessage, ...]) -> compress.Compaction | None:
        counter, limits = self.parts.counter, self.parts.limits
        live = [*self.begun.history, *messages]
        if not counter.loaded:
            # No token is shorter than a byte: far below the threshold there is nothing to count.
            if sum(4 * len(m.text) + 100 for m in live) <= limits.budget * limits.compress_at:
                return None
            await asyncio.to_thread(counter.ready)
        groups = compress.leaving(live, counter=counter, budget=limits.budget, compress_at=limits.compress_at)
        if not groups:
            return None
        positions = {*(m.position for group in groups for m in group), *(line.position for line in self.begun.state)}
        return compress.plan(groups, self.begun.state, await self._stated(sorted(positions)), counter=counter, budget=limits.budget)

    async def _stated(self, positions: list[int]) -> list[Stated]:
        """What the ledger knows of these messages before this turn; what the turn itself changes is left to the commit."""
        lineage = self.begun.lineage
        if lineage is None or not lineage.scope_memories:
            return []
        return await self.parts.memory.stated(tenant=self.request.tenant, scope=lineage.scope, lineage=lineage.id, positions=positions)

    def _receipt(self, prompt: Prompt, outcome: Outcome, messages: tuple[StoredMessage, ...]) -> Json:
        begun = self.begun
        return {
            "id": outcome.effective.receipt_id,
            "object": "mnemon.receipt",
            "created_at": messages[0].at if messages else None,
            "session_id": begun.session_id,
            "session_key": begun.session_key,
            "model": self.request.model,
            "finish_reason": outcome.finish_reason,
            "usage": outcome.usage,
            "compressed": outcome.effective.compressed,
            "stored": {"from_position": messages[0].position, "to_position": messages[-1].position} if messages else None,
            "prompt": prompt.account(),
        }

    # -- failure ------------------------------------------------------------------------------------------------------------

    async def give_back(self) -> None:
        """Undo what `resolve.begin` did. The process's death would do the same."""
        begun, request = self.begun, self.request
        if begun.lease is None and not request.idempotency:
            return

        try:
            async with asyncio.timeout(LAST_WORD_SECONDS):
                await self.journal.leave(self.running)  # a batch under way would be written behind the deletion of its stream
                await self.parts.driver.write(partial(begun.undo, owner=self.parts.driver.owner), durable=False)
        except (errors.StoreError, TimeoutError):
            if self.parts.driver.shared:  # else nobody but this process asks for it
                self.parts.owed.append(begun)
            log.warning("a lease could not be given back yet", exc_info=True)


async def to_its_end(work: Awaitable[T]) -> T:
    """Wait for a commit though the turn is told to stop: once it is written, the turn has ended, and the client is to know.

    Only a database that does not answer is not waited for.
    """
    future = asyncio.ensure_future(work)
    with contextlib.suppress(asyncio.CancelledError):
        return await asyncio.shield(future)
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.wait([future], timeout=LAST_WORD_SECONDS)
    if not future.done():
        future.add_done_callback(lambda late: late.cancelled() or late.exception())  # nobody is left to hear of it
        raise asyncio.CancelledError
    return future.result()
