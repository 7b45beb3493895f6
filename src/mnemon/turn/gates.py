"""Turns of one session wait in the order in which they came, before they ask the database."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Hashable

from mnemon.core import errors


class Gates:
    """A fair lock for each name, there only while somebody needs it."""

    def __init__(self) -> None:
        self.locks: dict[Hashable, asyncio.Lock] = {}

    @contextlib.asynccontextmanager
    async def hold(self, name: Hashable, *, reject: bool) -> AsyncIterator[None]:
        """Wait for our turn. Raises `Conflict` at once if it is not, and the client asked for that."""
        lock = self.locks.get(name)
        if lock is None:
            lock = self.locks[name] = asyncio.Lock()
        elif reject:
            raise busy()
        async with lock:
            try:
                yield
            finally:
                if not lock._waiters:  # noqa: SLF001 - the only way to know that nobody queues for it
                    self.locks.pop(name, None)


def busy() -> errors.Conflict:
    return errors.Conflict("another turn of this session is running", code="session_busy")
