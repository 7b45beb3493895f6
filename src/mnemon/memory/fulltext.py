"""The memory of messages: every message can be found again by its words and its meaning, in pieces small enough to show.

It knows nothing of facts, only of what was said. What a turn adds is in the index when the turn's commit returns; what other servers add
is read before the next query of the scope.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

from mnemon.context import blocks
from mnemon.core.records import Message, Recalled
from mnemon.memory import marks, question, words
from mnemon.memory.base import Learned, Query
from mnemon.memory.engine import Engine
from mnemon.memory.shelf import Shelves
from mnemon.memory.statements import Origin
from mnemon.store.base import Driver, Tx
from mnemon.store.passages import Entry, Passage, Passages, Spans

if TYPE_CHECKING:  # loaded when it is needed
    from mnemon.memory.index import Index, Indexes

PASSAGE = 600
BREAK = re.compile(r"\n+|(?<=[.!?。！？])\s+|(?<=[。！？])")

RECALL_TOKENS = 2048
LOADED_AT_ONCE = 500  # rows that are indexed before other requests have their turn: some milliseconds
EMBEDDED_AT_ONCE = 250

SCORE = Recalled._fields.index("score")


class Read(Protocol):
    """Reads lines by the numbers of their passages; those that are gone are left out."""

    def __call__(self, tx: Tx, *, query: Query, numbers: Sequence[int]) -> dict[int, Recalled]: ...


def fetch(tx: Tx, *, query: Query, numbers: Sequence[int]) -> dict[int, Recalled]:
    return {number: line for number, (line, _) in Passages(tx, query.tenant, query.scope).texts(numbers).items()}


class FullText:
    """Searches messages: what the builtin provider stands on. `recall_tokens` is how much may be shown of what it finds."""

    def __init__(self, driver: Driver, *, embeddings: bool = True, recall_tokens: int = RECALL_TOKENS) -> None:
        self.driver = driver
        self.engine = Engine(embeddings=embeddings)
        self.shelves = Shelves()
        self.room = recall_tokens

    async def recall(self, query: Query, *, read: Read = fetch) -> list[Recalled]:
        """What was found, best first; `read` gets lines by their numbers, and what else is known of them."""
        asked = question.read(query.text)
        if not asked.words or not query.size:
            self.engine.warm()
            return []
        index = await self._current(query, await self._indexes())
        vector = self.engine.vector(asked.meant)
        while scores := index.search(asked, vector=vector, lineage=query.lineage, live=query.live, room=self.room):
            found = await self._lines(query, scores, read)
            gone = scores.keys() - found.keys()
            index.forget(gone)
            if not gone:  # else others may take their places
                lines = [scored(line, scores[number]) for number, line in found.items()]
                return sorted(lines, key=lambda r: (-r.score, -r.at, -r.position))
        return []

    async def _lines(self, query: Query, numbers: Iterable[int], read: Read) -> dict[int, Recalled]:
        """The passages with these numbers that are there, from the shelf as far as it has them."""
        shelf = self.shelves.get(query)
        found = {number: shelf.lines[number] for number in numbers if number in shelf.lines}
        if missing := [number for number in numbers if number not in found]:
            new = await self.driver.glance(partial(read, query=query, numbers=missing))
            self.shelves.keep(shelf, new)
            found |= new
        return found

    async def _indexes(self) -> Indexes:
        """The indexes; the first to ask for them waits until they are loaded."""
        while self.engine.indexes is None:
            await asyncio.to_thread(self.engine.ready)
        return self.engine.indexes

    async def _current(self, query: Query, indexes: Indexes) -> Index:
        """The scope's index, with everything that was committed when this turn began."""
        index = indexes.get(query.scope, query.erasures)
        while index.last < query.size:
            entries = await self.driver.read(partial(load, query=query, after=index.last))
            for entry in entries:
                if entry.number > index.last:
                    index.add(entry)
            if len(entries) < LOADED_AT_ONCE:
                break
        if index.bare and self.engine.encoder is not None:
            await self._embed(index, query)
        return index

    async def _embed(self, index: Index, query: Query) -> None:
        """Give vectors to some of the passages that were stored without; they are stored with the scope's next turn."""
        numbers = index.without_vector(EMBEDDED_AT_ONCE)
        found = await self.driver.read(partial(fetch, query=query, numbers=numbers))
        index.forget(numbers - found.keys())
        packed = await asyncio.to_thread(self.engine.packed, [r.text for r in found.values()])
        index.embed({number: vector for number, vector in zip(found, packed, strict=True) if vector is not None})

    def prepare(self, messages: Sequence[Message], stated: Sequence[Spans], *, origin: Origin = "user") -> list[list[Passage]]:
        """The passages of each message; `stated` are the stretches of each that say something the ledger keeps.

        What a user's role says for somebody else, as a job's prompt does, bears no mark of a user's words.
        """
        self.engine.warm()
        return [
            plan(m.text, role=origin if m.role == "user" else m.role, stated=spans, engine=self.engine)
            if m.role in ("user", "assistant", "tool")
            else []
            for m, spans in zip(messages, stated, strict=True)
        ]

    def learn(self, tx: Tx, learned: Learned) -> int:
        rows = [(position, passage) for position, pieces in learned.plans for passage in pieces]
        passages = Passages(tx, learned.tenant, learned.scope)
        index = self._known(learned.scope)
        if index is not None and index.unsaved:
            passages.embed(dict(index.unsaved))
        return passages.add(learned.lineage, rows)

    def committed(self, learned: Learned, base: int) -> None:
        index = self._known(learned.scope)
        if index is None:
            return
        index.unsaved.clear()
        if index.last != base:
            return
        number = base
        for position, pieces in learned.plans:
            for passage in pieces:
                number += 1
                index.add(Entry.of(passage, number=number, lineage=learned.lineage, position=position))

    def _known(self, scope: int) -> Index | None:
        return self.engine.indexes.known(scope) if self.engine.indexes is not None else None


def scored(line: Recalled, score: float) -> Recalled:
    """The same line with its score, three times as fast as `_replace`."""
    return Recalled._make((*line[:SCORE], score, *line[SCORE + 1 :]))


def load(tx: Tx, *, query: Query, after: int) -> list[Entry]:
    return Passages(tx, query.tenant, query.scope).since(after, limit=LOADED_AT_ONCE)


def plan(text: str, *, role: str, stated: Spans = (), engine: Engine) -> list[Passage]:
    """Cut a message into passages; a passage without a word to find it by is left out, and so is what the server itself once said."""
    text = blocks.blanked(text)
    kept = [(start, end, found) for start, end in pieces(text) if (found := words.words(text[start:end]))]
    packed = engine.packed([text[start:end] for start, end, _ in kept])
    return [
        Passage(
            start=start,
            length=end - start,
            words=" ".join(
                [*found, *marks.marks(text[start:end], role=role, first=start == 0, stated=any(a < end and b > start for a, b in stated))]
            ),
            vector=vector,
        )
        for (start, end, found), vector in zip(kept, packed, strict=True)
    ]


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
