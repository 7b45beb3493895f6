"""A request whose turn runs in another process: watch it through the database.

The process that runs a stream writes its frames into the event log (`Journal`); any other one reads them there, until the finished record
takes their place.
"""

from __future__ import annotations

import asyncio
from typing import cast

from mnemon.core import errors
from mnemon.core.clock import Clock
from mnemon.core.records import Effective, Idempotency, TurnRequest
from mnemon.store.base import Driver, Tx
from mnemon.store.frames import Frames
from mnemon.store.idempotency import Record, Records, stream_of
from mnemon.turn.running import Running, split_frames

POLL_SECONDS = 0.1


async def follow(driver: Driver, request: TurnRequest, running: Running, *, clock: Clock) -> None:
    """Feed `running` from what the other process writes. Raises if that process fails or dies: the client may then try again."""
    running.replayed = True
    while True:
        found, batches = await driver.write(lambda tx: look(tx, request, after=len(running.frames), now=clock()), durable=False)
        if isinstance(found, Record):
            running.effective = Effective(**found.headers)
            frames = split_frames(found.body) if request.stream else []
            running.finish(frames[len(running.frames) :], b"" if request.stream else found.body)
            return
        if found is None:
            raise errors.Unavailable("the process that worked on this request failed; send it again")
        for number, data in batches:
            running.frames.extend(split_frames(data)[len(running.frames) + 1 - number :])
            running.wake()
        await asyncio.sleep(POLL_SECONDS)


def look(tx: Tx, request: TurnRequest, *, after: int, now: float) -> tuple[Record | int | None, list[tuple[int, bytes]]]:
    """How far it is, and the frames that came since."""
    wanted = cast("Idempotency", request.idempotency)
    return Records(tx, request.tenant).find(wanted, now=now), Frames(tx, request.tenant).after(stream_of(wanted), after)
