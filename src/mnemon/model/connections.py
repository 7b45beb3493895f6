"""HTTP/1.1 to one server: a request out, a response in, over connections that are kept open for the next call.

It knows heads, bodies, TLS and how long to wait. It does not know what is said, and it repeats nothing.
"""

from __future__ import annotations

import asyncio
import math
import socket
import ssl
import time
import zlib
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol, cast

import httptools

CONNECT_LIMIT = 10.0  # seconds
NEXT_ADDRESS = 0.25  # seconds after which the next address of a host is tried beside the ones before
KEPT_SECONDS = 15.0  # that an idle connection is trusted for: servers close theirs, and may do so just when it is used
LARGEST_HEAD = 2**16
HELD = 2**18  # bytes nobody has read yet, beyond which no more are taken from the network


class NotHttp(Exception):
    """What came is no HTTP response, or its body is not packed as its head says."""


class Connection(asyncio.Protocol):
    """One connection, and the response that is on it at present.

    Failures are `NotHttp`, or `OSError` with its `TimeoutError`; they wait until what came before them was read.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._parser = httptools.HttpResponseParser(self)
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.idle_since = 0.0
        self._forget()

    def _forget(self) -> None:
        """Nothing has come yet."""
        self.status = 0
        self.headers: dict[bytes, bytes] = {}
        self.received = 0
        self.complete = False
        self._head = 0
        self._pieces: list[bytes] = []
        self._held = 0
        self._paused = False
        self._reusable = False
        self._failure: Exception | None = None

    # -- for whoever asks -----------------------------------------------------------------------------------------------------

    async def ask(self, request: bytes, *, silence: float, total: float) -> None:
        """Send a request and wait for the head of its response. `silence` bounds each wait from here on, `total` all of them."""
        self._forget()
        self._silence = silence
        self._waiting_since = time.monotonic()
        self._deadline = self._waiting_since + total
        # One timer that looks at the clock now and then: one for each wait would cost as much as parsing a chunk.
        self._timer = self._loop.call_later(min(silence, total), self._look)
        self._transport.write(request)
        while not self.status and self._failure is None:
            await self._news()
        if not self.status and self._failure is not None:
            raise self._failure

    async def more(self) -> bytes:
        """What has come of the body since the last time, at least a byte; nothing at its end."""
        while not self._pieces:
            if self._failure is not None:
                raise self._failure
            if self.complete:
                return b""
            await self._news()
        data = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        self._held = 0
        if self._paused:
            self._paused = False
            self._transport.resume_reading()
        return data

    def header(self, name: bytes) -> str:
        return self.headers.get(name, b"").decode("latin-1")

    def leave(self) -> None:
        """The response is done with: the connection is kept if it was read from the network to its end, and cut if not."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        at_rest = self.complete and not self._paused and not self._transport.get_write_buffer_size()
        if at_rest and self._reusable and not self.closing:
            self._pool.keep(self)
        else:
            self.cut()

    def cut(self) -> None:
        self._transport.abort()

    @property
    def closing(self) -> bool:
        return self._transport.is_closing()

    async def _news(self) -> None:
        """Wait until something comes, or fails."""
        self._waiting_since = time.monotonic()
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None
            self._waiting_since = math.inf

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _look(self) -> None:
        left = min(self._waiting_since + self._silence, self._deadline) - time.monotonic()
        if left > 0:
            self._timer = self._loop.call_later(min(left, self._silence), self._look)
        else:
            self._fail(TimeoutError())

    def _fail(self, error: Exception) -> None:
        if self._failure is None and not self.complete:
            self._failure = error
        self._wake()

    # -- from the network -----------------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    def data_received(self, data: bytes) -> None:
        if self._timer is None:  # nobody has asked anything
            self.cut()
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._fail(NotHttp())
            self.cut()
        if self._held > HELD and not self._paused:
            self._paused = True
            self._transport.pause_reading()
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        framed = b"content-length" in self.headers or b"transfer-encoding" in self.headers
        if exc is None and self.status and not framed:
            self.complete = True
        self._fail(exc or ConnectionResetError("the connection was closed"))
        self._pool.gone(self)

    # -- from the parser ------------------------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if self.complete:  # nobody asked for another one
            raise NotHttp

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head += len(name) + len(value)
        if self._head > LARGEST_HEAD:
            raise NotHttp
        self.headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status >= 200:  # else it only says that the response is on its way
            self.status = status

    def on_body(self, data: bytes) -> None:
        self.received += len(data)
        self._held += len(data)
        self._pieces.append(data)

    def on_message_complete(self) -> None:
        if self.status:
            self.complete = True
            self._reusable = self._parser.should_keep_alive()
        else:
            self.headers.clear()


