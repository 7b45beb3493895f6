"""The index of one scope, in memory: built from the database when the scope is first used, kept up with it afterwards.

It holds no text, only which words stand in which passage, what each means and where it stands. It may know passages that were deleted
since; whoever fetches them finds nothing and says so (`gone`).
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from mnemon.memory import marks, ranking, vectors
from mnemon.memory.question import Question
from mnemon.memory.ranking import Rows
from mnemon.memory.vectors import HALF, Bytes, Floats
from mnemon.store.passages import Entry

K1, B = 1.2, 0.4  # BM25's constants; passages are of bounded length, so that it needs less correction than usual
POSTINGS_SCORED = 20_000
TELLING_SHARE = 0.2  # a word that stands in more of a large scope's passages than this tells nothing
SMALL_SCOPE = 200
COMPARED = 2000  # passages whose meaning is compared one by one; of more, those with the best words and the most equal signs
COMPARED_OF_MORE = 150  # by words, and as many by signs
SAMPLE = 500  # passages that stand for all of a scope
SEED = 24  # tokens of room for each passage whose neighbourhood is looked at
SPEAKS_OFTEN = 0.02  # the share of passages that someone must have opened to be a speaker, and not the word before a colon
PLACE = 32  # bits of a place below those that number its conversation
BARE = b"\x88" * HALF  # as near to nothing as can be said
OFFERED = 5  # characters for each token of room: some that are found will not fit, and shorter ones may take their place


class Index:
    """The passages of one scope. A row is a passage's place in all the arrays."""

    def __init__(self, erasures: int = 0) -> None:
        self.erasures = erasures
        self.numbers = array("I")
        self.places = array("q")
        self.positions = array("I")
        self.lengths = array("H")  # in words
        self.sizes = array("H")  # in characters
        self.replies = bytearray()
        self.vectors = bytearray()
        self.signs = bytearray()
        self.postings: dict[str, array[int] | bytes] = {}
        self.said: dict[int, int] = {}
        self.lineages: dict[int, int] = {}
        self.total_length = 0
        self.bare: set[int] = set()
        self.unsaved: dict[int, bytes] = {}
        self.gone: set[int] = set()
        self.middle: tuple[int, Floats] | None = None
        self.named = False  # whether anybody opened a passage by name

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def last(self) -> int:
        """The highest number it knows."""
        return self.numbers[-1] if self.numbers else 0

    def add(self, entry: Entry) -> None:
        row = len(self.numbers)
        found = entry.words.split(" ")
        length = sum(not marks.is_mark(word) for word in found)
        conversation = self.lineages.setdefault(entry.lineage, len(self.lineages))
        before = self.said.get(entry.lineage, 0)
        self.said[entry.lineage] = before + entry.length
        self.numbers.append(entry.number)
        self.places.append((conversation << PLACE) + before + entry.length // 2)
        self.positions.append(entry.position)
        self.lengths.append(min(length, 65535))
        self.sizes.append(min(entry.length, 65535))
        self.replies.append(marks.REPLY in found)
        self.vectors += entry.vector or BARE
        self.total_length += length
        if entry.vector is None:
            self.bare.add(row)
        self._post(row, set(found))

    def _post(self, row: int, found: set[str]) -> None:
        """Note in which row these words stand. Most words stand in one only, and an array for it would be twice as large."""
        found.discard(marks.REPLY)
        for word in found:
            posting = self.postings.get(word)
            if posting is None:
                self.postings[word] = row.to_bytes(4, "little")
                self.named = self.named or word[0] == marks.SPEAKER_SIGN
            elif isinstance(posting, bytes):
                self.postings[word] = array("I", (int.from_bytes(posting, "little"), row))
            else:
                posting.append(row)

    def embed(self, found: Mapping[int, bytes]) -> None:
        """Take up the vectors of passages, by number, that had none; they are yet to be stored."""
        for number, vector in found.items():
            row = self._row(number)
            self.vectors[row * HALF : (row + 1) * HALF] = vector
            self.bare.discard(row)
            del self.signs[row * HALF // 8 :]
        self.unsaved.update(found)
        self.middle = None

    def without_vector(self, most: int) -> list[int]:
        """Numbers of passages that have no vector, the newest first."""
        return [self.numbers[row] for row in sorted(self.bare - self.gone, reverse=True)[:most]]

    def forget(self, numbers: Iterable[int]) -> None:
        """These passages are not there any more."""
        self.gone.update(map(self._row, numbers))

    def _row(self, number: int) -> int:
        return bisect_left(self.numbers, number)

    # -- searching ---------------------------------------------------------------------------------------------------------

    def search(self, question: Question, *, vector: Floats | None, lineage: int, live: int, room: int) -> dict[int, float]:
        """Score by number of the passages that may help, best first, and no more than about `room` tokens of them.

        Those behind position `live` of `lineage` are left out: they are in the prompt anyway.
        """
        if not self.numbers:
            return {}
        matching, matches = self._matches(question.words)
        candidates = self._candidates(matching[best(matches, COMPARED_OF_MORE)], vector)
        scores = ranking.by_words(matching, matches, len(self))
        telling = len(matching) > 0
        if vector is not None:
            meaning = self._meaning(vector, candidates)
            scores[candidates] += np.float32(ranking.MEANING) * meaning
            telling = telling or bool(meaning.max() >= ranking.TELLING)
        if not telling:
            return {}
        scores[self._posting(marks.STANDING)] += np.float32(ranking.STANDING)
        reach = ranking.reach_of(sum(self.said.values()) / len(self))
        seeds = candidates[best(scores[candidates], 1 + room // SEED)]
        stated = self._posting(marks.STATED)[-1 - room // SEED :]  # where little is stated, all of it is looked at
        rows = self._shown(ranking.with_reach(seeds, len(self), reach, beside=stated), lineage=lineage, live=live)
        places, lengths = np.frombuffer(self.places, np.int64), np.frombuffer(self.lengths, np.uint16)
        final = ranking.helped(rows, scores, places=places, lengths=lengths, reach=reach)
        # Where all passages match none is better than the average, and yet they are what was asked for.
        kept = (final >= ranking.ENOUGH) | ranking.among(rows, matching, len(self)) | ranking.among(rows, stated, len(self))
        return self._picked(rows[kept], final[kept], question=question, room=room)

    def _candidates(self, matching: Rows, vector: Floats | None) -> Rows:
        """The passages whose meaning is compared: all of them, or those with the best words and the most signs in common."""
        if len(self) <= COMPARED:
            return np.arange(len(self))
        wanted = np.zeros(len(self), np.bool_)
        wanted[matching] = True
        wanted[self._posting(marks.STANDING)[-COMPARED_OF_MORE:]] = True
        if vector is not None:
            wanted[self._alike(vector)] = True
        return np.flatnonzero(wanted)

    def _matches(self, words: Iterable[str]) -> tuple[Rows, Floats]:
        """Rows with any of the words, and their BM25.

        The rarest words come first, until enough was scored: a question costs about the same in a scope of any size.
        """
        count = len(self)
        known = self.postings
        found = sorted([(4 * len(p) if isinstance(p, array) else 4, w, p) for w in words if (p := known.get(w))])
        room = 4 * POSTINGS_SCORED  # bytes, four for each row
        common = 4 * count * TELLING_SHARE if count > SMALL_SCOPE else room
        used = 0
        for size, _, _ in found:
            if used and (size > room or size > common):
                break
            room -= size
            used += 1
        if not used:
            return np.empty(0, np.int64), np.empty(0, np.float32)
        rows = np.frombuffer(b"".join([p for _, _, p in found[:used]]), np.uint32)
        frequencies = np.array([size for size, _, _ in found[:used]]) >> 2
        weights = np.log1p((count - frequencies + 0.5) / (frequencies + 0.5)) * (K1 + 1)
        sums = np.bincount(rows, weights=weights.repeat(frequencies), minlength=count)
        matching = np.flatnonzero(sums)
        lengths = np.frombuffer(self.lengths, np.uint16)[matching] / max(self.total_length / count, 1.0)
        return matching, np.asarray(sums[matching] / (1 + K1 * (1 - B + B * lengths)), dtype=np.float32)

    def _posting(self, word: str) -> NDArray[np.uint32]:
        return np.frombuffer(self.postings.get(word, b""), np.uint32)

    def _packed(self) -> Bytes:
        return np.frombuffer(self.vectors, np.uint8).reshape(-1, HALF)

    def _meaning(self, vector: Floats, candidates: Rows) -> Floats:
        """Likeness of candidates to a question, less what all passages of the scope have in common, in standard deviations."""
        packed = self._packed()
        centred = vector - self._middle()
        whole = len(candidates) == len(self)
        likeness = vectors.likeness(packed if whole else packed[candidates], centred)
        usual = likeness if whole else vectors.likeness(packed[:: 1 + len(self) // SAMPLE], centred)
        found = ranking.by_meaning(likeness, usual)
        if self.bare:
            found[np.isin(candidates, list(self.bare))] = 0
        return found

    def _middle(self) -> Floats:
        """What the passages have in common: of the first 2, 4, 8 and so on of them, so that it is worked out anew only now and then."""
        first = 1 << (len(self).bit_length() - 1)
        if self.middle is None or self.middle[0] != first:
            sample = self._packed()[: first : max(1, first // COMPARED)]
            self.middle = first, vectors.unpacked(sample).mean(axis=0)
        return self.middle[1]

    def _alike(self, vector: Floats) -> Rows:
        """The passages whose vectors have the most signs in common with this one."""
        done = len(self.signs) // (HALF // 8)
        self.signs += vectors.signs(self._packed()[done:]).tobytes()
        known = np.frombuffer(self.signs, np.uint64).reshape(-1, vectors.SIGNS)
        differing = vectors.differing(known, vectors.signs(vectors.packed(vector[None]))[0])
        most = int(np.searchsorted(np.cumsum(np.bincount(differing)), COMPARED_OF_MORE))
        return np.flatnonzero(differing <= most)[-2 * COMPARED_OF_MORE :]

    def _shown(self, rows: Rows, *, lineage: int, live: int) -> Rows:
        """Those rows that are still there and not in the prompt."""
        conversation = self.lineages.get(lineage)
        if conversation is not None:
            inside = np.frombuffer(self.places, np.int64)[rows] >> PLACE == conversation
            rows = rows[~(inside & (np.frombuffer(self.positions, np.uint32)[rows] > live))]
        return rows[~np.isin(rows, list(self.gone))] if self.gone else rows

    def _picked(self, rows: Rows, scores: Floats, *, question: Question, room: int) -> dict[int, float]:
        """The best that fit the room, the newest first among equals."""
        scores = (scores + ranking.prior(rows, len(self)) + self._stated(rows)) * self._weights(rows, question)
        order = np.lexsort((-rows, -scores))
        order = order[: ranking.fitting(np.frombuffer(self.sizes, np.uint16)[rows[order]], OFFERED * room)]
        return {self.numbers[row]: score for row, score in zip(rows[order].tolist(), scores[order].tolist(), strict=True)}

    def _stated(self, rows: Rows) -> Floats:
        """What passages gain that hold a statement: as if every question had that word, the more the rarer it is."""
        stated = self._posting(marks.STATED)
        return np.asarray(ranking.among(rows, stated, len(self)) * ranking.STATED * rarity(len(stated), len(self)), dtype=np.float32)

    def _weights(self, rows: Rows, question: Question) -> Floats:
        """What it counts who said a passage."""
        weights = np.where(np.frombuffer(self.replies, np.bool_)[rows], np.float32(ranking.REPLY), np.float32(1))
        if not self.named:
            return weights
        often = max(3, SPEAKS_OFTEN * len(self))
        named = [p for mark in question.speakers if isinstance(p := self.postings.get(mark), array) and len(p) >= often]
        if named:
            weights[~ranking.among(rows, np.frombuffer(b"".join(named), np.uint32), len(self))] *= ranking.OTHERS
        return weights


def rarity(frequency: int, count: int) -> float:
    """What a word that stands in so many of the passages tells: BM25's measure."""
    return math.log(1 + (count - frequency + 0.5) / (frequency + 0.5))


def best(scores: NDArray[np.generic], most: int) -> Rows:
    """Where the highest scores stand, in no order."""
    if len(scores) <= most:
        return np.arange(len(scores))
    return np.argpartition(scores, len(scores) - most)[-most:]


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
        total = sum(map(len, self.indexes.values()))
        while self.indexes and total > self.most:
            total -= len(self.indexes.popitem(last=False)[1])

    def known(self, scope: int) -> Index | None:
        return self.indexes.get(scope)
