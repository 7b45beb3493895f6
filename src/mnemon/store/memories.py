"""The ledger of memories: what was stated, from when to when it held, what took its place, and where it was said.

Nothing in it is overwritten. A statement that is over is closed, with the time, the rule and what closed it, and can be opened again. It
knows nothing of language: which statement closes which is decided elsewhere. What becomes of memories when their messages are deleted,
edited, copied or moved stands in `removals`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import msgspec

from mnemon.core import errors
from mnemon.core.records import text_of
from mnemon.store.base import Row, Touched, Tx

Relation = Literal["cause", "supersedes", "reverses"]

BY_HAND = 0
"""The version of the distiller for what no distiller made: it stays though no message speaks for it."""
EVER = 1e18
JUST_SAID, NEWEST = "<", "*"
COMMON = 100
"""Memories that share a term before it tells nothing."""
NUL = "\x00"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Where a memory was said. `quote`, `session_id` and `role` are those of the message and are filled in by reading."""

    lineage: int
    position: int
    start: int
    length: int
    at: float
    session_id: str = ""
    role: str = ""
    quote: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """`source` is the cause of, supersedes or reverses `target`."""

    source: str
    target: str
    kind: Relation
    rule: str
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Details:
    """What of a statement is compared but never looked up by itself."""

    values: tuple[str, ...] = ()
    terms: tuple[str, ...] = ()
    cue: str = "none"
    about: str = ""
    cause: str = ""
    effect: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """A memory. It holds from `valid_from` until `valid_to`; the ledger knew it from `recorded_at` and held it true until `closed_at`.

    `happened` is (start, end, grain). `state` is active, superseded or retracted. `number` orders what was recorded at the same time; the
    ledger gives it.
    """

    id: str
    text: str
    kind: str
    origin: str
    rule: str
    version: int
    valid_from: float
    recorded_at: float
    subject: str = ""
    attribute: str = ""
    single: bool = False
    negated: bool = False
    details: Details = Details()
    happened: tuple[float, float, str] | None = None
    valid_to: float | None = None
    closed_at: float | None = None
    closed_by: str | None = None
    closed_rule: str | None = None
    pinned: bool = False
    state: str = "active"
    number: int = field(default=0, compare=False)

    @property
    def slot(self) -> str:
        return slot_of(self.subject, self.attribute)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which memories a listing shows; what is empty does not matter.

    `text` is any part of the wording. `since` and `until` are about when it was recorded. `as_of` shows what held at that time, as far
    as is known now, whatever became of it since.
    """

    kind: str = ""
    slot: str = ""
    text: str = ""
    session_id: str = ""
    origin: str = ""
    state: str = ""
    since: float = 0.0
    until: float = EVER
    as_of: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What a question calls up.

    Statements of the messages found for it (session, position), of slots, of a kind, and those that share at least `shared` telling terms,
    at most `most` of each; and pinned ones and instructions, the newest of them. `dated` says that it matters when a thing
    happened. Of all that was recorded since a time, the `newest`.
    """

    places: Sequence[tuple[str, int]] = ()
    slots: Sequence[str] = ()
    kind: str = ""
    terms: Sequence[str] = ()
    shared: int = 2
    dated: bool = False
    most: int = 0
    pinned: int = 0
    instructions: int = 0
    newest: int = 0
    since: float = 0.0


class Called(NamedTuple):
    """A memory that belongs to a question, and why. `plain`: it holds, and there is no more to say about it."""

    why: str
    id: str
    number: int = 0
    session_id: str = ""
    position: int = 0
    start: int = 0
    length: int = 0
    plain: bool = False


class Open(NamedTuple):
    """A memory that holds, as it is compared with what is said anew: its columns, `details` as they are stored."""

    id: str
    number: int
    text: str
    kind: str
    rule: str
    subject: str
    attribute: str
    single: int
    negated: int
    details: str
    origin: str
    recorded_at: float
    happened_start: float | None
    happened_end: float | None
    grain: str | None


class Closed(NamedTuple):
    """A memory that does not hold any more, as words that may repeat it are compared with it; `details` as they are stored."""

    id: str
    text: str
    subject: str
    attribute: str
    details: str
    recorded_at: float


