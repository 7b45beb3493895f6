"""What becomes of memories when the messages they rest on are deleted, edited, copied or moved to another scope.

A memory stands on its evidence. What has none left goes, and with it whatever it did to others: a statement that it closed is open again,
or closed by what took the place of both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from mnemon.core import ids
from mnemon.store.base import Row, Tx
from mnemon.store.memories import BY_HAND, Evidence, Link, Memories, Remembered, as_json, remembered

EDITED = "message_edited"
NEWER = "newer_in_scope"
LAST = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """What deleting messages takes from memory: evidence, the memories that go with it, and those that rest on something else too."""

    evidence: tuple[tuple[str, int, int, int], ...]
    gone: tuple[str, ...]
    kept: tuple[str, ...]


class Removals:
    """Changes to the evidence of one tenant's memory scope."""

    def __init__(self, tx: Tx, tenant: str, scope: int) -> None:
        self.tx = tx
        self.memories = Memories(tx, tenant, scope)
        self.key = self.memories.key

    def of_messages(self, lineage: int, *, first: int = 0, last: int = LAST) -> Loss:
        """What would be lost with these messages of a lineage; changes nothing."""
        return self._loss(self.tx.all("evidence_of_messages", **self.key, lineage=lineage, first=first, last=last))

    def between(self, *, since: float, until: float) -> Loss:
        """What would be lost with everything that was said in a stretch of time; changes nothing."""
        return self._loss(self.tx.all("evidence_between", **self.key, since=since, until=until))

    def _loss(self, rows: Sequence[Row]) -> Loss:
        lost: dict[str, int] = {}
        for row in rows:
            lost[row["memory"]] = lost.get(row["memory"], 0) + 1
        gone = []
        if lost:
            counts = self.tx.all("evidence_counts", **self.key, ids=as_json(lost))
            gone = [row["id"] for row in counts if row["n"] <= lost[row["id"]] and row["version"] != BY_HAND]
        evidence = tuple((row["memory"], row["lineage"], row["position"], row["start"]) for row in rows)
        return Loss(evidence=evidence, gone=tuple(gone), kept=tuple(m for m in lost if m not in gone))

    def withdraw(self, loss: Loss) -> None:
        """Take evidence away, and the memories that rested on nothing else."""
        self.memories.changed()
        names = ("memory", "lineage", "position", "start")
        if loss.evidence:
            self.tx.many("evidence_drop", [{"tenant": self.key["tenant"], **dict(zip(names, e, strict=True))} for e in loss.evidence])
        self.drop(loss.gone)

    def drop(self, memories: Sequence[str]) -> None:
        """Delete memories whole; what they closed is open again, unless something closed them in turn."""
        if memories:
            self.memories.changed()
            self._unclose(memories)
            self.tx.many("memories_drop", [{**self.key, "id": memory} for memory in memories])

    def clear(self) -> int:
        """Delete every memory of the scope; how many there were."""
        self.memories.changed()
        return int(self.tx.run("memories_clear", **self.key))

    def edited_away(self, lineage: int, *, start: int, at: float) -> None:
        """The messages from `start` on were replaced by others: what only they said is withdrawn, and can be reopened."""
        gone = self.of_messages(lineage, first=start).gone
        self._unclose(gone)
        for memory in gone:
            self.memories.close(memory, by=None, rule=EDITED, at=at)

    def _unclose(self, going: Sequence[str]) -> None:
        """Undo what these memories did to others."""
        if not going:
            return
        closer = {m.id: m.closed_by for m in self.memories.some(going)}
        for row in self.tx.all("memories_closed_by", **self.key, ids=as_json(going)):
            by = following(row["closed_by"], closer)
            if row["id"] in closer:
                continue
            if by is None:
                self.memories.reopen(row["id"])
            else:
                self.tx.run("memories_reclose", **self.key, id=row["id"], closed_by=by)
                self.memories.link([Link(source=by, target=row["id"], kind="supersedes", rule=row["closed_rule"], at=row["closed_at"])])

    # -- moving ---------------------------------------------------------------------------------------------------------

    def move(self, to: int) -> None:
        """All memories become another scope's. Where both scopes fill a single-valued slot, the newer value closes the older."""
        target = Memories(self.tx, str(self.key["tenant"]), to)
        self.memories.changed()
        target.changed()
        ever = self.memories.reserve(0)  # numbers that were given here: as many are taken there
        if not ever:
            return
        base = target.reserve(ever)
        self.tx.run("memories_move", **self.key, to=to, base=base)
        self.tx.run("memory_terms_move", **self.key, to=to, base=base)
        settled(target)

    def copy(self, lineage: int, copy: int, *, to: int, upto: int = LAST) -> None:
        """A fork says what its messages say: in the same scope it is more evidence, in a scope of its own it has memories of its own."""
        said = [
            (row["memory"], evidence(row, copy))
            for row in self.tx.all("evidence_of_lineage", tenant=self.key["tenant"], lineage=lineage, upto=upto)
        ]
        if not said:
            return
        if to == self.key["scope"]:
            self.memories.support(said)
            return
        rows = [remembered(row) for row in self.tx.all("memories_of_lineage", **self.key, lineage=lineage, upto=upto)]
        names = {m.id: ids.memory() for m in rows}
        target = Memories(self.tx, str(self.key["tenant"]), to)
        target.add([copied(m, names) for m in rows])
        target.support((names[memory], e) for memory, e in said)
        links = self.memories.links(names)
        target.link(replace(k, source=names[k.source], target=names[k.target]) for k in links if k.source in names and k.target in names)
        settled(target)


def settled(memories: Memories) -> None:
    """Memories of two scopes have become one's: no single-valued slot is filled twice."""
    rows = [remembered(row) for row in memories.tx.all("memories_doubled", **memories.key, single=True)]
    for _, group in groupby(rows, key=lambda m: m.slot):
        settle(memories, list(group))


def settle(memories: Memories, rows: Sequence[Remembered]) -> None:
    """Close all but the newest value of a slot; the same value twice is no contradiction."""
    newest = rows[-1]
    for older in rows[:-1]:
        if older.details.values != newest.details.values and older.origin == newest.origin:
            memories.close(older.id, by=newest.id, rule=NEWER, at=newest.recorded_at, until=newest.valid_from)
            memories.link([Link(source=newest.id, target=older.id, kind="supersedes", rule=NEWER, at=newest.recorded_at)])


def following(closed_by: str | None, closer: Mapping[str, str | None]) -> str | None:
    """The first in a chain of closings that is not about to go."""
    while closed_by is not None and closed_by in closer:
        closed_by = closer[closed_by]
    return closed_by


def copied(memory: Remembered, names: Mapping[str, str]) -> Remembered:
    """The memory under its new name; open again if what closed it was not copied."""
    if memory.closed_by is None:
        return replace(memory, id=names[memory.id])
    if memory.closed_by in names:
        return replace(memory, id=names[memory.id], closed_by=names[memory.closed_by])
    return replace(memory, id=names[memory.id], state="active", valid_to=None, closed_at=None, closed_by=None, closed_rule=None)


def evidence(row: Row, lineage: int) -> Evidence:
    return Evidence(lineage=lineage, position=row["position"], start=row["start"], length=row["length"], at=row["at"])
