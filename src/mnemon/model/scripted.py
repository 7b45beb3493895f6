"""A model that answers by a script, and keeps what it was asked: the double that tests stand on.

It knows the shape of replies and nothing about language. Tests that need a model to fail on the wire use a real socket instead.
"""

from __future__ import annotations

import asyncio
import copy
import inspect
import re
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any

from mnemon.core import errors

Json = dict[str, Any]
Piece = str | Json | float | asyncio.Event | Exception
Reply = str | Json | Exception | list[Piece]

ROLE: Json = {"role": "assistant", "content": ""}


class Scripted:
    """Answers the n-th request by the n-th reply, or by what a function makes of the request.

    A reply is a text, streamed word by word; a message, such as one with `tool_calls` (its `finish_reason`, if it has one, is used); an
    exception, raised before the first chunk; or a list of pieces: texts and deltas to send, seconds to wait, events to wait for and
    exceptions to raise in between. Without any script the n-th reply is "Reply n."; after the last of a script every call fails.
    """

    def __init__(self, script: Sequence[Reply] | Callable[[Json], Any] = (), *, delay: float = 0.0, usage: bool = True) -> None:
        self.requests: list[Json] = []
        self.asked = asyncio.Event()  # a request has come
        self.gate = asyncio.Event()  # cleared, it holds every reply back
        self.gate.set()
        self.delay = delay  # seconds before each word
        self.usage = usage
        self.running = 0  # replies that are being given at this moment
        self.closed = False
        self._script = script

    async def complete(self, request: Json) -> Json:
        message, calls = dict(ROLE), []
        whole: Json = {}
        async for chunk in self.stream(request):
            for part in chunk["choices"]:
                delta = part["delta"]
                calls += [{name: value for name, value in call.items() if name != "index"} for call in delta.pop("tool_calls", ())]
                message |= delta | {"content": message["content"] + (delta.get("content") or "")}
            whole = {**whole, **chunk, "choices": chunk["choices"] or whole["choices"], "object": "chat.completion"}
        if calls:
            message |= {"tool_calls": calls, "content": message["content"] or None}
        return {
            **whole,
            "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": whole["choices"][0]["finish_reason"]}],
        }

    async def stream(self, request: Json) -> AsyncGenerator[Json]:
        reply = await self._next(request)
        head = {"id": "chatcmpl-scripted", "object": "chat.completion.chunk", "created": 0, "model": request.get("model")}
        finish, words = "stop", 0
        self.running += 1
        try:
            yield {**head, "choices": [choice(dict(ROLE))]}
            async for delta in self._deltas(reply):
                finish = delta.pop("finish_reason", "tool_calls" if "tool_calls" in delta else finish)
                words += bool(delta.get("content"))
                if delta:
                    yield {**head, "choices": [choice(delta)]}
            yield {**head, "choices": [choice({}, finish)]}
            if self.usage:
                prompt = sum(len(str(m.get("content")).split()) for m in request["messages"])
                yield {
                    **head,
                    "choices": [],
                    "usage": {"prompt_tokens": prompt, "completion_tokens": words, "total_tokens": prompt + words},
                }
        finally:
            self.running -= 1

    async def models(self) -> list[Json]:
        return [{"id": "scripted", "object": "model", "created": 0, "owned_by": "mnemon"}]

    async def close(self) -> None:
        self.closed = True

    async def _next(self, request: Json) -> Any:
        self.requests.append(copy.deepcopy(request))
        number = len(self.requests)
        self.asked.set()
        await self.gate.wait()
        if callable(self._script):
            reply = self._script(request)
            reply = await reply if inspect.isawaitable(reply) else reply
        elif self._script and number > len(self._script):
            raise errors.ModelError("The script is at its end.")
        else:
            reply = self._script[number - 1] if self._script else f"Reply {number}."
        if isinstance(reply, Exception):
            raise reply
        return reply

    async def _deltas(self, reply: str | Json | list[Piece]) -> AsyncGenerator[Json]:
        """What is sent of a reply, when it is due."""
        for piece in (p for given in (reply if isinstance(reply, list) else [reply]) for p in pieces(given)):
            if isinstance(piece, Exception):
                raise piece
            if isinstance(piece, asyncio.Event):
                await piece.wait()
            elif isinstance(piece, int | float):
                await asyncio.sleep(piece)
            elif isinstance(piece, dict):
                yield piece
            else:
                for word in re.findall(r"\s*\S+\s*", piece) or [piece]:
                    await asyncio.sleep(self.delay)
                    yield {"content": word}


def pieces(given: Piece) -> list[Piece]:
    """A message as it is streamed: reasoning and the like, the words, the tool calls, the end. Anything else is one piece."""
    if not isinstance(given, dict):
        return [given]
    other: list[Piece] = [{name: value} for name, value in given.items() if name not in ("role", "content", "tool_calls", "finish_reason")]
    text: list[Piece] = [given["content"]] if given.get("content") else []
    calls: list[Piece] = [{"tool_calls": [{"index": index, **call}]} for index, call in enumerate(given.get("tool_calls") or ())]
    return [*other, *text, *calls, *([{"finish_reason": given["finish_reason"]}] if given.get("finish_reason") else [])]


def choice(delta: Json, finish: str | None = None) -> Json:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
