"""Runs and resumable streams on real servers: followed, cut, stopped and killed."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import random
import re
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests import servers
from tests.server.clients import Stream, content, messages, until
from tests.servers import Server
from tests.upstream import Upstream

Json = dict[str, Any]
Pair = tuple[Server, Server]

ENDS = ("run.completed", "run.failed", "run.cancelled", "run.interrupted")
CUTS = 100
WORDS = " ".join(f"word{n}" for n in range(1, 13))


class Events(Stream):
    """The events of a run on a connection of their own."""

    def __init__(self, server: Server, run_id: str, after: int = 0) -> None:
        self.connection = server.connect()
        headers = {"Authorization": f"Bearer {server.key}", **({"Last-Event-ID": str(after)} if after else {})}
        self.connection.request("GET", f"/v1/runs/{run_id}/events", headers=headers)
        self.response = self.connection.getresponse()
        assert self.response.status == 200, self.response.read()

    def rest(self) -> list[bytes]:
        """Everything to the end."""
        found = list(self.frames())
        self.leave()
        return found


def start(server: Server, text: str, session: str | None = None, **headers: str) -> str:
    """Start a run; its id."""
    answer = server.call("POST", "/v1/runs", {"input": text}, X_Hermes_Session_Id=session, **headers)
    assert answer.status == 202, answer
    return str(answer.body["run_id"])


def status(server: Server, run_id: str) -> str:
    """How a run stands."""
    return str(server.call("GET", f"/v1/runs/{run_id}").body["status"])


def shown(frames: list[bytes]) -> list[Json]:
    """What the events say."""
    return [json.loads(frame.split(b"data: ")[1]) for frame in frames]


def said(frames: list[bytes]) -> str:
    """The text that the events add up to."""
    return "".join(event.get("delta", "") for event in shown(frames))


def numbers(frames: list[bytes]) -> list[int]:
    """The numbers of frames."""
    return [int(frame.split(b"\n")[0].removeprefix(b"id: ")) for frame in frames]


# -- from another server ------------------------------------------------------------------------------------------------


@pytest.mark.postgres
def test_j33_a_run_is_followed_on_another_server(pair: Pair) -> None:
    """What A runs flows on B, from any number, with the same frames; and so after its end."""
    one, other = pair
    run_id = start(one, "[[words 20]] [[slow 2]]")
    here, ahead = Events(one, run_id), Events(other, run_id, after=12)  # more than there is yet
    assert ahead.until("word12")
    ahead.leave()
    there, late = Events(other, run_id), Events(other, run_id, after=4)
    early = there.until("word3")
    assert status(other, run_id) == "running"
    frames = early + there.rest()
    assert frames == here.rest() == Events(other, run_id).rest()
    assert late.rest() == frames[4:]
    assert numbers(frames) == list(range(1, len(frames) + 1))
    assert said(frames) == " ".join(f"word{n}" for n in range(1, 21))
    assert shown(frames)[-1]["event"] == "run.completed"


@pytest.mark.postgres
def test_j37_a_run_is_stopped_and_steered_on_another_server(pair: Pair) -> None:
    """B takes the text in and A's followers see it; B stops it and A obeys within a second."""
    one, other = pair
    run_id = start(one, "[[words 100]] [[slow 30]]", "other-stop")
    stream = Events(one, run_id)
    stream.until("word1")
    assert other.call("POST", f"/v1/runs/{run_id}/steer", {"input": "Faster."}).status == 200
    assert shown(stream.until("run.steered"))[-1]["text"] == "Faster."
    assert other.call("POST", f"/v1/runs/{run_id}/stop").body["status"] == "stopping"
    assert until(lambda: status(other, run_id) == "cancelled") < 2
    assert shown(stream.rest())[-1] | {"timestamp": 0, "run_id": "", "session_id": ""} == {
        "event": "run.cancelled", "pending_steer": "Faster.", "timestamp": 0, "run_id": "", "session_id": "",
    }  # fmt: skip
    assert messages(other, "other-stop") == []


