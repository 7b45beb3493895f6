"""Responses: JSON by msgspec, and streams that watch a running turn."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from mnemon.turn.running import Running

# How long the response waits for the model's first word before it begins: until then a failure still gets its own status.
PATIENCE = 10.0

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
        async with watched(self.running, receive, leave_cancels=self.leave_cancels):
            body = await self.running.result()
            await JsonResponse(body, 200, self.headers_of(self.running))(scope, receive, send)


class Stream(Response):
    """Sends a turn's frames as they come."""

    def __init__(self, running: Running, headers: Headers, *, after: int, leave_cancels: bool) -> None:
        self.running = running
        self.headers_of = headers
        self.after = after
        self.leave_cancels = leave_cancels
        self.background = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with watched(self.running, receive, leave_cancels=self.leave_cancels):
            await self.running.ready(PATIENCE)
            await send({"type": "http.response.start", "status": 200, "headers": self._start()})
            straight = scope.get("state", {}).get("send", send)
            async for data in self.running.follow(self.after):
                await straight({"type": "http.response.body", "body": data, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _start(self) -> list[tuple[bytes, bytes]]:
        fixed = [
            (b"content-type", b"text/event-stream; charset=utf-8"),
            (b"cache-control", b"no-cache"),
            (b"x-accel-buffering", b"no"),
        ]
        return fixed + [(name.lower().encode(), value.encode("latin-1")) for name, value in self.headers_of(self.running).items()]


@contextlib.asynccontextmanager
async def watched(running: Running, receive: Receive, *, leave_cancels: bool) -> AsyncIterator[None]:
    """Notice when the client goes away: stop sending, and, if nobody else needs it, stop the turn."""
    task = asyncio.current_task()
    left = False

    def leave(_watcher: asyncio.Task[None]) -> None:
        nonlocal left
        if task and not _watcher.cancelled():
            left = True
            task.cancel()

    watcher = asyncio.create_task(disconnected(receive))
    watcher.add_done_callback(leave)
    running.watchers += 1
    try:
        yield
    except asyncio.CancelledError:
        if leave_cancels and running.task and running.watchers == 1:
            running.task.cancel()
        if not left or not task:
            raise
        task.uncancel()
    finally:
        running.watchers -= 1
        watcher.remove_done_callback(leave)
        watcher.cancel()


async def disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
