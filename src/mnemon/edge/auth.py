"""Who is asking: every request but the health checks carries a key, and a key belongs to a tenant."""

from __future__ import annotations

import asyncio
import hmac
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from mnemon.core import errors
from mnemon.store import keys
from mnemon.store.base import Driver
from mnemon.store.keys import ApiKey
from mnemon.turn.running import Running

MINUTE = 60.0


class Keyring:
    """The keys that are valid now. Reloads itself when any process changed them."""

    def __init__(self, driver: Driver, *, fixed: list[ApiKey]) -> None:
        self.driver = driver
        self.fixed = fixed
        self.stamp: int | None = None
        self.keys: dict[bytes, ApiKey] = {}
        self.limits: dict[bytes, Limit] = {}

    async def find(self, authorization: str | None) -> ApiKey:
        """The key of an `Authorization` header. Raises `Denied`."""
        scheme, _, secret = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not secret.strip():
            raise errors.Denied("send a key as 'Authorization: Bearer <key>'; the first lines of `mnemon serve` say which")
        stamp = self.driver.stamp(keys.TOPIC)
        if stamp != self.stamp:
            await self._reload(stamp)
        digest = keys.hashed(secret.strip())
        key = self.keys.get(digest)
        if key is None or not hmac.compare_digest(key.hash, digest):
            raise errors.Denied("this key is not valid; the first lines of `mnemon serve` say which is, or where it is kept")
        return key

    async def _reload(self, stamp: int) -> None:
        known = await self.driver.read(keys.everyone)
        self.keys = {key.hash: key for key in [*known, *self.fixed] if key.revoked_at is None}
        self.stamp = stamp

    @contextmanager
    def admitted(self, key: ApiKey) -> Iterator[Visit]:
        """Hold one place of the key's concurrency, and one request of its minute. Raises `LimitReached`."""
        if key.requests_per_minute is None and key.concurrency is None:
            yield Visit(None)
            return
        limit = self.limits.setdefault(key.hash, Limit())
        limit.enter(key, time.monotonic())
        visit = Visit(limit)
        try:
            yield visit
        finally:
            visit.leave()


class Visit:
    """A request that was let in. It holds its place until it has ended, and the turn it began has, too."""

    def __init__(self, limit: Limit | None) -> None:
        self.limit = limit
        self.turn: Running | None = None

    def leave(self) -> None:
        if self.turn and self.turn.task and not self.turn.done:
            self.turn.task.add_done_callback(self._free)  # the client went away, its turn goes on
        else:
            self._free()

    def _free(self, _task: asyncio.Task[None] | None = None) -> None:
        if self.limit:
            self.limit.inside -= 1


class Limit:
    """What one key does in this process at the moment."""

    def __init__(self) -> None:
        self.inside = 0
        self.recent: deque[float] = deque()

    def enter(self, key: ApiKey, now: float) -> None:
        if key.concurrency is not None and self.inside >= key.concurrency:
            message = f"the key {key.name!r} has {key.concurrency} requests in flight, its limit"
            raise errors.LimitReached(message, retry_after=1)
        while self.recent and now - self.recent[0] >= MINUTE:
            self.recent.popleft()
        if key.requests_per_minute is not None and len(self.recent) >= key.requests_per_minute:
            wait = max(1, round(MINUTE - (now - self.recent[0])))
            message = f"the key {key.name!r} made {key.requests_per_minute} requests in the last minute, its limit"
            raise errors.LimitReached(message, retry_after=wait)
        self.recent.append(now)
        self.inside += 1
