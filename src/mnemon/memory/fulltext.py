"""Full-text memory: every message can be found again by its words, in pieces small enough to show.

It knows nothing of facts, only of what was said. What a turn adds is in the index when the turn's commit returns; what other servers add
is read before the next query of the scope.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from mnemon.context import blocks
from mnemon.core.records import Message, Recalled
from mnemon.memory import words
from mnemon.memory.base import Learned, Query
from mnemon.memory.index import Index, Indexes
from mnemon.store.base import Driver, Tx
from mnemon.store.passages import Entry, Passage, Passages

PASSAGE = 600
BREAK = re.compile(r"\n+|(?<=[.!?。！？])\s+|(?<=[。！？])")

MOST = 12
PASSAGES_IN_MEMORY = 400_000
LOADED_AT_ONCE = 2000
LONGEST_QUERY = 20_000  # characters; a question stands at the end of what was pasted before it


class FullText:
    """Searches messages: what the builtin provider stands on."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.indexes = Indexes(most_passages=PASSAGES_IN_MEMORY)

    async def recall(self, query: Query) -> list[Recalled]:
        asked = words.words(query.text[-LONGEST_QUERY:])
        if not asked:
            return []
        index = await self._current(query)
        while scores := index.search(asked, lineage=query.lineage, live=query.live, most=MOST):
            found = await self.driver.glance(partial(fetch, query=query, scores=scores))
            gone = scores.keys() - found.keys()
            index.forget(gone)
            if not gone:  # else others may take their places
                return sorted(found.values(), key=lambda r: (-r.score, -r.at, -r.position))
        return []

    async def _current(self, query: Query) -> Index:
        """The scope's index, with everything that was committed when this turn began."""
        index = self.indexes.get(query.scope, query.erasures)
        while index.last < query.size:
            entries = await self.driver.read(partial(load, query=query, after=index.last))
            for entry in entries:
                if entry.number > index.last:
                    index.add(entry)
            if len(entries) < LOADED_AT_ONCE:
                break
        return index

    def prepare(self, messages: Sequence[Message]) -> list[list[Passage]]:
        return [plan(m.text) if m.role in ("user", "assistant", "tool") else [] for m in messages]

    def learn(self, tx: Tx, learned: Learned) -> int:
        rows = [(position, passage) for position, pieces in learned.plans for passage in pieces]
        return Passages(tx, learned.tenant, learned.scope).add(learned.lineage, rows)

    def committed(self, learned: Learned, base: int) -> None:
        index = self.indexes.known(learned.scope)
        if index is None or index.last != base:
            return
        number = base
        for position, pieces in learned.plans:
            for passage in pieces:
                number += 1
                index.add(Entry(number=number, words=passage.words, lineage=learned.lineage, position=position))


def fetch(tx: Tx, *, query: Query, scores: dict[int, float]) -> dict[int, Recalled]:
    return Passages(tx, query.tenant, query.scope).texts(scores)


def load(tx: Tx, *, query: Query, after: int) -> list[Entry]:
    return Passages(tx, query.tenant, query.scope).since(after, limit=LOADED_AT_ONCE)


def plan(text: str) -> list[Passage]:
    """Cut a message into passages; a passage without a word to find it by is left out, and so is what the server itself once said."""
    found = []
    text = blocks.blanked(text)
    for start, end in pieces(text):
        kept = words.words(text[start:end])
        if kept:
            found.append(Passage(start=start, length=end - start, words=" ".join(kept)))
    return found


def pieces(text: str) -> list[tuple[int, int]]:
    """(start, end) of passages of at most `PASSAGE` characters, broken at lines and sentences where there are any."""
    if len(text) <= PASSAGE:
        return [(0, len(text))] if text.strip() else []
    ends = [m.end() for m in BREAK.finditer(text)] + [len(text)]
    found: list[tuple[int, int]] = []
    start = 0
    last = 0
    for end in ends:
        if end - start > PASSAGE and last > start:
            found.append((start, last))
            start = last
        while end - start > PASSAGE:
            cut = text.rfind(" ", start + PASSAGE // 2, start + PASSAGE) + 1 or start + PASSAGE
            found.append((start, cut))
            start = cut
        last = end
    if start < len(text):
        found.append((start, len(text)))
    return found
