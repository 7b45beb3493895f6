"""The upstream client against real sockets: every meaning of a failure, every way to cut a stream, and what it leaves behind."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import logging
import socket
import ssl
import struct
import time
from collections.abc import AsyncIterator
from email.utils import formatdate
from typing import Any, Self

import pytest

from mnemon.core import errors
from mnemon.model import base, retry
from mnemon.model.upstream import REPLY_LIMIT, Upstream


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"], scope="module")
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, bool]]:
    """The server runs on uvloop, where there is one, and the commands on asyncio's own loop."""
    if request.param:
        pytest.importorskip("uvloop")
    return "asyncio", {"use_uvloop": request.param}


KEY = "sk-very-secret-0123456789"
REQUEST: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Grüß dich 😀"}], "temperature": 0.5, "x_unknown": [1]}

RESET = "reset"  # steps of a script beside bytes (send them) and numbers (wait so many seconds)
CLOSE = "close"
HANG = "hang"
Step = bytes | float | str


class Server:
    """Answers the n-th request by the n-th script, and later ones by the last."""

    def __init__(self, *scripts: list[Step], deaf: bool = False, tls: ssl.SSLContext | None = None) -> None:
        self.scripts = scripts
        self.tls = tls
        self.deaf = deaf
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        self.connections = 0
        self.gone = asyncio.Event()  # somebody closed a connection on us
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self.tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def bodies(self) -> list[Any]:
        return [json.loads(body) for _, _, body in self.requests]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            await self._talk(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            self.gone.set()
        except asyncio.CancelledError:
            pass  # the test is over
        finally:
            writer.close()
            self._tasks.discard(task)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.deaf:
            await asyncio.sleep(600)
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            self.requests.append((head[0], headers, body))
            script = self.scripts[min(len(self.requests), len(self.scripts)) - 1]
            for step in script:
                if isinstance(step, bytes):
                    writer.write(step)
                    await writer.drain()
                elif isinstance(step, float):
                    await asyncio.sleep(step)
                elif step == HANG:
                    await reader.readexactly(1)
                else:
                    await writer.drain()
                    if step == RESET:
                        linger = struct.pack("ii", 1, 0)
                        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                    return
            if any(isinstance(step, bytes) and b"Connection: close" in step for step in script):
                return


def http(body: bytes, status: str = "200 OK", kind: str = "application/json", *headers: str) -> bytes:
    """A whole HTTP response."""
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


SSE_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
CHUNKED_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunked(data: bytes) -> bytes:
    """One piece of a chunked body; of no bytes, its end."""
    return b"%x\r\n%s\r\n" % (len(data), data)


def chunk(content: str | None = None, finish: str | None = None, **extra: Any) -> dict[str, Any]:
    """A chunk as a model sends it."""
    delta = {} if content is None else {"content": content}
    return {"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **extra}


def event(value: Any) -> bytes:
    """A chunk as an event."""
    return b"data: " + json.dumps(value).encode() + b"\n\n"


WHOLE = {
    "id": "c",
    "object": "chat.completion",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}],
}
OK = http(json.dumps(WHOLE).encode())
CHUNKS = [chunk("Grüße "), chunk("😀"), chunk(finish="stop"), {"id": "c", "choices": [], "usage": {"total_tokens": 3}}]
DONE = b"data: [DONE]\n\n"
STREAM = SSE_HEAD + b"".join(map(event, CHUNKS)) + DONE
REUSABLE = CHUNKED_HEAD + b"".join(chunked(event(c)) for c in CHUNKS) + chunked(DONE) + chunked(b"")


@contextlib.asynccontextmanager
async def talking(*scripts: list[Step], deaf: bool = False, **settings: Any) -> AsyncIterator[tuple[Upstream, Server]]:
    """A client and the server it talks to. It does not really wait between its tries."""
    async with Server(*scripts, deaf=deaf) as server:
        model = upstream(f"http://127.0.0.1:{server.port}/v1", **settings)
        try:
            yield model, server
        finally:
            await model.close()


def upstream(base_url: str, **settings: Any) -> Upstream:
    """A client that does not really wait between its tries."""

    async def sleep(_: float) -> None:
        await asyncio.sleep(0)

    return Upstream(**{"base_url": base_url, "api_key": KEY, "timeout": 5.0, "sleep": sleep, **settings})


