"""A turn that runs, and those who watch it.

The turn writes frames; any number of watchers read them, from the first or from a number on, each at its own pace. A watcher that leaves
takes nothing with it; a slow one holds nobody up.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from mnemon.core import errors
from mnemon.core.records import Effective, Json
from mnemon.turn.keeping import Keeper

LARGEST_LOG = 16 * 2**20
"""Bytes of one stream in the event log. What is longer can be followed where it runs; elsewhere its end is seen, with the whole text."""

KEEP_ALIVE = b": keep-alive\n\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A finished turn: what a `Wire` renders. `whole` is the model's own object, where it sent one.

    `root` names the conversation, and `first` is the place of the turn's first message in it.
    """

    reply: Json
    finish_reason: str
    usage: Json
    effective: Effective
    whole: Json
    root: str | None = None
    first: int = 0


class Wire(Protocol):
    """How a route shows a turn to its client: every method returns bytes ready to be sent. Frames are without their number."""

    def begin(self, effective: Effective) -> list[bytes]:
        """What is sent as soon as the session is known."""
        ...

    def chunk(self, chunk: Json) -> Sequence[bytes]:
        """A piece of the model's stream; nothing for what is held back until the commit."""
        ...

    def finish(self, outcome: Outcome) -> list[bytes]:
        """The end of a stream. Sent only when the turn is committed."""
        ...

    def failure(self, error: errors.MnemonError) -> list[bytes]:
        """The end of a stream that broke off."""
        ...

    def whole(self, outcome: Outcome) -> bytes:
        """The body of a reply that is not streamed."""
        ...


class Running:
    """One turn in flight. `headers` are those of the response: known at the start of a stream, final when it is done."""

    def __init__(self, *, numbered: bool, fingerprint: bytes | None = None, keeper: Keeper | None = None) -> None:
        self.numbered = numbered
        self.keeper = keeper
        self.fingerprint = fingerprint
        self.effective = Effective()
        self.replayed = False
        self.frames: list[bytes] = []
        self.body = b""
        self.error: errors.MnemonError | None = None
        self.failed_clean = False
        self.done = False
        self.logged = 0
        """How many of the frames are in the event log."""
        self.logged_bytes = 0
        self.cancelled = False
        self.pings = 0
        self.task: asyncio.Task[None] | None = None
        self.watchers = 0
        self.waiters: list[asyncio.Future[None]] = []
        self.loop: asyncio.AbstractEventLoop | None = None

    @property
    def announced(self) -> bool:
        """Whether it is known by a name as soon as it begins."""
        return self.keeper is not None and self.keeper.early

    @property
    def log_full(self) -> bool:
        """Whether the event log takes no more of it but its end."""
        return self.logged_bytes >= LARGEST_LOG

    def unlogged(self, last: Sequence[bytes]) -> tuple[int, bytes]:
        """What the event log is to get together with these last frames: (number of the first, all of them)."""
        begun = len(self.frames) if self.log_full else self.logged
        return begun + 1, b"".join([*self.frames[begun:], *last])

    def push(self, frame: bytes) -> None:
        self.frames.append(self.numbering(len(self.frames), frame))
        self.wake()

    def numbering(self, index: int, frame: bytes) -> bytes:
        return b"id: %d\n%b" % (index + 1, frame) if self.numbered else frame

    def finish(self, frames: list[bytes], body: bytes) -> None:
        """The turn is committed: `frames` (numbered already) are its last ones, or `body` is the whole reply."""
        self.frames.extend(frames)
        self.body = body
        self.done = True
        self.wake()

    def numbered_frames(self, frames: Sequence[bytes]) -> list[bytes]:
        """Frames with the numbers they get if they come next."""
        return [self.numbering(len(self.frames) + i, frame) for i, frame in enumerate(frames)]

    def fail(self, error: errors.MnemonError, frames: list[bytes]) -> None:
        """The turn failed; watchers of a stream that had begun see `frames` (numbered already), the others the error itself."""
        self.error = error
        self.failed_clean = not self.frames
        self.frames += frames
        self.done = True
        self.wake()

    def cancel(self) -> None:
        """Stop the turn because somebody asked for it. Once is enough: another time would meet it while it writes its end down."""
        if self.task and not self.done and not self.cancelled:
            self.cancelled = True
            self.task.cancel()

    def ping(self) -> None:
        """Let idle watchers send a comment."""
        self.pings += 1
        self.wake()

    def wake(self) -> None:
        if self.waiters:
            waiters, self.waiters = self.waiters, []
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)

    async def change(self) -> None:
        if self.loop is None:  # asking for it is a system call, and this is called for every frame
            self.loop = asyncio.get_running_loop()
        waiter = self.loop.create_future()
        self.waiters.append(waiter)
        await waiter

    async def ready(self, patience: float) -> None:
        """Wait for the first frame, at most `patience` seconds. Raises the turn's error if it failed before that."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience):
                while not self.frames and not self.done:
                    await self.change()
        if self.error and self.failed_clean:
            raise self.error

    async def over(self, patience: float) -> None:
        """Wait for the end, whatever it is, at most `patience` seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience):
                while not self.done:
                    await self.change()

    async def result(self) -> bytes:
        """Wait for the end; the whole reply. Raises the turn's error."""
        while not self.done:
            await self.change()
        if self.error:
            raise self.error
        return self.body

    async def follow(self, after: int = 0) -> AsyncIterator[bytes]:
        """Everything behind frame number `after`, as it comes; comments while nothing does."""
        sent, pings = after, self.pings
        while True:
            if len(self.frames) > sent:
                batch = self.frames[sent:]
                sent = len(self.frames)
                yield batch[0] if len(batch) == 1 else b"".join(batch)
            elif self.done:
                return
            elif self.pings != pings:
                pings = self.pings
                yield KEEP_ALIVE
            else:
                await self.change()


def split_frames(body: bytes) -> list[bytes]:
    """The frames of a recorded stream."""
    return [piece + b"\n\n" for piece in body.split(b"\n\n")[:-1]]
