"""What the owner of a memory writes into it by hand: added, corrected, taken over from elsewhere. No message says it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from mnemon.core import errors
from mnemon.memory import ledger
from mnemon.memory.builtin import Language
from mnemon.memory.statements import Candidate, Statement, Verdict
from mnemon.store.base import Tx
from mnemon.store.memories import BY_HAND, Link, Memories, Relation, Remembered

CORRECTED = "corrected_by_hand"
WRITTEN = "by_hand"


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What is to be remembered. What is left empty is found out from the text, as if it were said."""

    text: str
    kind: str = ""
    slot: str = ""
    pinned: bool = False
    valid_from: float | None = None


class Notes:
    """Writes into one tenant's memory scope by hand."""

    def __init__(self, tx: Tx, tenant: str, scope: int, *, language: Language, timezone: str) -> None:
        self.memories = Memories(tx, tenant, scope)
        self.language = language
        self.timezone = timezone
        self.turn = ledger.Turn(tenant=tenant, scope=scope, lineage=0, session_id="", at=0.0, version=BY_HAND, said=())

    def add(self, note: Note, *, at: float) -> tuple[str, bool]:
        """Remember; the memory, and whether it is new: what is known already is not written twice. It closes what it takes the place of."""
        candidate = self._candidate(note, at)
        _, known = ledger.related(self.memories, replace(self.turn, at=at), [candidate], ledger.Statements())
        verdict = self.language.judge(candidate, said_at=at, origin="user", known=tuple(known.values()))
        same = verdict.into if verdict.outcome == "merged" else next((s.id for s in known.values() if s.candidate.text == note.text), None)
        if same in known:
            if note.pinned:
                self.memories.pin(str(same), pinned=True)
            return str(same), False
        row = self._row(candidate, note, at)
        self.memories.add([row])
        self._place(row, verdict, known, at)
        return row.id, True

    def _place(self, row: Remembered, verdict: Verdict, known: Mapping[str, Statement], at: float) -> None:
        """What the new memory does to those that are there. A note takes nothing back: that is what deleting is for."""
        kind: Relation = "reverses" if verdict.reversal else "supersedes"
        over = [i for i in verdict.closes if i in known]
        for old in over:
            self.memories.close(old, by=row.id, rule=verdict.rule, at=at, until=row.valid_from)
        links = [Link(source=row.id, target=old, kind=kind, rule=verdict.rule, at=at) for old in over]
        links += [Link(source=row.id, target=i, kind="cause", rule=verdict.rule, at=at) for i in verdict.explains if i in known]
        self.memories.link(links)

    def correct(self, memory: str, note: Note, *, at: float) -> str:
        """Close a memory that was wrong and put another in its place; the new one. Raises `NotFound` and `Conflict`."""
        old = self.memories.get(memory)
        if old.state != "active":
            message = f"the memory {memory!r} is {old.state}: reopen it first, or correct what took its place"
            raise errors.Conflict(message, code="memory_closed", param="memory_id")
        candidate = self._corrected(note, old, at)
        _, known = ledger.related(self.memories, replace(self.turn, at=at), [candidate], ledger.Statements())
        known.pop(old.id, None)
        verdict = self.language.judge(candidate, said_at=at, origin="user", known=tuple(known.values()))
        if verdict.outcome == "merged" and verdict.into in known:
            new = str(verdict.into)  # it is known already, and not written twice
            if note.pinned:
                self.memories.pin(new, pinned=True)
        else:
            row = self._row(replace(candidate, cue="correction"), note, at)
            new = row.id
            self.memories.add([row])
            self._place(row, verdict, known, at)
        self.memories.close(old.id, by=new, rule=CORRECTED, at=at)
        self.memories.link([Link(source=new, target=old.id, kind="supersedes", rule=CORRECTED, at=at)])
        return new

    def _corrected(self, note: Note, old: Remembered, at: float) -> Candidate:
        """The new words as they are understood; what is not understood in them, or was left as it is, is of the same kind and slot."""
        found = self._candidate(note, at)
        if note.slot or (found.attribute and note.text != old.text):
            return found
        same = (note.kind or old.kind, old.slot)
        return replace(self._candidate(replace(note, kind=same[0], slot=same[1]), at), single=old.single)

    def _candidate(self, note: Note, at: float) -> Candidate:
        """The note as the distiller understands it, word for word; what it does not understand is a fact all the same."""
        found = self.language.distil(note.text, origin="user", said_at=at, timezone=self.timezone).candidates
        terms = tuple(dict.fromkeys(term for c in found for term in c.terms)) or self.language.wish(f"what is {note.text}?").terms
        first = found[0] if len(found) == 1 else Candidate(text=note.text, start=0, end=len(note.text), kind="fact", rule=WRITTEN)
        given = {"kind": note.kind} if note.kind else {}
        if note.slot:
            subject, _, attribute = note.slot.partition("/")
            same = (subject, attribute) == (first.subject, first.attribute)
            given |= {"subject": subject, "attribute": attribute, "single": first.single if same else True}  # type: ignore[dict-item]
        return replace(first, text=note.text, start=0, end=len(note.text), rule=WRITTEN, terms=terms, **given)  # type: ignore[arg-type]

    def _row(self, candidate: Candidate, note: Note, at: float) -> Remembered:
        began = ledger.holds_from(candidate, at=at) if note.valid_from is None else note.valid_from
        row = ledger.memory(candidate, origin="user", at=at, version=BY_HAND, began=began)
        return replace(row, pinned=note.pinned)

    def take_over(self, rows: Sequence[Remembered], links: Sequence[Link]) -> tuple[list[str], int]:
        """Import memories that were exported: (what is new, how many were here already). Doing it again adds nothing."""
        here = {m.id for m in self.memories.some(m.id for m in rows)}
        names = {m.id: m.id if m.id in here else imported(str(self.memories.key["scope"]), m.id) for m in rows}
        known = here | {m.id for m in self.memories.some(names.values())}
        new = {names[m.id]: m for m in rows if names[m.id] not in known}
        self.memories.add([renamed(m, names) for m in sorted(new.values(), key=lambda m: (m.recorded_at, m.number))])
        both = [k for k in links if k.source in names and k.target in names]
        fresh = [replace(k, source=names[k.source], target=names[k.target]) for k in both]
        self.memories.link(k for k in fresh if k.source in new or k.target in new)
        return list(new), len(rows) - len(new)


def imported(scope: str, memory: str) -> str:
    """The name of an imported memory: the same for the same memory, and another in every scope."""
    return "mem_" + hashlib.blake2b(f"{scope}\x1f{memory}".encode(), digest_size=12).hexdigest()


def renamed(memory: Remembered, names: Mapping[str, str]) -> Remembered:
    """An imported memory: no message here says it; open again if what closed it was not imported too."""
    found = replace(memory, id=names[memory.id], origin="import", version=BY_HAND)
    if memory.closed_by is None:
        return found
    if memory.closed_by in names:
        return replace(found, closed_by=names[memory.closed_by])
    return replace(found, state="active", valid_to=None, closed_at=None, closed_by=None, closed_rule=None)