async def collected(model: base.Model, request: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    """All chunks of a stream."""
    return [c async for c in model.stream(request or REQUEST)]


async def noted(model: Upstream, got: list[Any]) -> None:
    """Put the chunks of a stream into a list, which keeps those before a failure."""
    async for piece in model.stream(REQUEST):
        got.append(piece)  # noqa: PERF401 (a list made at once would be lost)


async def asked(model: Upstream, how: str) -> Any:
    """One call, as JSON or as a stream."""
    return await (model.complete(REQUEST) if how == "JSON" else collected(model))


both = pytest.mark.parametrize("how", ["JSON", "stream"])


# --- what is sent, what comes back ---


async def test_a_completion_comes_back_as_it_was_sent() -> None:
    """The request goes upstream whole, with the key; the answer comes back whole."""
    async with talking([OK]) as (model, server):
        assert await model.complete({**REQUEST, "stream": True, "stream_options": {"include_usage": True}}) == WHOLE
    line, headers, _ = server.requests[0]
    assert line == "POST /v1/chat/completions HTTP/1.1"
    assert headers["authorization"] == f"Bearer {KEY}"
    assert headers["content-type"] == "application/json"
    assert server.bodies == [REQUEST]


async def test_a_stream_comes_back_chunk_by_chunk() -> None:
    """The request goes upstream whole, asking for a stream; every chunk comes back, usage included."""
    async with talking([STREAM]) as (model, server):
        assert await collected(model, {**REQUEST, "stream_options": {"include_usage": True}}) == CHUNKS
    assert server.bodies == [{**REQUEST, "stream": True, "stream_options": {"include_usage": True}}]
    assert server.requests[0][1]["accept-encoding"] == "identity"


async def test_chunks_come_as_soon_as_they_are_sent() -> None:
    """The first chunk is here while the model still thinks about the second."""
    async with talking([SSE_HEAD, event(CHUNKS[0]), HANG]) as (model, _):
        stream = model.stream(REQUEST)
        assert await asyncio.wait_for(anext(stream), 2) == CHUNKS[0]
        await closed(stream)


async def closed(stream: AsyncIterator[Any]) -> None:
    """Close a stream as its reader would."""
    assert hasattr(stream, "aclose")
    await stream.aclose()


async def test_without_a_key_no_credential_is_sent() -> None:
    """A server without a key gets no Authorization header."""
    async with talking([OK], api_key=None) as (model, server):
        await model.complete(REQUEST)
    assert "authorization" not in server.requests[0][1]


async def test_models_are_listed() -> None:
    """The model objects come back as they are."""
    models = [{"id": "a", "object": "model", "owned_by": "x"}]
    async with talking([http(json.dumps({"object": "list", "data": models}).encode())]) as (model, server):
        assert await model.models() == models
    assert server.requests[0][0] == "GET /v1/models HTTP/1.1"


@pytest.mark.parametrize("body", [b"{}", b"[]", b"<html>", b'{"data": {}}', b'{"data": ["x"]}'])
async def test_a_list_of_models_that_is_none(body: bytes) -> None:
    """A list of models that is none is a bad reply."""
    async with talking([http(body)]) as (model, _):
        with pytest.raises(errors.BadReply):
            await model.models()


@pytest.mark.parametrize(
    ("given", "line"),
    [("/v1", "/v1/chat/completions"), ("/v1/", "/v1/chat/completions"), ("", "/chat/completions"), ("/a?v=2", "/a/chat/completions?v=2")],
)
async def test_the_address_is_built_from_the_base_url(given: str, line: str) -> None:
    """A slash at the end changes nothing, and a query stays where it belongs."""
    async with Server([OK]) as server:
        model = upstream(f"http://127.0.0.1:{server.port}{given}")
        await model.complete(REQUEST)
        await model.close()
    assert server.requests[0][0] == f"POST {line} HTTP/1.1"


@pytest.mark.parametrize(
    "wrong", [{"base_url": "localhost:1"}, {"base_url": "ftp://x/v1"}, {"base_url": "http://u:p@x/v1"}, {"api_key": "a\nb"}]
)
def test_wrong_settings_are_refused_at_once(wrong: dict[str, str]) -> None:
    """An address or key that can never work is refused by name, without being repeated."""
    with pytest.raises(errors.Invalid) as caught:
        Upstream(**{"base_url": "http://x/v1", "api_key": None, "timeout": 1.0} | wrong)  # type: ignore[arg-type]
    assert caught.value.param in wrong
    assert not any(value in caught.value.message for value in wrong.values())


@both
async def test_a_large_request_is_sent_whole(how: str) -> None:
    """Three megabytes go upstream without a warning, on a retry too."""
    request = {**REQUEST, "messages": [{"role": "user", "content": "ä" * 1_500_000}]}
    async with talking([http(b"", "503 Busy")], [OK if how == "JSON" else STREAM]) as (model, server):
        await (model.complete(request) if how == "JSON" else collected(model, request))
    assert [b["messages"] for b in server.bodies] == [request["messages"]] * 2


@both
async def test_a_request_that_is_not_json_is_refused(how: str) -> None:
    """What JSON cannot carry never leaves the house."""
    async with talking([OK]) as (model, server):
        for request in ({"x": object()}, {"x": "\ud800"}):
            with pytest.raises(errors.ModelRejected):
                await (model.complete(request) if how == "JSON" else collected(model, request))
    assert server.requests == []


# --- how a stream may be cut, and what may stand in it ---


ODD = (
    b": a comment\r\n\r\n"
    b"event: chunk\r\nid: 7\r\nretry: 100\r\ndata:" + json.dumps(CHUNKS[0], ensure_ascii=False).encode() + b"\r\n\r\n"
    b"data\n\ndata:\n\n"
    b"data: " + json.dumps(CHUNKS[1]).encode().replace(b', "', b',\ndata: "') + b"\n: in the middle\n\n"
    b"\n\n\ndata: " + json.dumps(CHUNKS[2]).encode() + b"\n\r\n" + event(CHUNKS[3]) + b"data:[DONE]\r\n\r\nafter the end\n\n"
)


@pytest.mark.parametrize("data", [b"".join(map(event, CHUNKS)) + DONE, ODD], ids=["plain", "odd"])
async def test_a_stream_may_be_cut_at_every_byte(data: bytes) -> None:
    """Wherever the network cuts a stream in two, the same chunks come out."""
    scripts: list[list[Step]] = [[CHUNKED_HEAD + chunked(data[:i]), 0.001, chunked(data[i:]) + chunked(b"")] for i in range(1, len(data))]
    async with talking(*scripts) as (model, _):
        for _ in scripts:
            assert await collected(model) == CHUNKS


@pytest.mark.parametrize("data", [b"".join(map(event, CHUNKS)) + DONE, ODD], ids=["plain", "odd"])
async def test_a_stream_may_come_byte_by_byte(data: bytes) -> None:
    """A stream of single bytes gives the same chunks."""
    steps: list[Step] = [SSE_HEAD]
    for i in range(len(data)):
        steps += [data[i : i + 1], 0.0]
    async with talking(steps) as (model, _):
        assert await collected(model) == CHUNKS


async def test_the_last_event_needs_no_empty_line() -> None:
    """A finished answer is accepted without [DONE], and without the empty line after its last event."""
    for tail in (b"", b"\n", b"\n\n", b"\n\ndata: [DO", b'\n\ndata: {"choices": []', b"\n\ndata: [DONE]"):
        async with talking([SSE_HEAD + b"".join(map(event, CHUNKS[:2])) + event(CHUNKS[2]).rstrip() + tail]) as (model, _):
            assert await collected(model) == CHUNKS[:3]


async def test_a_finished_answer_survives_what_follows_it() -> None:
    """Once the finish reason is here, a reset or silence only ends the stream."""
    for end in (RESET, HANG):
        async with talking([SSE_HEAD + b"".join(map(event, CHUNKS[:3])), 0.05, end], timeout=0.3) as (model, server):
            assert await collected(model) == CHUNKS[:3]
            assert len(server.requests) == 1


async def test_two_megabytes_in_one_chunk() -> None:
    """One event of two megabytes comes whole, however many pieces it came in."""
    big = chunk("0123456789" * 200_000)
    async with talking([SSE_HEAD + event(big) + event(CHUNKS[2]) + DONE]) as (model, _):
        assert (await collected(model))[0] == big


async def test_two_megabytes_in_one_completion() -> None:
    """A completion of two megabytes comes whole."""
    big = {**WHOLE, "choices": [{"index": 0, "message": {"role": "assistant", "content": "ä" * 1_000_000}}]}
    async with talking([http(json.dumps(big).encode())]) as (model, _):
        assert await model.complete(REQUEST) == big


async def test_half_a_surrogate_pair_is_replaced() -> None:
    """Text cut inside an emoji becomes U+FFFD; a whole pair and an escaped backslash stay."""
    raw = rb'data: {"choices":[{"delta":{"content":"\ud83d \\ud83d \ud83d\ude00 \uDE00"},"finish_reason":"stop"}]}' + b"\n\n"
    async with talking([SSE_HEAD + raw]) as (model, _):
        got = await collected(model)
    assert got[0]["choices"][0]["delta"]["content"] == "\ufffd \\ud83d 😀 \ufffd"


async def test_compressed_replies_are_read() -> None:
    """A server may compress what it sends."""
    packed = gzip.compress(json.dumps(WHOLE).encode())
    async with talking([http(packed, "200 OK", "application/json", "Content-Encoding: gzip")]) as (model, _):
        assert await model.complete(REQUEST) == WHOLE


async def test_a_completion_in_place_of_a_stream() -> None:
    """A server that answers a stream request with JSON is understood as if it had streamed."""
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    message = {"role": "assistant", "content": "hi", "reasoning_content": "hm", "tool_calls": [call]}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "tool_calls"}
    answer = {"id": "c", "object": "chat.completion", "model": "m", "choices": [choice], "usage": {"total_tokens": 9}}
    async with talking([http(json.dumps(answer).encode(), "200 OK", "application/json; charset=utf-8")]) as (model, _):
        first, end, usage = await collected(model)
    assert first["object"] == end["object"] == "chat.completion.chunk"
    assert first["choices"][0] == {
        "index": 0,
        "delta": {**message, "tool_calls": [{"index": 0, **call}]},
        "logprobs": None,
        "finish_reason": None,
    }
    assert end["choices"] == [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]
    assert (usage["choices"], usage["usage"], usage["model"]) == ([], {"total_tokens": 9}, "m")


