"""The last step: all that a turn made, in one transaction, or nothing of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from mnemon.context.compress import Compaction
from mnemon.core import errors
from mnemon.core.records import Effective, Json, Lineage, StateLine, StoredMessage, chained
from mnemon.memory.base import Learned, Memory, Taken
from mnemon.store.base import Tx
from mnemon.store.erasures import Erasures
from mnemon.store.idempotency import Record, Records
from mnemon.store.messages import Messages, lines_json
from mnemon.store.receipts import Receipts
from mnemon.store.removals import Removals
from mnemon.store.sessions import NewSession, Sessions, Usage, taken
from mnemon.turn import reply as replies
from mnemon.turn.commands import is_command
from mnemon.turn.keeping import Keeper, Made
from mnemon.turn.resolve import Begun

LONGEST_PREVIEW = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Everything a turn leaves behind, worked out before the transaction begins."""

    begun: Begun
    messages: tuple[StoredMessage, ...]
    rows: list[tuple[StoredMessage, bytes, bytes]]
    plans: Sequence[Any]
    usage: Json
    effective: Effective
    compaction: Compaction | None
    receipt: Json
    record: Record | None
    at: float
    keeper: Keeper | None = None
    number: int = 1
    frames: bytes = b""

    def made(self, lineage: int) -> Made:
        """What a keeper is told."""
        return Made(
            effective=self.effective,
            lineage=lineage,
            first=self.messages[0].position,
            last=self.messages[-1].position,
            chain=self.rows[-1][2],
            usage=self.usage,
            number=self.number,
            frames=self.frames,
            at=self.at,
        )


def commit(tx: Tx, result: Result, memory: Memory) -> tuple[Learned, Taken] | None:
    """Write it; what memory learned. Raises `LeaseLost` if another process took over; then nothing is written."""
    begun, request = result.begun, result.begun.request
    lineage_id = learned = None
    if begun.lease is not None:
        still_ours = tx.leases(request.tenant).end(begun.lease, begun.token)
        lineage = prepared(tx, result, chain=result.rows[-1][2])
        lineage_id = lineage.id
        Messages(tx, request.tenant, lineage.id).add(result.rows)
        learned = learn(tx, result, lineage, memory)
        compress(tx, result, lineage, changed=learned[1].diff)
        body = {**result.receipt, "memory": learned[1].diff}
        Receipts(tx, request.tenant).add(str(result.effective.receipt_id), lineage=lineage.id, body=body, at=result.at)
        if result.keeper:
            result.keeper.committed(tx, result.made(lineage.id))
        still_ours()
    if request.idempotency and result.record:
        Records(tx, request.tenant).finish(request.idempotency, result.record, lineage=lineage_id, now=result.at)
    return learned


def hashed(messages: Sequence[StoredMessage], chain: bytes) -> list[tuple[StoredMessage, bytes, bytes]]:
    """The turn's messages, each with its digest and that of the whole history up to it."""
    rows = []
    for message in messages:
        digest = message.message.digest()
        chain = chained(chain, digest)
        rows.append((message, digest, chain))
    return rows


def prepared(tx: Tx, result: Result, *, chain: bytes) -> Lineage:
    """The lineage as this turn needs it: created, its head moved, bound to its key, rewound to where the new messages go.

    The head comes first: that is where a deletion shows, and where a fork waits.
    """
    begun, request = result.begun, result.begun.request
    sessions = Sessions(tx, request.tenant)
    lineage = begun.lineage
    following = begun.next_position + len(result.messages)
    if lineage is None:
        new = NewSession(
            id=str(begun.session_id),
            source=request.source,
            session_key=begun.session_key,
            identity=request.identity,
            model=request.model,
            talks=request.origin == "user",
        )
        try:
            lineage = sessions.begin(new, at=result.at)
        except errors.Conflict:  # it was created while the model spoke
            lineage = created(sessions, new)
        sessions.advance(lineage.id, next_position=following, chain=chain, at=result.at)
        return bound(sessions, lineage, new.session_key)
    sessions.advance(lineage.id, next_position=following, chain=chain, at=result.at)
    sessions.identify(lineage.tip, request.identity)
    lineage = bound(sessions, lineage, begun.session_key)
    if begun.cut is not None:
        Messages(tx, request.tenant, lineage.id).archive(start=begun.cut, number=lineage.branches + 1, at=result.at)
        Removals(tx, request.tenant, lineage.scope).edited_away(lineage.id, start=begun.cut, at=result.at)
        if begun.cut <= lineage.compacted_to:
            sessions.rewind(lineage.id, upto=begun.compacted_to, state=state_json(tx, lineage, request.tenant, begun.state))
        else:
            sessions.branched(lineage.id)
    return lineage


