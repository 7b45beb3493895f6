"""An inverted index of one scope, in memory: built from the database when the scope is first used, kept up with it afterwards.

It holds no text, only which words stand in which passage. It may know passages that were deleted since; whoever fetches them finds nothing
and says so (`gone`).
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from heapq import nlargest

from mnemon.store.passages import Entry

K1, B = 1.2, 0.75  # BM25's usual constants
POSTINGS_SCORED = 200
TELLING_SHARE = 0.2  # a word that stands in more of a large scope's passages than this tells nothing
SMALL_SCOPE = 200


class Index:
    """The words of one scope's passages."""

    def __init__(self, erasures: int = 0) -> None:
        self.erasures = erasures
        self.numbers = array("q")
        self.lineages = array("q")
        self.positions = array("I")
        self.lengths = array("H")
        self.postings: dict[str, array[int]] = {}
        self.total_length = 0
        self.gone: set[int] = set()

    @property
    def last(self) -> int:
        """The highest number it knows."""
        return self.numbers[-1] if self.numbers else 0

    def add(self, entry: Entry) -> None:
        ordinal = len(self.numbers)
        found = entry.words.split(" ")
        self.numbers.append(entry.number)
        self.lineages.append(entry.lineage)
        self.positions.append(entry.position)
        self.lengths.append(min(len(found), 65535))
        self.total_length += len(found)
        for word in set(found):
            posting = self.postings.get(word)
            if posting is None:
                posting = self.postings[word] = array("I")
            posting.append(ordinal)

    def search(self, words: Sequence[str], *, lineage: int, live: int, most: int) -> dict[int, float]:
        """Score by number of the best passages, without those of `lineage` behind position `live`: they are in the prompt anyway.

        The rarest words are looked up first, until enough postings were scored: a query costs the same in a scope of any size.
        """
        found = [(len(self.postings[w]), w) for w in dict.fromkeys(words) if w in self.postings]
        found.sort()
        count = len(self.numbers)
        room = POSTINGS_SCORED
        scores: dict[int, float] = {}
        average = self.total_length / count if count else 1.0
        for frequency, word in found:
            if scores and (frequency > room or (count > SMALL_SCOPE and frequency > count * TELLING_SHARE)):
                break
            room -= frequency
            weight = math.log(1 + (count - frequency + 0.5) / (frequency + 0.5)) * (K1 + 1)
            posting: Sequence[int] = self.postings[word]
            if self.gone:
                posting = [ordinal for ordinal in posting if ordinal not in self.gone]
            for ordinal in posting[-POSTINGS_SCORED:]:
                length = 1 + K1 * (1 - B + B * self.lengths[ordinal] / average)
                scores[ordinal] = scores.get(ordinal, 0.0) + weight / length
        lineages, positions = self.lineages, self.positions
        shown = ((s, o) for o, s in scores.items() if lineages[o] != lineage or positions[o] <= live)
        return {self.numbers[o]: s for s, o in nlargest(most, shown)}

    def forget(self, numbers: Iterable[int]) -> None:
        """These passages are not there any more."""
        self.gone.update(bisect_left(self.numbers, number) for number in numbers)


class Indexes:
    """The indexes of the scopes in use; the one not used for longest goes first when there are too many passages."""

    def __init__(self, *, most_passages: int) -> None:
        self.most = most_passages
        self.indexes: OrderedDict[int, Index] = OrderedDict()

    def get(self, scope: int, erasures: int = 0) -> Index:
        """The index of a scope; a new one if words were erased from the scope since, for it holds them too."""
        index = self.indexes.get(scope)
        if index is None or index.erasures < erasures:
            self._make_room()
            index = self.indexes[scope] = Index(erasures)
        self.indexes.move_to_end(scope)
        return index

    def _make_room(self) -> None:
        total = sum(len(i.numbers) for i in self.indexes.values())
        while self.indexes and total > self.most:
            total -= len(self.indexes.popitem(last=False)[1].numbers)

    def known(self, scope: int) -> Index | None:
        return self.indexes.get(scope)
