"""The builtin memory: what was said is found again by its words, and what was stated is kept in a ledger. No model is asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from mnemon.context import blocks
from mnemon.core.records import CHANGED, REPEATED, Message, Recalled, Stated
from mnemon.memory import echoes, ledger
from mnemon.memory.base import Learned, Query, Taken
from mnemon.memory.fulltext import FullText
from mnemon.memory.stated import stated
from mnemon.memory.statements import Distilled, Origin
from mnemon.memory.weave import Known, Wish, woven
from mnemon.store.base import Driver, Tx
from mnemon.store.memories import Call, Memories
from mnemon.store.passages import Passage, Passages

PINNED, INSTRUCTIONS = 8, 3
COMES_ALONG = ("pinned", "instruction")
FOUND, FOUND_OF_ALL = 12, 40
SHARED = 2
CLOSED = 100
DAY = 86_400.0
LONGEST_QUESTION = 2000  # characters; a question stands at the end of what was pasted before it


class Distil(Protocol):
    """Finds the statements of a message."""

    def __call__(self, text: str, *, origin: Origin, said_at: float, timezone: str) -> Distilled: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """The part that understands words: pure, with a version number."""

    version: int
    distil: Distil
    judge: ledger.Judge
    wish: Callable[[str], Wish]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a message adds: passages to find it by, and what it states, if it is the user's."""

    passages: list[Passage]
    distilled: Distilled | None
    origin: Origin = "user"


class Builtin:
    """Passages and ledger behind one port."""

    def __init__(self, driver: Driver, passages: FullText, language: Language, *, timezone: str) -> None:
        self.driver = driver
        self.passages = passages
        self.language = language
        self.timezone = timezone
        self.statements = ledger.Statements()

    async def recall(self, query: Query) -> list[Recalled]:
        found = await self.passages.recall(query, read=lines)
        if not query.memories:
            return found
        wish = self.language.wish(query.text[-LONGEST_QUESTION:])
        shelf = self.passages.shelves.get(query)
        telling = [r for r in found if r.told >= CHANGED or (r.told and wish.when)]
        if shelf.idle and not (telling or wish.slots or wish.terms or wish.kind or wish.days is not None):
            return found
        known = await self.driver.glance(partial(gather, query=query, found=found, telling=telling, wish=wish))
        shelf.idle = not any(c.why in COMES_ALONG for c in known.called)
        return woven(found, known, wish, lineage=query.lineage, live=query.live)

    async def stated(self, *, tenant: str, scope: int, lineage: int, positions: Sequence[int]) -> list[Stated]:
        return await self.driver.read(partial(stated, tenant=tenant, scope=scope, lineage=lineage, positions=positions))

    def prepare(self, messages: Sequence[Message], *, at: float, origin: Origin = "user") -> list[Plan]:
        said = [self._distilled(m, at, origin) for m in messages]
        pieces = self.passages.prepare(messages, list(map(stretches, said)), origin=origin)
        return [Plan(passages=p, distilled=d if p else None, origin=origin) for p, d in zip(pieces, said, strict=True)]

    def _distilled(self, message: Message, at: float, origin: Origin) -> Distilled | None:
        """What a user states. What a model or a tool says is no statement of the user's, and stays findable as what it is."""
        if message.role != "user":
            return None
        found = self.language.distil(blocks.blanked(message.text), origin=origin, said_at=at, timezone=self.timezone)
        return found if found.candidates or found.refusals else None

    def learn(self, tx: Tx, learned: Learned) -> Taken:
        # First: it holds the scope, so that nobody else changes its ledger meanwhile.
        mark = self.passages.learn(tx, self._found_by(learned))
        said = [ledger.Said(position=at, origin=plan.origin, distilled=plan.distilled) for at, plan in learned.plans if plan.distilled]
        turn = ledger.Turn(
            tenant=learned.tenant,
            scope=learned.scope,
            lineage=learned.lineage,
            session_id=learned.session_id,
            at=learned.at,
            version=self.language.version,
            said=said,
        )
        return Taken(mark=mark, diff=ledger.learn(tx, turn, self.language.judge, self.statements))

    def reword(self, tx: Tx, learned: Learned) -> None:
        messages = [message for _, message in learned.plans]
        pieces = self.passages.prepare(messages, [stretches(self._distilled(m, learned.at, "user")) for m in messages])
        plans = [(position, piece) for (position, _), piece in zip(learned.plans, pieces, strict=True)]
        self.passages.learn(tx, replace(learned, plans=plans))

    def committed(self, learned: Learned, taken: Taken) -> None:
        self.passages.committed(self._found_by(learned), taken.mark)

    def _found_by(self, learned: Learned) -> Learned:
        return replace(learned, plans=[(at, plan.passages) for at, plan in learned.plans])


def stretches(said: Distilled | None) -> list[tuple[int, int]]:
    """Where in a message something is stated."""
    return [(c.start, c.end) for c in said.candidates] if said else []