# --- what a failure means ---


@both
@pytest.mark.parametrize(
    ("status", "kind", "calls"),
    [
        (401, errors.ModelDenied, 1),
        (403, errors.ModelDenied, 1),
        (429, errors.ModelBusy, 1),
        (400, errors.ModelRejected, 1),
        (404, errors.ModelRejected, 1),
        (422, errors.ModelRejected, 1),
        (408, errors.ModelTimeout, 3),
        (500, errors.ModelError, 3),
        (502, errors.ModelError, 3),
        (503, errors.ModelError, 3),
        (504, errors.ModelError, 3),
        (501, errors.ModelError, 1),
        (307, errors.BadReply, 1),
    ],
)
async def test_statuses(how: str, status: int, kind: type[errors.ModelError], calls: int) -> None:
    """Each status has its meaning, and only what may pass is tried again, three times in all."""
    body = json.dumps({"error": {"message": "the model's own words", "type": "t", "param": "p", "code": "c"}}).encode()
    async with talking([http(body, f"{status} Oh", "application/json", "Location: /elsewhere")]) as (model, server):
        with pytest.raises(errors.ModelError) as caught:
            await asked(model, how)
    error = caught.value
    assert isinstance(error, kind)
    assert type(error) in (kind, retry.Rejected)
    assert len(server.requests) == calls
    assert ("the model's own words" in error.message) == (kind is errors.ModelRejected)


