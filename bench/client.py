"""A keep-alive HTTP/1.1 connection that costs little: requests come as ready bytes, replies are split but not interpreted."""

import asyncio
import re
import time
from dataclasses import dataclass, field

from bench import upstream

_STATUS_AT = slice(9, 12)
_LENGTH = re.compile(rb"\r\ncontent-length:\s*(\d+)", re.IGNORECASE)
_MARK = upstream.MARK.encode()


@dataclass(slots=True)
class Reply:
    """What came back, and when: `arrivals` holds the time of every streamed chunk."""

    sent: float
    status: int = 0
    head: bytes = b""
    body: bytearray = field(default_factory=bytearray)
    arrivals: list[float] = field(default_factory=list)
    done: float = 0.0

    @property
    def seconds(self) -> float:
        """From the request's being written to the reply's last byte."""
        return self.done - self.sent

    def header(self, name: str) -> str | None:
        """A header's value."""
        found = re.search(rb"\r\n" + name.encode() + rb":[ \t]*([^\r]*)", self.head, re.IGNORECASE)
        return found[1].decode("latin-1").strip() if found else None


class Connection(asyncio.Protocol):
    """One request at a time. A connection that the other side closes fails its request with `ConnectionError`."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._reply: Reply | None = None
        self._waiter: asyncio.Future[Reply] | None = None
        self._length = -1

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport to ask on."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    @property
    def closed(self) -> bool:
        """Whether it cannot be used any more."""
        return self._transport.is_closing()

    async def request(self, data: bytes) -> Reply:
        """Send, and return the whole reply."""
        if self.closed:
            raise ConnectionError("closed between requests")
        self._waiter = asyncio.get_running_loop().create_future()
        self._reply = Reply(time.perf_counter())
        self._transport.write(data)
        return await self._waiter

    def close(self) -> None:
        """Drop the connection at once."""
        self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail the request under way."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(ConnectionError(f"closed within a reply: {exc or 'end of data'}"))

    def data_received(self, data: bytes) -> None:
        """Add to the reply under way; hand it over when it is whole."""
        now = time.perf_counter()
        reply = self._reply
        if reply is None:
            return
        self._buffer += data
        if not reply.status and not self._take_head(reply):
            return
        marks = len(reply.body)
        if self._take_body(reply):
            reply.done = now
            self._reply = None
            if self._waiter is not None and not self._waiter.done():
                self._waiter.set_result(reply)
        reply.arrivals += [now] * reply.body.count(_MARK, marks)

    def _take_head(self, reply: Reply) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return False
        reply.head = bytes(self._buffer[: end + 2])
        reply.status = int(reply.head[_STATUS_AT])
        length = _LENGTH.search(reply.head)
        self._length = int(length[1]) if length else -1
        del self._buffer[: end + 4]
        return True

    def _take_body(self, reply: Reply) -> bool:
        if self._length < 0:
            return self._take_chunks(reply)
        reply.body += self._buffer
        self._buffer.clear()
        return len(reply.body) >= self._length

    def _take_chunks(self, reply: Reply) -> bool:
        buffer, start = self._buffer, 0
        while (line_end := buffer.find(b"\r\n", start)) >= 0:
            size = int(buffer[start:line_end], 16)
            end = line_end + 2 + size
            if len(buffer) < end + 2:
                break
            if size == 0:
                buffer.clear()
                return True
            reply.body += buffer[line_end + 2 : end]
            start = end + 2
        del buffer[:start]
        return False


async def connect(port: int) -> Connection:
    """A new connection to a port of this machine."""
    _, connection = await asyncio.get_running_loop().create_connection(Connection, "127.0.0.1", port)
    return connection


async def ask(port: int, data: bytes) -> Reply:
    """One request on a connection of its own."""
    connection = await connect(port)
    try:
        return await connection.request(data)
    finally:
        connection.close()
