"""A Responses request, read: which turn it asks for, and what the response will repeat of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from starlette.requests import Request

from mnemon.core import errors, ids
from mnemon.core.records import Identity, Json, Message, TurnRequest
from mnemon.edge import identity as identities
from mnemon.edge import openwebui
from mnemon.edge.chat import if_busy
from mnemon.edge.idempotency import idempotency_of, last_event_id
from mnemon.edge.responses import fields, items, stored
from mnemon.edge.schemas import wrong
from mnemon.edge.services import Services
from mnemon.runs import chains
from mnemon.store.base import Tx

COUNTED = frozenset({
    "conversation", "input", "instructions", "model", "parallel_tool_calls", "previous_response_id", "reasoning", "text", "tool_choice",
    "tools", "truncation", "conversation_history", "user",
})  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is asked for: a turn; `echo` is what the response repeats; `system` are the system messages that stand in no transcript."""

    turn: TurnRequest
    echo: Json
    system: list[Json]
    kept: bool
    background: bool
    stream: bool


async def asked(app: Services, request: Request, body: Json) -> Asked:
    """Read and check a request. Raises `Invalid`, `NotFound` and `Conflict`."""
    given = fields.checked(body)
    params = fields.params(given)
    identity = identities.read(request, open_webui=app.open_webui, user=given.get("user"))
    conversation = conversation_of(given.get("conversation"), identity)
    previous = given.get("previous_response_id")
    if conversation is not None and previous is not None:
        raise wrong("previous_response_id", "does not go with conversation: both say what to continue")
    tenant = request.state.tenant
    references = [*items.referred(given.get("input")), *items.referred(given.get("conversation_history"), place="conversation_history")]
    known = await app.driver.read(lambda tx: stored.referred(tx, tenant, references, conversation)) if references else {}
    system, spoken, history = read(given, known)
    store = given.get("store", True)
    identity = replace(identity, session_id=conversation) if conversation else identity
    messages = tuple(message for message, _ in (*system, *spoken))
    aside = openwebui.background(messages, known=app.open_webui and openwebui.talking(request))
    if identity.stateless and store and previous is None and not aside:
        identity = replace(identity, session_id=ids.session())
    model = given.get("model", app.names.shown)
    background = given.get("background", False)
    turn = TurnRequest(
        tenant=tenant,
        identity=identity,
        messages=messages,
        model=model,
        stream=background or given.get("stream", False),
        params=params,
        idempotency=None if background else idempotency_of(request, body),
        reject_if_busy=if_busy(request),
        whole_history=app.open_webui and openwebui.chat(request),
        background=aside,
        resume_after=last_event_id(request),
        history=None if history is None else tuple(history),
        appends=conversation is not None,
        places=tuple(place for _, place in (*system, *spoken)),
    )
    if previous is not None:
        turn = await app.driver.read(lambda tx: behind(tx, turn, previous))
    echo = fields.repeated(given, model=model) | ({"conversation": {"id": conversation}} if conversation else {})
    return Asked(
        turn=turn,
        echo=echo,
        system=[message.body for message, place in (*system, *spoken) if not message.spoken and place != "instructions"],
        kept=store and not turn.stateless,
        background=background,
        stream=given.get("stream", False),
    )


def behind(tx: Tx, turn: TurnRequest, previous: str) -> TurnRequest:
    """The turn, going on behind a response; a session that the header names otherwise is the header's fault."""
    try:
        return chains.continued(tx, turn, previous)
    except errors.Invalid as error:
        if error.param == "session_id":
            raise errors.Invalid(error.message, code=error.code, param=identities.SESSION_ID) from error
        raise


def read(given: Json, known: dict[str, Json]) -> tuple[items.Placed, items.Placed, Sequence[Message] | None]:
    """(system text, input, the history that stands in place of the stored one) of a request."""
    system: items.Placed = []
    if given.get("instructions"):
        system.append((Message({"role": "system", "content": given["instructions"]}), "instructions"))
    if "input" not in given:
        raise wrong("input", "is missing")
    spoken = items.asked(given["input"], known=known)
    if "conversation_history" not in given:
        return system, spoken, None
    if given["conversation_history"] == []:
        return system, spoken, ()
    if not isinstance(given["conversation_history"], list):
        raise wrong("conversation_history", "must be a list of messages")
    past = items.read(given["conversation_history"], place="conversation_history", known=known)
    paired(past)
    return [*system, *((m, p) for m, p in past if not m.spoken)], spoken, [m for m, _ in past if m.spoken]


def paired(past: items.Placed) -> None:
    """A history whose every output answers a call in it. Raises `Invalid`."""
    called: set[Any] = set()
    for message, place in past:
        called |= {call["id"] for call in message.calls}
        if message.role == "tool" and message.body["tool_call_id"] not in called:
            problem = f"{place} answers no call in it"
            raise errors.Invalid(problem, code="unknown_tool_call", param=place)


def conversation_of(value: Any, identity: Identity) -> str | None:
    """The conversation that is named, as a text or as an object with an id. Raises `Invalid`."""
    if value is None:
        return None
    param, named = ("conversation.id", value.get("id")) if isinstance(value, dict) else ("conversation", value)
    if not isinstance(named, str):
        raise wrong(param, "must be the name of a conversation")
    found = identities.checked(named, code="invalid_session_id", param=param)
    if found is None:
        raise wrong(param, "is empty")
    if identity.session_id not in (None, found):
        raise wrong(identities.SESSION_ID, "names another conversation than the body", code="invalid_session_id")
    return found
