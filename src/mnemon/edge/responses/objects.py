"""Responses and items as clients see them, made from what is stored. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

from mnemon.core import errors
from mnemon.core.records import Json, Message, StoredMessage, text_of
from mnemon.edge import errors as edge_errors
from mnemon.edge.responses import fields
from mnemon.edge.responses.items import item_id
from mnemon.store.works import Status, Work

Segments = Sequence[Sequence[Any]]
"""What a reply consists of, in order: thoughts, words and refusals by their length, calls by their number."""

Naming = Callable[[str, int], str]
"""From a prefix and an index to the name of an item."""

STATUS: dict[Status, str] = {"running": "in_progress", "stopping": "in_progress", "interrupted": "failed"}
INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}
LOST = errors.Stopped("the server ended before the response did; send the request again")


# -- a response -----------------------------------------------------------------------------------------------------------


def response(name: str, body: Json, *, status: Status, output: Sequence[Json]) -> Json:
    """A response. `body` is what is kept of it: `asked`, and once it has ended `usage`, `finish`, `error`, `hermes`, `completed_at`."""
    shown: Json = {
        "id": name,
        "object": "response",
        "created_at": body["created_at"],
        "completed_at": body.get("completed_at") if status == "completed" else None,
        "status": STATUS.get(status, status),
        "error": error(LOST) if status == "interrupted" and not body.get("error") else body.get("error"),
        "incomplete_details": {"reason": INCOMPLETE[body["finish"]]} if status == "incomplete" else None,
        **fields.complete(body["asked"]),
        "output": list(output),
        "usage": usage(body["usage"]) if body.get("usage") else None,
    }
    return shown | ({"hermes": body["hermes"]} if body.get("hermes") else {})


def stored_response(work: Work, said: Sequence[StoredMessage]) -> Json:
    """A response that is known by its name; `said` are the messages of its turn, the reply being the last."""
    body, message = work.body, work.body.get("unsaid")
    if said and said[-1].role == "assistant":
        message = None if said[-1].erased else said[-1].message.body
    item_status = "incomplete" if work.status == "incomplete" else "completed"
    items = output(work.id, message, status=item_status, segments=body.get("segments")) if message else []
    return response(work.id, body, status=work.status, output=items)


def usage(counts: Json) -> Json:
    """Tokens as this API names them."""
    return {
        "input_tokens": counts["prompt_tokens"],
        "input_tokens_details": {"cached_tokens": detail(counts, "prompt_tokens_details", "cached_tokens"), "cache_write_tokens": 0},
        "output_tokens": counts["completion_tokens"],
        "output_tokens_details": {"reasoning_tokens": detail(counts, "completion_tokens_details", "reasoning_tokens")},
        "total_tokens": counts["total_tokens"],
    } | ({"estimated": True} if counts.get("estimated") else {})


def detail(counts: Json, group: str, name: str) -> int:
    found = (counts.get(group) or {}).get(name)
    return found if isinstance(found, int) else 0


def error(failure: errors.MnemonError) -> Json:
    """What a response says of its failure, with one of the codes that OpenAI's clients know."""
    known = "server_error"
    if isinstance(failure, errors.ModelBusy | errors.LimitReached):
        known = "rate_limit_exceeded"
    elif isinstance(failure, errors.Invalid | errors.ModelRejected):
        known = "invalid_prompt"
    shape = edge_errors.shape(failure)
    return {"code": known, "message": failure.message, "type": shape["type"], "param": failure.param}


# -- items of the assistant -----------------------------------------------------------------------------------------------


def thoughts_of(message: Json) -> str:
    """What a model let us read of its reasoning; servers differ in how they call it."""
    found = message.get("reasoning_content") or message.get("reasoning")
    return found if isinstance(found, str) else ""


def words_of(message: Json) -> str:
    return text_of(
        [p for p in message["content"] if p.get("type") == "text"] if isinstance(message.get("content"), list) else message.get("content")
    )


def refusal_of(message: Json) -> str:
    if isinstance(message.get("content"), list):
        return "".join(p.get("refusal") or "" for p in message["content"])
    return message.get("refusal") or ""


def segments_of(message: Json) -> list[list[Any]]:
    """The usual order: thoughts, words, calls. A reply that is nothing at all is an empty message."""
    words, refusal, calls = words_of(message), refusal_of(message), message.get("tool_calls") or []
    found: list[list[Any]] = [["thoughts", len(thoughts_of(message))]] if thoughts_of(message) else []
    if words or not (refusal or calls):
        found.append(["words", len(words)])
    if refusal:
        found.append(["refusal", len(refusal)])
    return found + [["call", index] for index in range(len(calls))]


def fitting(segments: Segments | None, message: Json) -> Segments:
    """These segments, unless words were deleted from the message since."""
    usual = segments_of(message)
    return segments if segments and totals(segments) == totals(usual) else usual