@pytest.mark.postgres
def test_j34_a_run_whose_server_died_is_interrupted_at_once(pair: Pair) -> None:
    """Who follows it on B sees its end, and nobody sees it running; its session is free."""
    one, other = pair
    run_id = start(one, "[[words 100]] [[slow 30]]", "died")
    follower = Events(other, run_id)
    follower.until("word2")
    one.kill()
    started = time.monotonic()
    assert status(other, run_id) == "interrupted"
    rest = shown(follower.rest())
    assert time.monotonic() - started < 2
    assert (rest[-1]["event"], rest[-1]["error"]["code"]) == ("run.interrupted", "server_stopping")
    assert other.chat("After.", session="died").text == "ECHO:After."
    one.restart()
    assert status(one, run_id) == "interrupted"


# -- killed ---------------------------------------------------------------------------------------------------------------


def test_j34_a_run_in_flight_at_a_kill_is_interrupted(stored: Server) -> None:
    """After the restart it shows as interrupted, its stream says so behind what was logged, and nothing of it is stored."""
    run_id = start(stored, "[[words 100]] [[slow 30]]", "s")
    queued = start(stored, "Next.", "s")
    stream = Events(stored, run_id)
    stream.until("word2")
    time.sleep(0.3)  # a beat of the log
    stored.kill()
    stream.leave()
    stored.restart()
    seen = stored.call("GET", f"/v1/runs/{run_id}").body
    assert (seen["status"], seen["output"], seen["error"]["code"]) == ("interrupted", None, "server_stopping")
    assert status(stored, queued) == "interrupted"
    frames = Events(stored, run_id).rest()
    assert shown(frames)[0]["event"] == "run.started"
    assert said(frames).startswith("word1 word2")
    assert shown(frames)[-1]["event"] == "run.interrupted"
    assert Events(stored, run_id, after=10_000).rest() == frames[-1:]
    assert messages(stored, "s") == []


def test_a_server_that_is_stopped_interrupts_what_does_not_end(tmp_path: Path, upstream: Upstream) -> None:
    """Who follows is told, and the next start knows."""
    with servers.running(data_dir=tmp_path, upstream=upstream) as server:
        run_id = start(server, "[[hang]]")
        stream = Events(server, run_id)
        stream.until("run.started")
        with ThreadPoolExecutor(1) as pool:
            rest = pool.submit(stream.rest)
            server.stop()
        assert shown(rest.result())[-1]["event"] == "run.interrupted"
        server.restart()
        assert status(server, run_id) == "interrupted"


class Client:
    """One of many streams: what it saw before the server died, and how it learns the end."""

    def __init__(self, server: Server, number: int) -> None:
        self.server = server
        self.number = number
        self.session = f"many-{number}"
        self.kind = ("chat", "run", "session", "response")[number % 4]
        self.text = f"[[words 20]] [[unique]] No {number}. [[slow {0.1 + 0.05 * number}]]"
        self.key = f"k{number}"
        self.run_id = start(server, self.text, self.session, Idempotency_Key=self.key) if self.kind == "run" else ""
        if self.kind == "session":
            server.call("POST", "/api/sessions", {"id": self.session})

    def stream(self) -> Stream:
        """The stream, from its beginning."""
        if self.kind == "run":
            return Events(self.server, self.run_id)
        if self.kind == "chat":
            return Stream(self.server, self.text, self.session, Idempotency_Key=self.key)
        if self.kind == "response":
            body = {"input": self.text, "stream": True, "conversation": self.session}
            return Posted(self.server, "/v1/responses", body, self.key)
        return Posted(self.server, f"/api/sessions/{self.session}/chat/stream", {"message": self.text}, self.key)

    def watch(self) -> bytes:
        """Everything that comes until the stream ends or breaks."""
        found = b""
        with contextlib.suppress(OSError, http.client.HTTPException), contextlib.closing(self.stream()) as stream:
            for frame in stream.frames():
                found += frame
        return found

    def ended(self, seen: bytes) -> bool:
        """Whether the client was told that its turn is stored."""
        ends = {"run": b"run.completed", "chat": b'"finish_reason":"stop"', "session": b"event: done", "response": b"response.completed"}
        return ends[self.kind] in seen

    def check(self, seen: bytes) -> None:
        """What was promised is there, whole or not at all, and the end can be read."""
        stored = messages(self.server, self.session)
        assert len(stored) in (0, 2)
        if self.ended(seen):
            assert len(stored) == 2
        if self.kind == "run":
            how = status(self.server, self.run_id)
            assert how == ("completed" if stored else "interrupted")
            assert shown(Events(self.server, self.run_id).rest())[-1]["event"] == f"run.{how}"
            return
        if named := re.search(rb"resp_[0-9a-f]+", seen):
            response = self.server.call("GET", f"/v1/responses/{named[0].decode()}").body
            assert response["status"] == ("completed" if stored else "failed")
        again = self.watch()
        assert self.ended(again), again
        after = messages(self.server, self.session)
        assert len(after) == 2
        assert stored in ([], after)
        if self.ended(seen):
            assert seen == again


