"""The official OpenAI client, and a raw one for what it does not show."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any
from urllib.parse import quote

import openai

from tests.servers import Server
from tests.upstream import Upstream

Json = dict[str, Any]
ID = "X-Hermes-Session-Id"


@contextlib.asynccontextmanager
async def client(server: Server, key: str | None = None) -> AsyncIterator[Any]:
    """The official client, as anybody would set it up; it must not hide a failure by trying again."""
    async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key=key or server.key, max_retries=0, timeout=60) as found:
        yield found


def asked(text: str, session: str | None = None, **rest: Any) -> Json:
    """The arguments of `create`: only the newest message, and the session in a header."""
    headers = {**({ID: session} if session else {}), **rest.pop("headers", {})}
    return {"model": "mnemon", "messages": [{"role": "user", "content": text}], "extra_headers": headers, **rest}


class Stream:
    """A stream of chat completions on a connection of its own, read frame by frame."""

    def __init__(self, server: Server, text: str, session: str | None = None, **headers: str) -> None:
        self.connection: http.client.HTTPConnection = server.connect()
        body = {"model": "mnemon", "messages": [{"role": "user", "content": text}], "stream": True}
        names = {ID: session} if session else {}
        sent = {"Authorization": f"Bearer {server.key}", "Content-Type": "application/json", **names}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        self.connection.request("POST", "/v1/chat/completions", json.dumps(body), sent)
        self.response = self.connection.getresponse()
        assert self.response.status == 200, self.response.read()

    def frames(self) -> Iterator[bytes]:
        """Each event as it comes, without the empty line behind it; comments, which come by the clock, are left out."""
        frame = b""
        for line in self.response:
            if line == b"\n":
                if not frame.startswith(b":"):
                    yield frame
                frame = b""
            else:
                frame += line

    def until(self, word: str) -> list[bytes]:
        """Read on until a frame has this in it; the frames read."""
        found = []
        for frame in self.frames():
            found.append(frame)
            if word.encode() in frame:
                return found
        raise AssertionError(f"the stream ended before {word!r}")

    def leave(self) -> None:
        """Go away without a word."""
        self.response.close()
        self.connection.close()

    close = leave


def content(frames: list[bytes]) -> str:
    """The text that the frames of a stream add up to."""
    found = ""
    for frame in frames:
        data = next(line for line in frame.decode().splitlines() if line.startswith("data: ")).removeprefix("data: ")
        if data != "[DONE]":
            found += "".join(choice["delta"].get("content") or "" for choice in json.loads(data)["choices"])
    return found


def runs(upstream: Upstream, said: str) -> list[Json]:
    """The requests in which this was the newest message: one for each time the turn ran."""
    return [request for request in upstream.requests if request["messages"][-1]["content"] == said]


def messages(server: Server, session: str) -> list[tuple[str, str]]:
    """(role, content) of every stored message; nothing if there is no such session."""
    answer = server.call("GET", f"/api/sessions/{quote(session, safe='')}/messages?limit=1000")
    assert answer.status in (200, 404)
    return [(m["role"], m["content"]) for m in answer.body["data"]] if answer.status == 200 else []


def until(condition: Callable[[], Any], patience: float = 10.0) -> float:
    """Wait for something that happens by itself; the seconds it took."""
    started = time.monotonic()
    while not condition():
        assert time.monotonic() < started + patience, "it did not happen in time"
        time.sleep(0.01)
    return time.monotonic() - started


async def gathered(*requests: Awaitable[Any]) -> list[Any]:
    """All at once; their results in order."""
    return list(await asyncio.gather(*requests))
