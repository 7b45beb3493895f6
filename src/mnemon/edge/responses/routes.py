"""`/v1/responses`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from mnemon.core import errors, ids
from mnemon.core.records import Effective, Identity, Json
from mnemon.edge import identity as identities
from mnemon.edge import render, schemas
from mnemon.edge.body import read_object
from mnemon.edge.chat import admitted, begin
from mnemon.edge.idempotency import frame_number, idempotency_of, once
from mnemon.edge.responses import asking, objects, stored
from mnemon.edge.responses.asking import Asked
from mnemon.edge.responses.wire import ResponseWire
from mnemon.edge.services import Services, path_value, services
from mnemon.runs.following import Stream
from mnemon.runs.kept import Kept
from mnemon.store.base import Tx
from mnemon.store.works import Work, Works

STOP_SECONDS = 5.0  # a cancelled response is waited for at most so long
INCLUDE = ("include", "include[]")  # what can be included is there in any case


async def create(request: Request) -> Response:
    app = services(request)
    body = await read_object(request)
    asked = await asking.asked(app, request, body)
    app.names.check(asked.turn.model)
    wire = ResponseWire(ids.response(), asked.echo, system=asked.system, clock=app.clock)
    if asked.background:
        return await in_background(request, body, asked, wire)
    keeper = kept_by(app, asked, wire) if asked.kept else None
    running, joined = begin(request, asked.turn, wire, keeper)

    def headers(watched: Any) -> dict[str, str]:
        return identities.echo(asked.turn.identity, watched.effective, replayed=joined or watched.replayed)

    if asked.stream:
        return render.Stream(running, headers, after=asked.turn.resume_after, leave_cancels=asked.turn.stateless)
    return render.Whole(running, headers, leave_cancels=asked.turn.stateless)


def kept_by(app: Services, asked: Asked, wire: ResponseWire) -> Kept:
    """Who writes the response down. One that is neither streamed nor made in the background is not known before it has ended."""
    early = asked.stream or asked.background
    return Kept(tenant=asked.turn.tenant, name=wire.name, kind="response", owner=app.driver.owner, wire=wire, early=early)


async def in_background(request: Request, body: Json, asked: Asked, wire: ResponseWire) -> Response:
    """Say at once what is being worked on; that is on disk by then."""
    app, turn = services(request), asked.turn
    if app.turns.stopping:
        raise errors.Stopped("the server is shutting down; send the request again")
    now, keeper = app.clock(), kept_by(app, asked, wire)

    def work(tx: Tx) -> Json:
        works = Works(tx, turn.tenant)
        session_id = turn.identity.session_id
        works.begin(keeper.name, "response", status="queued", body=wire.shown(), session_id=session_id, owner=keeper.owner, at=now)
        return {"id": keeper.name}

    made, again = await once(app, request, body, work)
    if not again:
        running, _ = begin(request, turn, wire, keeper)
        if turn.reject_if_busy:
            await admitted(running, partial(app.runs.refused, turn, keeper.name, idempotency_of(request, body)))
    headers = identities.echo(turn.identity, replayed=again)
    if asked.stream:
        return await followed(request, made["id"], after=turn.resume_after, headers=headers)
    return await shown(app, turn.tenant, made["id"], headers=headers)


async def get(request: Request) -> Response:
    query = request.query_params
    schemas.query_only(query, "stream", "starting_after", "include_obfuscation", *INCLUDE)
    schemas.query_flag(query, "include_obfuscation")
    name, streamed = path_value(request, "response_id"), schemas.query_flag(query, "stream")
    if not streamed and "starting_after" in query:
        raise schemas.wrong("starting_after", "goes with stream=true only")
    if not streamed:
        return await shown(services(request), request.state.tenant, name)
    after = schemas.query_integer(query, "starting_after", default=-1, low=0, high=10**9) + 1  # the first event has number 0
    return await followed(request, name, after=max(after, frame_number(request)))


async def shown(app: Services, tenant: str, name: str, *, headers: Mapping[str, str] | None = None) -> Response:
    """A response as it is now."""
    seen = await app.driver.read(lambda tx: stored.response(tx, tenant, name))
    return render.JsonResponse(stored.shown(seen), headers={**echo(seen.work), **(headers or {})})


def echo(work: Work) -> dict[str, str]:
    """The headers that name the session of a response."""
    hermes = work.body.get("hermes") or {"session_id": work.session_id}
    return identities.echo(Identity(), Effective(**hermes))


async def followed(request: Request, name: str, *, after: int, headers: Mapping[str, str] | None = None) -> Response:
    """The events of a response behind a frame, as they come, wherever it is made; of one that has ended, at least the last."""
    app, tenant = services(request), request.state.tenant
    retell = partial(stored.retold, tenant=tenant, clock=app.clock)
    work, events = await app.following.open(Stream(tenant=tenant, name=name, kind="response", retell=retell), after=after)
    return render.Events(events, {**echo(work), **(headers or {})})


async def delete(request: Request) -> Response:
    name, tenant = path_value(request, "response_id"), request.state.tenant

    def work(tx: Tx) -> None:
        works = Works(tx, tenant)
        if not works.get(name, "response").ended:
            raise errors.Conflict(
                f"the response {name!r} is still being made; cancel it first", code="response_not_finished", param="response_id"
            )
        works.delete(name)

    await services(request).driver.write(work)
    return render.JsonResponse({"id": name, "object": "response", "deleted": True})


async def cancel(request: Request) -> Response:
    """Stop a response, wherever it is made; one that has ended stays as it is."""
    app, name, tenant = services(request), path_value(request, "response_id"), request.state.tenant

    def work(tx: Tx) -> None:
        works = Works(tx, tenant)
        if not works.get(name, "response").ended:
            works.stop(name)

    await app.driver.write(work)
    running = app.turns.by_name.get((tenant, name))
    app.turns.cancel(tenant, name)
    if running:
        await running.over(STOP_SECONDS)
    return await shown(app, tenant, name)


async def input_items(request: Request) -> Response:
    query, tenant, name = request.query_params, request.state.tenant, path_value(request, "response_id")
    schemas.query_only(query, "limit", "order", "after", *INCLUDE)
    limit = schemas.query_integer(query, "limit", default=20, low=1, high=100)
    seen = await services(request).driver.read(lambda tx: stored.response(tx, tenant, name))
    items = objects.input_items(seen.work, seen.said)
    if order(query) == "desc":
        items.reverse()
    if "after" in query:
        places = [index for index, item in enumerate(items) if item["id"] == query["after"]]
        if not places:
            raise schemas.wrong("after", "names no item of this list")
        items = items[places[0] + 1 :]
    return render.JsonResponse(objects.page(items[:limit], has_more=len(items) > limit))


def order(query: Mapping[str, str]) -> str:
    """The order of a list; newest first unless it says otherwise. Raises `Invalid`."""
    wish = query.get("order", "desc")
    if wish not in ("asc", "desc"):
        raise schemas.wrong("order", "must be asc or desc")
    return wish


async def input_tokens(request: Request) -> Response:
    """How many tokens would be sent to the model for such a request; nothing is written and no model is called."""
    app = services(request)
    body = await read_object(request)
    for field, value in body.items():
        if value is not None and field not in asking.COUNTED:
            raise schemas.wrong(field, "is not a field of this request", code="unsupported_parameter")
    asked = await asking.asked(app, request, {**body, "store": False})
    _, prompt = await app.turns.preview(asked.turn)
    return render.JsonResponse({"object": "response.input_tokens", "input_tokens": prompt.tokens})