async def test_a_refused_request_is_explained() -> None:
    """Message, type, code, parameter and status of a refusal are passed on; the key never is."""
    body = {
        "error": {"message": f"Unknown parameter 'x' ({KEY})", "type": "invalid_request_error", "param": "x", "code": "unknown_parameter"}
    }
    async with talking([http(json.dumps(body).encode(), "400 Bad")]) as (model, _):
        with pytest.raises(retry.Rejected) as caught:
            await model.complete(REQUEST)
    error = caught.value
    assert error.message == "Unknown parameter 'x' ([key])"
    assert (error.type, error.code, error.param, error.status) == ("invalid_request_error", "unknown_parameter", "x", 400)


@pytest.mark.parametrize(
    ("body", "message", "code"),
    [
        (b'{"error": "model not found"}', "model not found", "upstream_rejected"),
        (b'{"object": "error", "message": "too long", "code": 400}', "too long", "upstream_rejected"),
        (b'{"detail": "Not Found"}', "Not Found", "upstream_rejected"),
        (b'{"error": {"message": "no", "code": null}}', "no", "upstream_rejected"),
        (b"<html>nginx</html>", "The model refused the request with status 404.", "upstream_rejected"),
        (b"", "The model refused the request with status 404.", "upstream_rejected"),
        (b'{"error": {"message": 5}}', "The model refused the request with status 404.", "upstream_rejected"),
        (b"[" * 100_000, "The model refused the request with status 404.", "upstream_rejected"),
    ],
)
async def test_refusals_come_in_many_shapes(body: bytes, message: str, code: str) -> None:
    """The words of a refusal are found in the shapes that servers in the wild give it."""
    async with talking([http(body, "404 Not Found", "text/plain")]) as (model, _):
        with pytest.raises(retry.Rejected) as caught:
            await model.complete(REQUEST)
    assert (caught.value.message, caught.value.code, caught.value.status) == (message, code, 404)


async def test_a_refusal_in_pieces_is_put_together() -> None:
    """The body of a refusal may come in several pieces."""
    whole = http(b'{"error": {"message": "in two pieces"}}', "400 Bad")
    async with talking([whole[:-10], 0.02, whole[-10:]]) as (model, _):
        with pytest.raises(errors.ModelRejected, match="in two pieces"):
            await model.complete(REQUEST)


