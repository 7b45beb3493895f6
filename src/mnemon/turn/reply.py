"""A reply put together from the chunks of a stream."""

from __future__ import annotations

from typing import Any

from mnemon.core.records import Json, text_of

# What grows from piece to piece of an indexed part, such as one of `reasoning_details`; its other fields say the same each time.
GROWING = frozenset({"text", "summary", "data", "thinking", "content", "arguments"})


class Reply:
    """Collects deltas into the message that will be stored: texts grow, lists grow by their parts, of anything else the last one counts."""

    def __init__(self) -> None:
        self.texts: dict[str, list[str]] = {}
        self.parts: dict[str, dict[tuple[int, Any], Any]] = {}
        self.values: Json = {}
        self.calls: dict[int, Json] = {}
        self.finish_reason: str | None = None
        self.usage: Json | None = None

    def add(self, chunk: Json) -> None:
        choices = chunk.get("choices")
        if choices and len(choices[0].get("delta") or ()) == 1 and choices[0].get("finish_reason") is None and "usage" not in chunk:
            content = choices[0]["delta"].get("content")
            if isinstance(content, str):  # nearly every chunk is a word and nothing else
                self.texts.setdefault("content", []).append(content)
                return
        if chunk.get("usage"):
            self.usage = chunk["usage"]
        for choice in chunk.get("choices") or ():
            if choice.get("finish_reason"):
                self.finish_reason = choice["finish_reason"]
            for name, value in (choice.get("delta") or {}).items():
                if name == "tool_calls":
                    for piece in value or ():
                        self._call(piece)
                elif name != "role" and value is not None:
                    self._field(name, value)

    def _field(self, name: str, value: Any) -> None:
        if isinstance(value, str) or name == "content":
            self.texts.setdefault(name, []).append(text_of(value))
        elif isinstance(value, list):
            parts = self.parts.setdefault(name, {})
            for piece in value:
                merge(parts, piece)
        else:
            self.values[name] = value

    def _call(self, piece: Json) -> None:
        call = self.calls.setdefault(
            piece.get("index", len(self.calls)), {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
        )
        call["id"] = piece.get("id") or call["id"]
        call["type"] = piece.get("type") or call["type"]
        function = piece.get("function") or {}
        call["function"]["name"] += function.get("name") or ""
        call["function"]["arguments"] += function.get("arguments") or ""

    def message(self) -> Json:
        body: Json = {"role": "assistant", "content": None, **self.values}
        for name, parts in self.parts.items():
            body[name] = list(parts.values())
        for name, pieces in self.texts.items():
            body[name] = "".join(pieces)
        if self.calls:
            body["tool_calls"] = [self.calls[index] for index in sorted(self.calls)]
            body["content"] = body["content"] or None
        elif body["content"] is None:
            body["content"] = ""
        return body


def merge(parts: dict[tuple[int, Any], Any], piece: Any) -> None:
    """Add a piece to the part with its index and type; one without an index is a part of its own."""
    index = piece.get("index") if isinstance(piece, dict) else None
    if not isinstance(index, int):
        parts[-1 - len(parts), None] = piece
        return
    part = parts.setdefault((index, str(piece.get("type"))), {})
    for name, value in piece.items():
        before = part.get(name)
        if name in GROWING and isinstance(before, str) and isinstance(value, str):
            part[name] = before + value
        elif value is not None or name not in part:
            part[name] = value


def stored_form(message: Json) -> Json:
    """A model's message as it is kept: without the fields that say nothing."""
    kept: Json = {name: value for name, value in message.items() if value is not None and value != []}
    kept["role"] = "assistant"
    kept.setdefault("content", None if kept.get("tool_calls") else "")
    return kept


def counted(usage: Json | None, *, prompt: int, completion: int) -> Json:
    """The model's own usage; where it reported none, our estimate, marked as one."""
    if isinstance(usage, dict) and isinstance(usage.get("prompt_tokens"), int) and isinstance(usage.get("completion_tokens"), int):
        total = usage["prompt_tokens"] + usage["completion_tokens"]
        return usage if isinstance(usage.get("total_tokens"), int) else {**usage, "total_tokens": total}
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion, "estimated": True}


def detail(usage: Json, group: str, name: str) -> int:
    found: Any = (usage.get(group) or {}).get(name)
    return found if isinstance(found, int) else 0
