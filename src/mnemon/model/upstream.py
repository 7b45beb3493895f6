"""Any OpenAI-compatible server as a model, over HTTP.

It sends a request as it is, reads the answer, whole or as a stream, and gives every failure its name. It knows nothing of sessions or
prompts, and it passes chunks on without looking at what they say, but for their end.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import math
import random
import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, Self
from urllib.parse import urlsplit, urlunsplit

import aiohttp
import msgspec

from mnemon.core import clock, errors
from mnemon.model import retry

Json = dict[str, Any]

CONNECT_LIMIT = 10.0  # seconds
REPLY_LIMIT = 64 * 2**20  # bytes of a whole answer, or of one event of a stream
REFUSAL_LIMIT = 64 * 2**10  # bytes of an error's body that are read
DRAIN_LIMIT = 0.1  # seconds that a server may take to end the response after it said [DONE]
LARGE_BODY = 2**20  # aiohttp wants bodies beyond this as a file, so that it can send them piece by piece

# All that aiohttp raises when a connection fails; RuntimeError is how it says that a connection was closed meanwhile.
FAILURES = (aiohttp.ClientError, aiohttp.http.HttpProcessingError, OSError, RuntimeError)

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
        self._chat = url(base_url, "chat/completions")
        self._models = url(base_url, "models")
        self._key = checked_key(api_key)
        self._timeout = timeout
        self._total = total_timeout
        self._connect = min(timeout, CONNECT_LIMIT)
        self._retries = retries
        self._sleep = sleep
        self._random = random
        self._now = now
        self._session: aiohttp.ClientSession | None = None

    async def complete(self, request: Json) -> Json:
        body = encoded({name: value for name, value in request.items() if name not in ("stream", "stream_options")})

        async def attempt() -> Json:
            return completion(await self._asked("POST", self._chat, body), secret=self._key)

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
            return await self._asked("GET", self._models, None)

        data = (await self._tried(attempt)).get("data")
        if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
            raise errors.BadReply("The model's list of models is not a list.")
        return data

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def _tried(self, attempt: Callable[[], Awaitable[retry.T]]) -> retry.T:
        return await retry.tried(attempt, retries=self._retries, sleep=self._sleep, random=self._random)

    def _pool(self) -> aiohttp.ClientSession:
        """Made at the first call: a session belongs to the loop it was made in."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),
                timeout=aiohttp.ClientTimeout(total=None, connect=self._connect),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"User-Agent": "mnemon"} | ({"Authorization": f"Bearer {self._key}"} if self._key else {}),
                trust_env=False,
            )
        return self._session

    async def _open(self, method: str, address: str, body: bytes | None, **headers: str) -> aiohttp.ClientResponse:
        """A response of success whose body has not been read; anything else is raised."""
        if body is not None:
            headers["Content-Type"] = "application/json"
        data = io.BytesIO(body) if body is not None and len(body) > LARGE_BODY else body
        try:
            async with asyncio.timeout(self._timeout):
                response = await self._pool().request(method, address, data=data, headers=headers, allow_redirects=False)
        except FAILURES as error:
            raise broken(error, fresh=True) from cause(error)
        if response.status >= 300:
            raise await self._refusal(response)
        return response

    async def _refusal(self, response: aiohttp.ClientResponse) -> Exception:
        status = response.status
        reply = None
        try:
            if 400 <= status < 500:
                with contextlib.suppress(errors.ModelError, retry.Again):  # the status alone says enough
                    reply = decoded(await self._whole(response, limit=REFUSAL_LIMIT))
        finally:
            response.close()
        after = retry.seconds(response.headers.get("Retry-After"), now=self._now())
        error = retry.refusal(status, reply, secret=self._key, retry_after=after)
        return retry.Again(error) if status in retry.PASSING else error

    async def _asked(self, method: str, address: str, body: bytes | None) -> Json:
        """The whole reply to a request."""
        response = await self._open(method, address, body, Accept="application/json")
        try:
            return decoded(await self._whole(response))
        finally:
            response.close()

    async def _whole(self, response: aiohttp.ClientResponse, *, limit: int = REPLY_LIMIT) -> bytes:
        with Watch(response.content, timeout=self._timeout, total=self._total) as watch:
            return await whole(response, watch, limit=limit)

    async def _begin(self, body: bytes) -> Reply:
        """A stream whose first chunks are here."""
        # Compression would hold chunks back.
        accept = {"Accept": "text/event-stream, application/json", "Accept-Encoding": "identity"}
        response = await self._open("POST", self._chat, body, **accept)
        reply = Reply(response, Watch(response.content, timeout=self._timeout, total=self._total), secret=self._key)
        try:
            await reply.begin()
        except BaseException:
            reply.close()
            raise
        return reply


