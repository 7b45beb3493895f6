"""`/v1/memory`: what is remembered, how it came about, and how to change or delete it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from mnemon.core import errors, ids
from mnemon.core.records import Identity, Json, Message
from mnemon.edge import identity as identities
from mnemon.edge import render, schemas, wishes
from mnemon.edge.body import read_object
from mnemon.edge.idempotency import once
from mnemon.edge.services import Services, path_value, services
from mnemon.memory import desk, erasure
from mnemon.memory.language import LANGUAGE
from mnemon.memory.notes import Notes
from mnemon.store.base import Tx
from mnemon.store.memories import Memories, Remembered

LISTED = 1000
EXPORTED_AT_ONCE = 500
SWEPT_WITHIN = 60
MOST_HITS = 100


class Asked:
    """What every route of memory needs to know of its request."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.app: Services = services(request)
        self.tenant: str = request.state.tenant
        self.identity: Identity = identities.read(request, open_webui=self.app.open_webui)
        self.query = request.query_params

    def scope(self, tx: Tx) -> int | None:
        found = desk.scope_of(tx, self.tenant, self.identity)
        return found.id if found else None

    def memory(self) -> str:
        return path_value(self.request, "memory_id")

    def scope_of_memory(self, tx: Tx, memory: str) -> int:
        return desk.scope_of_memory(tx, self.tenant, self.identity, memory)

    def notes(self, tx: Tx, scope: int) -> Notes:
        return Notes(tx, self.tenant, scope, language=LANGUAGE, timezone=self.app.timezone)

    def answer(self, found: Json, status: int = 200, *, again: bool = False) -> Response:
        return render.JsonResponse(found, status, identities.echo(self.identity, replayed=again))

    async def shown(self, memory: str, status: int = 200, *, again: bool = False) -> Response:
        """A memory as it is now. A record of a request keeps its name only: what is deleted must not live on in it."""

        def work(tx: Tx) -> Json:
            return desk.one(tx, self.tenant, self.scope_of_memory(tx, memory), memory)

        return self.answer(await self.app.driver.read(work), status, again=again)


def listing(found: list[Json], *, more: bool = False) -> Json:
    names = [each["id"] for each in found if "id" in each]
    return {
        "object": "list",
        "data": found,
        "first_id": names[0] if names else None,
        "last_id": names[-1] if names else None,
        "has_more": more,
    }


# -- looking ------------------------------------------------------------------------------------------------------------


async def index(request: Request) -> Response:
    asked = Asked(request)
    query = asked.query
    wishes.only(query, "kind", "slot", "text", "session", "from", "to", "origin", "state", "as_of", "limit", "after")
    wanted = wishes.wanted(query)
    limit = schemas.query_integer(query, "limit", default=50, low=1, high=1000)
    after = wishes.text(query["after"], "after", most=wishes.LONGEST_QUERY) if "after" in query else ""

    def work(tx: Tx) -> list[Remembered]:
        return desk.page(tx, asked.tenant, asked.scope(tx), wanted, limit=limit + 1, after=after)

    rows = await asked.app.driver.read(work)
    return asked.answer(listing([desk.shown(m) for m in rows[:limit]], more=len(rows) > limit))


async def search(request: Request) -> Response:
    """What a turn that says this would be reminded of. By POST for what does not belong into a log of addresses."""
    asked = Asked(request)
    body: Json = await read_object(request) if request.method == "POST" else dict(asked.query)
    name = "query" if request.method == "POST" else "q"
    wishes.only(body, name, "limit")
    if request.method == "POST" and (problem := schemas.integer(1, MOST_HITS)(body.get("limit", 10))):
        raise schemas.wrong("limit", problem)
    limit = schemas.query_integer({k: str(v) for k, v in body.items()}, "limit", default=10, low=1, high=MOST_HITS)
    text = wishes.text(body.get(name), name, most=wishes.LONGEST_QUERY)
    scope, found = await desk.recalled(asked.app.driver, asked.app.memory, tenant=asked.tenant, identity=asked.identity, text=text)
    hits = await asked.app.driver.read(lambda tx: desk.hits(tx, asked.tenant, scope.id, found[:limit])) if scope else []
    return asked.answer(listing(hits, more=len(found) > limit))