class Posted(Stream):
    """The stream that a POST is answered with."""

    def __init__(self, server: Server, path: str, body: Json, key: str, after: int = 0) -> None:
        self.connection = server.connect()
        sent = {"Authorization": f"Bearer {server.key}", "Idempotency-Key": key, **({"Last-Event-ID": str(after)} if after else {})}
        self.connection.request("POST", path, json.dumps(body), sent)
        self.response = self.connection.getresponse()
        assert self.response.status == 200, self.response.read()


def test_a_kill_in_the_middle_of_50_streams_loses_nothing(stored: Server) -> None:
    """Each turn is stored whole or not at all, what was promised is there, no run is left running, and every client learns its end."""
    clients = [Client(stored, number) for number in range(52)]
    with ThreadPoolExecutor(len(clients)) as pool:
        watching = [pool.submit(client.watch) for client in clients]
        time.sleep(1.2)
        stored.kill()
        seen = [each.result() for each in watching]
    ended = sum(client.ended(what) for client, what in zip(clients, seen, strict=True))
    assert 0 < ended < len(clients)
    stored.restart()
    with ThreadPoolExecutor(len(clients)) as pool:
        list(pool.map(Client.check, clients, seen))


# -- cut ------------------------------------------------------------------------------------------------------------------


def cut(stream: Stream, size: int) -> list[bytes]:
    """Read so many bytes and break the connection; the whole frames among them."""
    raw = stream.response.read(size)
    stream.leave()
    return [piece for piece in raw.split(b"\n\n")[:-1] if not piece.startswith(b":")]


def whole_run(one: Server, other: Server, number: int, dice: random.Random) -> str:
    """The text of a run whose stream was cut twice."""
    run_id = start(one, f"[[words 12]] [[slow {dice.choice((0, 0.2, 0.5))}]]", f"cut-run-{number}")
    frames = cut(Events(one, run_id), dice.randrange(1, 2500))
    frames += cut(Events(other, run_id, numbers(frames)[-1] if frames else 0), dice.randrange(1, 2500))
    if not frames or shown(frames)[-1]["event"] not in ENDS:
        frames += cut(Events(other, run_id, numbers(frames)[-1] if frames else 0), 1_000_000)
    assert numbers(frames) == list(range(1, len(frames) + 1)) or shown(frames)[-1] == shown(frames)[-2]
    return said(frames)


def whole_chat(one: Server, other: Server, number: int, dice: random.Random) -> str:
    """The text of a chat completion whose stream was cut twice."""
    text, session, key = f"[[words 12]] [[slow {dice.choice((0, 0.2, 0.5))}]]", f"cut-chat-{number}", f"cut-{number}"
    frames: list[bytes] = []
    for server, size in ((one, dice.randrange(1, 3500)), (other, dice.randrange(1, 3500)), (other, 1_000_000)):
        resumed = {"Last_Event_ID": str(numbers(frames)[-1])} if frames else {}
        frames += cut(Stream(server, text, session, Idempotency_Key=key, **resumed), size)
    assert numbers(frames) == list(range(1, len(frames) + 1))
    return content(frames)


