"""Streams of works, followed wherever they run: here, in another process, or nowhere any more.

What runs here is watched itself. What runs elsewhere is mirrored from the event log, all such streams together in one look at the
database. What has ended is read from the log; if that lacks the end, or is gone, the end is told anew from what is stored. Knows nothing of
what is in the frames.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass

from mnemon.core import errors
from mnemon.store import frames, works
from mnemon.store.base import Tx
from mnemon.store.frames import Frames
from mnemon.store.works import Kind, Work, Works
from mnemon.turn.pipeline import PING_SECONDS, Turns
from mnemon.turn.running import KEEP_ALIVE, Running, split_frames

LOOK_SECONDS = 0.2

Numbered = list[tuple[int, bytes]]
Retell = Callable[[Tx, Work, Numbered], Numbered]
"""All frames of a work that has ended, from what the event log has of them: from some number on, and perhaps without the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """Which stream is meant."""

    tenant: str
    name: str
    kind: Kind
    retell: Retell


class Following:
    """Follows streams. One for each process."""

    def __init__(self, turns: Turns) -> None:
        self.turns = turns
        self.driver = turns.parts.driver
        self.mirrors: dict[tuple[str, str], tuple[Stream, Running]] = {}
        self.task: asyncio.Task[None] | None = None

    async def open(self, stream: Stream, *, after: int) -> tuple[Work, AsyncGenerator[bytes]]:
        """The work, and its frames behind a number, as they come, or at least the end. Raises `NotFound`."""
        work, told = await self.driver.read(lambda tx: look(tx, stream, after=after))
        return work, pieces(told) if work.ended else self._watch(stream, after)

    async def _watch(self, stream: Stream, after: int) -> AsyncGenerator[bytes]:
        """From here if it runs here, else from its mirror."""
        place = stream.tenant, stream.name
        running = self.turns.by_name.get(place)
        if running is None:
            running = self._mirror(stream)
        running.watchers += 1
        told = False
        try:
            async for data in running.follow(after):
                told = told or data is not KEEP_ALIVE
                yield data
            if not told and running.frames:  # who claims to have seen more than there was
                yield running.frames[-1]
        finally:
            running.watchers -= 1
            if not running.watchers and self.mirrors.get(place, (None, None))[1] is running:
                del self.mirrors[place]

    def _mirror(self, stream: Stream) -> Running:
        place = stream.tenant, stream.name
        if place not in self.mirrors:
            self.mirrors[place] = stream, Running(numbered=False)
        if self.task is None or self.task.done():
            self.task = asyncio.create_task(self._beats())
        return self.mirrors[place][1]

    async def _beats(self) -> None:
        """Look after all mirrors, as long as there are any."""
        loop = asyncio.get_running_loop()
        pinged = loop.time()
        while self.mirrors:
            if self.turns.stopping:
                for _, running in self.mirrors.values():
                    running.finish([], b"")  # their clients may go on elsewhere
                return
            with contextlib.suppress(errors.StoreError):  # perhaps the next time
                await self.beat()
            if loop.time() - pinged >= PING_SECONDS:
                pinged = loop.time()
                for _, running in self.mirrors.values():
                    running.ping()
            await asyncio.sleep(LOOK_SECONDS)

    async def beat(self) -> None:
        """Give every mirror what came since the last time."""
        mirrored = [(stream, running) for stream, running in self.mirrors.values() if not running.done]
        if not mirrored:
            return
        known = [(stream.tenant, stream.name, len(running.frames)) for stream, running in mirrored]
        news, ended = await self.driver.read(lambda tx: changes(tx, [stream for stream, _ in mirrored], known))
        for stream, running in mirrored:
            place = stream.tenant, stream.name
            for number, data in news.get(place, ()):
                if number == len(running.frames) + 1:  # behind a gap, only the end is left to come
                    running.frames += split_frames(data)
            if place in ended:
                running.finish([frame for number, frame in ended[place] if number > len(running.frames)], b"")
            elif news.get(place):
                running.wake()


def look(tx: Tx, stream: Stream, *, after: int) -> tuple[Work, Numbered]:
    """The work, and if it has ended, its frames behind a number; if there are none, its last one."""
    work = Works(tx, stream.tenant).get(stream.name, stream.kind)
    if not work.ended:
        return work, []
    told = stream.retell(tx, work, spread(Frames(tx, stream.tenant).after(stream.name, after)))
    return work, [(number, frame) for number, frame in told if number > after] or told[-1:]


def changes(
    tx: Tx, streams: list[Stream], known: list[tuple[str, str, int]]
) -> tuple[dict[tuple[str, str], Numbered], dict[tuple[str, str], Numbered]]:
    """The batches that came to streams, and all frames of those that have ended."""
    alive = works.under_way(tx)
    ended: dict[tuple[str, str], Numbered] = {}
    for stream in streams:
        if (stream.tenant, stream.name) not in alive:
            with contextlib.suppress(errors.NotFound):
                ended[stream.tenant, stream.name] = []
                ended[stream.tenant, stream.name] = look(tx, stream, after=0)[1]
    return frames.news(tx, [entry for entry in known if entry[:2] in alive]), ended


def spread(batches: Numbered) -> Numbered:
    """The frames of batches, one by one."""
    return [(first + index, frame) for first, data in batches for index, frame in enumerate(split_frames(data))]


async def pieces(told: Numbered) -> AsyncGenerator[bytes]:
    """A stream that is all there."""
    yield b"".join(frame for _, frame in told)