class Pool:
    """Connections to one server. Made at the first call, since they belong to the loop they are made in."""

    def __init__(self, *, host: str, port: int, tls: bool, connect_limit: float, screen: Callable[[str], None] | None = None) -> None:
        """`screen` sees each address that the host's name gave before it is connected to, and may refuse it with an `OSError`."""
        self._screen = screen
        self._host = host
        self._port = port
        self._tls = ssl.create_default_context() if tls else None
        self._limit = connect_limit
        self._open: set[Connection] = set()
        self._idle: deque[Connection] = deque()  # those used last at the end

    async def connection(self) -> Connection:
        """One that is idle, or a new one. Raises `OSError`."""
        idle, trusted = self._idle, time.monotonic() - KEPT_SECONDS
        while idle and idle[0].idle_since < trusted:
            idle.popleft().cut()
        while idle:
            kept = idle.pop()
            if not kept.closing:
                return kept
        async with asyncio.timeout(self._limit):
            made = await self._connect()
        self._open.add(made)
        return made

    def keep(self, connection: Connection) -> None:
        connection.idle_since = time.monotonic()
        self._idle.append(connection)

    def gone(self, connection: Connection) -> None:
        self._open.discard(connection)

    def close(self) -> None:
        self._idle.clear()
        for connection in list(self._open):
            connection.cut()

    async def _connect(self) -> Connection:
        """A host may have an address that leads nowhere: each next one gets its chance a moment later, and the first to answer wins."""
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
        addresses = list(dict.fromkeys(str(address[0]) for *_, address in found))
        if self._screen is not None:
            for address in addresses:
                self._screen(address)
        if len(addresses) == 1:
            return await self._reach(addresses[0])
        tasks: list[asyncio.Task[Connection]] = []
        try:
            for address in addresses:
                tasks.append(asyncio.create_task(self._reach(address)))
                await asyncio.wait(tasks, timeout=NEXT_ADDRESS, return_when=asyncio.FIRST_COMPLETED)
                if there := reached(tasks):
                    break
            while not (there := reached(tasks)) and (waiting := [t for t in tasks if not t.done()]):
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            return there[0] if there else tasks[0].result()  # which raises why it failed
        finally:
            for task in tasks:
                task.cancel()
            for other in reached(tasks)[1:]:
                other.cut()

    async def _reach(self, address: str) -> Connection:
        loop = asyncio.get_running_loop()
        name = self._host if self._tls else None
        _, made = await loop.create_connection(lambda: Connection(self), address, self._port, ssl=self._tls, server_hostname=name)
        return made


def reached(tasks: Sequence[asyncio.Task[Connection]]) -> list[Connection]:
    return [task.result() for task in tasks if task.done() and not task.cancelled() and not task.exception()]


class Unpacker(Protocol):
    """What is used of zlib's."""

    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


def unpacker(encoding: str) -> Unpacker | None:
    """What undoes the compression of a body, which its server was asked not to do. Raises `NotHttp`."""
    if encoding.lower() in ("", "identity"):
        return None
    if encoding.lower() not in ("gzip", "x-gzip", "deflate"):
        raise NotHttp
    return zlib.decompressobj(zlib.MAX_WBITS | 32)
