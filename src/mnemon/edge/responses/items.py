"""Items of a Responses request as chat messages. Pure.

What an assistant did in one step (reasoning, words, calls) is several items there and one message here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from mnemon.core.records import Json, Message
from mnemon.edge import schemas
from mnemon.edge.schemas import wrong

ROLES = ("user", "assistant", "system", "developer")
TEXTS = ("input_text", "output_text", "text")
LONGEST_NAME = 256
Placed = list[tuple[Message, str]]


def read(value: Any, *, place: str = "input", known: Mapping[str, Json] | None = None) -> Placed:
    """The messages that a text or a list of items stands for, each with its place in the request. Raises `Invalid`.

    `known` are the items that may be referred to by their ids.
    """
    if isinstance(value, str):
        schemas.check_content(place, value, images=True)
        return [(Message({"role": "user", "content": value}), place)]
    if not isinstance(value, list) or not value:
        raise wrong(place, "must be a text or a list with at least one item")
    reader = Reader(known or {})
    for index, item in enumerate(value):
        reader.take(f"{place}[{index}]", item)
    reader.close()
    return reader.found


def asked(value: Any, *, known: Mapping[str, Json] | None = None) -> Placed:
    """The input of a request, which must end with something to answer. Raises `Invalid`."""
    found = read(value, known=known)
    if not any(message.spoken for message, _ in found):
        raise wrong("input", "holds no user message")
    if found[-1][0].role == "assistant":
        raise wrong("input", "must end with a user message or a function's output, not with an item of the assistant")
    return found


def referred(value: Any, *, place: str = "input") -> Iterator[tuple[str, str]]:
    """(place, id) of the items that are only named."""
    for index, item in enumerate(value if isinstance(value, list) else ()):
        if isinstance(item, dict) and kind_of(item) == "item_reference":
            yield f"{place}[{index}].id", name(f"{place}[{index}].id", item.get("id"))


def kind_of(item: Json) -> Any:
    """The type of an item; the two that are recognised without one are a message by its role, and a reference by its id alone."""
    if item.get("type") is not None:
        return item["type"]
    return "message" if "role" in item else "item_reference" if list(item) == ["id"] else None


class Reader:
    """Puts messages together from items. `open` is a message of the assistant that may still grow."""

    def __init__(self, known: Mapping[str, Json]) -> None:
        self.known = known
        self.found: Placed = []
        self.open: Json | None = None
        self.begun_at = ""

    def take(self, place: str, item: Any) -> None:
        if not isinstance(item, dict):
            raise wrong(place, "must be an object: a message or another item")
        kind = kind_of(item)
        if kind == "message":
            self._message(place, item)
        elif kind == "function_call":
            self._call(place, item)
        elif kind == "function_call_output":
            call_id = name(f"{place}.call_id", item.get("call_id"))
            self._add(
                {"role": "tool", "tool_call_id": call_id, "content": output(f"{place}.output", item.get("output"))}, f"{place}.call_id"
            )
        elif kind == "reasoning":
            self._reasoning(place, item)
        elif kind == "item_reference":
            self.take(place, self.known[item["id"]])
        elif isinstance(kind, str):
            raise wrong(f"{place}.type", f"{kind[:50]!r} is not supported", code="unsupported_item")
        else:
            raise wrong(place, "must have a type or a role")

    def close(self) -> None:
        """The assistant's message is whole. Thoughts that led to nothing are none."""
        message, self.open = self.open, None
        if message and (message["content"] is not None or message.get("tool_calls") or message.get("refusal")):
            self.found.append((Message(message), self.begun_at))

    def _add(self, body: Json, place: str) -> None:
        self.close()
        self.found.append((Message(body), place))

    def _grow(self, place: str) -> Json:
        if self.open is None:
            self.open, self.begun_at = {"role": "assistant", "content": None}, place
        return self.open

    def _message(self, place: str, item: Json) -> None:
        role = item.get("role")
        if role not in ROLES:
            raise wrong(f"{place}.role", f"must be one of {', '.join(ROLES)}")
        if role != "assistant":
            self._add({"role": role, "content": said(f"{place}.content", item.get("content"), images=role == "user")}, place)
            return
        words, refusal = replied(f"{place}.content", item.get("content"))
        if self.open and not self.open.get("tool_calls") and (self.open["content"] is not None or self.open.get("refusal")):
            self.close()  # two things said are two messages; words around a call are one
        message = self._grow(place)
        if words is not None:
            message["content"] = (message["content"] or "") + words
        if refusal is not None:
            message["refusal"] = refusal

    def _call(self, place: str, item: Json) -> None:
        call_id, called = name(f"{place}.call_id", item.get("call_id")), name(f"{place}.name", item.get("name"))
        if not isinstance(item.get("arguments"), str):
            raise wrong(f"{place}.arguments", "must be a string of JSON")
        call = {"id": call_id, "type": "function", "function": {"name": called, "arguments": item["arguments"]}}
        self._grow(place).setdefault("tool_calls", []).append(call)

    def _reasoning(self, place: str, item: Json) -> None:
        """Thoughts as text go with what they led to; a summary, or what is encrypted, says nothing to a model behind this server."""
        parts = item.get("content") or []
        if not isinstance(parts, list) or not all(isinstance(p, dict) and isinstance(p.get("text"), str) for p in parts):
            raise wrong(f"{place}.content", "must be a list of parts with a text")
        if self.open and self.open["content"] is not None and not self.open.get("tool_calls"):
            self.close()
        if thoughts := "".join(part["text"] for part in parts):
            message = self._grow(place)
            message["reasoning_content"] = message.get("reasoning_content", "") + thoughts