@pytest.mark.parametrize(("header", "seconds"), [("7", 7), ("0", 0), ("1.5", 1.5), (formatdate(1_000_090), 90), (formatdate(999_000), 0)])
@both
async def test_retry_after_is_passed_on(how: str, header: str, seconds: float) -> None:
    """A rate limited model says itself when to come back, in seconds or as a date; the call is not repeated."""
    reply = http(b"{}", "429 Slow down", "application/json", f"Retry-After: {header}")
    async with talking([reply], now=lambda: 1_000_000.0) as (model, server):
        with pytest.raises(errors.ModelBusy) as caught:
            await asked(model, how)
    assert caught.value.retry_after == seconds
    assert len(server.requests) == 1
    if header == "7":
        assert str(caught.value.retry_after) == "7"


@pytest.mark.parametrize("header", [None, "", "soon", "-3", "nan", "inf", "1e3", "9" * 5000, "Mon, 99 Foo 2026 00:00:00 GMT"])
def test_a_retry_after_that_says_nothing(header: str | None) -> None:
    """A header that is neither a number nor a date is as good as none."""
    assert retry.seconds(header, now=0) is None


@pytest.mark.parametrize(
    "body",
    (
        rb'null []  {} <html>oops</html> {"choices":[]} {"choices":null} {"choices":[1]} {"choices":[{}]} {"choices":[{"message":null}]} '
        rb'{"choices":{"0":1}} {"choices":[{"message":{} ' + b'{"a":"\xff"} ' + b"[" * 100_000
    ).split(),
)
@both
async def test_nonsense_in_place_of_a_completion(how: str, body: bytes) -> None:
    """A reply that holds no answer is a bad reply, and is not asked for again."""
    async with talking([http(body)]) as (model, server):
        with pytest.raises(errors.BadReply):
            await asked(model, how)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "body",
    [
        DONE,
        b"data: {not json\n\nevent: \xff\xfe\n<html>oops</html>\n\n",
        b"data: [1]\n\n",
        b"data: null\n\n",
        b'data: "x"\n\n',
        b'data: {"choices": 5}\n\n',
        b'data: {"choices": [5]}\n\n',
        b'data: {"choices": [{"delta": "x"}]}\n\n',
        b'data: {"a": "\xff"}\n\n',
        b"data: " + b"[" * 100_000 + b"\n\n",
        b"<html>oops</html>",
        b": only comments\n\n" * 5,
    ],
)
async def test_nonsense_in_place_of_a_stream(body: bytes) -> None:
    """A stream that says nothing, or nonsense, is a bad reply, and is not asked for again."""
    async with talking([SSE_HEAD + body, CLOSE]) as (model, server):
        with pytest.raises(errors.BadReply):
            await collected(model)
    assert len(server.requests) == 1


@pytest.mark.parametrize("end", [b"", DONE, b"data: {oops\n\n", b"data: [1]\n\n"], ids=["eof", "done", "garbage", "list"])
@pytest.mark.parametrize("pause", [0.0, 0.05])
async def test_a_stream_that_breaks_off(end: bytes, pause: float) -> None:
    """What came before the break is given, then the break is raised, whether or not both came at once."""
    got: list[Any] = []
    steps: list[Step] = [SSE_HEAD + b"".join(map(event, CHUNKS[:2])), pause, end, CLOSE]
    if not pause:
        steps = [SSE_HEAD + b"".join(map(event, CHUNKS[:2])) + end, CLOSE]
    async with talking(steps) as (model, server):
        with pytest.raises(errors.BadReply):
            await noted(model, got)
    assert got == CHUNKS[:2]
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("error", "kind", "status"),
    [
        ({"message": "overloaded", "type": "server_error", "code": None}, errors.ModelError, None),
        ({"message": "slow down", "code": 429}, errors.ModelBusy, None),
        ({"message": "slow down", "code": "rate_limit_exceeded"}, errors.ModelBusy, None),
        ({"message": "who", "type": "authentication_error"}, errors.ModelDenied, None),
        ({"message": "too long", "type": "BadRequestError", "code": 400}, errors.ModelRejected, 400),
        ({"message": "too long", "type": "invalid_request_error", "code": "context_length_exceeded"}, errors.ModelRejected, 400),
        ({"message": "odd", "code": "502"}, errors.ModelError, None),
        ("just words", errors.ModelError, None),
    ],
)
@pytest.mark.parametrize("how", ["JSON", "first frame", "later frame"])
async def test_errors_inside_a_reply_of_success(how: str, error: Any, kind: type[errors.ModelError], status: int | None) -> None:
    """An error in a reply of status 200 means what its code or type says."""
    before = CHUNKS[:1] if how == "later frame" else []
    reply = http(json.dumps({"error": error}).encode()) if how == "JSON" else SSE_HEAD + b"".join(map(event, [*before, {"error": error}]))
    async with talking([reply, CLOSE]) as (model, server):
        with pytest.raises(errors.ModelError) as caught:
            await asked(model, "JSON" if how == "JSON" else "stream")
    assert isinstance(caught.value, kind)
    assert type(caught.value) in (kind, retry.Rejected)
    assert getattr(caught.value, "status", None) == status
    assert len(server.requests) == 1
    if status is None:
        assert str(error["message"] if isinstance(error, dict) else error) not in caught.value.message


