"""Full-text memory: every message can be found again by its words, in pieces small enough to show.

It knows nothing of facts, only of what was said. Its cost per query is bounded: in a large scope a word that stands in very many passages
does not tell them apart, and is not looked for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from mnemon.core.records import Message, Recalled
from mnemon.memory import words
from mnemon.memory.base import Query
from mnemon.store.base import Driver, Tx
from mnemon.store.passages import Passage, Passages

PASSAGE = 600
BREAK = re.compile(r"\n+|(?<=[.!?。！？])\s+|(?<=[。！？])")

WORDS_LOOKED_UP = 12
WORDS_SEARCHED = 6
COMMON_WORDS_KEPT = 20_000
LARGE_SCOPE = 200
TOO_COMMON = 100
MOST = 16


class FullText:
    """The memory provider that searches messages."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.common: set[str] = set()

    async def recall(self, query: Query) -> list[Recalled]:
        asked = chosen(query.text, self.common)
        if not asked:
            return []
        found, common = await self.driver.read(lambda tx: search(tx, query, asked))
        if len(self.common) > COMMON_WORDS_KEPT:
            self.common.clear()
        self.common.update(common)
        return found

    def prepare(self, messages: Sequence[Message]) -> list[list[Passage]]:
        return [plan(m.text) if m.role in ("user", "assistant") else [] for m in messages]

    def learn(self, tx: Tx, *, tenant: str, scope: int, plans: Sequence[tuple[int, Any]]) -> None:
        passages = Passages(tx, tenant, scope)
        for message, pieces in plans:
            passages.add(message, pieces)


class Nothing:
    """The memory provider that remembers nothing: `MNEMON_MEMORY_PROVIDER=none`."""

    async def recall(self, query: Query) -> list[Recalled]:
        return []

    def prepare(self, messages: Sequence[Message]) -> list[None]:
        return [None] * len(messages)

    def learn(self, tx: Tx, *, tenant: str, scope: int, plans: Sequence[tuple[int, Any]]) -> None:
        """Nothing is written."""


def chosen(text: str, common: set[str]) -> list[str]:
    """The words of a message worth looking up: each once, and of very many the longest, which are rarest in any language.

    A word that was too common once is so for ever, and comes last.
    """
    found = list(dict.fromkeys(words.words(text)))
    return sorted(found, key=lambda word: (word in common, -len(word)))[:WORDS_LOOKED_UP]


def search(tx: Tx, query: Query, asked: list[str]) -> tuple[list[Recalled], list[str]]:
    """The best passages for these words, and which of the words are too common to tell passages apart."""
    passages = Passages(tx, query.tenant, query.scope)
    frequency = passages.frequencies(asked)
    rare = sorted(frequency, key=lambda word: (frequency[word], word))
    telling = [word for word in rare if frequency[word] <= TOO_COMMON]
    common = rare[len(telling) :]
    every = False
    if common and passages.count() > LARGE_SCOPE:
        every = not telling
        rare = telling or rare[:2]
    if not rare:
        return [], common
    found = passages.search(rare[:WORDS_SEARCHED], every=every, lineage=query.lineage, live=query.live, limit=MOST)
    return found, common


def plan(text: str) -> list[Passage]:
    """Cut a message into passages; a passage without a word to find it by is left out."""
    found = []
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