def totals(segments: Segments) -> dict[str, int]:
    found: dict[str, int] = {}
    for kind, size in segments:
        found[kind] = found.get(kind, 0) + (1 if kind == "call" else size)
    return {kind: size for kind, size in found.items() if size}


def output(name: str, message: Json, *, status: str, segments: Segments | None = None, logprobs: Sequence[Json] = ()) -> list[Json]:
    """The items of a response's output."""
    return assistant(message, lambda prefix, index: item_id(prefix, name, index), status=status, segments=segments, logprobs=logprobs)


def assistant(message: Json, naming: Naming, *, status: str, segments: Segments | None = None, logprobs: Sequence[Json] = ()) -> list[Json]:
    """A message of the assistant as items."""
    rest = {"thoughts": thoughts_of(message), "words": words_of(message), "refusal": refusal_of(message)}
    pieces: list[tuple[str, Any]] = []
    for kind, size in fitting(segments, message):
        if kind == "call":
            pieces.append((kind, message["tool_calls"][size]))
        else:
            pieces.append((kind, rest[kind][:size]))
            rest[kind] = rest[kind][size:]
    items: list[Json] = []
    for (group, _), found in groupby(
        enumerate(pieces), key=lambda entry: (group_of(entry[1][0]), entry[0] if entry[1][0] == "call" else 0)
    ):
        parts = [piece for _, piece in found]
        index = len(items)
        if group == "call":
            items.append(call_item(naming("fc", index), parts[0][1], status=status))
        elif group == "thoughts":
            items.append(reasoning_item(naming("rs", index), "".join(text for _, text in parts), status="completed"))
        else:
            shown = [text_part(text, logprobs) if kind == "words" else refusal_part(text) for kind, text in parts]
            items.append(message_item(naming("msg", index), shown, status=status))
    return items


def group_of(kind: str) -> str:
    return "message" if kind in ("words", "refusal") else kind


def reasoning_item(item: str, text: str | None, *, status: str) -> Json:
    content = [] if text is None else [{"type": "reasoning_text", "text": text}]
    return {"id": item, "type": "reasoning", "summary": [], "content": content, "status": status}


def message_item(item: str, parts: list[Json], *, status: str) -> Json:
    return {"id": item, "type": "message", "status": status, "role": "assistant", "content": parts}


def text_part(text: str, logprobs: Sequence[Json] = ()) -> Json:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": list(logprobs)}


def refusal_part(text: str) -> Json:
    return {"type": "refusal", "refusal": text}


def call_item(item: str, call: Json, *, status: str) -> Json:
    function = call["function"]
    shown = {"call_id": call["id"], "name": function["name"], "arguments": function["arguments"]}
    return {"id": item, "type": "function_call", "status": status, **shown}


# -- items of anybody -----------------------------------------------------------------------------------------------------


def items_of(message: Message, naming: Naming) -> list[Json]:
    """Any message as items."""
    body = message.body
    if message.role == "assistant":
        return assistant(body, naming, status="completed")
    if message.role == "tool":
        given = body.get("content")
        output_ = given if isinstance(given, str) else [{"type": "input_text", "text": p["text"]} for p in given or ()]
        call_id = body.get("tool_call_id")
        return [{"id": naming("fco", 0), "type": "function_call_output", "status": "completed", "call_id": call_id, "output": output_}]
    return [
        {
            "id": naming("msg", 0),
            "type": "message",
            "status": "completed",
            "role": message.role,
            "content": given_parts(body.get("content")),
        }
    ]


def given_parts(content: Any) -> list[Json]:
    if isinstance(content, str):
        return [{"type": "input_text", "text": content}]
    return [given_part(part) for part in content or ()]


def given_part(part: Json) -> Json:
    if part.get("type") == "text":
        return {"type": "input_text", "text": part["text"]}
    image = part["image_url"]
    return {"type": "input_image", "image_url": image["url"], "detail": image.get("detail") or "auto", "file_id": None}


def input_items(work: Work, said: Sequence[StoredMessage]) -> list[Json]:
    """What a response was given: system text, and the new messages of its turn."""
    given = [Message(body) for body in work.body.get("system", ())]
    given += [m.message for m in (said[:-1] if said and said[-1].role == "assistant" else said) if not m.erased]
    found: list[Json] = []
    for message in given:
        base = len(found)
        found += items_of(message, lambda prefix, index, base=base: item_id(prefix, work.id, base + index, given=True))  # type: ignore[misc]
    return found


def page(items: Sequence[Json], *, has_more: bool) -> Json:
    """A page of a list."""
    ends = {"first_id": items[0]["id"] if items else "", "last_id": items[-1]["id"] if items else ""}
    return {"object": "list", "data": list(items), **ends, "has_more": has_more}
