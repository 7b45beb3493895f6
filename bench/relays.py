"""The two references: a bare relay, and the same with one durable commit a turn.

Each is about the least a Starlette app on uvicorn (uvloop, httptools) with an aiohttp client can do. It stands on the parts Mnemon
stands on, msgspec included, so that a ratio shows what Mnemon adds and not what a library costs. JSON replies are
passed on as they are; of a stream, each event is decoded, encoded again and written. The durable relay also writes ten rows of
about 600 bytes per turn in one transaction of its own, on one writer thread, WAL, synchronous FULL, before the client sees
the reply or, in a stream, its `[DONE]`. It keeps no sessions, recalls nothing and checks no key.
"""

import argparse
import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor

import aiohttp
import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from bench import upstream


class Journal:
    """One SQLite file, one writer thread, one durable transaction for each turn."""

    def __init__(self, path: str) -> None:
        self._writer = ThreadPoolExecutor(1)
        self._db = sqlite3.connect(path, check_same_thread=False)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=FULL")
        self._db.execute("CREATE TABLE IF NOT EXISTS rows (id INTEGER PRIMARY KEY, part INTEGER NOT NULL, body TEXT NOT NULL)")

    def _commit(self, text: str) -> None:
        with self._db:
            self._db.executemany("INSERT INTO rows (part, body) VALUES (?, ?)", [(part, text) for part in range(10)])

    async def keep(self, request: bytes, reply: bytes) -> None:
        """Return when the ten rows of this turn are on disk."""
        text = (request + reply)[:600].decode(errors="replace").ljust(600)
        await asyncio.get_running_loop().run_in_executor(self._writer, self._commit, text)


class Relay:
    """Forwards chat completions to the upstream; with a journal, durably."""

    def __init__(self, upstream_url: str, journal: Journal | None) -> None:
        self._url = upstream_url + "/chat/completions"
        self._journal = journal

    @contextlib.asynccontextmanager
    async def lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        """Hold one client session with an unbounded pool."""
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as self._client:
            yield

    async def chat(self, request: Request) -> Response:
        """Forward one chat completion, JSON or stream."""
        body = await request.body()
        fields = msgspec.json.decode(body)
        sent = msgspec.json.encode(fields)
        reply = await self._client.post(self._url, data=sent, headers={"Content-Type": "application/json"})
        if fields.get("stream"):
            return StreamingResponse(self._events(body, reply), media_type="text/event-stream")
        answer = await reply.read()
        if self._journal:
            await self._journal.keep(body, answer)
        return Response(answer, reply.status, media_type="application/json")

    async def _events(self, request: bytes, reply: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        rest = b""
        async for data in reply.content.iter_any():
            *events, rest = (rest + data).split(b"\n\n")
            for event in events:
                payload = event.removeprefix(b"data: ")
                if payload != b"[DONE]":
                    yield b"data: " + msgspec.json.encode(msgspec.json.decode(payload)) + b"\n\n"
                    continue
                if self._journal:
                    await self._journal.keep(request, event)
                yield b"data: [DONE]\n\n"


def main() -> None:
    """Serve one relay on a port of this machine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--upstream-url", required=True)
    parser.add_argument("--journal", help="the SQLite file; without it the relay is bare")
    options = parser.parse_args()
    relay = Relay(options.upstream_url, Journal(options.journal) if options.journal else None)
    app = Starlette(routes=[Route(upstream.CHAT, relay.chat, methods=["POST"])], lifespan=relay.lifespan)
    uvicorn.run(app, host="127.0.0.1", port=options.port, loop="uvloop", http="httptools", access_log=False, log_level="warning")


if __name__ == "__main__":
    main()
