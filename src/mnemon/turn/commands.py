"""`/new` and `/reset`: a new transcript under the same key, without a model call. The old transcript is not touched."""

from __future__ import annotations

from collections.abc import Callable

from mnemon.core import ids
from mnemon.core.records import Effective, Json, Message, TurnRequest
from mnemon.store.base import Driver, Tx
from mnemon.store.idempotency import Record, Records
from mnemon.store.sessions import NewSession, Sessions
from mnemon.turn import resolve
from mnemon.turn.keeping import Keeper, Made
from mnemon.turn.running import Outcome, Wire

COMMANDS = ("/new", "/reset")

WITH_KEY = "Started a new conversation. What I remember about you stays."
WITHOUT_KEY = "Started a new conversation. It begins with nothing: without a session key, no memory is carried over."


def asked(request: TurnRequest) -> bool:
    """Whether the whole user message is a command. Without a session it is an ordinary message."""
    spoken = request.spoken()
    return not request.stateless and bool(spoken) and spoken[-1].role == "user" and is_command(spoken[-1])


def is_command(message: Message) -> bool:
    """Whether a message is a command and nothing else: with an image beside it, it is none."""
    content = message.body.get("content")
    pictured = isinstance(content, list) and any(part.get("type") != "text" for part in content)
    return message.text.strip() in COMMANDS and not pictured


async def carry_out(
    driver: Driver,
    request: TurnRequest,
    wire: Wire,
    keeper: Keeper | None,
    *,
    now: float,
    numbering: Callable[[int, bytes], bytes],
) -> Record | resolve.Elsewhere:
    """Rotate the session; the answer in the shape of a record."""
    return await driver.write(lambda tx: rotate(tx, request, wire, keeper, owner=driver.owner, now=now, numbering=numbering))


def rotate(
    tx: Tx,
    request: TurnRequest,
    wire: Wire,
    keeper: Keeper | None,
    *,
    owner: int,
    now: float,
    numbering: Callable[[int, bytes], bytes],
) -> Record | resolve.Elsewhere:
    records = Records(tx, request.tenant)
    if request.idempotency:
        known = records.find(request.idempotency, now=now)
        if isinstance(known, Record):
            return known
        if known is not None or not records.begin(request.idempotency, owner=owner, now=now):
            return resolve.Elsewhere()
    sessions = Sessions(tx, request.tenant)
    lineage, _ = resolve.locate(sessions, request)
    key = (lineage.session_key if lineage else None) or request.identity.session_key
    new = sessions.begin(
        NewSession(id=ids.session(), source=request.source, session_key=key, identity=request.identity, model=request.model), at=now
    )
    if key is not None:
        sessions.make_current(key, new.id)
    outcome = confirmation(Effective(session_id=new.root, session_key=key), WITH_KEY if key is not None else WITHOUT_KEY)
    record = answer(request, wire, outcome, numbering)
    if request.idempotency:
        records.finish(request.idempotency, record, lineage=new.id, now=now)
    if keeper:
        frames = record.body if request.stream else b""
        keeper.committed(
            tx,
            Made(
                effective=outcome.effective,
                lineage=new.id,
                first=None,
                last=None,
                chain=b"",
                usage=outcome.usage,
                number=1,
                frames=frames,
                at=now,
            ),
        )
    return record


def answer(request: TurnRequest, wire: Wire, outcome: Outcome, numbering: Callable[[int, bytes], bytes]) -> Record:
    """The confirmation, as the route shows a reply."""
    headers = outcome.effective.as_json()
    if not request.stream:
        return Record(headers=headers, body=wire.whole(outcome), replayed=False)
    deltas = [{"role": "assistant", "content": ""}, {"content": outcome.reply["content"]}]
    frames = wire.begin(outcome.effective)
    for delta in deltas:
        frames += wire.chunk({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    frames += wire.finish(outcome)
    return Record(headers=headers, body=b"".join(numbering(i, f) for i, f in enumerate(frames)), replayed=False)


def confirmation(effective: Effective, text: str) -> Outcome:
    """The outcome of a turn in which no model spoke."""
    reply: Json = {"role": "assistant", "content": text, "refusal": None}
    return Outcome(
        reply=reply,
        finish_reason="stop",
        usage={"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
        effective=effective,
        whole={"choices": [{"index": 0, "message": reply, "logprobs": None, "finish_reason": "stop"}]},
    )
