"""`/api/sessions`: sessions as resources, and chat in one of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from mnemon.core import errors, ids
from mnemon.core.records import Effective, Json, Message, TurnRequest
from mnemon.edge import errors as edge_errors
from mnemon.edge import identity as identities
from mnemon.edge import render, schemas, sse
from mnemon.edge.body import read_object
from mnemon.edge.chat import begin, if_busy
from mnemon.edge.idempotency import idempotency_of, last_event_id, once
from mnemon.edge.services import Services, path_value, services
from mnemon.memory import erasure
from mnemon.store.base import Row, Tx
from mnemon.store.messages import Messages, wire
from mnemon.store.sessions import NewSession, Sessions, missing
from mnemon.turn.running import Outcome

LONGEST_TITLE = 100
COLUMNS = (
    "id", "source", "user_id", "user_name", "chat_id", "chat_name", "chat_type", "thread_id", "model", "title", "started_at", "ended_at",
    "end_reason", "message_count", "tool_call_count", "input_tokens", "output_tokens", "cache_read_tokens", "reasoning_tokens",
    "api_call_count", "session_key", "branches", "last_active", "preview",
)  # fmt: skip


def shown(row: Row) -> Json:
    """A session as clients see it."""
    return {
        **{name: row[name] for name in COLUMNS},
        "parent_session_id": row["parent_id"],
        "cache_write_tokens": 0,
        "estimated_cost_usd": None,
        "actual_cost_usd": None,
        "has_system_prompt": bool(row["has_system_prompt"]),
        "has_model_config": False,
        "_lineage_root_id": row["root"],
        "_lineage_tip_id": row["tip"],
    }


def listed(row: Row) -> Json:
    """A conversation in a listing: its tip, with the beginning and the size of the whole."""
    whole = {
        "preview": row["root_preview"] or row["preview"],
        "started_at": row["root_started_at"],
        "message_count": int(row["messages_in_all"]),
    }
    return {**shown(row), **whole}


def title_of(body: Json) -> str | None:
    title = body.get("title")
    if title is None:
        return None
    if not isinstance(title, str) or len(title) > LONGEST_TITLE or not title.replace(" ", "x").isprintable():
        raise schemas.wrong("title", f"must be a text of at most {LONGEST_TITLE} printable characters", code="invalid_title")
    return title


def only(body: Json, *allowed: str) -> None:
    for field in body:
        if field not in allowed:
            raise schemas.wrong(field, "is not a field of this request", code="unsupported_parameter")


def text_field(body: Json, field: str) -> str | None:
    value = body.get(field)
    if value is not None and (not isinstance(value, str) or "\x00" in value):
        raise schemas.wrong(field, "must be a string without NUL characters", code=f"invalid_{field}")
    return value


async def index(request: Request) -> Response:
    query = request.query_params
    schemas.query_only(query, "limit", "offset", "source", "session_key", "include_children")
    limit = schemas.query_integer(query, "limit", default=50, low=1, high=200)
    offset = schemas.query_integer(query, "offset", default=0, low=0, high=10**12)
    children = schemas.query_flag(query, "include_children")
    source = identities.checked(query.get("source", ""), code="invalid_request", param="source") or ""
    key = identities.checked(query.get("session_key", ""), code="invalid_session_key", param="session_key") or ""
    tenant = request.state.tenant

    def work(tx: Tx) -> list[Row]:
        return Sessions(tx, tenant).listing(limit=limit + 1, offset=offset, source=source, session_key=key, children=children)

    rows = await services(request).driver.read(work)
    body = {"object": "list", "data": [listed(r) for r in rows[:limit]], "limit": limit, "offset": offset, "has_more": len(rows) > limit}
    return render.JsonResponse(body)


async def create(request: Request) -> Response:
    app = services(request)
    body = await read_object(request, may_be_empty=True)
    only(body, "id", "session_id", "title", "system_prompt", "model", "source", "session_key")
    identity = identities.read(request, open_webui=app.open_webui)
    session_id = identities.from_body(body, "id") or identities.from_body(body, "session_id") or ids.session()
    problem = schemas.name(body["model"]) if body.get("model") is not None else None
    if problem:
        raise schemas.wrong("model", problem)
    source = body.get("source", "api_server")
    if not isinstance(source, str) or not identities.checked(source, code="invalid_request", param="source"):
        raise schemas.wrong("source", "must be a short text")
    new = NewSession(
        id=session_id,
        source=source,
        title=title_of(body),
        model=body.get("model"),
        system_prompt=text_field(body, "system_prompt"),
        session_key=identities.from_body(body, "session_key") or identity.session_key,
        identity=identity,
    )
    tenant, now = request.state.tenant, app.clock()

    def work(tx: Tx) -> Json:
        sessions = Sessions(tx, tenant)
        sessions.begin(new, at=now)
        return shown(sessions.get(new.id))

    made, again = await once(app, request, body, work)
    return render.JsonResponse({"object": "hermes.session", "session": made}, 201, identities.echo(identity, replayed=again))


async def get(request: Request) -> Response:
    session_id, tenant = path_value(request, "session_id"), request.state.tenant
    row = await services(request).driver.read(lambda tx: Sessions(tx, tenant).get(session_id))
    return render.JsonResponse({"object": "hermes.session", "session": shown(row)})


async def update(request: Request) -> Response:
    app = services(request)
    session_id, tenant = path_value(request, "session_id"), request.state.tenant
    body = await read_object(request)
    for field in body:
        if field not in ("title", "end_reason"):
            raise schemas.wrong(field, "cannot be changed; title and end_reason can", code="unsupported_session_field")
    title, reason = title_of(body), body.get("end_reason")
    if reason is not None and (not isinstance(reason, str) or not identities.checked(reason, code="invalid_request", param="end_reason")):
        raise schemas.wrong("end_reason", "must be a short text")
    now = app.clock()

    def work(tx: Tx) -> Row:
        sessions = Sessions(tx, tenant)
        row = sessions.get(session_id)
        if "title" in body:
            sessions.rename(session_id, title)
            sessions.rename(str(row["tip"]), title)  # which is what a listing shows
        if reason is not None:
            sessions.end(session_id, reason, at=now)
        return sessions.get(session_id)

    return render.JsonResponse({"object": "hermes.session", "session": shown(await app.driver.write(work))})


async def delete(request: Request) -> Response:
    app = services(request)
    session_id, tenant, now = path_value(request, "session_id"), request.state.tenant, app.clock()

    def work(tx: Tx) -> None:
        lineage = Sessions(tx, tenant).lineage_of(session_id)
        if lineage is None:
            raise missing(session_id)
        plan = erasure.planned(tx, tenant, lineage.scope, erasure.Selector(session_id=session_id), hold=True)
        erasure.carried_out(tx, tenant, lineage.scope, plan, memory=app.memory, at=now)

    await app.driver.write(work)
    return render.JsonResponse({"object": "hermes.session.deleted", "id": session_id, "deleted": True})


async def messages(request: Request) -> Response:
    """Every original message of the conversation that the session belongs to, in order, a page at a time."""
    session_id, tenant, query = path_value(request, "session_id"), request.state.tenant, request.query_params
    schemas.query_only(query, "limit", "offset", "order", "branch")
    limit = schemas.query_integer(query, "limit", default=500, low=1, high=1000)
    offset = schemas.query_integer(query, "offset", default=0, low=0, high=10**12)
    branch = schemas.query_integer(query, "branch", default=0, low=0, high=10**9)
    order = query.get("order", "oldest")
    if order not in ("oldest", "latest"):
        raise schemas.wrong("order", "must be oldest or latest")
    if branch and order == "latest":
        raise schemas.wrong("order", "must be oldest for an old branch", code="unsupported_parameter")

    def work(tx: Tx) -> tuple[str, list[Any]]:
        lineage = Sessions(tx, tenant).lineage_of(session_id)
        if lineage is None:
            raise missing(session_id)
        if branch > lineage.branches:
            raise schemas.wrong("branch", f"must be a number from 0 to {lineage.branches}")
        stored = Messages(tx, tenant, lineage.id)
        return lineage.tip, stored.page(limit=limit + 1, offset=offset, latest=order == "latest", branch=branch)

    tip, found = await services(request).driver.read(work)
    more = len(found) > limit
    body = {
        "object": "list",
        "session_id": tip,
        "data": [wire(m) for m in found[:limit]],
        "has_more": more,
        "pagination": {"limit": limit, "offset": offset, "order": order, "has_more": more},
    }
    return render.JsonResponse(body)


async def fork(request: Request) -> Response:
    app = services(request)
    session_id, tenant = path_value(request, "session_id"), request.state.tenant
    body = await read_object(request, may_be_empty=True)
    only(body, "id", "session_id", "title")
    wanted = identities.from_body(body, "id") or identities.from_body(body, "session_id") or ids.session()
    title, now = title_of(body), app.clock()
    identity = identities.read(request, open_webui=app.open_webui)

    def work(tx: Tx) -> Json:
        sessions = Sessions(tx, tenant)
        source = sessions.held(session_id)
        if source is None:
            raise missing(session_id)
        if identity.session_key is not None and source.session_key not in (None, identity.session_key):
            message = f"the session {session_id!r} belongs to another session key, and a fork is under the same key"
            raise errors.Conflict(message, code="session_key_conflict", param=identities.SESSION_KEY)
        row, first = sessions.get(source.tip), sessions.get(source.root)
        new = NewSession(
            id=wanted,
            source=row["source"],
            parent_id=session_id,
            title=title or (f"{row['title'][: LONGEST_TITLE - 3]} #2" if row["title"] else None),
            model=row["model"],
            system_prompt=source.system_prompt,
            session_key=source.session_key or identity.session_key,
        )
        sessions.fork(source, new, preview=first["preview"], at=now)
        return shown(sessions.get(wanted))

    made, again = await once(app, request, body, work)
    headers = {identities.REPLAYED: "true"} if again else {}
    return render.JsonResponse({"object": "hermes.session", "session": made}, 201, headers)


# -- chat in a session --------------------------------------------------------------------------------------------------


class SessionWire:
    """A turn as Hermes' session routes show it: named events, each with session_id, run_id, seq and ts."""

    def __init__(self, *, clock: Any, said: Any) -> None:
        self.clock = clock
        self.said = said
        self.run_id = ids.run()
        self.message_id = ids.message()
        self.session_id: str | None = None
        self.seq = 0

    def _event(self, name: str, **payload: Any) -> bytes:
        self.seq += 1
        common = {"session_id": self.session_id, "run_id": self.run_id, "seq": self.seq, "ts": self.clock()}
        return sse.event(name, {**common, **payload})

    def begin(self, effective: Effective) -> list[bytes]:
        self.session_id = effective.session_id
        return [
            self._event("run.started", user_message=self.said),
            self._event("message.started", message={"id": self.message_id, "role": "assistant"}),
        ]

    def chunk(self, chunk: Json) -> list[bytes]:
        delta = (chunk["choices"][0].get("delta") or {}) if chunk.get("choices") else {}
        found = []
        if delta.get("reasoning_content"):
            found.append(self._event("reasoning.delta", message_id=self.message_id, delta=delta["reasoning_content"]))
        if delta.get("content"):
            found.append(self._event("assistant.delta", message_id=self.message_id, delta=delta["content"]))
        return found

    def finish(self, outcome: Outcome) -> list[bytes]:
        self.session_id = outcome.effective.session_id
        content, whole = outcome.reply.get("content") or "", outcome.finish_reason != "length"
        hermes = outcome.effective.as_json()
        return [
            self._event(
                "assistant.completed", message_id=self.message_id, content=content, completed=whole, partial=not whole, interrupted=False
            ),
            self._event(
                "run.completed",
                message_id=self.message_id,
                completed=whole,
                messages=[outcome.reply],
                usage=token_counts(outcome.usage),
                hermes=hermes,
            ),
            self._event("done", hermes=hermes),
        ]

    def failure(self, error: errors.MnemonError) -> list[bytes]:
        shape = edge_errors.shape(error)
        return [self._event("error", message=error.message, error=shape), self._event("done", error=shape)]

    def whole(self, outcome: Outcome) -> bytes:
        return msgspec.json.encode(
            {
                "object": "hermes.session.chat.completion",
                "session_id": outcome.effective.session_id,
                "message": {"role": "assistant", "content": None, **outcome.reply},
                "finish_reason": outcome.finish_reason,
                "usage": token_counts(outcome.usage),
                "hermes": outcome.effective.as_json(),
            }
        )


