"""`/v1/conversations`: sessions, as OpenAI's Conversations API sees them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from mnemon.core import errors, ids
from mnemon.core.records import Effective, Identity, Json, StoredMessage, TurnRequest
from mnemon.edge import identity as identities
from mnemon.edge import render, schemas
from mnemon.edge.body import read_object
from mnemon.edge.chat import begin, if_busy
from mnemon.edge.idempotency import idempotency_of, once
from mnemon.edge.responses import fields, items, objects, stored
from mnemon.edge.responses.routes import INCLUDE, order
from mnemon.edge.services import Services, path_value, services
from mnemon.edge.sessions import only
from mnemon.memory import erasure
from mnemon.runs.described import Described
from mnemon.store.base import Tx
from mnemon.store.conversations import Conversation, Conversations
from mnemon.store.sessions import NewSession, Sessions
from mnemon.turn.keeping import Keeper
from mnemon.turn.running import Outcome

MOST_ITEMS = 20
SOURCE = "conversation"


class PutWire:
    """A turn in which messages are put into a conversation: `show` says what came of it. It is never streamed."""

    def __init__(self, show: Callable[[Outcome], Json]) -> None:
        self.show = show

    def begin(self, effective: Effective) -> list[bytes]:
        return []

    def chunk(self, chunk: Json) -> list[bytes]:
        return []

    def finish(self, outcome: Outcome) -> list[bytes]:
        return []

    def failure(self, error: errors.MnemonError) -> list[bytes]:
        return []

    def whole(self, outcome: Outcome) -> bytes:
        return msgspec.json.encode(self.show(outcome))


def shown(name: str, metadata: Json, started_at: float) -> Json:
    return {"id": name, "object": "conversation", "created_at": int(started_at), "metadata": metadata}


def metadata_of(body: Json) -> Json:
    return {} if body.get("metadata") is None else fields.metadata(body["metadata"])


def given_items(body: Json) -> items.Placed:
    """The items of a request, checked. Raises `Invalid`."""
    value = body.get("items") or []
    if not isinstance(value, list):
        raise schemas.wrong("items", "must be a list")
    if len(value) > MOST_ITEMS:
        raise schemas.wrong("items", f"are {len(value)}; at most {MOST_ITEMS} are taken at once")
    for place, _ in items.referred(value, place="items"):
        raise schemas.wrong(place, "cannot be put into a conversation by reference", code="unsupported_item")
    return items.read(value, place="items") if value else []


async def put(request: Request, turn: TurnRequest, show: Callable[[Outcome], Json], keeper: Keeper | None = None) -> Response:
    """Put messages into a conversation, in its order like any turn, and show what came of it."""
    running, joined = begin(request, turn, PutWire(show), keeper)
    return render.Whole(
        running, lambda watched: identities.echo(turn.identity, watched.effective, replayed=joined or watched.replayed), leave_cancels=False
    )


def turn_of(request: Request, body: Json, placed: items.Placed, identity: Identity) -> TurnRequest:
    spoken = [(message, place) for message, place in placed if message.spoken]
    return TurnRequest(
        tenant=request.state.tenant,
        identity=identity,
        messages=tuple(message for message, _ in spoken),
        places=tuple(place for _, place in spoken),
        params={},
        model=body.get("model") or services(request).names.shown,
        stream=False,
        idempotency=idempotency_of(request, body),
        reject_if_busy=if_busy(request),
        source=SOURCE,
        appends=True,
        silent=True,
    )


async def create(request: Request) -> Response:
    app = services(request)
    body = await read_object(request, may_be_empty=True)
    only(body, "items", "metadata", "model")
    schemas.checked({"model": body["model"]} if "model" in body else {})
    metadata = metadata_of(body)
    placed = given_items(body)
    identity = identities.read(request, open_webui=app.open_webui)
    identity = replace(identity, session_id=identity.session_id or ids.conversation())
    name, tenant, now = str(identity.session_id), request.state.tenant, app.clock()
    system = "\n\n".join(message.text for message, _ in placed if not message.spoken) or None
    turn = turn_of(request, body, placed, identity)
    if turn.messages:
        keeper = Described(tenant=tenant, name=name, metadata=metadata, system_prompt=system)
        return await put(request, turn, lambda outcome: shown(str(outcome.root), metadata, now), keeper)

    def work(tx: Tx) -> Json:
        new = NewSession(
            id=name, source=SOURCE, session_key=identity.session_key, identity=identity, model=body.get("model"), system_prompt=system
        )
        lineage = Sessions(tx, tenant).begin(new, at=now)
        Conversations(tx, tenant).describe(lineage.id, metadata)
        return shown(name, metadata, now)

    made, again = await once(app, request, body, work)
    return render.JsonResponse(made, headers=identities.echo(replace(identity, session_id=made["id"]), replayed=again))


def named(request: Request) -> tuple[str, str]:
    """(tenant, conversation) of a request."""
    return request.state.tenant, path_value(request, "conversation_id")


async def get(request: Request) -> Response:
    tenant, name = named(request)
    schemas.query_only(request.query_params)
    found = await services(request).driver.read(lambda tx: Conversations(tx, tenant).get(name))
    return render.JsonResponse(shown(name, found.metadata, found.started_at), headers=echo(name))


async def update(request: Request) -> Response:
    tenant, name = named(request)
    body = await read_object(request)
    only(body, "metadata")
    if "metadata" not in body:
        raise schemas.wrong("metadata", "is missing")
    metadata = metadata_of(body)

    def work(tx: Tx) -> Json:
        conversations = Conversations(tx, tenant)
        found = conversations.get(name)
        conversations.describe(found.lineage, metadata)
        return shown(name, metadata, found.started_at)

    made, again = await once(services(request), request, body, work)
    return render.JsonResponse(made, headers=identities.echo(Identity(session_id=name), replayed=again))


async def delete(request: Request) -> Response:
    """Delete the conversation with what was learned from it, as deleting its session does."""
    app, (tenant, name) = services(request), named(request)
    now = app.clock()

    def work(tx: Tx) -> None:
        Conversations(tx, tenant).get(name)
        erase(tx, app, tenant, erasure.Selector(session_id=name), at=now)

    await app.driver.write(work)
    return render.JsonResponse({"id": name, "object": "conversation.deleted", "deleted": True})


def erase(tx: Tx, app: Services, tenant: str, selector: erasure.Selector, *, at: float) -> None:
    lineage = Sessions(tx, tenant).lineage_of(selector.session_id)
    if lineage:
        plan = erasure.planned(tx, tenant, lineage.scope, selector, hold=True)
        erasure.carried_out(tx, tenant, lineage.scope, plan, memory=app.memory, at=at)


# -- items ----------------------------------------------------------------------------------------------------------------


async def list_items(request: Request) -> Response:
    (tenant, name), query = named(request), request.query_params
    schemas.query_only(query, "limit", "order", "after", *INCLUDE)
    limit = schemas.query_integer(query, "limit", default=20, low=1, high=100)
    backwards, after = order(query) == "desc", query.get("after")

    def work(tx: Tx) -> tuple[list[Json], bool]:
        found = Conversations(tx, tenant).get(name)
        return stored.page(tx, tenant, found, limit=limit, backwards=backwards, after=after)

    listed, more = await services(request).driver.read(work)
    return render.JsonResponse(objects.page(listed, has_more=more), headers=echo(name))


async def create_items(request: Request) -> Response:
    app, (tenant, name) = services(request), named(request)
    schemas.query_only(request.query_params, *INCLUDE)
    body = await read_object(request)
    only(body, "items")
    placed = given_items(body)
    if not placed:
        raise schemas.wrong("items", "must be a list with at least one item")
    for message, place in placed:
        if not message.spoken:
            problem = "is system text: it can be given when the conversation is created, or as instructions of a response"
            raise schemas.wrong(f"{place}.role", problem, code="unsupported_item")
    identity = identities.read(request, open_webui=app.open_webui)
    if identity.session_id not in (None, name):
        raise schemas.wrong(identities.SESSION_ID, "names another conversation than the path", code="invalid_session_id")
    await app.driver.read(lambda tx: Conversations(tx, tenant).get(name))
    turn = replace(turn_of(request, body, placed, replace(identity, session_id=name)), must_exist=True)

    def show(outcome: Outcome) -> Json:
        added = [
            item
            for index, message in enumerate(turn.messages)
            for item in stored.items_at(
                str(outcome.root), StoredMessage(message=message, position=outcome.first + index, at=0.0, session_id=name)
            )
        ]
        return objects.page(added, has_more=False)

    return await put(request, turn, show)


async def get_item(request: Request) -> Response:
    (tenant, name), item = named(request), path_value(request, "item_id")
    schemas.query_only(request.query_params, *INCLUDE)

    def work(tx: Tx) -> Json:
        found = Conversations(tx, tenant).get(name)
        return stored.item(tx, tenant, found, item)[1]

    return render.JsonResponse(await services(request).driver.read(work), headers=echo(name))


async def delete_item(request: Request) -> Response:
    """Delete the message that an item belongs to, with what was learned from it; the conversation, as it is then."""
    app, (tenant, name), item = services(request), named(request), path_value(request, "item_id")
    now = app.clock()

    def work(tx: Tx) -> Conversation:
        found = Conversations(tx, tenant).get(name)
        position, _ = stored.item(tx, tenant, found, item)
        erase(tx, app, tenant, erasure.Selector(session_id=name, position=position), at=now)
        return found

    found = await app.driver.write(work)
    return render.JsonResponse(shown(name, found.metadata, found.started_at), headers=echo(name))


def echo(name: str) -> dict[str, str]:
    return identities.echo(Identity(session_id=name))