async def timeline(request: Request) -> Response:
    asked = Asked(request)
    wishes.only(asked.query, "slot", "topic")
    slot, topic = wishes.slot_of(asked.query), asked.query.get("topic", "")
    if bool(slot) == bool(topic):
        raise schemas.wrong("slot", "or topic: one of them says of what", code="invalid_request")
    hits: list[str] = []
    if topic:
        wishes.text(topic, "topic", most=wishes.LONGEST_QUERY)
        _, found = await desk.recalled(asked.app.driver, asked.app.memory, tenant=asked.tenant, identity=asked.identity, text=topic)
        hits = [memory for line in found for memory in line.memories]

    def work(tx: Tx) -> list[Json]:
        return desk.timeline(tx, asked.tenant, asked.scope(tx), slot=slot, topic=topic, hits=hits)

    return asked.answer(listing(await asked.app.driver.read(work)))


async def reversals(request: Request) -> Response:
    asked = Asked(request)
    wishes.only(asked.query, "limit")
    limit = schemas.query_integer(asked.query, "limit", default=50, low=1, high=1000)
    found = await asked.app.driver.read(lambda tx: desk.reversals(tx, asked.tenant, asked.scope(tx), limit=limit + 1))
    return asked.answer(listing(found[:limit], more=len(found) > limit))


async def why(request: Request) -> Response:
    """The causes of a memory, or of whatever words call up."""
    asked = Asked(request)
    wishes.only(asked.query, "id", "q")
    memory, words = asked.query.get("id", ""), asked.query.get("q", "")
    if bool(memory) == bool(words):
        raise schemas.wrong("id", "or q: one of them says of what", code="invalid_request")
    if memory:

        def work(tx: Tx) -> list[Json]:
            return desk.causes(tx, asked.tenant, asked.scope_of_memory(tx, memory), [memory])

        return asked.answer(listing(await asked.app.driver.read(work)))
    text = wishes.text(words, "q", most=wishes.LONGEST_QUERY)
    scope, lines = await desk.recalled(asked.app.driver, asked.app.memory, tenant=asked.tenant, identity=asked.identity, text=text)
    wanted = [name for line in lines for name in line.memories]
    found = await asked.app.driver.read(lambda tx: desk.causes(tx, asked.tenant, scope.id, wanted)) if scope else []
    return asked.answer(listing(found))


async def get(request: Request) -> Response:
    asked = Asked(request)
    wishes.only(asked.query)
    return await asked.shown(asked.memory())


# -- changing -----------------------------------------------------------------------------------------------------------


async def add(request: Request) -> Response:
    asked = Asked(request)
    body = await read_object(request)
    note, now = wishes.note(body), asked.app.clock()

    def work(tx: Tx) -> Json:
        scope = desk.scope_to_write(tx, asked.tenant, asked.identity)
        memory, new = asked.notes(tx, scope).add(note, at=now)
        return {"id": memory, "new": new}

    made, again = await once(asked.app, request, body, work)
    return await asked.shown(made["id"], 201 if made["new"] else 200, again=again)


async def update(request: Request) -> Response:
    """Pin or unpin, or correct: the old words are closed, not overwritten, and the new ones are a memory of their own."""
    asked = Asked(request)
    memory, body, now = asked.memory(), await read_object(request), asked.app.clock()
    wishes.only(body, "text", "kind", "slot", "pinned", "valid_from")
    if not body:
        raise errors.Invalid("nothing is to be changed; text, kind, slot, valid_from and pinned can be", param="text")

    def work(tx: Tx) -> str:
        scope = asked.scope_of_memory(tx, memory)
        memories = Memories(tx, asked.tenant, scope)
        note = wishes.note(body, old=memories.get(memory))
        if set(body) == {"pinned"}:
            memories.pin(memory, pinned=note.pinned)
            return memory
        return asked.notes(tx, scope).correct(memory, note, at=now)

    return await asked.shown(await asked.app.driver.write(work))


async def pin(request: Request) -> Response:
    return await changed(request, "pin")


async def unpin(request: Request) -> Response:
    return await changed(request, "unpin")


async def reopen(request: Request) -> Response:
    return await changed(request, "reopen")


async def changed(request: Request, how: str) -> Response:
    asked = Asked(request)
    memory, body = asked.memory(), await read_object(request, may_be_empty=True)
    wishes.only(body)

    def work(tx: Tx) -> Json:
        memories = Memories(tx, asked.tenant, asked.scope_of_memory(tx, memory))
        if how == "reopen":
            memories.reopen(memory)
        else:
            memories.pin(memory, pinned=how == "pin")
        return {"id": memory}

    _, again = await once(asked.app, request, body, work)
    return await asked.shown(memory, again=again)


# -- deleting -----------------------------------------------------------------------------------------------------------


async def delete_one(request: Request) -> Response:
    asked = Asked(request)
    wishes.only(asked.query)
    memory = asked.memory()
    selector, now = erasure.Selector(memory=memory), asked.app.clock()
    return asked.answer(await asked.app.driver.write(lambda tx: erased(tx, asked, asked.scope_of_memory(tx, memory), selector, at=now)))