def created(sessions: Sessions, new: NewSession) -> Lineage:
    """A session that somebody created for this very turn. Raises `Conflict` if it is anything else by now."""
    lineage = sessions.held(new.id)
    if lineage is None or lineage.chain or new.session_key not in (None, lineage.session_key or new.session_key):
        raise taken(new.id)
    return lineage


def bound(sessions: Sessions, lineage: Lineage, session_key: str | None) -> Lineage:
    """The lineage with its key, which it may get only now."""
    if lineage.session_key is not None or session_key is None:
        return lineage
    return replace(lineage, scope=sessions.bind(lineage, session_key), session_key=session_key)


def learn(tx: Tx, result: Result, lineage: Lineage, memory: Memory) -> tuple[Learned, Taken]:
    """Give the turn to memory, and count it."""
    tenant = result.begun.request.tenant
    plans = [(message.position, plan) for message, plan in zip(result.messages, result.plans, strict=False)]  # none, or one for each
    session_id = str(result.begun.session_id)
    learned = Learned(tenant=tenant, scope=lineage.scope, lineage=lineage.id, plans=plans, session_id=session_id, at=result.at)
    taken = memory.learn(tx, learned)
    sessions, usage = Sessions(tx, tenant), usage_of(result)
    sessions.count(lineage.tip, usage)
    if result.begun.begins_anew:
        sessions.show_as(lineage.root, usage.preview)
    return learned, taken


def usage_of(result: Result) -> Usage:
    usage = result.usage
    said = next((m.text for m in result.messages if m.role == "user" and not is_command(m.message)), "")
    return Usage(
        messages=len(result.messages),
        tool_calls=sum(len(m.message.calls) for m in result.messages),
        input_tokens=usage.get("prompt_tokens") or 0,
        output_tokens=usage.get("completion_tokens") or 0,
        cache_read_tokens=replies.detail(usage, "prompt_tokens_details", "cached_tokens"),
        reasoning_tokens=replies.detail(usage, "completion_tokens_details", "reasoning_tokens"),
        calls=0 if result.begun.request.silent else 1,
        model=result.begun.request.model,
        preview=" ".join(said[:LONGEST_PREVIEW].replace("\x00", " ").split()) or None,
    )


def compress(tx: Tx, result: Result, lineage: Lineage, *, changed: Json) -> None:
    """Continue the lineage in a child, if this turn filled its parent.

    The lines were planned before the turn's own statements were judged. What these end leaves the state: the turn, which says so, is live.
    """
    if result.compaction is None:
        return
    tenant = result.begun.request.tenant
    over = {change["id"] for name in ("superseded", "retracted") for change in changed.get(name, ())}
    state = state_json(tx, lineage, tenant, result.compaction.without(over))
    sessions = Sessions(tx, tenant)
    sessions.continue_in(str(result.effective.session_id), lineage, upto=result.compaction.upto, state=state, at=result.at)


def state_json(tx: Tx, lineage: Lineage, tenant: str, state: Sequence[StateLine]) -> str:
    """A compressed state, without the lines whose words were erased while the turn was running."""
    now = Sessions(tx, tenant).lineage_of(lineage.tip)
    if now is None or now.erasures == lineage.erasures:
        return lines_json(state)
    return lines_json(Erasures(tx, tenant, now.scope).standing(lineage.id, state))
