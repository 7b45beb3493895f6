"""Works: what a client asked for under a name of its own, a response or a run, and how far it is.

What was said stands in the transcript and only there; a work says where. So deleting messages reaches it, and nothing is kept twice.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Literal

import msgspec

from mnemon.core import errors
from mnemon.core.records import Json
from mnemon.store.base import Row, Touched, Tx
from mnemon.store.frames import Frames

SLACK_SECONDS = 60.0  # between the beginning or end of a work in a process and in the database

Kind = Literal["response", "run"]
Status = Literal["queued", "running", "stopping", "completed", "incomplete", "failed", "cancelled", "interrupted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One work. `first` and `last` are the places of its turn's messages, `chain` the digest of the history up to the last."""

    id: str
    kind: str
    status: Status
    body: Json
    at: float
    updated_at: float
    session_id: str | None = None
    lineage: int | None = None
    first: int | None = None
    last: int | None = None
    chain: bytes = b""
    owner: int | None = None
    steers: tuple[str, ...] = ()
    """What was said to it while it was under way."""

    @property
    def ended(self) -> bool:
        return self.status not in ("queued", "running", "stopping")


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """Where in a transcript the turn of a work stands."""

    lineage: int
    session_id: str
    first: int | None
    last: int | None
    chain: bytes


class Works:
    """Works of one tenant."""

    def __init__(self, tx: Tx, tenant: str) -> None:
        self.tx = tx
        self.tenant = tenant

    def begin(self, work: str, kind: Kind, *, status: Status, body: Json, session_id: str | None, owner: int, at: float) -> None:
        """It is under way, in the process `owner`; what was queued before is now what `status` says."""
        self.tx.run(
            "works_begin",
            tenant=self.tenant, id=work, kind=kind, status=status, body=encoded(body), session_id=session_id, owner=owner, at=at,
        )  # fmt: skip

    def finish(self, work: str, kind: Kind, *, status: Status, body: Json, said: Said | None, at: float) -> None:
        """It has ended, well if `said` says where its turn stands."""
        self.tx.run(
            "works_finish",
            tenant=self.tenant,
            id=work,
            kind=kind,
            status=status,
            body=encoded(body),
            session_id=said.session_id if said else None,
            lineage=said.lineage if said else None,
            first=said.first if said else None,
            last=said.last if said else None,
            chain=said.chain if said else None,
            at=at,
        )

    def find(self, work: str, kind: Kind) -> Work | None:
        """One work. What a dead process had under way is interrupted."""
        row = self.tx.one("works_get", tenant=self.tenant, id=work, kind=kind)
        return self._work(row) if row else None

    def get(self, work: str, kind: Kind) -> Work:
        """One work. Raises `NotFound`."""
        found = self.find(work, kind)
        if found is None:
            raise missing(work, kind)
        return found

    def stop(self, work: str) -> Touched:
        """Ask whoever has it under way to stop; whether it is under way."""
        return self.tx.run("works_stop", tenant=self.tenant, id=work)

    def steer(self, work: str, text: str) -> Touched:
        """Say something to whoever has it under way; whether it runs, and is not to stop."""
        return self.tx.run("works_steer", tenant=self.tenant, id=work, line=msgspec.json.encode(text).decode() + "\n")

    def amend(self, work: str, body: Json) -> None:
        """Change what is said about a work."""
        self.tx.run("works_amend", tenant=self.tenant, id=work, body=encoded(body))

    def delete(self, work: str) -> None:
        """Forget it; its turn stays in the transcript."""
        Frames(self.tx, self.tenant).drop(work)
        self.tx.run("works_delete", tenant=self.tenant, id=work)

    def forget_frames(self, lineage: int) -> None:
        """Words of a conversation were deleted: what was streamed of it is not replayed any more, nor what was said beside it."""
        for row in self.tx.all("works_of_lineage", tenant=self.tenant, lineage=lineage):
            Frames(self.tx, self.tenant).drop(row["id"])
            self.tx.run("works_hush", tenant=self.tenant, id=row["id"])

    def delete_all(self, lineage: int) -> None:
        """A conversation is deleted, and with it what was asked for in it; what is under way there will fail."""
        for row in self.tx.all("works_of_lineage", tenant=self.tenant, lineage=lineage):
            self.delete(row["id"])

    def _work(self, row: Row) -> Work:
        same = ("id", "kind", "status", "at", "updated_at", "session_id", "lineage", "first", "last", "owner")
        work = {**{name: row[name] for name in same}, "body": msgspec.json.decode(row["body"]), "chain": bytes(row["chain"] or b"")}
        work["steers"] = lines(row["steers"])
        if row["owner"] is not None and not self.tx.alive(row["owner"]):
            work |= {"status": "interrupted", "owner": None}
        elif row["stopping"] and row["owner"] is not None:
            work["status"] = "stopping"
        return Work(**work)


def missing(work: str, kind: Kind) -> errors.NotFound:
    if kind == "response":
        return errors.NotFound(f"there is no response {work!r}", code="response_not_found", param="response_id")
    return errors.NotFound(f"there is no run {work!r}", code="run_not_found", param="run_id")


def to_stop(tx: Tx, *, owner: int) -> list[tuple[str, str]]:
    """(tenant, work) of what this process has under way and somebody wants stopped."""
    return [(row["tenant"], row["id"]) for row in tx.all("works_to_stop", owner=owner)]


def steered(tx: Tx, *, owner: int) -> list[tuple[str, str, tuple[str, ...]]]:
    """(tenant, work, what was said to it) of what this process has under way."""
    return [(row["tenant"], row["id"], lines(row["steers"])) for row in tx.all("works_steered", owner=owner)]


def lines(text: str | None) -> tuple[str, ...]:
    return tuple(msgspec.json.decode(line) for line in (text or "").split("\n") if line)


def under_way(tx: Tx) -> set[tuple[str, str]]:
    """(tenant, work) of everything that a living process is at."""
    rows = tx.all("works_under_way")
    living = {owner for owner in {row["owner"] for row in rows} if tx.alive(owner)}
    return {(row["tenant"], row["id"]) for row in rows if row["owner"] in living}


def settle(tx: Tx, *, now: float) -> int:
    """Write down that what dead processes had under way was interrupted; how many."""
    dead = [row["owner"] for row in tx.all("works_owners") if not tx.alive(row["owner"])]
    return sum(int(tx.run("works_interrupt", owner=owner, at=now)) for owner in dead)


def forgotten(tx: Tx, *, owner: int, known: AbstractSet[tuple[str, str]], now: float) -> int:
    """Write down that what this process has under way without knowing it was interrupted; how many. Its end could not be written down."""
    rows = [row for row in tx.all("works_under_way") if row["owner"] == owner and row["updated_at"] < now - SLACK_SECONDS]
    lost = [{"tenant": r["tenant"], "id": r["id"], "owner": owner, "at": now} for r in rows if (r["tenant"], r["id"]) not in known]
    tx.many("works_lost", lost)
    return len(lost)


def expire(tx: Tx, *, kind: Kind, before: float) -> int:
    """Forget works of a kind that ended before then; how many. Their turns stay in the transcripts."""
    return int(tx.run("works_expire", kind=kind, before=before))


def encoded(body: Json) -> str:
    return msgspec.json.encode(body).decode()