@both
async def test_a_reply_that_is_not_http(how: str) -> None:
    """Something else than HTTP is a bad reply."""
    async with talking([b"SSH-2.0-OpenSSH_9.6\r\n\r\n", CLOSE]) as (model, _):
        with pytest.raises(errors.BadReply) as caught:
            await asked(model, how)
    assert KEY not in repr(caught.value.__cause__)


@both
async def test_a_reply_badly_compressed(how: str) -> None:
    """Compression that is none is a failure like any other."""
    kind = "application/json" if how == "JSON" else "text/event-stream"
    async with talking([http(b"this is not gzip", "200 OK", kind, "Content-Encoding: gzip")], retries=0) as (model, _):
        with pytest.raises(errors.ModelError):
            await asked(model, how)


async def test_a_reply_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """One event, or one body, beyond the limit is given up; the limit leaves room for every real answer."""
    assert REPLY_LIMIT > 16 * 2**20
    monkeypatch.setattr("mnemon.model.upstream.REPLY_LIMIT", 100_000)
    async with talking([SSE_HEAD + event(CHUNKS[0]) + b"data: " + b"x" * 300_000, HANG]) as (model, _):
        with pytest.raises(errors.BadReply, match="too large"):
            await collected(model)


# --- connections that fail ---


@both
async def test_nobody_there(how: str) -> None:
    """A refused connection is tried three times and given up within three seconds, waits included."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    model = upstream(f"http://127.0.0.1:{port}/v1", sleep=asyncio.sleep)
    start = time.monotonic()
    with pytest.raises(errors.ModelError) as caught:
        await asked(model, how)
    assert type(caught.value) is errors.ModelError
    assert 0.25 < time.monotonic() - start < 3
    await model.close()


async def test_waits_grow_and_are_spread() -> None:
    """Between tries the client waits longer and longer, by chance a little more or less."""
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    for chance in (0.0, 0.5, 1.0):
        async with talking([http(b"", "503 No")], sleep=sleep, random=lambda chance=chance: chance, retries=5) as (model, server):
            with pytest.raises(errors.ModelError):
                await model.complete(REQUEST)
        assert len(server.requests) == 6
    assert waits[:5] == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.0])
    assert waits[5:10] == pytest.approx([0.2, 0.4, 0.8, 1.6, 2.0])
    assert waits[10:] == pytest.approx([0.3, 0.6, 1.2, 2.4, 3.0])


@both
@pytest.mark.parametrize(
    "fault", [[http(b"", "500 Oh")], [RESET], [CLOSE], [http(b"", "502 Oh"), CLOSE]], ids=["500", "reset", "close", "502"]
)
async def test_one_failure_then_an_answer(how: str, fault: list[Step]) -> None:
    """A failure that passes is not seen: the answer is."""
    async with talking(fault, fault, [OK if how == "JSON" else STREAM]) as (model, server):
        assert await asked(model, how) == (WHOLE if how == "JSON" else CHUNKS)
    assert len(server.requests) == 3
    assert server.bodies[0] == server.bodies[2]


async def test_no_retries_if_none_are_wanted() -> None:
    """With retries at zero each call is made once."""
    async with talking([RESET], retries=0) as (model, server):
        with pytest.raises(errors.ModelError):
            await model.complete(REQUEST)
    assert len(server.requests) == 1


@both
@pytest.mark.parametrize("head_first", [True, False])
async def test_a_reset_before_the_answer_is_tried_again(how: str, head_first: bool) -> None:  # noqa: FBT001
    """A reset before any of the answer came is tried again, though the headers, or a comment, were here."""
    head = OK[: OK.index(b"\r\n\r\n") + 4] if how == "JSON" else CHUNKED_HEAD + chunked(b": wait\n\n")
    fault: list[Step] = [head, 0.05, RESET] if head_first else [RESET]
    async with talking(fault, [OK if how == "JSON" else STREAM]) as (model, server):
        assert await asked(model, how) == (WHOLE if how == "JSON" else CHUNKS)
    assert len(server.requests) == 2


@both
@pytest.mark.parametrize("end", [CLOSE, RESET])
async def test_an_empty_reply_is_tried_again(how: str, end: str) -> None:
    """A reply of no bytes is a bad reply; it may have been a reset, so it is asked for again."""
    async with talking([SSE_HEAD, 0.02, end], [SSE_HEAD, end], [OK if how == "JSON" else STREAM]) as (model, server):
        assert await asked(model, how) == (WHOLE if how == "JSON" else CHUNKS)
    assert len(server.requests) == 3
    async with talking([http(b"")]) as (model, server):
        with pytest.raises(errors.BadReply):
            await asked(model, how)
    assert len(server.requests) == 3


@both
async def test_a_reset_within_the_answer_is_not_tried_again(how: str) -> None:
    """Once some of the answer was here a reset is final, and what came before it was given."""
    got: list[Any] = []
    part = OK[:-20] if how == "JSON" else CHUNKED_HEAD + chunked(event(CHUNKS[0]))
    async with talking([part, 0.1, RESET], [OK]) as (model, server):
        with pytest.raises(errors.ModelError) as caught:
            await (model.complete(REQUEST) if how == "JSON" else noted(model, got))
    assert type(caught.value) is errors.ModelError
    assert len(server.requests) == 1
    assert got == ([] if how == "JSON" else CHUNKS[:1])


async def test_bytes_that_were_not_read_count_as_an_answer() -> None:
    """If a reset comes together with the first chunk the call is not repeated."""
    async with talking([CHUNKED_HEAD + chunked(event(CHUNKS[0])), RESET], [STREAM]) as (model, server):
        with pytest.raises(errors.ModelError):
            await collected(model)
    assert len(server.requests) == 1


@both
@pytest.mark.parametrize("where", ["before the headers", "after the headers", "within the answer", "between chunks"])
async def test_silence_is_given_up_in_time(how: str, where: str) -> None:
    """A model that falls silent, at whatever point, is given up after the timeout, without another try."""
    json_steps: dict[str, list[Step]] = {
        "before the headers": [],
        "after the headers": [OK[: OK.index(b"{")]],
        "within the answer": [OK[:-9]],
    }
    sse_steps: dict[str, list[Step]] = {
        "before the headers": [],
        "after the headers": [SSE_HEAD],
        "within the answer": [SSE_HEAD + b'data: {"cho'],
        "between chunks": [SSE_HEAD + event(CHUNKS[0])],
    }
    steps = (json_steps if how == "JSON" else sse_steps).get(where, [])
    async with talking([*steps, HANG], timeout=0.4) as (model, server):
        start = time.monotonic()
        with pytest.raises(errors.ModelTimeout):
            await asked(model, how)
        assert 0.35 < time.monotonic() - start < 1.5
        assert len(server.requests) == 1
        await asyncio.wait_for(server.gone.wait(), 2)


async def test_a_slow_model_is_not_silent() -> None:
    """Chunks, or only comments, that keep coming hold the timeout off."""
    steps: list[Step] = [SSE_HEAD]
    for _ in range(6):
        steps += [0.1, b": still there\n\n"]
    async with talking([*steps, *(event(c) for c in CHUNKS), DONE, CLOSE], timeout=0.4) as (model, _):
        assert await collected(model) == CHUNKS


async def test_a_slow_reader_is_not_a_silent_model() -> None:
    """Only the model's silence counts: a reader may take longer than the timeout over each chunk."""
    got: list[Any] = []
    steps: list[Step] = [SSE_HEAD + event(CHUNKS[0]), 0.35, b"".join(map(event, CHUNKS[1:])) + DONE]
    async with talking(steps, timeout=0.2) as (model, _):
        async for piece in model.stream(REQUEST):
            got.append(piece)
            await asyncio.sleep(0.5)
    assert got == CHUNKS


