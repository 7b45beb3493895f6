"""The event log of streams under way: what they push is written to the database in batches, all streams together, a few times a second.

So a stream can be followed from another process, and read after this one died. No turn and no reader waits for it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from functools import partial

from mnemon.core import errors
from mnemon.core.clock import Clock
from mnemon.store import frames
from mnemon.store.base import Driver
from mnemon.turn.running import Running

BEAT_SECONDS = 0.2


class Journal:
    """Writes down the frames of the streams it was told to watch."""

    def __init__(self, driver: Driver, clock: Clock) -> None:
        self.driver = driver
        self.clock = clock
        self.watched: dict[Running, Sequence[tuple[str, str]]] = {}
        self.writing = asyncio.Lock()
        self.task: asyncio.Task[None] | None = None

    def watch(self, running: Running, streams: Sequence[tuple[str, str]]) -> None:
        """Write what it pushes from now on, until it is left alone; each stream is a tenant and a name."""
        self.watched[running] = streams
        if self.task is None:
            self.task = asyncio.create_task(self._beats())

    async def leave(self, running: Running) -> None:
        """Write nothing more of it. When this returns, `running.logged` says how much is written."""
        if self.watched.pop(running, None):
            async with self.writing:
                pass

    def close(self) -> None:
        if self.task:
            self.task.cancel()

    async def _beats(self) -> None:
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            with contextlib.suppress(errors.StoreError):  # they are written with the next beat, or with the commit
                await self.beat()

    async def beat(self) -> None:
        """Write what came since the last time. Raises `StoreError`; then nothing counts as written."""
        async with self.writing:
            behind = [(running, running.logged, len(running.frames)) for running in self.watched if lacking(running)]
            if not behind:
                return
            batches = [
                (tenant, stream, old + 1, b"".join(running.frames[old:new]))
                for running, old, new in behind
                for tenant, stream in self.watched[running]
            ]
            await self.driver.write(partial(frames.add_all, batches=batches, at=self.clock()), durable=False)
            for running, old, new in behind:
                running.logged = new
                running.logged_bytes += sum(map(len, running.frames[old:new]))


def lacking(running: Running) -> bool:
    return len(running.frames) > running.logged and not running.log_full