async def delete(request: Request) -> Response:
    """Delete by a selector, or with `preview` say what would go."""
    asked = Asked(request)
    body = await read_object(request)
    selector, preview = wishes.selector(body)
    now = asked.app.clock()

    def scope_in(tx: Tx) -> int | None:
        if selector.kind in ("scope", "time") and desk.widened(tx, asked.tenant, asked.identity) is not None:
            message = (
                "the session belongs to a session key, whose whole memory this would reach: send X-Hermes-Session-Key to mean that,"
                " or session_id in the body to delete the one conversation"
            )
            raise errors.Invalid(message, code="memory_scope_required", param="X-Hermes-Session-Key")
        return asked.scope_of_memory(tx, selector.memory) if selector.memory else asked.scope(tx)

    def look(tx: Tx) -> Json:
        return told(erasure.planned(tx, asked.tenant, scope_in(tx), selector), selector)

    if preview:
        return asked.answer(await asked.app.driver.read(look))
    made, again = await once(asked.app, request, body, lambda tx: erased(tx, asked, scope_in(tx), selector, at=now))
    return asked.answer(made, again=again)


def erased(tx: Tx, asked: Asked, scope: int | None, selector: erasure.Selector, *, at: float) -> Json:
    """Delete; the receipt: names and numbers, not a word of what it was."""
    plan = erasure.planned(tx, asked.tenant, scope, selector, hold=True)
    if scope is not None:
        erasure.carried_out(tx, asked.tenant, scope, plan, memory=asked.app.memory, at=at)
    return {
        "object": "memory.deletion",
        "id": ids.deletion(),
        "deleted": True,
        "deleted_at": at,
        "selector": selector.kind,
        "counts": counts(plan),
        "memories": list(plan.gone)[:LISTED],
        "memories_kept": list(plan.kept)[:LISTED],
        "sessions": list(plan.conversations.values())[:LISTED],
        "messages": [place(said) for said in plan.whole.values()][:LISTED],
        "messages_changed": [place(said) for said in plan.cut.values()][:LISTED],
        "swept_within_seconds": SWEPT_WITHIN,
    }


def told(plan: erasure.Plan, selector: erasure.Selector) -> Json:
    """What a deletion would take along, with the words, for the one who is to decide."""
    after = plan.reworded()
    return {
        "object": "memory.deletion.preview",
        "deleted": False,
        "selector": selector.kind,
        "counts": counts(plan),
        "memories": [desk.brief(m) for m in plan.gone.values()][:LISTED],
        "memories_kept": [desk.brief(m) for m in plan.kept.values()][:LISTED],
        "sessions": list(plan.conversations.values())[:LISTED],
        "messages": [{**place(said), "text": said.message.text} for said in plan.whole.values()][:LISTED],
        "messages_changed": [
            {**place(said), "text": said.message.text, "text_after": Message(after[where]).text} for where, said in plan.cut.items()
        ][:LISTED],
    }


def counts(plan: erasure.Plan) -> Json:
    return {
        "memories": len(plan.gone),
        "memories_kept": len(plan.kept),
        "sessions": len(plan.conversations),
        "messages": len(plan.whole),
        "messages_changed": len(plan.cut),
        "evidence": len(plan.lost),
    }


def place(said: Any) -> Json:
    return {"session_id": said.session_id, "position": said.position, "role": said.message.role}


# -- taking along -------------------------------------------------------------------------------------------------------


async def export(request: Request) -> Response:
    """Every memory of the scope, a JSON object on each line, newest first."""
    asked = Asked(request)
    wishes.only(asked.query)
    scope = await asked.app.driver.read(asked.scope)

    async def lines() -> AsyncIterator[bytes]:
        after = ""
        while scope is not None:
            found, after = await asked.app.driver.read(
                lambda tx, after=after: desk.exported(tx, asked.tenant, scope, limit=EXPORTED_AT_ONCE, after=after)  # type: ignore[misc]
            )
            yield b"".join(msgspec.json.encode(line) + b"\n" for line in found)
            if not after:
                return

    return StreamingResponse(lines(), media_type="application/x-ndjson", headers=identities.echo(asked.identity))


async def take_over(request: Request) -> Response:
    asked = Asked(request)
    rows, links, bound = await wishes.lines(request)

    def work(tx: Tx) -> Json:
        scope = desk.scope_to_write(tx, asked.tenant, asked.identity)
        new, known = asked.notes(tx, scope).take_over(rows, links)
        return {"object": "memory.import", "imported": len(new), "known_already": known, "memories": new[:LISTED]}

    made, again = await once(asked.app, request, bound, work)
    return asked.answer(made, again=again)