def token_counts(usage: Json) -> Json:
    prompt, completion = usage.get("prompt_tokens") or 0, usage.get("completion_tokens") or 0
    counts: Json = {"input_tokens": prompt, "output_tokens": completion, "total_tokens": usage.get("total_tokens") or prompt + completion}
    return counts | ({"estimated": True} if usage.get("estimated") else {})


def session_turn(app: Services, request: Request, body: Json, *, stream: bool) -> TurnRequest:
    """What a chat in a session asks for. Raises `Invalid`."""
    field = "input" if body.get("message") is None and "input" in body else "message"
    said = body.get(field)
    for other in ("messages", *(("input",) if field == "message" else ())):
        if body.get(other) is not None:
            raise schemas.wrong(other, f"does not go with a chat in a session; send {field} alone", code="unsupported_parameter")
    if body.get("stream") not in (None, stream):
        raise schemas.wrong("stream", "is chosen by the route: /chat or /chat/stream", code="unsupported_parameter")
    if said is None:
        raise schemas.wrong("message", "is missing", code="missing_message")
    schemas.check_content(field, said, images=True)
    spoken = [Message({"role": "user", "content": said})]
    for name in ("system_message", "instructions"):
        system = text_field(body, name)
        if system:
            spoken.insert(0, Message({"role": "system", "content": system}))
    rest = {k: v for k, v in body.items() if k not in ("message", "input", "system_message", "instructions", "stream")}
    params = schemas.checked(rest)
    identity = identities.read(request, open_webui=app.open_webui, user=params.get("user"))
    session_id = path_value(request, "session_id")
    if identity.session_id not in (None, session_id):
        raise schemas.wrong(identities.SESSION_ID, "names another session than the path", code="invalid_session_id")
    return TurnRequest(
        tenant=request.state.tenant,
        identity=replace(identity, session_id=session_id),
        messages=tuple(spoken),
        model=params.pop("model", app.names.shown),
        stream=stream,
        params=params,
        idempotency=idempotency_of(request, body),
        reject_if_busy=if_busy(request),
        resume_after=last_event_id(request),
        must_exist=True,
        source="api_server",
    )


async def chat(request: Request) -> Response:
    return await answer(request, stream=False)


async def chat_stream(request: Request) -> Response:
    return await answer(request, stream=True)


async def answer(request: Request, *, stream: bool) -> Response:
    app = services(request)
    body = await read_object(request)
    turn = session_turn(app, request, body, stream=stream)
    app.names.check(turn.model)
    running, joined = begin(request, turn, SessionWire(clock=app.clock, said=turn.messages[-1].body["content"]))

    def headers(watched: Any) -> dict[str, str]:
        return identities.echo(turn.identity, watched.effective, replayed=joined or watched.replayed)

    if stream:
        return render.Stream(running, headers, after=turn.resume_after, leave_cancels=False)
    return render.Whole(running, headers, leave_cancels=False)
