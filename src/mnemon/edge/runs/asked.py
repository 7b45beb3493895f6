"""What `POST /v1/runs` asks for: read and checked, nothing passed over in silence."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from starlette.requests import Request

from mnemon.core import errors, ids
from mnemon.core.records import Identity, Json, Message, TurnRequest
from mnemon.edge import identity as identities
from mnemon.edge import schemas
from mnemon.edge.chat import if_busy
from mnemon.edge.responses import items
from mnemon.edge.schemas import Check
from mnemon.edge.services import Services
from mnemon.edge.sessions import text_field

OWN = ("input", "instructions", "conversation_history", "previous_response_id", "session_id", "session_key")
PASSED_ON: dict[str, Check] = {
    name: schemas.FIELDS[name]
    for name in (
        "model", "temperature", "top_p", "presence_penalty", "frequency_penalty", "max_tokens", "max_completion_tokens", "seed", "stop",
        "logit_bias", "reasoning_effort", "response_format", "tools", "tool_choice", "parallel_tool_calls", "metadata", "user",
    )
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The turn, and the response that it is to follow."""

    turn: TurnRequest
    previous: str | None


def read(app: Services, request: Request, body: Json) -> Asked:
    """Raises `Invalid` and, for a model that is not there, `NotFound`."""
    for field in body:
        if field not in OWN and field not in PASSED_ON:
            raise schemas.wrong(field, "is not a field of a run", code="unsupported_parameter")
    params = schemas.checked({name: value for name, value in body.items() if name in PASSED_ON}, PASSED_ON)
    if body.get("input") is None:
        raise schemas.wrong("input", "is missing: a text or a list of messages")
    history = body.get("conversation_history")
    earlier = messages("conversation_history", history) if history is not None else []
    instructions = text_field(body, "instructions")
    spoken: items.Placed = [(Message({"role": "system", "content": instructions}), "instructions")] if instructions else []
    spoken += [(message, place) for message, place in earlier if not message.spoken]
    spoken += said(body["input"])
    turn = TurnRequest(
        tenant=request.state.tenant,
        identity=identity_of(app, request, body, previous=body.get("previous_response_id")),
        messages=tuple(message for message, _ in spoken),
        places=tuple(place for _, place in spoken),
        model=params.pop("model", app.names.shown),
        stream=True,
        params=params,
        reject_if_busy=if_busy(request),
        history=tuple(message for message, _ in earlier if message.spoken) if history is not None else None,
        appends=history is not None,
    )
    app.names.check(turn.model)
    return Asked(turn=turn, previous=body.get("previous_response_id"))


def identity_of(app: Services, request: Request, body: Json, *, previous: Any) -> Identity:
    """Who and where: the headers, or the body. Who names neither session nor key gets a session of its own."""
    identity = identities.read(request, open_webui=app.open_webui, user=body.get("user"))
    for field in ("session_id", "session_key"):
        named, header = identities.from_body(body, field), getattr(identity, field)
        if named is not None and header not in (None, named):
            raise schemas.wrong(field, f"names another one than the header {identities.HEADERS[field]}", code=identities.CODES[field])
        identity = replace(identity, **{field: header or named})
    if previous is not None and (not isinstance(previous, str) or not previous or "\x00" in previous):
        raise schemas.wrong("previous_response_id", "must be the id of a response")
    return replace(identity, session_id=ids.session()) if identity.stateless and previous is None else identity


def said(value: Any) -> items.Placed:
    """The input: a text is what the user says; a list must end with the user or a tool."""
    found = items.read(value) if isinstance(value, str) else messages("input", value)
    if not found or found[-1][0].role not in ("user", "tool"):
        raise schemas.wrong("input", "must end with a user message or a tool result")
    return found


def messages(place: str, value: Any) -> items.Placed:
    """Messages as chat completions takes them, items of the Responses API, or both; each with its place in the request."""
    if not isinstance(value, list):
        raise schemas.wrong(place, "must be a list of messages")
    reader = items.Reader({})
    for index, item in enumerate(value):
        where = f"{place}[{index}]"
        if isinstance(item, dict) and "type" not in item and (item.get("role") == "tool" or "tool_calls" in item):
            reader.close()
            reader.found.append((schemas.message(where, item), f"{where}.tool_call_id"))
        elif isinstance(item, dict) and items.kind_of(item) == "item_reference":
            raise schemas.wrong(where, "names an item that is stored; a run takes the items themselves", code="unsupported_item")
        else:
            reader.take(where, item)
    reader.close()
    return reader.found


def steer(body: Json) -> str:
    """What is to be said to a run. Raises `Invalid`."""
    given = [field for field in ("input", "message", "text") if body.get(field) is not None]
    text = body[given[0]] if len(given) == 1 and len(body) == 1 else None
    if not isinstance(text, str) or not text.strip() or "\x00" in text:
        message = "a run is steered with one text: input, message or text"
        raise errors.Invalid(message, code="invalid_steer_input", param=given[0] if given else "input")
    return text
