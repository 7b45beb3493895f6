"""The load: clients with sessions of their own that talk to one port, and what they saw.

Connections are opened and warmed before the clock starts. CPU is read a moment after the last reply, so that work a
contestant puts off until after its answer is counted too. Nothing here knows which contestant it talks to.
"""

import asyncio
import gc
import itertools
import math
import os
import statistics
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

from bench import client, messages

_T = TypeVar("_T")
SESSION_TURNS = 20
_AFTERWORK = 0.1
_TURNS_LIMIT = 120.0
_NUMBERS = itertools.count(1)
_RUN = os.urandom(4).hex()


@dataclass(kw_only=True)
class JsonLoad:
    """What a number of clients saw, each sending turn after turn."""

    seconds: list[float] = field(default_factory=list)
    wall: float = 0.0
    cpu: float = 0.0
    failures: list[str] = field(default_factory=list)

    @property
    def turns(self) -> int:
        """Turns that were answered."""
        return len(self.seconds)

    def quantile(self, share: float) -> float:
        """The turn time that this share of the turns did not exceed, in seconds."""
        ordered = sorted(self.seconds)
        return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


@dataclass(kw_only=True)
class StreamLoad:
    """What a number of streams brought."""

    first: list[float] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)
    chunks: int = 0
    cpu: float = 0.0
    rss: float = 0.0
    failures: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class LongSession:
    """Turn by turn: its time, the bytes of its prompt as the upstream saw them, the companion's time, and the first compaction."""

    seconds: list[float] = field(default_factory=list)
    prompt: list[int] = field(default_factory=list)
    companion: list[float] = field(default_factory=list)
    compacted_at: int | None = None


@dataclass(frozen=True, kw_only=True)
class Kind:
    """How a stream ends, and how often it tells each of its words."""

    end: bytes
    told: int


CHAT = Kind(end=b"data: [DONE]", told=1)
RESPONSE = Kind(end=b'"type":"response.completed"', told=5)  # a delta, the text, its part, its item, the whole response


def run(work: Coroutine[Any, Any, _T]) -> _T:
    """Run one load on a loop of its own, the garbage collector held back."""
    gc.collect()
    gc.disable()
    try:
        return asyncio.run(work)
    finally:
        gc.enable()


def session_name() -> str:
    """A session id never used before."""
    return f"bench-{_RUN}-{next(_NUMBERS)}"


class Speaker:
    """One client: a key of its own, so that there is something to recall, and a new session every so many turns.

    Sessions are equally long whatever the number of clients; what a long one costs is a row of its own.
    """

    def __init__(self) -> None:
        self._key = session_name()
        self._spoken = 0

    def next_request(self) -> bytes:
        """Its next turn."""
        session = f"{self._key}-{self._spoken // SESSION_TURNS}"
        self._spoken += 1
        return messages.chat(next(_NUMBERS), session, key=self._key)


