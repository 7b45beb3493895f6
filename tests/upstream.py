"""A scripted OpenAI-compatible model in a thread of the test: it does what the last user message says, and remembers what it was sent.

The answer is `ECHO:` and the text of the last user message, unless that holds words in double brackets:

    [[say TEXT]]        answer TEXT
    [[unique]]          put a word never said before at the end of the answer: a turn that ran twice shows
    [[words N]]         answer N words
    [[slow S]]          take S seconds for the answer: spread over the words of a stream, before the whole of a JSON reply
    [[fail STATUS N]]   refuse with this HTTP status; with N, only the first N requests with this very message
    [[cut N]]           break the connection after N words of a stream, or before a JSON reply
    [[truncate]]        end as if the most tokens allowed were reached
    [[hang]]            accept the request and say nothing
    [[call NAME JSON]]  call a tool; the request after its result is answered with `TOOL:` and the result

Several may stand in one message. What the server under test adds to a prompt belongs into messages of other roles.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]

MODEL = "scripted-1"
DIRECTIVE = re.compile(r"\[\[(\w+)(?: (.*?))?\]\]", re.DOTALL)


@dataclass
class Upstream:
    """The running model. `url` is its base URL; `requests` holds the body of every chat request, in the order they came."""

    url: str = ""
    models: list[str] = field(default_factory=lambda: [MODEL])
    key: str | None = None
    """If set, every request without it is refused with 401."""
    requests: list[Json] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    """The headers of each of them, their names in small letters."""
    left: list[Json] = field(default_factory=list)
    """The requests whose client went away before it had the whole answer."""

    def __post_init__(self) -> None:
        self.stopping = threading.Event()
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._refused: Counter[str] = Counter()

    def seen(self, body: Json, headers: dict[str, str]) -> None:
        """Keep a request."""
        with self._lock:
            self.requests.append(body)
            self.headers.append(headers)

    def number(self) -> int:
        """A number that was not given before."""
        with self._lock:
            return next(self._numbers)

    def refuses(self, text: str, times: int | None) -> bool:
        """Whether this message, which asks for a failure, gets it once more."""
        with self._lock:
            self._refused[text] += 1
            return times is None or self._refused[text] <= times


@dataclass(frozen=True, kw_only=True)
class Script:
    """What one request asked for."""

    answer: str
    tool: tuple[str, str] | None = None
    seconds: float = 0.0
    status: int | None = None
    cut: int | None = None
    hang: bool = False
    truncated: bool = False


def script(upstream: Upstream, messages: list[Json]) -> Script:
    """Read the directives of the last user message."""
    text = next((text_of(m) for m in reversed(messages) if m.get("role") == "user"), "")
    asked = {name: argument or "" for name, argument in DIRECTIVE.findall(text)}
    if messages and messages[-1].get("role") == "tool":
        return Script(answer=f"TOOL:{text_of(messages[-1])}")
    answer = asked.get("say", f"ECHO:{text}")
    if "words" in asked:
        answer = " ".join(f"word{number}" for number in range(1, int(asked["words"]) + 1))
    if "unique" in asked:
        answer += f" unique-{upstream.number()}"
    status, _, times = asked.get("fail", "").partition(" ")
    refused = bool(status) and upstream.refuses(text, int(times) if times else None)
    name, _, arguments = asked.get("call", "").partition(" ")
    return Script(
        answer=answer,
        tool=(name, arguments or "{}") if name else None,
        seconds=float(asked.get("slow", 0)),
        status=int(status) if refused else None,
        cut=int(asked["cut"] or 0) if "cut" in asked else None,
        hang="hang" in asked,
        truncated="truncate" in asked,
    )


def text_of(message: Json) -> str:
    """The text of a message, whether it is a string or a list of parts."""
    content = message.get("content")
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content if isinstance(part, dict))
    return content or ""


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Scripted

    def log_message(self, *_: object) -> None:
        """Nothing: tests read `requests`."""

    def do_GET(self) -> None:
        """`/models`."""
        if self._denied():
            return
        if self.path.endswith("/models"):
            listed = [{"id": name, "object": "model", "created": 1, "owned_by": "tests"} for name in self.server.upstream.models]
            self._whole(200, {"object": "list", "data": listed})
        else:
            self._whole(404, {"error": {"message": "no such route"}})

    def do_POST(self) -> None:
        """`/chat/completions`; bodies come with a length or in chunks."""
        body: Json = json.loads(self._body())
        upstream = self.server.upstream
        if self._denied():
            return
        upstream.seen(body, {name.lower(): value for name, value in self.headers.items()})
        told = script(upstream, body["messages"])
        try:
            self._answer(told, body)
        except OSError:
            upstream.left.append(body)
            self.close_connection = True

    def _denied(self) -> bool:
        key = self.server.upstream.key
        denied = key is not None and self.headers.get("Authorization") != f"Bearer {key}"
        if denied:
            self._whole(401, {"error": {"message": "wrong key", "type": "scripted", "code": "invalid_api_key"}})
        return denied

    def _body(self) -> bytes:
        if "Content-Length" in self.headers:
            return self.rfile.read(int(self.headers["Content-Length"]))
        pieces = []
        while size := int(self.rfile.readline(), 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(pieces)

    def _answer(self, told: Script, body: Json) -> None:
        if told.hang:
            self._pause(3600)
            self.close_connection = True
        elif told.status is not None:
            self._whole(told.status, {"error": {"message": f"refused with {told.status}, as asked", "type": "scripted", "code": None}})
        elif body.get("stream"):
            self._stream(told, body)
        else:
            self._pause(told.seconds)
            if told.cut is None:
                self._whole(200, {**head(body, "chat.completion"), "choices": [choice("message", told)], "usage": usage(body, told)})
            else:
                self.close_connection = True

    def _stream(self, told: Script, body: Json) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        deltas = [delta for delta in streamed(told) if delta]
        for number, delta in enumerate(deltas):
            if number == told.cut:
                self.close_connection = True
                return
            self._event({**head(body), "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
            self._pause(told.seconds / len(deltas))
        self._event({**head(body), "choices": [{"index": 0, "delta": {}, "finish_reason": finish(told)}]})
        if (body.get("stream_options") or {}).get("include_usage"):
            self._event({**head(body), "choices": [], "usage": usage(body, told)})
        self._chunk(b"data: [DONE]\n\n")
        self.wfile.write(b"0\r\n\r\n")

    def _event(self, value: Json) -> None:
        self._chunk(b"data: %b\n\n" % json.dumps(value).encode())

    def _chunk(self, payload: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(payload), payload))

    def _whole(self, status: int, body: Json) -> None:
        payload = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def _pause(self, seconds: float) -> None:
        """Wait; a client that hangs up meanwhile, or the end of the test, ends it."""
        for _ in range(max(1, round(seconds / 0.05)) if seconds else 0):
            if self.server.upstream.stopping.wait(min(seconds, 0.05)) or self._gone():
                raise ConnectionAbortedError

    def _gone(self) -> bool:
        with contextlib.suppress(BlockingIOError):
            return not self.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        return False


def head(body: Json, kind: str = "chat.completion.chunk") -> Json:
    """What every chunk and every completion begins with."""
    return {"id": "chatcmpl-scripted", "object": kind, "created": 1, "model": body.get("model")}


def calls(told: Script) -> list[Json]:
    """The tool calls of an answer."""
    if told.tool is None:
        return []
    name, arguments = told.tool
    return [{"index": 0, "id": f"call_{name}", "type": "function", "function": {"name": name, "arguments": arguments}}]


def finish(told: Script) -> str:
    """Why the answer ends."""
    return "tool_calls" if told.tool else "length" if told.truncated else "stop"


def choice(name: str, told: Script) -> Json:
    """The one choice of a whole answer."""
    message: Json = {"role": "assistant", "content": None if told.tool else told.answer}
    if told.tool:
        message["tool_calls"] = [{key: value for key, value in call.items() if key != "index"} for call in calls(told)]
    return {"index": 0, name: message, "finish_reason": finish(told)}


def streamed(told: Script) -> Iterator[Json]:
    """The answer in pieces: word by word, each with the space that follows it."""
    if told.tool:
        yield {"role": "assistant", "content": None, "tool_calls": calls(told)}
        return
    for number, word in enumerate(re.findall(r"\S+\s*|\s+", told.answer)):
        yield {"content": word} if number else {"role": "assistant", "content": word}


def usage(body: Json, told: Script) -> Json:
    """A count in words: not what a tokenizer says, but the same every time."""
    prompt = sum(len(text_of(message).split()) for message in body["messages"])
    completion = len(told.answer.split())
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


class Scripted(ThreadingHTTPServer):
    """Knows its connections, so that none outlives the test."""

    request_queue_size = 512
    daemon_threads = False

    def __init__(self, upstream: Upstream, port: int) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.upstream = upstream
        self.open: set[socket.socket] = set()
        upstream.url = f"http://127.0.0.1:{self.server_address[1]}/v1"

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Serve one connection to its end, however the client ends it."""
        self.open.add(request)
        try:
            with contextlib.suppress(ConnectionError):
                super().finish_request(request, client_address)
        finally:
            self.open.discard(request)

    def hang_up(self) -> None:
        """End every connection, idle ones included."""
        self.upstream.stopping.set()
        for connection in list(self.open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def scripted(*, port: int = 0) -> Iterator[Upstream]:
    """Run the model until the block is left."""
    upstream = Upstream()
    server = Scripted(upstream, port)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, name="scripted-upstream")
    thread.start()
    try:
        yield upstream
    finally:
        server.shutdown()
        thread.join()
        server.hang_up()
        server.server_close()