class Memories:
    """The ledger of one tenant's memory scope."""

    def __init__(self, tx: Tx, tenant: str, scope: int) -> None:
        self.tx = tx
        self.tenant = tenant
        self.key = {"tenant": tenant, "scope": scope}
        self.fresh: set[str] = set()

    # -- writing --------------------------------------------------------------------------------------------------------

    def add(self, memories: Sequence[Remembered]) -> int:
        """Write new memories; the number before the first of them. Their evidence follows with `support`."""
        if not memories:
            return 0
        self.fresh.update(m.id for m in memories)
        if any(m.pinned or m.kind == "instruction" or m.state != "active" for m in memories):
            self.changed()  # the first two come along with whatever is recalled; what is over may be repeated by any line
        base = self.reserve(len(memories))
        self.tx.many("memories_add", [{**self.key, **columns(m), "number": number} for number, m in enumerate(memories, base + 1)])
        terms = [
            {**self.key, "number": number, "terms": as_json(t for t in m.details.terms if NUL not in t), "closed": m.state != "active"}
            for number, m in enumerate(memories, base + 1)
            if m.details.terms
        ]
        if terms:
            self.tx.many("memory_terms_add", terms)
        return base

    def reserve(self, more: int) -> int:
        """Take the next numbers; the last one that was taken before."""
        row = self.tx.one("scopes_remember", **self.key, more=more)
        return int(row["memories"]) - more if row else 0

    def changed(self) -> None:
        """Something of the scope is not as it was: what others keep of it in memory must be read anew. Mere additions are seen anyway."""
        self.tx.run("scopes_change", **self.key)

    def support(self, evidence: Iterable[tuple[str, Evidence]]) -> None:
        """Say where memories were said, as (memory, evidence); what is known already is not written twice.

        Mere additions, but for what was said before any evidence there was: then that is where it was said first.
        """
        rows = [
            {
                "tenant": self.tenant,
                "memory": memory,
                "lineage": e.lineage,
                "position": e.position,
                "start": e.start,
                "length": e.length,
                "at": e.at,
            }
            for memory, e in evidence
        ]
        if rows:
            self.tx.many("evidence_add", rows)
        again = [(row["memory"], row["lineage"], row["position"], row["start"]) for row in rows if row["memory"] not in self.fresh]
        if again and self.tx.plain("evidence_foremost", tenant=self.tenant, places=as_json(again)):
            self.changed()

    def link(self, links: Iterable[Link]) -> None:
        """Tie memories of this scope to each other."""
        rows = [{"tenant": self.tenant, **{name: getattr(link, name) for name in Link.__dataclass_fields__}} for link in links]
        if rows:
            self.tx.many("links_add", rows)
        if any(row["source"] not in self.fresh or row["target"] not in self.fresh for row in rows):
            self.changed()

    def close(self, memory: str, *, by: str | None, rule: str, at: float, until: float | None = None) -> Touched:
        """End a memory that something took the place of, or (without `by`) that was withdrawn; whether it was open.

        `until` is when it ceased to hold, if that is not `at`; it never ends before it began.
        """
        state = "superseded" if by else "retracted"
        ended = at if until is None else until
        self.changed()
        was_open = self.tx.run("memories_close", **self.key, id=memory, state=state, closed_by=by, rule=rule, at=at, until=ended)
        if was_open:
            self.tx.run("memory_terms_close", **self.key, memory=memory, closed=True)
        return was_open

    def reopen(self, memory: str) -> bool:
        """Take a closing back; whether there was one."""
        if not self.tx.run("memories_reopen", **self.key, id=memory):
            return False
        self.changed()
        self.tx.run("memory_terms_close", **self.key, memory=memory, closed=False)
        self.tx.run("links_drop_closing", tenant=self.tenant, id=memory)
        return True

    def pin(self, memory: str, *, pinned: bool) -> Touched:
        """A pinned memory comes along always; whether the memory exists."""
        self.changed()
        return self.tx.run("memories_pin", **self.key, id=memory, pinned=pinned)

    # -- reading --------------------------------------------------------------------------------------------------------

    def get(self, memory: str) -> Remembered:
        """One memory. Raises `NotFound`."""
        row = self.tx.one("memories_get", **self.key, id=memory)
        if row is None:
            raise errors.NotFound(f"there is no memory {memory!r}", code="memory_not_found", param="memory_id")
        return remembered(row)

    def page(self, wanted: Filter, *, limit: int, after: str = "") -> list[Remembered]:
        """A page of a listing, newest first, from behind the memory `after`."""
        rows = self.tx.all(
            "memories_page",
            **self.key,
            **{name: getattr(wanted, name) for name in ("kind", "slot", "origin", "state", "session_id", "since", "until")},
            pattern=pattern(wanted.text) if wanted.text else "",
            as_of=-1.0 if wanted.as_of is None else wanted.as_of,
            after=after,
            limit=limit,
        )
        return [remembered(row) for row in rows]

    def evidence(self, memories: Iterable[str]) -> dict[str, list[Evidence]]:
        """Where memories were said, oldest first, each with its words as they stand in the message. Old branches are left out."""
        found: dict[str, list[Evidence]] = {}
        for row in self.tx.all("evidence_shown", **self.key, ids=as_json(memories)):
            found.setdefault(row["memory"], []).append(quoted(row))
        return found

    def first_evidence(self, memories: Iterable[str]) -> dict[str, Evidence]:
        """Where memories were said first, as far as it was not taken back by an edit."""
        return {row["memory"]: quoted(row) for row in self.tx.all("evidence_first", **self.key, ids=as_json(memories))}

    def said_at(self, lineage: int, positions: Iterable[int]) -> list[tuple[Remembered, Evidence]]:
        """What messages of a lineage state, in any state, each with where it stands there, in the order of saying; without the words."""
        rows = self.tx.all("memories_said_at", **self.key, lineage=lineage, positions=as_json(positions))
        places = ("lineage", "position", "start", "length", "at")
        return [(remembered(row), Evidence(**{name: row[name] for name in places})) for row in rows]

    def timeline(self, slot: str) -> list[Remembered]:
        """Everything that ever filled a slot, in the order in which it held."""
        return self._found("memories_of_slot", slot=slot)

    def history(self, memory: str) -> list[Remembered]:
        """All that led to what holds now in place of a memory, itself among it, in the order of recording."""
        return self._found("memories_history", id=memory)

    def closings(self, memories: Iterable[str]) -> dict[str, str]:
        """What closed these memories, what closed that, and so on: each with its closer. What is not in it was not superseded."""
        return {row["id"]: row["closed_by"] for row in self.tx.all("memories_closings", **self.key, ids=as_json(memories))}

    def reversals(self, *, limit: int) -> list[Link]:
        """Positions that changed, newest first: `source` is the new one."""
        return [linked(row) for row in self.tx.all("links_reversals", **self.key, limit=limit)]

    def causes(self, memory: str) -> list[Link]:
        """Why: the links from a memory back to its causes, the nearest first."""
        return [linked(row) for row in self.tx.all("links_causes", **self.key, id=memory)]

    def links(self, memories: Iterable[str]) -> list[Link]:
        """All links of these memories, in both directions."""
        return [linked(row) for row in self.tx.all("links_of", **self.key, ids=as_json(memories))]

    def some(self, memories: Iterable[str]) -> list[Remembered]:
        """The memories with these ids that are in this scope, in the order of recording."""
        return self._found("memories_by_ids", ids=as_json(memories))

    def in_slots(self, slots: Iterable[str], *, limit: int) -> list[Remembered]:
        """Memories of these slots in any state, newest first."""
        return self._found("memories_in_slots", slots=as_json(slots), limit=limit)

    def sharing(self, terms: Iterable[str], *, limit: int) -> list[Remembered]:
        """Memories in any state that share telling terms, those that share most first."""
        return self._found("memories_sharing", terms=as_json(clean(t) for t in terms), limit=limit)

    def sessions(self, lineage: int) -> list[str]:
        """The sessions of a conversation."""
        return [row[0] for row in self.tx.plain("sessions_of_lineage", tenant=self.tenant, lineage=lineage)]

    def any_closed(self) -> bool:
        """Whether there is a memory with a term that does not hold any more."""
        return bool(self.tx.plain("memories_any_closed", **self.key))

    def closed_with(self, terms: Iterable[str], *, limit: int) -> list[Closed]:
        """Memories that do not hold any more and share a telling term, those that share most first."""
        lists = {"terms": as_json(clean(t) for t in terms)}
        return [Closed._make(row) for row in self.tx.plain("memories_closed_with", **self.key, **lists, limit=limit)]

    def called(self, call: Call) -> list[Called]:
        """What may belong to a question, each with why; those of `places` also with where they stand there, even on an old branch."""
        lists = {"places": as_json(call.places), "slots": as_json(call.slots), "terms": as_json(clean(t) for t in call.terms)}
        plain = {name: getattr(call, name) for name in ("kind", "dated", "pinned", "instructions", "most", "shared", "newest", "since")}
        return [Called._make(row) for row in self.tx.plain("memories_called", **self.key, **lists, **plain)]

    def near(
        self, *, slots: Iterable[str], terms: Iterable[str], lineage: int = 0, recent: int = 0, newest: int = 0
    ) -> dict[str, list[int]]:
        """The numbers of what a new statement may be about, by why, newest first: of which slot or with which telling term.

        With `JUST_SAID` the `recent` last ones of its conversation, with `NEWEST` the `newest` of the scope and of the decisions in it.
        Those found by term or conversation may be closed. A term that stands in very many memories tells nothing, and is left out.
        """
        lists = {"slots": as_json(slots), "terms": as_json(t for t in terms if NUL not in t)}
        found: dict[str, list[int]] = {}
        for why, numbers in self.tx.plain(
            "memories_near", **self.key, **lists, lineage=lineage, recent=recent, newest=newest, common=COMMON
        ):
            if numbers and (listed := NUMBERS.decode(numbers)):
                found[why] = found[why] + listed if why in found else listed
        return found

    def standing(self, numbers: Iterable[int]) -> dict[int, str]:
        """Those of the memories with these numbers that hold now: their ids by number."""
        return dict(self.tx.plain("memories_standing", **self.key, numbers=as_json(numbers)))

    def open(self, memories: Iterable[str]) -> list[Open]:
        """Those of the memories with these ids that hold now."""
        return [Open._make(row) for row in self.tx.plain("memories_open", **self.key, ids=as_json(memories))]

    def _found(self, statement: str, **params: Any) -> list[Remembered]:
        return [remembered(row) for row in self.tx.all(statement, **self.key, **params)]


