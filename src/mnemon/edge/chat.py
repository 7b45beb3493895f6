"""`POST /v1/chat/completions` and `POST /v1/context/preview`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from mnemon.core import errors, ids
from mnemon.core.records import Effective, Json, TurnRequest
from mnemon.edge import errors as edge_errors
from mnemon.edge import identity as identities
from mnemon.edge import openwebui, render, schemas, sse
from mnemon.edge.body import read_object
from mnemon.edge.idempotency import idempotency_of, last_event_id
from mnemon.edge.services import Services, services
from mnemon.turn.keeping import Keeper
from mnemon.turn.running import Outcome, Running, Wire

CHUNK_FIELDS = frozenset({"id", "object", "created", "model", "choices", "usage"})
PLAIN_CHUNK = 5  # fields of a chunk with nothing in it but the first five


class ChatWire:
    """A turn in OpenAI's shape."""

    def __init__(self, *, model: str, created: int, include_usage: bool) -> None:
        self.head: Json = {"id": ids.completion(), "object": "chat.completion.chunk", "created": created, "model": model}
        self.prefix = b"data: %b," % msgspec.json.encode(self.head)[:-1]
        self.include_usage = include_usage
        self.role_sent = False

    def begin(self, effective: Effective) -> list[bytes]:
        return []

    def chunk(self, chunk: Json) -> tuple[bytes, ...]:
        choices = chunk.get("choices")
        if not choices:
            return ()
        choice = choices[0]
        if self.role_sent and len(chunk) == PLAIN_CHUNK and choice.get("finish_reason") is None:
            return (b'%b"choices":%b}\n\n' % (self.prefix, msgspec.json.encode(choices)),)
        if choice.get("finish_reason"):
            if not choice.get("delta"):
                return ()
            choices = [{**choice, "finish_reason": None}]
        if not self.role_sent:
            self.role_sent = True
            choices = [{**choices[0], "delta": {"role": "assistant", **(choices[0].get("delta") or {})}}]
        extra = {name: value for name, value in chunk.items() if name not in CHUNK_FIELDS}
        return (self._frame(choices, extra),)

    def _frame(self, choices: list[Json], extra: Json) -> bytes:
        tail = b",%b\n\n" % msgspec.json.encode(extra)[1:] if extra else b"}\n\n"
        return b'%b"choices":%b%b' % (self.prefix, msgspec.json.encode(choices), tail)

    def finish(self, outcome: Outcome) -> list[bytes]:
        extra: Json = {"hermes": outcome.effective.as_json()} if outcome.effective.session_id else {}
        end = {"index": 0, "delta": {} if self.role_sent else {"role": "assistant"}, "finish_reason": outcome.finish_reason}
        if self.include_usage:
            return [self._frame([end], extra), self._frame([], {"usage": outcome.usage}), sse.DONE]
        return [self._frame([end], {**extra, "usage": outcome.usage}), sse.DONE]

    def failure(self, error: errors.MnemonError) -> list[bytes]:
        end = {"index": 0, "delta": {}, "finish_reason": "error"}
        return [self._frame([end], {"error": edge_errors.shape(error)}), sse.DONE]

    def whole(self, outcome: Outcome) -> bytes:
        body: Json = {**outcome.whole, **self.head, "object": "chat.completion", "usage": outcome.usage}
        if outcome.effective.session_id:
            body["hermes"] = outcome.effective.as_json()
        return msgspec.json.encode(body)


def turn_request(app: Services, request: Request, body: Json) -> TurnRequest:
    """What a chat request asks for. Raises `Invalid`."""
    params = schemas.checked(body)
    spoken = schemas.messages(body.get("messages"))
    identity = identities.read(request, open_webui=app.open_webui, user=params.get("user"))
    return TurnRequest(
        tenant=request.state.tenant,
        identity=identity,
        messages=spoken,
        model=params.pop("model", app.names.shown),
        stream=params.pop("stream", False),
        params=params,
        idempotency=idempotency_of(request, body),
        reject_if_busy=if_busy(request),
        resume_after=last_event_id(request),
        whole_history=app.open_webui and openwebui.chat(request),
        background=openwebui.background(spoken, known=app.open_webui and openwebui.talking(request)),
    )


def if_busy(request: Request) -> bool:
    wish = request.headers.get("x-mnemon-if-busy", "wait").strip().lower()
    if wish not in ("wait", "reject"):
        raise schemas.wrong("X-Mnemon-If-Busy", "must be wait or reject")
    return wish == "reject"


def begin(request: Request, turn: TurnRequest, wire: Wire, keeper: Keeper | None = None) -> tuple[Running, bool]:
    """Start a turn or join it. One that is started holds the key's place to its end, whoever leaves before."""
    running, joined = services(request).turns.start(turn, wire, keeper)
    if not joined:
        request.state.visit.turn = running
    return running, joined


async def admitted(running: Running, refused: Callable[[], Awaitable[None]]) -> None:
    """Wait until it is known whether the session was free. Raises `Conflict` if it was not; then `refused` takes back what was written."""
    try:
        await running.ready(render.PATIENCE)
    except errors.MnemonError as error:
        if error.code == "session_busy":
            await refused()
            raise


async def completions(request: Request) -> Response:
    app = services(request)
    body = await read_object(request)
    turn = turn_request(app, request, body)
    app.names.check(turn.model)
    options = turn.params.get("stream_options") or {}
    wire = ChatWire(model=turn.model, created=int(app.clock()), include_usage=options.get("include_usage") is True)
    running, joined = begin(request, turn, wire)

    def headers(watched: Any) -> dict[str, str]:
        return identities.echo(turn.identity, watched.effective, replayed=joined or watched.replayed)

    if turn.stream:
        return render.Stream(running, headers, after=turn.resume_after, leave_cancels=turn.stateless)
    return render.Whole(running, headers, leave_cancels=turn.stateless)


async def preview(request: Request) -> Response:
    """What would be sent upstream; nothing is written and no model is called."""
    app = services(request)
    turn = turn_request(app, request, await read_object(request))
    begun, prompt = await app.turns.preview(turn)
    found = {
        "object": "mnemon.context.preview",
        "session_id": begun.session_id if begun.lineage else turn.identity.session_id,
        "session_key": begun.session_key,
        "model": turn.model,
        "branches_at": begun.cut,
        "messages": prompt.messages,
        **prompt.account(texts=True),
    }
    effective = Effective(session_id=begun.session_id if begun.lineage else None, session_key=begun.session_key)
    return render.JsonResponse(found, headers=identities.echo(turn.identity, effective))