def name(place: str, value: Any) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_NAME or "\x00" in value:
        raise wrong(place, f"must be a string of 1 to {LONGEST_NAME} characters")
    return value


def said(place: str, content: Any, *, images: bool) -> Any:
    """The content of a message of anybody but the assistant. A single text is that text."""
    if isinstance(content, str):
        schemas.check_content(place, content, images=images)
        return content
    if not isinstance(content, list) or not content:
        raise wrong(place, "must be a text or a list of parts")
    parts = [part(f"{place}[{index}]", given, images=images) for index, given in enumerate(content)]
    if len(parts) == 1 and parts[0]["type"] == "text":
        schemas.check_content(place, parts[0]["text"], images=images)
        return parts[0]["text"]
    return parts


def part(place: str, given: Any, *, images: bool) -> Json:
    if not isinstance(given, dict) or not isinstance(given.get("type"), str):
        raise wrong(place, "must be an object with a type")
    if given["type"] in TEXTS:
        if not isinstance(given.get("text"), str):
            raise wrong(f"{place}.text", "must be a string")
        return {"type": "text", "text": given["text"]}
    if given["type"] in ("input_image", "image_url") and images:
        return image(place, given)
    raise wrong(place, f"of type {given['type'][:50]!r} is not supported here", code="unsupported_content_type")


def image(place: str, given: Json) -> Json:
    named = given.get("image_url")
    url, detail = (named.get("url"), named.get("detail")) if isinstance(named, dict) else (named, given.get("detail"))
    if url is None and given.get("file_id") is not None:
        raise wrong(f"{place}.file_id", "cannot be looked up here; send image_url", code="unsupported_content_type")
    if not isinstance(url, str) or not schemas.IMAGE_URL.match(url):
        raise wrong(f"{place}.image_url", "must be an http(s) or a data:image/ URL", code="invalid_image_url")
    if not isinstance(detail, str | None):
        raise wrong(f"{place}.detail", "must be a string")
    return {"type": "image_url", "image_url": {"url": url} | ({"detail": detail} if detail else {})}


def replied(place: str, content: Any) -> tuple[str | None, str | None]:
    """(words, refusal) of a message of the assistant."""
    if isinstance(content, str):
        return content, None
    if not isinstance(content, list):
        raise wrong(place, "must be a text or a list of parts")
    words, refusals = [], []
    for index, given in enumerate(content):
        kind = given.get("type") if isinstance(given, dict) else None
        if kind == "refusal" and isinstance(given.get("refusal"), str):
            refusals.append(given["refusal"])
        else:
            words.append(part(f"{place}[{index}]", given, images=False)["text"])
    return "".join(words) if words or not refusals else None, "".join(refusals) if refusals else None


def output(place: str, value: Any) -> Any:
    """What a function gave back: a text, or parts that are texts."""
    if value is None:
        raise wrong(place, "is missing")
    return value if isinstance(value, str) else said(place, value, images=False)


NAMED = re.compile(r"(?:msg|rs|fc|fco)_([0-9a-f]{48})(i?)([0-9a-f]{2,6})")


def item_id(prefix: str, response_id: str, index: int, *, given: bool = False) -> str:
    """The name of an item of a response: of its output, or of what was given to it. It says where the item is, so none is stored."""
    return f"{prefix}_{response_id.removeprefix('resp_')}{'i' if given else ''}{index:02x}"


def place_of(item: str) -> tuple[str, bool, int] | None:
    """(response, whether it was given to it, index) of an item's name."""
    found = NAMED.fullmatch(item)
    return ("resp_" + found[1], bool(found[2]), int(found[3], 16)) if found else None
