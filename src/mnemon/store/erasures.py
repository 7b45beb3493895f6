"""Words that are to go: where they stand, and how every row that holds them loses them.

What goes is decided elsewhere. Here each row is found and rewritten: messages, compressed states, previews, records of replies. A message
that is deleted stays as an empty one with its digest, so that the conversation is whole and an old history sent again is recognised.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from mnemon.core.records import Message, StateLine
from mnemon.store.base import Row, Tx
from mnemon.store.memories import Remembered, remembered
from mnemon.store.messages import lines, lines_json
from mnemon.store.works import Works

LAST = 2**62
PREVIEW = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A message that may lose words."""

    lineage: int
    position: int
    session_id: str
    message: Message
    at: float
    erased: bool
    origin: str = ""

    @property
    def place(self) -> tuple[int, int]:
        return self.lineage, self.position


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """Evidence, by where it stands."""

    memory: str
    lineage: int
    position: int
    start: int
    length: int


class Erasures:
    """The rows of one tenant's memory scope that hold words."""

    def __init__(self, tx: Tx, tenant: str, scope: int) -> None:
        self.tx = tx
        self.tenant = tenant
        self.key = {"tenant": tenant, "scope": scope}

    # -- finding --------------------------------------------------------------------------------------------------------

    def lineages(self, *, hold: bool) -> dict[int, str]:
        """Every conversation of the scope by number, with its root; with `hold` no turn changes any until the transaction ends."""
        rows = self.tx.all("erasures_hold" if hold else "erasures_lineages", **self.key)
        return {row["id"]: row["root"] for row in rows}

    def messages(self, lineage: int, *, first: int = 0, last: int = LAST) -> list[Said]:
        """The messages between two positions, those on old branches too."""
        return [said(row) for row in self.tx.all("erasures_messages", tenant=self.tenant, lineage=lineage, first=first, last=last)]

    def between(self, *, since: float, until: float) -> list[Said]:
        """What was said in a stretch of time."""
        return [said(row) for row in self.tx.all("erasures_between", **self.key, since=since, until=until)]

    def holding(self, words: str) -> list[Said]:
        """The messages in which these words stand, letter for letter."""
        return [said(row) for row in self.tx.all("erasures_holding", **self.key, words=escaped(words))]

    def evidence(self, lineage: int, *, first: int = 0, last: int = LAST) -> list[Spot]:
        """What rests on the messages between two positions."""
        rows = self.tx.all("erasures_evidence", **self.key, lineage=lineage, first=first, last=last)
        return [Spot(**{name: row[name] for name in Spot.__dataclass_fields__}) for row in rows]

    def by_hand(self, *, since: float, until: float) -> list[Remembered]:
        """Memories that no message states, recorded in a stretch of time."""
        return [remembered(row) for row in self.tx.all("erasures_by_hand", **self.key, since=since, until=until)]

    # -- rewriting ------------------------------------------------------------------------------------------------------

    def reword(self, place: tuple[int, int], body: dict[str, Any], *, erased: bool) -> bool:
        """Give a message another body and make it unfindable; whether it was findable."""
        lineage, position = place
        where = {"tenant": self.tenant, "lineage": lineage, "position": position}
        self.tx.run("erasures_reword", **where, body=msgspec.json.encode(body).decode(), erased=erased)
        return bool(self.tx.run("erasures_passages", **where))

    def restate(self, lineage: int) -> None:
        """Take out of all compressed states of a conversation what its messages do not say any more."""
        row = self.tx.one("erasures_state", tenant=self.tenant, lineage=lineage)
        state = lines_json(self.standing(lineage, lines(row["state"]) if row else ()))
        self.tx.run("erasures_restate", tenant=self.tenant, lineage=lineage, state=state)
        for old in self.tx.all("erasures_states", lineage=lineage):
            state = lines_json(self.standing(lineage, lines(old["state"])))
            self.tx.run("erasures_restate_old", lineage=lineage, upto=old["upto"], state=state)

    def standing(self, lineage: int, state: Sequence[StateLine]) -> list[StateLine]:
        """The lines whose words still stand in their message."""
        wanted = {line.position for line in state}
        if not wanted:
            return []
        found = {m.position: m for m in self.messages(lineage, first=min(wanted), last=max(wanted)) if m.position in wanted}
        return [line for line in state if line.position in found and squeezed(line.text) in squeezed(found[line.position].message.text)]

    def review(self, lineage: int, changed: Iterable[tuple[str, str]]) -> None:
        """Sessions that are recognised by the beginning of a message get its new beginning; `changed` are texts before and after."""
        beginnings = {squeezed(before[:PREVIEW]): squeezed(after[:PREVIEW]) or None for before, after in changed}
        for row in self.tx.all("erasures_previews", tenant=self.tenant, lineage=lineage):
            if (shown := squeezed(row["preview"])) in beginnings:
                self.tx.run("sessions_preview", tenant=self.tenant, id=row["id"], preview=beginnings[shown])

    def changed(self, lineage: int) -> None:
        """Replies that are kept for a repeated request are dropped, and nobody uses a transcript any more that was read before."""
        self.tx.run("erasures_records", tenant=self.tenant, lineage=lineage)
        Works(self.tx, self.tenant).forget_frames(lineage)
        self.tx.run("erasures_lineage", tenant=self.tenant, lineage=lineage)

    def finish(self, *, at: float) -> None:
        """Indexes of the scope are built anew when they are next used, and the bytes are swept out of the database's files."""
        self.tx.run("erasures_scope", **self.key)
        self.tx.run("sweeps_add", at=at)


def waiting(tx: Tx) -> int | None:
    """The newest sweep that was asked for and not done."""
    row = tx.one("sweeps_waiting")
    return int(row["id"]) if row and row["id"] is not None else None


def swept(tx: Tx, upto: int) -> None:
    """The sweeps up to this one are done."""
    tx.run("sweeps_done", id=upto)


def said_anywhere(tx: Tx, words: str) -> bool:
    """Whether words stand in anything that is kept, of any tenant: nobody is told where."""
    row = tx.one("texts_anywhere", words=words)
    return bool(row and row["yes"])


def said(row: Row) -> Said:
    same = {name: row[name] for name in ("lineage", "position", "session_id", "at", "origin")}
    return Said(**same, message=Message(msgspec.json.decode(row["body"])), erased=bool(row["erased"]))


def escaped(words: str) -> str:
    """Words as they stand inside a stored body."""
    return msgspec.json.encode(words).decode()[1:-1]


def squeezed(text: str) -> str:
    return " ".join(text.replace("\x00", " ").split())