def whole_session(one: Server, other: Server, number: int, dice: random.Random) -> str:
    """The text of a session's chat whose stream was cut twice."""
    text, session, key = f"[[words 12]] [[slow {dice.choice((0, 0.2, 0.5))}]]", f"cut-session-{number}", f"cut-{number}"
    one.call("POST", "/api/sessions", {"id": session})
    frames: list[bytes] = []
    for server, size in ((one, dice.randrange(1, 3500)), (other, dice.randrange(1, 3500)), (other, 1_000_000)):
        after = numbers(frames)[-1] if frames else 0
        frames += cut(Posted(server, f"/api/sessions/{session}/chat/stream", {"message": text}, key, after), size)
    assert numbers(frames) == list(range(1, len(frames) + 1))
    return said([frame for frame in frames if b"assistant.delta" in frame])


WHOLE = [whole_run, whole_chat, whole_session]


@pytest.mark.parametrize("whole", WHOLE)
def test_a_stream_cut_at_any_byte_and_resumed_gives_the_same_text(server: Server, whole: Callable[..., str]) -> None:
    """A hundred times of a hundred."""
    with ThreadPoolExecutor(10) as pool:
        found = list(pool.map(lambda number: whole(server, server, number, random.Random(number)), range(CUTS)))
    assert found == [WORDS] * CUTS


@pytest.mark.postgres
@pytest.mark.parametrize("whole", WHOLE)
def test_a_stream_cut_at_any_byte_and_resumed_on_another_server_gives_the_same_text(pair: Pair, whole: Callable[..., str]) -> None:
    """A hundred times of a hundred, from another process."""
    with ThreadPoolExecutor(10) as pool:
        found = list(pool.map(lambda number: whole(*pair, number, random.Random(number)), range(CUTS)))
    assert found == [WORDS] * CUTS


# -- many -----------------------------------------------------------------------------------------------------------------


async def follow(server: Server, run_id: str) -> tuple[bytes, float]:
    """All that one of many followers gets, and when it had it."""
    address = urlsplit(server.url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    head = f"GET /v1/runs/{run_id}/events HTTP/1.0\r\nHost: a\r\nAuthorization: Bearer {server.key}\r\n\r\n"
    writer.write(head.encode())
    found = await reader.read(-1)
    writer.close()
    return found.partition(b"\r\n\r\n")[2], time.monotonic()


async def test_a_thousand_open_streams_do_not_starve_each_other(server: Server) -> None:
    """Fifty runs with twenty followers each flow side by side: everybody has everything soon after the runs are done."""
    await crowded(server, server)


@pytest.mark.postgres
async def test_a_thousand_open_streams_flow_from_another_server(pair: Pair) -> None:
    """As many followers on B of what A runs."""
    await crowded(*pair)


async def crowded(one: Server, other: Server) -> None:
    """A thousand followers on one server of fifty runs on another."""
    runs = [start(one, "[[words 20]] [[slow 4]]") for _ in range(50)]
    found = await asyncio.gather(*(follow(other, run_id) for run_id in runs for _ in range(20)))
    assert all(body.count(b"message.delta") == 20 and body.count(b"run.completed") == 1 for body, _ in found)
    ends = sorted(at for _, at in found)
    assert ends[-1] - ends[0] < 4  # they were started one after the other


def test_a_slow_reader_does_not_hold_the_turn(server: Server) -> None:
    """A run ends as soon as ever though somebody who follows it does not read; when he does at last, he gets everything."""
    run_id = start(server, "[[words 20000]]")
    address = urlsplit(server.url)
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect((address.hostname, address.port))
        slow.sendall(f"GET /v1/runs/{run_id}/events HTTP/1.0\r\nHost: a\r\nAuthorization: Bearer {server.key}\r\n\r\n".encode())
        until(lambda: status(server, run_id) == "completed", 30)
        body = b""
        while piece := slow.recv(1 << 20):
            body += piece
    assert body.count(b"message.delta") == 20_000
    assert body.count(b"run.completed") == 1
    assert b"x-hermes-session-id: sess_" in body
