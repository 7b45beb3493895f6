"""Any OpenAI-compatible server as a model, over HTTP.

It sends a request as it is, reads the answer, whole or as a stream, and gives every failure its name. It knows nothing of sessions or
prompts, and it passes chunks on without looking at what they say, but for their end.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
import zlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, NoReturn

import msgspec

from mnemon.core import clock, errors
from mnemon.model import address, connections, retry
from mnemon.model.connections import Connection, Pool

Json = dict[str, Any]

REPLY_LIMIT = 64 * 2**20  # bytes of a whole answer, or of one event of a stream
REFUSAL_LIMIT = 64 * 2**10  # bytes of an error's body that are read
DRAIN_LIMIT = 0.1  # seconds that a server may take to end the response after it said [DONE]

FAILURES = (OSError, connections.NotHttp, zlib.error)  # all that a connection, and a body that came over it, can fail with

decode = msgspec.json.Decoder().decode

# A server that cuts its text by UTF-16 units sends halves of a pair. Alone they are not text; the last branch finds them.
SURROGATES = re.compile(rb"\\\\|\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})")


class Upstream:
    """The model behind a base URL.

    `timeout` bounds the silence of the model, before its answer and between two pieces of it; `total_timeout` bounds a call. A call that
    failed before any of its answer was here is made up to `retries` times more, unless it failed by silence or was refused.
    """

    def __init__(
        self,
        *,
        base_url: str,
        api_key: str | None,
        timeout: float,
        total_timeout: float = 3600.0,
        retries: int = 2,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        random: Callable[[], float] = random.random,
        now: clock.Clock = clock.system,
    ) -> None:
        self._address = address.parsed(base_url)
        self._key = checked_key(api_key)
        self._timeout = timeout
        self._total = total_timeout
        self._retries = retries
        self._sleep = sleep
        self._random = random
        self._now = now
        self._connections: Pool | None = None

    async def complete(self, request: Json) -> Json:
        body = encoded({name: value for name, value in request.items() if name not in ("stream", "stream_options")})

        async def attempt() -> Json:
            return completion(await self._asked("POST", "chat/completions", body), secret=self._key)

        return await self._tried(attempt)

    async def stream(self, request: Json) -> AsyncGenerator[Json]:
        body = encoded({**request, "stream": True})
        reply = await self._tried(lambda: self._begin(body))
        try:
            while chunks := await reply.more():
                for chunk in chunks:
                    yield chunk
        finally:
            reply.close()

    async def models(self) -> list[Json]:
        async def attempt() -> Json:
            return await self._asked("GET", "models", b"")

        data = (await self._tried(attempt)).get("data")
        if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
            raise errors.BadReply("The model's list of models is not a list.")
        return data

    async def close(self) -> None:
        if self._connections is not None:
            self._connections.close()

    async def _tried(self, attempt: Callable[[], Awaitable[retry.T]]) -> retry.T:
        return await retry.tried(attempt, retries=self._retries, sleep=self._sleep, random=self._random)

    def _pool(self) -> Pool:
        """Made at the first call: connections belong to the loop they were made in."""
        if self._connections is None:
            to = self._address
            self._connections = Pool(host=to.host, port=to.port, tls=to.tls, connect_limit=min(self._timeout, connections.CONNECT_LIMIT))
        return self._connections

    async def _open(self, method: str, path: str, body: bytes, *, accept: str) -> Connection:
        """A connection with a response of success whose body has not been read; anything else is raised."""
        request = self._address.head(method, path, accept=accept, key=self._key, length=len(body)) + body
        try:
            connection = await self._pool().connection()
        except FAILURES as error:
            raise broken(error, fresh=True) from error
        try:
            await connection.ask(request, silence=self._timeout, total=self._total)
            if connection.status >= 300:
                await self._refused(connection)
        except FAILURES as error:
            connection.leave()
            raise broken(error, fresh=True) from error
        except BaseException:
            connection.leave()
            raise
        return connection

    async def _refused(self, connection: Connection) -> NoReturn:
        status, reply = connection.status, None
        after = retry.seconds(connection.header(b"retry-after"), now=self._now())
        if 400 <= status < 500:
            with contextlib.suppress(errors.ModelError, retry.Again):  # the status alone says enough
                reply = decoded(await whole(connection, limit=REFUSAL_LIMIT))
        error = retry.refusal(status, reply, secret=self._key, retry_after=after)
        raise retry.Again(error) if status in retry.PASSING else error

    async def _asked(self, method: str, path: str, body: bytes) -> Json:
        """The whole reply to a request."""
        connection = await self._open(method, path, body, accept="application/json")
        try:
            return decoded(await whole(connection))
        finally:
            connection.leave()

    async def _begin(self, body: bytes) -> Reply:
        """A stream whose first chunks are here."""
        connection = await self._open("POST", "chat/completions", body, accept="text/event-stream, application/json")
        try:
            reply = Reply(connection, secret=self._key)
            await reply.begin()
        except BaseException:
            connection.leave()
            raise
        return reply


class Reply:
    """A streamed answer while it comes in."""

    def __init__(self, connection: Connection, *, secret: str | None) -> None:
        self._connection = connection
        self._body = Body(connection)
        self._secret = secret
        self._line: list[bytes] = []  # pieces of a line whose end has not come
        self._data: list[bytes] = []  # data lines of an event whose end has not come
        self._held = 0  # bytes since the last event
        self._first: list[Json] = []
        self._failure: errors.ModelError | None = None
        self._begun = False  # a chunk has come
        self._finished = False  # a chunk had a finish_reason
        self._done = False

    def close(self) -> None:
        """Cut the connection, unless the response was read to its end."""
        self._connection.leave()

    async def begin(self) -> None:
        """Wait for the first chunks, so that a failure before them can still be retried."""
        if self._connection.header(b"content-type").partition(";")[0].strip().lower() == "application/json":
            self._first = chunks_of(completion(decoded(await whole(self._connection)), secret=self._secret))
            self._done = True
        else:
            self._first = await self.more()

    async def more(self) -> list[Json]:
        """The next chunks; none at the end of a complete answer. A failure waits until the chunks before it were given."""
        if self._first:
            first, self._first = self._first, []
            return first
        while not self._done:
            data = await self._bytes()
            chunks = self._parsed(data) if data else self._ended()
            if chunks:
                return chunks
        if self._failure is not None:
            raise self._failure
        await self._drain()
        return []

    async def _bytes(self) -> bytes:
        try:
            return await self._body.more()
        except FAILURES as error:
            if self._finished:  # the answer is whole, only its [DONE] is missing
                return b""
            raise broken(error, fresh=not self._begun) from error

    def _parsed(self, data: bytes) -> list[Json]:
        self._held += len(data)
        if self._held > REPLY_LIMIT:
            return self._stop(errors.BadReply("The model's reply is too large."))
        if self._line:
            self._line.append(data)
            if b"\n" not in data:
                return []
            data = b"".join(self._line)
            self._line.clear()
        lines = data.split(b"\n")
        if rest := lines.pop():
            self._line.append(rest)
        return self._events(lines)

    def _events(self, lines: list[bytes]) -> list[Json]:
        chunks: list[Json] = []
        for line in lines:
            if line.startswith(b"data:"):
                self._data.append(line[5:])
            elif self._data and line in (b"", b"\r"):
                try:
                    self._event(chunks)
                except errors.ModelError as error:
                    self._stop(error)
                if self._done:
                    break
        return chunks

    def _event(self, chunks: list[Json]) -> None:
        raw = (self._data[0] if len(self._data) == 1 else b"\n".join(self._data)).strip()
        self._data.clear()
        self._held = 0
        if raw == b"[DONE]":
            self._over()
        elif raw:
            self._begun = True
            chunk = decoded(raw)
            if chunk.get("error"):
                raise retry.reported(chunk, secret=self._secret)
            if finishes(chunk):
                self._finished = True
            chunks.append(chunk)

    def _ended(self) -> list[Json]:
        """The response is over, perhaps without an empty line after its last event."""
        if not self._connection.received:
            raise empty()
        last = self._events([b"".join(self._line), b""])
        if self._finished:  # a torn event after the whole answer takes nothing away from it
            self._failure = None
        self._over()
        return last

    def _over(self) -> None:
        self._done = True
        if not self._finished and self._failure is None:
            self._failure = errors.BadReply("The model's reply broke off before its end.")

    def _stop(self, error: errors.ModelError) -> list[Json]:
        self._failure = error
        self._done = True
        return []

    async def _drain(self) -> None:
        """Read the end that follows [DONE]: then the connection goes back to the pool."""
        if not self._connection.complete:
            with contextlib.suppress(*FAILURES):
                async with asyncio.timeout(DRAIN_LIMIT):
                    while await self._connection.more():
                        pass


class Body:
    """The bytes of a response as they come, taken out of their compression if there is any."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        encoding = connection.header(b"content-encoding")
        self._unpacker = connections.unpacker(encoding) if encoding else None

    async def more(self) -> bytes:
        """At least a byte; nothing at the end."""
        while data := await self._connection.more():
            if self._unpacker is None:
                return data
            if unpacked := self._unpacker.decompress(data, REPLY_LIMIT + 1):
                return unpacked
        return b""


