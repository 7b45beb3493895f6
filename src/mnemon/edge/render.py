"""Responses: JSON by msgspec, and streams that watch a running turn."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from mnemon.turn.running import Running

# How long the response waits for the model's first word before it begins: until then a failure still gets its own status.
PATIENCE = 10.0

FIRST_LOOK = 0.05  # seconds until a client that went away is noticed at the earliest

Headers = Callable[[Running], Mapping[str, str]]


class JsonResponse(Response):
    """A JSON body."""

    media_type = "application/json"

    def __init__(self, content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        body = content if isinstance(content, bytes) else msgspec.json.encode(content)
        super().__init__(body, status, headers)


class Whole(Response):
    """Waits for a turn's end, then sends its body."""

    def __init__(self, running: Running, headers: Headers, *, leave_cancels: bool) -> None:
        self.running = running
        self.headers_of = headers
        self.leave_cancels = leave_cancels
        self.background = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with Watch(self.running, receive, leave_cancels=self.leave_cancels):
            body = await self.running.result()
            length = (b"content-length", b"%d" % len(body))
            headers = [(b"content-type", b"application/json"), length, *raw(self.headers_of(self.running))]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": body})


class Stream(Response):
    """Sends a turn's frames as they come."""

    def __init__(self, running: Running, headers: Headers, *, after: int, leave_cancels: bool) -> None:
        self.running = running
        self.headers_of = headers
        self.after = after
        self.leave_cancels = leave_cancels
        self.background = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with Watch(self.running, receive, leave_cancels=self.leave_cancels):
            await self.running.ready(PATIENCE)
            await send({"type": "http.response.start", "status": 200, "headers": stream_headers(self.headers_of(self.running))})
            straight = scope.get("state", {}).get("send", send)
            async for data in self.running.follow(self.after):
                await straight({"type": "http.response.body", "body": data, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})


class Events(Response):
    """Sends what it is given, as it comes. It begins at once: there may be nothing to send for long."""

    def __init__(self, pieces: AsyncGenerator[bytes], headers: Mapping[str, str]) -> None:
        self.pieces = pieces
        self.named = headers
        self.background = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with Watch(None, receive, leave_cancels=False):
            await send({"type": "http.response.start", "status": 200, "headers": stream_headers(self.named)})
            straight = scope.get("state", {}).get("send", send)
            async with contextlib.aclosing(self.pieces) as pieces:
                async for data in pieces:
                    await straight({"type": "http.response.body", "body": data, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})


def stream_headers(named: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    fixed = [
        (b"content-type", b"text/event-stream; charset=utf-8"),
        (b"cache-control", b"no-cache"),
        (b"x-accel-buffering", b"no"),
    ]
    return fixed + raw(named)


def raw(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]


class Watch:
    """Notices when the client goes away while the block runs: stops sending, and, if nobody else needs it, stops the turn.

    It begins to look after a moment. Most that is answered within that time needs no looking, which takes a task of its own.
    """

    def __init__(self, running: Running | None, receive: Receive, *, leave_cancels: bool) -> None:
        self._running = running
        self._receive = receive
        self._leave_cancels = leave_cancels
        self._task = asyncio.current_task()
        self._watcher: asyncio.Task[None] | None = None
        self._left = False

    def __enter__(self) -> None:
        if self._running:
            self._running.watchers += 1
        self._timer = asyncio.get_running_loop().call_later(FIRST_LOOK, self._look)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        if self._running:
            self._running.watchers -= 1
        self._timer.cancel()
        if self._watcher is not None:
            self._watcher.remove_done_callback(self._leave)
            self._watcher.cancel()
        if not isinstance(error, asyncio.CancelledError):
            return False
        if self._leave_cancels and self._running and not self._running.watchers:
            self._running.cancel()
        if self._left and self._task:
            self._task.uncancel()
        return self._left

    def _look(self) -> None:
        self._watcher = asyncio.create_task(disconnected(self._receive))
        self._watcher.add_done_callback(self._leave)

    def _leave(self, watcher: asyncio.Task[None]) -> None:
        if self._task and not watcher.cancelled():
            self._left = True
            self._task.cancel()


async def disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
