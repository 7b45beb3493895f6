"""What a request with an `Idempotency-Key` was answered, and what is still being answered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from mnemon.core import errors
from mnemon.core.records import Idempotency
from mnemon.store.base import Tx
from mnemon.store.frames import Frames

KEPT_SECONDS = 24 * 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A finished answer: the effective session and the body as they were sent. A stream's body is its frames, one after the other."""

    headers: dict[str, Any]
    body: bytes
    replayed: bool = True


class Records:
    """Idempotency records of one tenant. The tenant is part of the slot's hash; it is stored for deletion only."""

    def __init__(self, tx: Tx, tenant: str) -> None:
        self.tx = tx
        self.tenant = tenant

    def find(self, wanted: Idempotency, *, now: float) -> Record | int | None:
        """The finished record; or the number of the living process that is at it; or None if the work is to be done.

        Raises `Conflict` if the key was used with another body. What a dead process left unfinished, and what is older than a day, is
        cleared away.
        """
        row = self.tx.one("idempotency_find", slot=wanted.slot)
        if row is None:
            return None
        abandoned = row["owner"] is not None and not self.tx.alive(row["owner"])
        if abandoned or row["at"] < now - KEPT_SECONDS:
            self.tx.run("idempotency_drop", slot=wanted.slot)
            Frames(self.tx, self.tenant).drop(stream_of(wanted))
            return None
        if bytes(row["fingerprint"]) != wanted.fingerprint:
            message = f"the Idempotency-Key {wanted.key!r} was used before with another body"
            raise errors.Conflict(message, code="idempotency_key_conflict", param="Idempotency-Key")
        if row["erased"]:
            message = "the reply to this request was deleted together with what it was about; nothing was done again"
            raise errors.Conflict(message, code="reply_deleted", param="Idempotency-Key")
        if row["owner"] is not None:
            return int(row["owner"])
        return Record(headers=msgspec.json.decode(row["headers"]), body=bytes(row["body"]))

    def begin(self, wanted: Idempotency, *, owner: int, now: float) -> bool:
        """Say that this process is at it; False if another one was quicker."""
        added = self.tx.run("idempotency_begin", slot=wanted.slot, tenant=self.tenant, fingerprint=wanted.fingerprint, owner=owner, at=now)
        return bool(added)

    def finish(self, wanted: Idempotency, record: Record, *, lineage: int | None, now: float) -> None:
        """Keep the answer, in the transaction of the turn that made it; its day begins now, not when the work did."""
        Frames(self.tx, self.tenant).drop(stream_of(wanted))
        self.tx.run(
            "idempotency_finish",
            slot=wanted.slot,
            tenant=self.tenant,
            lineage=lineage,
            fingerprint=wanted.fingerprint,
            headers=msgspec.json.encode(record.headers).decode(),
            body=record.body,
            at=now,
        )

    def drop(self, wanted: Idempotency) -> None:
        """Forget what was answered: the work was taken back."""
        self.tx.run("idempotency_drop", slot=wanted.slot)

    def give_up(self, wanted: Idempotency, *, owner: int) -> None:
        """A failed turn leaves no record."""
        if self.tx.run("idempotency_drop_unfinished", slot=wanted.slot, owner=owner):
            Frames(self.tx, self.tenant).drop(stream_of(wanted))


def stream_of(wanted: Idempotency) -> str:
    """The name of the stream that a request's answer is."""
    return wanted.slot.hex()


def expire(tx: Tx, *, now: float) -> int:
    """Forget what is older than a day; how many."""
    return int(tx.run("idempotency_expire", before=now - KEPT_SECONDS))