def checked_key(key: str | None) -> str | None:
    if key and not (key.isascii() and key.isprintable()):
        raise errors.Invalid("The upstream's key holds characters that no HTTP header can carry.", param="api_key")
    return key or None


def encoded(request: Json) -> bytes:
    try:
        return msgspec.json.encode(request)
    except (TypeError, ValueError, RecursionError) as error:
        raise errors.ModelRejected("The request cannot be written as JSON.") from error


def decoded(raw: bytes) -> Json:
    try:
        value = decode(raw)
    except (ValueError, RecursionError):
        value = mended(raw)
    if not isinstance(value, dict):
        raise errors.BadReply("The model's reply is not a JSON object.")
    return value


def mended(raw: bytes) -> Any:
    """A reply that is JSON but for halves of surrogate pairs, with U+FFFD in their place."""
    if b"\\u" in raw:
        with contextlib.suppress(ValueError, RecursionError):
            return decode(SURROGATES.sub(lambda found: b"\\ufffd" if found[1] else found[0], raw))
    raise errors.BadReply("The model's reply is not JSON.")


async def whole(connection: Connection, *, limit: int = REPLY_LIMIT) -> bytes:
    """The body of a response."""
    parts: list[bytes] = []
    size = 0
    try:
        body = Body(connection)
        while data := await body.more():
            parts.append(data)
            size += len(data)
            if size > limit:
                raise errors.BadReply("The model's reply is too large.")
    except FAILURES as error:
        raise broken(error, fresh=not connection.received) from error
    if not parts:
        raise empty()
    return parts[0] if len(parts) == 1 else b"".join(parts)