class Crew:
    """The clients of one contestant, each on its own connection, one turn after the other."""

    def __init__(self, port: int, *, clients: int, cpu: Callable[[], float]) -> None:
        self.load = JsonLoad()
        self._port = port
        self._cpu = cpu
        self._speakers = [Speaker() for _ in range(clients)]
        self._connections: list[client.Connection] = []

    async def warm_up(self) -> None:
        """Connect, and take a few turns that are not measured."""
        self._connections = [await client.connect(self._port) for _ in self._speakers]
        unmeasured = JsonLoad()
        await self._turns(max(1, SESSION_TURNS // len(self._speakers)), unmeasured)
        self.load.failures += unmeasured.failures
        await asyncio.sleep(_AFTERWORK)

    async def measure(self, turns: int) -> None:
        """Add so many turns of each client to the load."""
        # A server may have dropped a connection that was idle while others had their turn.
        self._connections = [await client.connect(self._port) if old.closed else old for old in self._connections]
        before = self._cpu()
        self.load.wall += await self._turns(turns, self.load)
        await asyncio.sleep(_AFTERWORK)
        self.load.cpu += self._cpu() - before

    def leave(self) -> None:
        """Drop the connections."""
        for connection in self._connections:
            connection.close()

    async def _turns(self, turns: int, load: JsonLoad) -> float:
        spoken = [[speaker.next_request() for _ in range(turns)] for speaker in self._speakers]
        talks = [_speak(connection, texts, load) for connection, texts in zip(self._connections, spoken, strict=True)]
        began = time.perf_counter()
        if not await _together(talks, _TURNS_LIMIT):
            load.failures.append(f"not finished after {_TURNS_LIMIT:.0f} s")
        return time.perf_counter() - began


async def alternate(crews: list[Crew], *, turns: int, slices: int) -> None:
    """Let the crews take turns in short slices, in an order that rotates, so that a busy moment of the machine meets them all."""
    for crew in crews:
        await crew.warm_up()
    for number in range(slices):
        first = number % len(crews)
        for crew in crews[first:] + crews[:first]:
            await crew.measure(turns)
    for crew in crews:
        crew.leave()


async def streams(
    port: int, *, count: int, chunks: int, pace: float, cpu: Callable[[], float], rss: Callable[[], float], responses: bool = False
) -> StreamLoad:
    """So many streams at once, each in its own session, started a millisecond apart; memory is the highest seen meanwhile."""
    load = StreamLoad()
    if responses:
        requests = [messages.response(next(_NUMBERS), session) for session in _sessions(count)]
    else:
        requests = [messages.chat(next(_NUMBERS), session, stream=True) for session in _sessions(count)]
    connections = [await client.connect(port) for _ in requests]
    await asyncio.sleep(_AFTERWORK)
    before = cpu()
    watch = asyncio.create_task(_watch(load, rss))
    kind = RESPONSE if responses else CHAT
    listening = (_listen(connections[n], requests[n], wait=n / 1000, chunks=chunks, kind=kind, load=load) for n in range(count))
    await _together(listening, 30 + 4 * chunks * pace)
    await asyncio.sleep(_AFTERWORK)
    load.cpu = cpu() - before
    load.rss = max(load.rss, rss())
    watch.cancel()
    for connection in connections:
        connection.close()
    unfinished = count - len(load.first) - len(load.failures)
    load.failures += ["not finished in time"] * unfinished
    return load


async def long_session(port: int, *, turns: int, upstream_port: int, companion_port: int) -> LongSession:
    """One session of many turns, always under its first id; after each, the companion gets a turn too, to show the machine's own drift."""
    session = session_name()
    told = LongSession()
    subject, companion, upstream = [await client.connect(number) for number in (port, companion_port, upstream_port)]
    effective = None
    for turn in range(turns):
        data = messages.chat(turn, session)
        reply = await asyncio.wait_for(subject.request(data), 60)
        if reply.status != 200:
            raise ConnectionError(f"turn {turn + 1}: {_described(reply)}")
        told.seconds.append(reply.seconds)
        told.prompt.append(int((await upstream.request(messages.get("/bench/last"))).body))
        told.companion.append((await companion.request(data)).seconds)
        name = reply.header("X-Hermes-Session-Id")
        effective = effective or name
        if told.compacted_at is None and name != effective:
            told.compacted_at = turn
    for connection in (subject, companion, upstream):
        connection.close()
    return told


def _sessions(count: int) -> list[str]:
    return [session_name() for _ in range(count)]


async def _together(work: Any, limit: float) -> bool:
    tasks = [asyncio.ensure_future(part) for part in work]
    done, late = await asyncio.wait(tasks, timeout=limit)
    for task in late:
        task.cancel()
    await asyncio.gather(*late, return_exceptions=True)
    for task in done:
        task.result()
    return not late


async def _speak(connection: client.Connection, texts: list[bytes], load: JsonLoad) -> None:
    for data in texts:
        try:
            reply = await connection.request(data)
        except ConnectionError as error:
            load.failures.append(str(error))
            return
        if reply.status == 200:
            load.seconds.append(reply.seconds)
        else:
            load.failures.append(_described(reply))


async def _listen(connection: client.Connection, data: bytes, *, wait: float, chunks: int, kind: Kind, load: StreamLoad) -> None:
    await asyncio.sleep(wait)
    try:
        reply = await connection.request(data)
    except ConnectionError as error:
        load.failures.append(str(error))
        return
    arrivals = reply.arrivals[:chunks]
    load.chunks += len(arrivals)
    if reply.status != 200:
        load.failures.append(_described(reply))
    elif len(reply.arrivals) != chunks * kind.told or kind.end not in reply.body:
        load.failures.append(f"{len(reply.arrivals)} words of {chunks}, end: {bytes(reply.body[-200:]).decode(errors='replace')!r}")
    else:
        load.first.append(arrivals[0] - reply.sent)
        load.gaps += [later - earlier for earlier, later in itertools.pairwise(arrivals)]


async def _watch(load: StreamLoad, rss: Callable[[], float]) -> None:
    while True:
        load.rss = max(load.rss, rss())
        await asyncio.sleep(0.25)


def _described(reply: client.Reply) -> str:
    return f"status {reply.status}: {bytes(reply.body[:200]).decode(errors='replace')}"


def late_over_early(values: list[float] | list[int], compacted_at: int, turn: int) -> float:
    """The median of the fifty turns up to this one over the median of the fifty after the first compaction."""
    return statistics.median(values[turn - 50 : turn]) / statistics.median(values[compacted_at + 1 : compacted_at + 51])