class Nothing:
    """The memory provider that remembers nothing: `MNEMON_MEMORY_PROVIDER=none`."""

    async def recall(self, query: Query) -> list[Recalled]:
        return []

    async def stated(self, *, tenant: str, scope: int, lineage: int, positions: Sequence[int]) -> list[Stated]:
        return []

    def prepare(self, messages: Sequence[Message], *, at: float, origin: Origin = "user") -> list[None]:
        return [None] * len(messages)

    def learn(self, tx: Tx, learned: Learned) -> Taken:
        return Taken(mark=0, diff={})

    def reword(self, tx: Tx, learned: Learned) -> None:
        """Nothing was findable."""

    def committed(self, learned: Learned, taken: Taken) -> None:
        """Nothing was learned."""


def lines(tx: Tx, *, query: Query, numbers: Sequence[int]) -> dict[int, Recalled]:
    """Passages by number, each with whether the ledger has anything to say of it: of what it states, or of what it repeats."""
    read = Passages(tx, query.tenant, query.scope).texts(numbers)
    found = {number: line for number, (line, _) in read.items()}
    memories = Memories(tx, query.tenant, query.scope)
    if query.memories and memories.any_closed():
        # The ledger knows what becomes of what is stated; only other sentences have to be compared with it.
        said = [sentence for line, spans in read.values() for sentence in echoes.unstated(line, spans)]
        echoing = {s.line.key for those in maybe_repeated(memories, said).values() for s in those}
        found |= {number: line._replace(told=REPEATED) for number, line in found.items() if line.key in echoing}
    return found


def gather(tx: Tx, *, query: Query, found: Sequence[Recalled], telling: Sequence[Recalled], wish: Wish) -> Known:
    """What the ledger has to say about a question and the passages found for it, of which only the `telling` ones need a look.

    One step along every link, to the end of every closing, and whatever else the messages state that are to be shown.
    """
    memories = Memories(tx, query.tenant, query.scope)
    looked = dict.fromkeys((r.session_id, r.position) for r in telling)
    called = memories.called(
        Call(
            places=list(looked),
            slots=wish.slots,
            kind=wish.kind,
            terms=wish.terms,
            shared=SHARED,
            dated=wish.when,
            most=FOUND_OF_ALL if wish.every else FOUND,
            pinned=PINNED,
            instructions=INSTRUCTIONS,
            newest=FOUND_OF_ALL if wish.days is not None else 0,
            since=query.at - DAY * wish.days if wish.days else 0.0,
        )
    )
    known = Known(called=called)
    while called:
        around(memories, {c.id for c in called if not c.plain}, known)
        beside = ({(e.session_id, e.position) for e in known.evidence.values()} | stating(found, known)) - looked.keys()
        looked |= dict.fromkeys(beside)
        called = memories.called(Call(places=sorted(beside))) if beside else []
        known.called += called
    known.echoed = repeated(memories, telling, known)
    if known.echoed and (beside := ({(e.session_id, e.position) for e in known.evidence.values()} | stating(found, known)) - looked.keys()):
        known.called += memories.called(Call(places=sorted(beside)))
    if known.memories and query.lineage:
        known.sessions = frozenset(memories.sessions(query.lineage))
    return known


def stating(found: Sequence[Recalled], known: Known) -> set[tuple[str, int]]:
    """The messages of those lines that state what there is something to say about."""
    return {(r.session_id, r.position) for r in found if not known.memories.keys().isdisjoint(r.memories)}


def repeated(memories: Memories, found: Sequence[Recalled], known: Known) -> dict[str, list[echoes.Sentence]]:
    """The sentences that may repeat what does not hold any more, by memory; with all that there is to know of those."""
    echoed = maybe_repeated(memories, echoes.sentences_of([line for line in found if line.told == REPEATED]))
    if not echoed:
        return {}
    around(memories, set(echoed), known)
    slots = {known.memories[name].slot for name in echoed if name in known.memories}
    filled = {(m.slot, value) for m in memories.in_slots(slots - {""}, limit=CLOSED) if m.state == "active" for value in m.details.values}
    return {
        name: those
        for name, those in echoed.items()
        if (row := known.memories.get(name)) and not any((row.slot, value) in filled for value in row.details.values)
    }


def maybe_repeated(memories: Memories, said: Sequence[echoes.Sentence]) -> dict[str, list[echoes.Sentence]]:
    """Those sentences that may repeat what does not hold any more, by memory, as far as their words tell."""
    if not said:
        return {}
    by_word, closed = echoes.by_word(said), memories.closed_with(echoes.terms_of(said), limit=CLOSED)
    return {row.id: those for row in closed if (those := echoes.candidates(row, by_word))}


def around(memories: Memories, wanted: set[str], known: Known) -> None:
    """Add the rows of these, of what they are linked with and of what closed any of them, each with its first evidence."""
    telling = wanted - known.memories.keys()
    if not telling:
        return
    known.links += (links := memories.links(telling))
    telling |= {side for link in links for side in (link.source, link.target)}
    known.closings |= memories.closings(telling)
    rest = {i for old in telling for i in (old, known.closings.get(old), known.head(old)) if i} - known.memories.keys()
    known.memories |= {m.id: m for m in memories.some(rest)}
    known.evidence |= memories.first_evidence(rest)