def empty() -> retry.Again:
    """It may have been meant to hold something: without a length a response that was cut looks like one that ended."""
    return retry.Again(errors.BadReply("The model's reply is empty."))


def broken(error: Exception, *, fresh: bool) -> Exception:
    """What a failed connection means: worth another try if nothing of the answer had come."""
    if isinstance(error, TimeoutError):
        return errors.ModelTimeout("The model did not answer in time.")
    if isinstance(error, connections.NotHttp | zlib.error):
        return errors.BadReply("The model's reply is not HTTP.")
    failure = errors.ModelError("The model cannot be reached, or the connection to it broke.")
    return retry.Again(failure) if fresh else failure


def completion(reply: Json, *, secret: str | None) -> Json:
    """A reply, if it is a whole answer."""
    if reply.get("error"):
        raise retry.reported(reply, secret=secret)
    choices = reply.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(first, dict) or not isinstance(first.get("message"), dict):
        raise errors.BadReply("The model's reply holds no answer.")
    return reply


def finishes(chunk: Json) -> bool:
    """Whether a chunk ends the answer. Its shape is checked on the way, as nobody will after us."""
    choices = chunk.get("choices")
    if not choices:
        return False
    first = choices[0] if isinstance(choices, list) else None
    if not isinstance(first, dict) or not isinstance(first.get("delta") or {}, dict):
        raise errors.BadReply("The model's reply holds a chunk that is none.")
    return bool(first.get("finish_reason"))


def chunks_of(reply: Json) -> list[Json]:
    """A whole answer as the chunks it would have been streamed in: some servers do not stream whatever they are asked."""
    head = {name: value for name, value in reply.items() if name not in ("choices", "usage")} | {"object": "chat.completion.chunk"}
    chunks: list[Json] = []
    for choice in reply["choices"]:
        delta = dict(choice["message"])
        if delta.get("tool_calls"):
            delta["tool_calls"] = [{"index": index, **call} for index, call in enumerate(delta["tool_calls"])]
        rest = {name: value for name, value in choice.items() if name not in ("message", "finish_reason")}
        chunks.append({**head, "choices": [{**rest, "delta": delta, "finish_reason": None}]})
        end = {"index": rest.get("index", 0), "delta": {}, "finish_reason": choice.get("finish_reason") or "stop"}
        chunks.append({**head, "choices": [end]})
    if reply.get("usage"):
        chunks.append({**head, "choices": [], "usage": reply["usage"]})
    return chunks