class Watch:
    """Breaks off the reading of a body when nothing comes for too long, or when all of it takes too long.

    Its one timer per response looks at the clock now and then. A timer per read, as aiohttp has it, costs as much as parsing a chunk.
    """

    def __init__(self, content: aiohttp.StreamReader, *, timeout: float, total: float) -> None:
        self.waiting_since = math.inf  # set by the reader, who alone knows whether it waits
        self._content = content
        self._timeout = timeout
        self._deadline = time.monotonic() + total
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(min(timeout, total), self._look)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._timer.cancel()

    def _look(self) -> None:
        left = min(self.waiting_since + self._timeout, self._deadline) - time.monotonic()
        if left > 0:
            self._timer = self._loop.call_later(min(left, self._timeout), self._look)
        else:
            self._content.set_exception(TimeoutError())


class Reply:
    """A streamed answer while it comes in."""

    def __init__(self, response: aiohttp.ClientResponse, watch: Watch, *, secret: str | None) -> None:
        self._response = response
        self._content = response.content
        self._watch = watch
        self._secret = secret
        self._line: list[bytes] = []  # pieces of a line whose end has not come
        self._data: list[bytes] = []  # data lines of an event whose end has not come
        self._held = 0  # bytes since the last event
        self._read = 0
        self._first: list[Json] = []
        self._failure: errors.ModelError | None = None
        self._begun = False  # a chunk has come
        self._finished = False  # a chunk had a finish_reason
        self._done = False

    def close(self) -> None:
        """Cut the connection, unless the response was read to its end."""
        self._watch.close()
        self._response.close()

    async def begin(self) -> None:
        """Wait for the first chunks, so that a failure before them can still be retried."""
        if self._response.content_type == "application/json":
            self._first = chunks_of(completion(decoded(await whole(self._response, self._watch)), secret=self._secret))
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
        self._watch.waiting_since = time.monotonic()
        try:
            data = await self._content.readany()
        except FAILURES as error:
            if self._finished:  # the answer is whole, only its [DONE] is missing
                return b""
            # Bytes that nobody has looked at may have been a chunk.
            raise broken(error, fresh=not self._begun and self._content.total_bytes == self._read) from cause(error)
        self._watch.waiting_since = math.inf
        self._read += len(data)
        return data

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
        if not self._read:
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
        if not self._content.at_eof():
            with contextlib.suppress(*FAILURES):
                async with asyncio.timeout(DRAIN_LIMIT):
                    while await self._content.readany():
                        pass


def url(base: str, path: str) -> str:
    parts = urlsplit(base)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise errors.Invalid("The upstream's base URL must begin with http:// or https:// and name a host.", param="base_url")
    if "@" in parts.netloc:
        raise errors.Invalid("The upstream's base URL must not hold a user name or password.", param="base_url")
    return urlunsplit(parts._replace(path=f"{parts.path.rstrip('/')}/{path}", fragment=""))


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


async def whole(response: aiohttp.ClientResponse, watch: Watch, *, limit: int = REPLY_LIMIT) -> bytes:
    """The body of a response."""
    parts: list[bytes] = []
    size = 0
    watch.waiting_since = time.monotonic()
    try:
        while data := await response.content.readany():
            parts.append(data)
            size += len(data)
            if size > limit:
                raise errors.BadReply("The model's reply is too large.")
            watch.waiting_since = time.monotonic()
    except FAILURES as error:
        raise broken(error, fresh=response.content.total_bytes == 0) from cause(error)
    if not parts:
        raise empty()
    return b"".join(parts)


def empty() -> retry.Again:
    """Without a length in its headers a response that was reset looks like one that ended."""
    return retry.Again(errors.BadReply("The model's reply is empty."))


def broken(error: Exception, *, fresh: bool) -> Exception:
    """What a failed connection means: worth another try if nothing of the answer had come."""
    if isinstance(error, TimeoutError):
        return errors.ModelTimeout("The model did not answer in time.")
    if isinstance(error, aiohttp.ClientResponseError | aiohttp.http.HttpProcessingError):
        return errors.BadReply("The model's reply is not HTTP.")
    failure = errors.ModelError("The model cannot be reached, or the connection to it broke.")
    return retry.Again(failure) if fresh else failure


def cause(error: Exception) -> Exception | None:
    """An error to be kept as a cause, unless its text would show the headers that were sent, the key among them."""
    return None if isinstance(error, aiohttp.ClientResponseError) else error


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
