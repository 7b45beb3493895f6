"""The builtin memory: what was said is found again by its words, and what was stated is kept in a ledger. No model is asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from mnemon.context import blocks
from mnemon.core.records import CHANGED, Message, Recalled, Stated
from mnemon.memory import ledger
from mnemon.memory.base import Learned, Query, Taken
from mnemon.memory.fulltext import FullText
from mnemon.memory.gathering import gather, lines
from mnemon.memory.stated import stated
from mnemon.memory.statements import Distilled, Origin
from mnemon.memory.weave import Wish, woven
from mnemon.store.base import Driver, Tx
from mnemon.store.passages import Passage

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
        if shelf.along == [] and not (telling or wish.wants):
            return found
        known = await self.driver.glance(partial(gather, query=query, found=found, telling=telling, wish=wish, shelf=shelf))
        self.passages.shelves.trim()
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
