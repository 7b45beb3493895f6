"""The scripted upstream: a model endpoint that costs next to nothing, so that what is measured is the contestant in front of it.

A bare `asyncio.Protocol` speaking just enough HTTP/1.1: keep-alive, requests with a Content-Length, JSON replies, and SSE replies
of a set number of chunks at a set pace. It reads no JSON: a request is a stream if its body says so. Two routes belong to
the bench: `GET /bench/script/CHUNKS/PACE_MS` sets how streams are sent, `GET /bench/last` tells how large the newest prompt was.
"""

import argparse
import asyncio
import json
import re
import signal

MARK = "~"
"""Stands once in the text of every streamed chunk and nowhere else, so that a client counts chunks without reading JSON."""

ANSWER = (
    "The cache keeps one shard for each region and moves a key only when its owner has been away for longer than the lease. "
    "Writes go to the log first, readers take the newest committed version, and the janitor removes what nobody has asked for "
    "in a week. I would raise the lease to ninety seconds and watch the hit rate."
)
CHAT = "/v1/chat/completions"

_STREAM = re.compile(rb'"stream":\s*true')
_LENGTH = re.compile(rb"\r\ncontent-length:\s*(\d+)", re.IGNORECASE)
_MODELS = b'{"object":"list","data":[{"id":"gpt-4o-mini","object":"model","created":1700000000,"owned_by":"bench"}]}'


class Script:
    """How streams are sent at present, and what was seen last."""

    def __init__(self) -> None:
        self.prompt_bytes = 0
        self.set(chunks=40, pace=0.05)

    def set(self, *, chunks: int, pace: float) -> None:
        """Send later streams as this many chunks, this many seconds apart."""
        self.pace = pace
        words = [f"{word}{MARK} " for word in (ANSWER.split() * (1 + chunks // 50))[:chunks]]
        self.frames = [_frame({"choices": [_choice({"role": "assistant", "content": ""})]})]
        self.frames += [_frame({"choices": [_choice({"content": word})]}) for word in words]


def _choice(delta: dict[str, str], finish: str | None = None) -> dict[str, object]:
    return {"index": 0, "delta": delta, "finish_reason": finish}


def _chunked(payload: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(payload), payload)


def _frame(fields: dict[str, object]) -> bytes:
    head = {"id": "chatcmpl-bench", "object": "chat.completion.chunk", "created": 1700000000, "model": "gpt-4o-mini"}
    return _chunked(b"data: %b\n\n" % json.dumps(head | fields, separators=(",", ":")).encode())


def _usage(prompt_bytes: int) -> dict[str, int]:
    # Four bytes a token is near enough for English to leave a server that calibrates on usage unharmed.
    prompt = prompt_bytes // 4
    return {"prompt_tokens": prompt, "completion_tokens": 70, "total_tokens": prompt + 70}


def _ending(prompt_bytes: int, *, usage: bool) -> bytes:
    finish = _frame({"choices": [_choice({}, "stop")]})
    counted = _frame({"choices": [], "usage": _usage(prompt_bytes)}) if usage else b""
    return finish + counted + _chunked(b"data: [DONE]\n\n") + b"0\r\n\r\n"


def _completion(prompt_bytes: int) -> bytes:
    message = {"role": "assistant", "content": ANSWER}
    body = {"id": "chatcmpl-bench", "object": "chat.completion", "created": 1700000000, "model": "gpt-4o-mini"}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    return json.dumps(body | {"choices": choices, "usage": _usage(prompt_bytes)}, separators=(",", ":")).encode()


def _plain(body: bytes, status: bytes = b"200 OK") -> bytes:
    return b"HTTP/1.1 %b\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body)


class Upstream(asyncio.Protocol):
    """One connection; requests on it are answered one after the other."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._buffer = bytearray()
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport to answer on."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop a stream nobody reads any more."""
        if self._timer is not None:
            self._timer.cancel()

    def data_received(self, data: bytes) -> None:
        """Answer each request as soon as its last byte is here."""
        self._buffer += data
        while (head_end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = bytes(self._buffer[:head_end])
            length = _LENGTH.search(head)
            end = head_end + 4 + (int(length[1]) if length else 0)
            if len(self._buffer) < end:
                return
            body = bytes(self._buffer[head_end + 4 : end])
            del self._buffer[:end]
            method, path, _ = head.split(b"\r\n", 1)[0].decode().split(" ", 2)
            if method == "POST" and length is None:
                self._transport.write(_plain(b'{"error":{"message":"a Content-Length is needed"}}', b"411 Length Required"))
            else:
                self._answer(path, body)

    def _answer(self, path: str, body: bytes) -> None:
        if path == CHAT:
            self._script.prompt_bytes = len(body)
            if _STREAM.search(body):
                self._start_stream(len(body), usage=b'"include_usage"' in body)
            else:
                self._transport.write(_plain(_completion(len(body))))
        elif path == "/bench/last":
            self._transport.write(_plain(b"%d" % self._script.prompt_bytes))
        elif path.startswith("/bench/script/"):
            chunks, pace_ms = path.split("/")[3:]
            self._script.set(chunks=int(chunks), pace=float(pace_ms) / 1000)
            self._transport.write(_plain(b"{}"))
        else:
            self._transport.write(_plain(_MODELS))

    def _start_stream(self, prompt_bytes: int, *, usage: bool) -> None:
        self._transport.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        self._frames = self._script.frames
        self._pace = self._script.pace
        self._last = _ending(prompt_bytes, usage=usage)
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self._transport.write(self._frames[0])
        self._send_next(1)

    def _send_next(self, number: int) -> None:
        if number == len(self._frames):
            self._transport.write(self._last)
            return
        self._transport.write(self._frames[number])
        # Counted from the start of the stream: a late timer must not slow the pace of what follows.
        self._timer = self._loop.call_at(self._began + number * self._pace, self._send_next, number + 1)


async def serve(port: int) -> None:
    """Answer on the port until the process is told to stop."""
    script = Script()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Upstream(script), "127.0.0.1", port, backlog=2048)
    stopped = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stopped.set)
    await stopped.wait()
    server.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    asyncio.run(serve(parser.parse_args().port))
