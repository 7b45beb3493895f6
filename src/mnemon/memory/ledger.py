"""From candidates to the ledger: what is said anew is added, what is repeated gains evidence, what is over is closed.

The words that decide stand in `distil`, as pure functions; here they are asked, and what they say is written. All of it happens inside the
transaction of the turn, so that two turns of one scope cannot both take the same statement for open.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Protocol

from mnemon.core import ids
from mnemon.core.records import Json
from mnemon.memory.statements import CHANGE_OF_MIND, Candidate, Distilled, Origin, Refusal, Statement, Verdict, When
from mnemon.store.base import Tx
from mnemon.store.memories import DETAILS, JUST_SAID, NEWEST, Details, Evidence, Link, Memories, Open, Relation, Remembered, slot_of

SHARING = 8
RECENT = 8
MOST_NEWEST = 60
STATEMENTS_KEPT = 4096
CHANGES = ("update", "correction", "reversal")
REFUSALS_TOLD = 20


class Judge(Protocol):
    """Decides what becomes of a candidate, among the open statements it may be about."""

    def __call__(self, candidate: Candidate, *, said_at: float, origin: Origin, known: Sequence[Statement]) -> Verdict: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A message as it was understood."""

    position: int
    origin: Origin
    distilled: Distilled


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What one turn says, and where."""

    tenant: str
    scope: int
    lineage: int
    session_id: str
    at: float
    version: int
    said: Sequence[Said]


@dataclass(slots=True)
class Changes:
    """What is to be written, and the account of it. Built first, written at the end: a later candidate sees what an earlier one did."""

    added: list[Remembered] = field(default_factory=list)
    evidence: list[tuple[str, Evidence]] = field(default_factory=list)
    closed: list[tuple[str, str | None, str, float]] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    account: Json = field(default_factory=lambda: {name: [] for name in ("added", "merged", "superseded", "retracted", "refused")})


def learn(tx: Tx, turn: Turn, judge: Judge, statements: Statements) -> Json:
    """Write what a turn says; the account for its receipt. A turn that says nothing costs no statement."""
    changes = Changes()
    refused = [(s.position, r) for s in turn.said for r in s.distilled.refusals]
    candidates = [(s, c) for s in turn.said for c in s.distilled.candidates]
    if candidates:
        memories = Memories(tx, turn.tenant, turn.scope)
        near, known = related(memories, turn, [c for _, c in candidates], statements)
        for (said, candidate), about in zip(candidates, near, strict=True):
            weighed = [known[name] for name in (*about, *(m.id for m in changes.added)) if name in known]
            verdict = judge(candidate, said_at=turn.at, origin=said.origin, known=weighed)
            if verdict.outcome == "refused":
                refused.append((said.position, Refusal(text=candidate.text, start=candidate.start, end=candidate.end, rule=verdict.rule)))
            apply(changes, known, turn=turn, said=said, candidate=candidate, verdict=verdict)
        base = write(memories, changes, at=turn.at)
        statements.keep({(m.id, number): known[m.id] for number, m in enumerate(changes.added, base + 1) if m.id in known})
    account = changes.account
    account["refused"] = [{"rule": r.rule, "evidence": place(turn, p, r)} for p, r in refused[:REFUSALS_TOLD]]
    account["refused_in_all"] = len(refused)
    return account


class Statements:
    """The statements that were compared of late: what a memory says never changes, only whether it holds.

    A number is given once, and an id is random or, of what was imported, says from where: together they name one statement for ever.
    """

    def __init__(self) -> None:
        self._kept: dict[tuple[str, int], Statement] = {}

    def of(self, memories: Memories, standing: Mapping[int, str]) -> dict[int, Statement]:
        """These memories as judging knows them, by number, oldest first; those that were not looked at lately are read."""
        kept = self._kept
        found = {number: kept[name, number] for number, name in standing.items() if (name, number) in kept}
        if len(found) < len(standing):
            read = {row.number: statement(row) for row in memories.open(name for number, name in standing.items() if number not in found)}
            self.keep({(each.id, number): each for number, each in read.items()})
            found |= read
        return {number: found[number] for number in sorted(found, key=lambda number: (found[number].said_at, number))}

    def keep(self, new: Mapping[tuple[str, int], Statement]) -> None:
        """Have these at hand. What is full is begun anew: all are in the ledger."""
        if len(self._kept) + len(new) > STATEMENTS_KEPT:
            self._kept = {}
        self._kept.update(new)


def related(
    memories: Memories, turn: Turn, candidates: Sequence[Candidate], statements: Statements
) -> tuple[list[list[str]], dict[str, Statement]]:
    """The open statements that each candidate may be about, oldest first, and all of them by name.

    Those of the slot it fills and those with the most words of its own; if it speaks of what was said, also what was said just before.
    """
    slots = dict.fromkeys(slot_of(c.subject, c.attribute) for c in candidates if c.single or c.negated)
    terms = dict.fromkeys(term for c in candidates for term in c.terms)
    # A change may be told in words of its own: services that were merged are the microservices of before.
    newest = MOST_NEWEST if any(c.cue in CHANGES for c in candidates) else 0
    found = memories.near(slots=[s for s in slots if s], terms=terms, lineage=turn.lineage, recent=RECENT, newest=newest)
    chosen = []
    for candidate in candidates:
        shared = Counter(chain.from_iterable([found[term] for term in candidate.terms if term in found]))
        whys = [slot_of(candidate.subject, candidate.attribute)]
        whys += [JUST_SAID] if candidate.cue != "none" or candidate.effect else []
        whys += [NEWEST] if candidate.cue in CHANGES else []
        chosen.append({*most_often(shared, SHARING), *chain.from_iterable([found[why] for why in whys if why in found])})
    known = statements.of(memories, memories.standing(set().union(*chosen))) if any(chosen) else {}
    return [[statement.id for number, statement in known.items() if number in about] for about in chosen], {s.id: s for s in known.values()}


def most_often(shared: Mapping[int, int], most: int) -> list[int]:
    """Those that were counted most often, of equals those that came first."""
    if len(shared) <= most:
        return list(shared)
    least = sorted(shared.values())[-most]
    above = [number for number, n in shared.items() if n > least]
    return above + list(islice((number for number, n in shared.items() if n == least), most - len(above)))


def apply(changes: Changes, known: dict[str, Statement], *, turn: Turn, said: Said, candidate: Candidate, verdict: Verdict) -> None:
    """Note what a verdict does. Only what was open to it can be closed by it."""
    began = holds_from(candidate, at=turn.at, after=[known[old].said_at for old in verdict.closes if old in known])
    new = entered(changes, known, turn=turn, said=said, candidate=candidate, verdict=verdict, began=began)
    if new:
        kind: Relation = "reverses" if verdict.reversal else "supersedes"
        for old in open_among(verdict.closes, known, but=new):
            changes.closed.append((old, new, verdict.rule, began))
            changes.links.append(Link(source=new, target=old, kind=kind, rule=verdict.rule, at=turn.at))
            changes.account["superseded"].append({"id": old, "by": new, "rule": verdict.rule, "reversal": verdict.reversal})
        effects = [i for i in verdict.explains if i in known and i != new]
        changes.links += [Link(source=new, target=effect, kind="cause", rule=verdict.rule, at=turn.at) for effect in effects]
    for old in open_among(verdict.retracts, known, but=new):
        changes.closed.append((old, None, verdict.rule, turn.at))
        changes.account["retracted"].append({"id": old, "rule": verdict.rule})
    if new and new not in known:
        known[new] = Statement(id=new, candidate=candidate, origin=said.origin, said_at=turn.at)


def entered(
    changes: Changes, known: dict[str, Statement], *, turn: Turn, said: Said, candidate: Candidate, verdict: Verdict, began: float
) -> str | None:
    """The memory that a candidate became or was merged into, with its evidence; None if it was refused."""
    here = place(turn, said.position, candidate)
    if verdict.outcome == "added":
        turned = replace(candidate, rule=verdict.rule) if verdict.rule == CHANGE_OF_MIND else candidate
        row = memory(turned, origin=said.origin, at=turn.at, version=turn.version, began=began)
        changes.added.append(row)
        changes.account["added"].append({"id": row.id, "kind": row.kind, "rule": verdict.rule, "evidence": here})
        name = row.id
    elif verdict.outcome == "merged" and verdict.into in known:
        name = verdict.into
        changes.account["merged"].append({"id": name, "rule": verdict.rule, "evidence": here})
    else:
        return None
    length = candidate.end - candidate.start
    evidence = Evidence(lineage=turn.lineage, position=said.position, start=candidate.start, length=length, at=turn.at)
    changes.evidence.append((name, evidence))
    return name


def open_among(wanted: Iterable[str], known: dict[str, Statement], *, but: str | None) -> list[str]:
    """Those of the wanted that are open; from now on they are not."""
    found = [i for i in dict.fromkeys(wanted) if i in known and i != but]
    for closed in found:
        del known[closed]
    return found


def write(memories: Memories, changes: Changes, *, at: float) -> int:
    """Write it all; the number before the first memory that was added."""
    base = memories.add(changes.added)
    memories.support(changes.evidence)
    for old, by, rule, until in changes.closed:
        memories.close(old, by=by, rule=rule, at=at, until=until)
    memories.link(changes.links)
    return base


def memory(candidate: Candidate, *, origin: Origin, at: float, version: int, began: float) -> Remembered:
    """A candidate as a new row of the ledger."""
    when = candidate.happened
    return Remembered(
        id=ids.memory(),
        text=candidate.text,
        kind=candidate.kind,
        rule=candidate.rule,
        subject=candidate.subject,
        attribute=candidate.attribute,
        single=candidate.single,
        negated=candidate.negated,
        details=Details(
            values=candidate.values,
            terms=candidate.terms,
            cue=candidate.cue,
            about=candidate.about,
            cause=candidate.cause,
            effect=candidate.effect,
        ),
        origin=origin,
        version=version,
        happened=(when.start, when.end, when.grain) if when else None,
        valid_from=began,
        recorded_at=at,
    )


def holds_from(candidate: Candidate, *, at: float, after: Sequence[float] = ()) -> float:
    """Since when it is so: since it happened, if that was in the past and not before what it takes the place of; else since it was said."""
    if candidate.happened is None:
        return at
    start = min(candidate.happened.start, at)
    return start if all(start > said for said in after) else at


def statement(row: Open) -> Statement:
    """A row of the ledger as judging knows it."""
    details = DETAILS.decode(row.details)
    candidate = Candidate(
        text=row.text,
        start=0,
        end=len(row.text),
        kind=row.kind,  # type: ignore[arg-type]
        rule=row.rule,
        subject=row.subject,
        attribute=row.attribute,
        single=bool(row.single),
        negated=bool(row.negated),
        happened=When(start=row.happened_start, end=row.happened_end, grain=row.grain) if row.grain else None,  # type: ignore[arg-type]
        values=details.values,
        terms=details.terms,
        cue=details.cue,  # type: ignore[arg-type]
        about=details.about,
        cause=details.cause,
        effect=details.effect,
    )
    return Statement(id=row.id, candidate=candidate, origin=row.origin, said_at=row.recorded_at)  # type: ignore[arg-type]


def place(turn: Turn, position: int, words: Candidate | Refusal) -> Json:
    """Where the words stand. A receipt repeats no text: what is deleted must be gone from it too."""
    return {"session_id": turn.session_id, "position": position, "start": words.start, "length": words.end - words.start}