def slot_of(subject: str, attribute: str) -> str:
    """The name of a slot; empty where none was understood."""
    return f"{subject}/{attribute}" if attribute else ""


def columns(memory: Remembered) -> dict[str, Any]:
    start, end, grain = memory.happened or (None, None, None)
    return {
        "id": memory.id,
        "text": clean(memory.text),
        "kind": memory.kind,
        "slot": clean(memory.slot),
        "subject": clean(memory.subject),
        "attribute": clean(memory.attribute),
        "single": memory.single,
        "negated": memory.negated,
        "details": as_json(memory.details),
        "origin": memory.origin,
        "rule": memory.rule,
        "version": memory.version,
        "valid_from": memory.valid_from,
        "valid_to": memory.valid_to,
        "recorded_at": memory.recorded_at,
        "closed_at": memory.closed_at,
        "closed_by": memory.closed_by,
        "closed_rule": memory.closed_rule,
        "happened_start": start,
        "happened_end": end,
        "grain": grain,
        "pinned": memory.pinned,
        "state": memory.state,
    }


def remembered(row: Row) -> Remembered:
    same = ("id", "number", "text", "kind", "origin", "rule", "version", "subject", "attribute", "state")
    times = ("valid_from", "valid_to", "recorded_at", "closed_at", "closed_by", "closed_rule")
    return Remembered(
        **{name: row[name] for name in (*same, *times)},
        single=bool(row["single"]),
        negated=bool(row["negated"]),
        pinned=bool(row["pinned"]),
        details=DETAILS.decode(row["details"]),
        happened=None if row["grain"] is None else (row["happened_start"], row["happened_end"], row["grain"]),
    )


def quoted(row: Row) -> Evidence:
    whole = text_of(msgspec.json.decode(row["body"]).get("content"))
    return Evidence(
        **{name: row[name] for name in ("lineage", "position", "start", "length", "at", "session_id", "role")},
        quote=whole[row["start"] : row["start"] + row["length"]],
    )


def linked(row: Row) -> Link:
    return Link(**{name: row[name] for name in Link.__dataclass_fields__})


def clean(text: str) -> str:
    """PostgreSQL keeps no NUL in a text."""
    return text.replace(NUL, " ")


def pattern(text: str) -> str:
    """A `LIKE` pattern for any wording that holds the text."""
    for special in "!%_":
        text = text.replace(special, "!" + special)
    return f"%{clean(text).lower()}%"


DETAILS = msgspec.json.Decoder(Details)
NUMBERS = msgspec.json.Decoder(list[int])


def as_json(value: Any) -> str:
    plain = value if isinstance(value, Details) else list(value)
    return msgspec.json.encode(plain).decode()