async def test_the_whole_call_is_bounded() -> None:
    """A model that talks for ever is cut off after the total timeout."""
    steps: list[Step] = [SSE_HEAD]
    for _ in range(30):
        steps += [event(CHUNKS[0]), 0.05]
    async with talking(steps, total_timeout=0.3) as (model, _):
        with pytest.raises(errors.ModelTimeout):
            await collected(model)


async def test_a_server_that_does_not_read_is_given_up() -> None:
    """A large request to a server that never reads it ends by the timeout, too."""
    async with talking([OK], deaf=True, timeout=0.3) as (model, _):
        with pytest.raises(errors.ModelTimeout):
            await asyncio.wait_for(model.complete({"x": "y" * 30_000_000}), 5)


# --- going away, coming back ---


async def test_closing_a_stream_closes_the_connection() -> None:
    """A reader that leaves cuts the call off at once, and the next call works."""
    async with talking([SSE_HEAD + event(CHUNKS[0]), HANG], [STREAM], [OK]) as (model, server):
        stream = model.stream(REQUEST)
        assert await anext(stream) == CHUNKS[0]
        await closed(stream)
        await asyncio.wait_for(server.gone.wait(), 1)
        assert await collected(model) == CHUNKS
        assert await model.complete(REQUEST) == WHOLE


