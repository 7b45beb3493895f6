"""The port: a request in, a chat completion out, whole or streamed.

It puts a reply on the wire and cuts it to the request's limits; what to say is decided elsewhere in the package.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass

from mnemon.core import clock as time_source
from mnemon.core import ids, records
from mnemon.model.base import Json
from mnemon.model.builtin import forms, patterns, reading, wording

NAME = "mnemon"
DESCRIPTION = (
    "Mnemon's built-in responder: small, extractive, offline and deterministic, not a language model. "
    "It remembers what it is told and answers questions by quoting it."
)
_PIECE = patterns.lazy(r"\s*\S+\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What will be answered, before it is put on the wire."""

    text: str
    calls: list[Json]
    finish: str
    usage: Json


def reply_to(request: Json) -> Reply:
    """The reply to a request: a pure function of it, but for the ids of tool calls."""
    messages = request.get("messages") or []
    scene = reading.read(messages)
    calls = forms.calls_for(request, scene)
    text, finish = "", "tool_calls"
    if not calls:
        text, finish = _cut(forms.formatted(wording.plain_reply(scene), request.get("response_format")), request)
    prompt = sum(len(records.text_of(m.get("content")).split()) for m in messages) * 4 // 3 + 4 * len(messages)
    completion = len(_PIECE().findall(text)) + sum(len(_PIECE().findall(c["function"]["arguments"])) + 1 for c in calls)
    usage = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    return Reply(text=text, calls=calls, finish=finish, usage=usage)


def _cut(text: str, request: Json) -> tuple[str, str]:
    """The text up to a stop sequence and within the allowed number of words, and why it ends there."""
    stops = request.get("stop") or []
    for stop in [stops] if isinstance(stops, str) else stops:
        text = text.split(stop, 1)[0] if stop else text
    limit = request.get("max_completion_tokens") or request.get("max_tokens")
    pieces = _PIECE().findall(text)
    if isinstance(limit, int) and 0 < limit < len(pieces):
        return "".join(pieces[:limit]).rstrip(), "length"
    return text, "stop"


def _deltas(reply: Reply) -> Iterator[Json]:
    """What a stream adds, piece by piece."""
    yield {"role": "assistant", "content": None if reply.calls else ""}
    for piece in _PIECE().findall(reply.text):
        yield {"content": piece}
    for i, call in enumerate(reply.calls):
        yield {"tool_calls": [{"index": i, **call, "function": {**call["function"], "arguments": ""}}]}
        for piece in _PIECE().findall(call["function"]["arguments"]):
            yield {"tool_calls": [{"index": i, "function": {"arguments": piece}}]}


class BuiltinModel:
    """Answers without any upstream; the package's first lines say what it is and is not."""

    def __init__(self, clock: time_source.Clock = time_source.system) -> None:
        self._clock = clock
        self._born = int(clock())

    async def complete(self, request: Json) -> Json:
        """One whole `chat.completion` object."""
        reply = reply_to(request)
        message: Json = {"role": "assistant", "content": reply.text, "refusal": None}
        if reply.calls:
            message |= {"content": None, "tool_calls": reply.calls}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reply.finish}
        return self._envelope(request, "chat.completion") | {"choices": [choice], "usage": reply.usage}

    async def stream(self, request: Json) -> AsyncGenerator[Json]:
        """The same answer word by word."""
        reply = reply_to(request)
        with_usage = bool((request.get("stream_options") or {}).get("include_usage"))
        base = self._envelope(request, "chat.completion.chunk") | ({"usage": None} if with_usage else {})
        for delta in _deltas(reply):
            yield base | {"choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}]}
            await asyncio.sleep(0)
        yield base | {"choices": [{"index": 0, "delta": {}, "logprobs": None, "finish_reason": reply.finish}]}
        if with_usage:
            yield base | {"choices": [], "usage": reply.usage}

    async def models(self) -> list[Json]:
        """The one model there is."""
        return [{"id": NAME, "object": "model", "created": self._born, "owned_by": "mnemon", "description": DESCRIPTION}]

    async def close(self) -> None:
        """Nothing is held open."""

    def _envelope(self, request: Json, kind: str) -> Json:
        return {"id": ids.completion(), "object": kind, "created": int(self._clock()), "model": request.get("model") or NAME}
