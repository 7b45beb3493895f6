"""The event log: the frames of streams that can be taken up again, numbered, in batches.

A stream has a name in its tenant. Frames are what was sent, byte for byte; they are kept for a day and never needed to know how something
ended.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec

from mnemon.store.base import Tx

KEPT_SECONDS = 24 * 3600


class Frames:
    """The streams of one tenant."""

    def __init__(self, tx: Tx, tenant: str) -> None:
        self.tx = tx
        self.tenant = tenant

    def add(self, stream: str, *, number: int, data: bytes, at: float) -> None:
        """Append a batch; `number` is that of its first frame."""
        if data:
            self.tx.run("frames_add", stream=self._key(stream), number=number, data=data, at=at)

    def after(self, stream: str, number: int) -> list[tuple[int, bytes]]:
        """The batches, in order, that hold any frame behind this one; the first may begin before it."""
        rows = self.tx.all("frames_after", stream=self._key(stream), number=number)
        return [(int(row["number"]), bytes(row["data"])) for row in rows]

    def drop(self, stream: str) -> None:
        """Forget a stream."""
        self.tx.run("frames_drop", stream=self._key(stream))

    def _key(self, stream: str) -> bytes:
        return key_of(self.tenant, stream)


def key_of(tenant: str, stream: str) -> bytes:
    return hashlib.blake2b(f"{tenant}\x00{stream}".encode(), digest_size=16).digest()


def add_all(tx: Tx, batches: Sequence[tuple[str, str, int, bytes]], *, at: float) -> None:
    """Append to many streams at once: (tenant, stream, number, data)."""
    for tenant, stream, number, data in batches:
        Frames(tx, tenant).add(stream, number=number, data=data, at=at)


def news(tx: Tx, known: Sequence[tuple[str, str, int]]) -> dict[tuple[str, str], list[tuple[int, bytes]]]:
    """What came to many streams at once: (tenant, stream, number of the last frame known) to the batches behind it, in order."""
    names = {key_of(tenant, stream): (tenant, stream) for tenant, stream, _ in known}
    wanted = [(key_of(tenant, stream).hex(), number) for tenant, stream, number in known]
    found: dict[tuple[str, str], list[tuple[int, bytes]]] = {}
    for row in tx.all("frames_news", wanted=msgspec.json.encode(wanted).decode()):
        found.setdefault(names[bytes(row["stream"])], []).append((int(row["number"]), bytes(row["data"])))
    return found


def expire(tx: Tx, *, now: float) -> int:
    """Forget what is older than a day; how many batches."""
    return int(tx.run("frames_expire", before=now - KEPT_SECONDS))