@pytest.mark.parametrize("where", [[], [SSE_HEAD], [SSE_HEAD + event(CHUNKS[0])]], ids=["headers", "first", "later"])
async def test_cancelling_a_task_closes_the_connection(where: list[Step]) -> None:
    """Cancelling whoever reads cuts the call off, wherever it stood, and the pool is good for the next one."""
    async with talking([*where, HANG], [STREAM]) as (model, server):
        task = asyncio.create_task(collected(model))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(server.gone.wait(), 1)
        assert await collected(model) == CHUNKS


async def test_connections_are_used_again() -> None:
    """Completions and streams that came to their end leave a connection for the next call."""
    late: list[Step] = [REUSABLE[: -len(chunked(b""))], 0.01, chunked(b"")]
    async with talking([OK], [REUSABLE], late, [http(b"{}", "503 No")], [OK], [http(b"{}", "400 No")], [OK]) as (model, server):
        await model.complete(REQUEST)
        assert await collected(model) == await collected(model) == CHUNKS
        assert await model.complete(REQUEST) == WHOLE
        with pytest.raises(errors.ModelRejected):
            await model.complete(REQUEST)
        assert await model.complete(REQUEST) == WHOLE
        assert len(server.requests) == 7
        assert server.connections == 1


async def test_a_server_that_lingers_after_done_does_not_hold_the_reader() -> None:
    """After [DONE] the stream is over, whether or not the server closes it."""
    async with talking([REUSABLE[: -len(chunked(b""))], HANG]) as (model, server):
        start = time.monotonic()
        assert await collected(model) == CHUNKS
        assert time.monotonic() - start < 1
        await asyncio.wait_for(server.gone.wait(), 1)


async def test_a_connection_that_the_server_closed_meanwhile() -> None:
    """A kept connection that died while it was idle costs nothing."""
    async with talking([OK, CLOSE], [OK]) as (model, server):
        assert await model.complete(REQUEST) == WHOLE
        await asyncio.sleep(0.05)
        assert await model.complete(REQUEST) == WHOLE
    assert len(server.requests) == 2


async def test_two_hundred_streams_at_once() -> None:
    """Many streams run side by side, each on its own."""
    async with talking([SSE_HEAD + event(CHUNKS[0]), 0.2, b"".join(map(event, CHUNKS[1:])) + DONE, CLOSE], timeout=20.0) as (model, server):
        got = await asyncio.gather(*(collected(model) for _ in range(200)))
    assert got == [CHUNKS] * 200
    assert server.connections == 200


async def test_closing_twice_and_closing_unused() -> None:
    """A model may be closed without having been used, and again."""
    model = upstream("http://127.0.0.1:9/v1")
    await model.close()
    async with talking([OK]) as (used, _):
        await used.complete(REQUEST)
        await used.close()


# --- the key ---


@pytest.mark.parametrize(
    "steps",
    [
        [http(b'{"error": {"message": "bad key %s"}}' % KEY.encode(), "401 No")],
        [http(b'{"error": {"message": "bad key %s", "code": "%s"}}' % (KEY.encode(), KEY.encode()), "400 No")],
        [http(KEY.encode(), "500 No")],
        [SSE_HEAD + event({"error": {"message": KEY, "code": 400}}), CLOSE],
        [b"nonsense\r\n\r\n", CLOSE],
        [RESET],
    ],
)
async def test_the_key_is_never_told(steps: list[Step], caplog: pytest.LogCaptureFixture) -> None:
    """Whatever goes wrong, no error, no cause of it and no log line holds the key."""
    caplog.set_level(logging.DEBUG)
    async with talking(steps) as (model, _):
        with pytest.raises(errors.ModelError) as caught:
            await collected(model)
    error: BaseException | None = caught.value
    while error is not None:
        assert KEY not in repr(error) + str(error) + repr(getattr(error, "__dict__", None))
        error = error.__cause__
    assert KEY not in caplog.text
