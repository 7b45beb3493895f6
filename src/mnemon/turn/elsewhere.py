"""A request whose turn runs in another process: watch it through the database.

The process that runs a stream writes its frames in batches (`Flusher`); any other one reads them, until the finished record takes
their place.
"""

from __future__ import annotations

import asyncio
import time
from typing import cast

from mnemon.core import errors
from mnemon.core.clock import Clock
from mnemon.core.records import Effective, Idempotency, TurnRequest
from mnemon.store.base import Driver, Tx
from mnemon.store.idempotency import Record, Records
from mnemon.turn.running import Running, split_frames

FLUSH_SECONDS = 0.2
POLL_SECONDS = 0.1


class Flusher:
    """Writes the frames of a running stream to the database, a batch every now and then."""

    def __init__(self, driver: Driver, request: TurnRequest, running: Running) -> None:
        self.driver = driver
        self.request = request
        self.running = running
        self.flushed = 0
        self.last = time.monotonic()

    async def pushed(self) -> None:
        """Called after each frame."""
        now = time.monotonic()
        if now - self.last < FLUSH_SECONDS:
            return
        self.last = now
        number, frames = self.flushed + 1, self.running.frames[self.flushed :]
        self.flushed += len(frames)
        wanted = self.request.idempotency
        if wanted:
            await self.driver.write(
                lambda tx: Records(tx, self.request.tenant).add_frames(wanted, number=number, data=b"".join(frames)), durable=False
            )


async def follow(driver: Driver, request: TurnRequest, running: Running, *, clock: Clock) -> None:
    """Feed `running` from what the other process writes. Raises if that process fails or dies: the client may then try again."""
    running.replayed = True
    while True:
        found, batches = await driver.write(lambda tx: look(tx, request, number=len(running.frames) + 1, now=clock()), durable=False)
        if isinstance(found, Record):
            running.effective = Effective(**found.headers)
            frames = split_frames(found.body) if request.stream else []
            running.finish(frames[len(running.frames) :], b"" if request.stream else found.body)
            return
        if found is None:
            raise errors.Unavailable("the process that worked on this request failed; send it again")
        for number, data in batches:
            if number == len(running.frames) + 1:
                running.frames.extend(split_frames(data))
                running.wake()
        await asyncio.sleep(POLL_SECONDS)


def look(tx: Tx, request: TurnRequest, *, number: int, now: float) -> tuple[Record | int | None, list[tuple[int, bytes]]]:
    """How far it is, and the frames that came since."""
    records = Records(tx, request.tenant)
    wanted = cast("Idempotency", request.idempotency)
    return records.find(wanted, now=now), records.frames_from(wanted, number)
