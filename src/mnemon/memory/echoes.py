"""Sentences that repeat what a memory states, though they state nothing themselves: "Noted: your PIN is 4711". Pure.

The ledger knows where a user said something. Who repeats it, a reply as a rule, is found by its words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from mnemon.core.records import Recalled
from mnemon.memory import words
from mnemon.memory.distil.sentences import ABBREVIATIONS
from mnemon.memory.fulltext import BREAK
from mnemon.store.memories import DETAILS, Closed, Remembered

TELLING = 2  # words at least, where a statement has no value of its own
DIGITS = 3  # characters of a word with a digit in it that is told from others by itself
KEPT = 2048
READ = 1024
COMPOUND = re.compile(r"\w+(?:[-.,:/@']\w+)+")

Words = frozenset[str]


@dataclass(frozen=True, slots=True)
class Telling:
    """What a sentence must hold to repeat a statement: a value and a word that says of what, or all of its words."""

    values: tuple[Words, ...]
    topic: Words
    whole: Words


class Sentence(NamedTuple):
    """A sentence of a passage that was found, by its place in the message, with its words."""

    line: Recalled
    start: int
    end: int
    words: Words


@lru_cache(maxsize=KEPT)
def telling(text: str, *, values: tuple[str, ...], subject: str, attribute: str) -> Telling:
    """What is telling about a statement; the same ones are looked at turn after turn."""
    whole = words_of(text)
    filled = tuple(found for found in map(words_of, values) if found)
    named = words_of(f"{subject} {attribute}") - {"user"}
    return Telling(values=filled, topic=(whole | named) - frozenset().union(*filled), whole=whole)


def repeats(said: Words, of: Telling, *, reply: bool = False) -> bool:
    """Whether a sentence with these words repeats a statement. In the reply to it and nothing else (`reply`), the value does."""
    if len(of.whole) >= TELLING and of.whole <= said:
        return True
    return any(value <= said and (reply or distinct(value) or not of.topic.isdisjoint(said)) for value in of.values)


def distinct(value: Words) -> bool:
    """Whether a value is told from others by itself, as a number or a code is; a name or a colour may be said of anything."""
    return any(len(word) >= DIGITS and any(c.isdigit() for c in word) for word in value)


def words_of(text: str) -> Words:
    return frozenset(words.found_in(text))


def sentences(text: str) -> Iterator[tuple[int, int]]:
    """(start, end) of each sentence or line; "Dr." ends none."""
    start = 0
    for stop in BREAK.finditer(text):
        before = text[start : stop.start()].rsplit(None, 1)
        if "\n" not in stop[0] and before and before[-1].rstrip(".").lower() in ABBREVIATIONS:
            continue
        yield start, stop.start()
        start = stop.end()
    yield start, len(text)


def sentences_of(lines: Sequence[Recalled]) -> list[Sentence]:
    """What the passages found say, sentence by sentence."""
    found = []
    for line in lines:
        if line.session_id:
            found += [Sentence(line, line.start + start, line.start + end, said) for start, end, said in read(line.text)]
    return found


def unstated(line: Recalled, spans: Sequence[tuple[int, int]]) -> list[Sentence]:
    """The sentences of a passage outside of these stretches of its message."""
    places = [(line.start + start, line.start + end) for start, end in sentences(line.text)]
    outside = [(start, end) for start, end in places if not any(a < end and b > start for a, b in spans)]
    found = [Sentence(line, start, end, words_of(line.text[start - line.start : end - line.start])) for start, end in outside]
    return [sentence for sentence in found if sentence.words]


@lru_cache(maxsize=READ)
def read(text: str) -> tuple[tuple[int, int, Words], ...]:
    """The sentences of a passage that have telling words; the same passages are found turn after turn."""
    return tuple((start, end, found) for start, end in sentences(text) if (found := words_of(text[start:end])))


def terms_of(said: Iterable[Sentence]) -> set[str]:
    """What the ledger may have such sentences under: their words, and what is written as one, like "XK-4471"."""
    said = list(said)
    written = {found.lower() for line in {s.line.key: s.line for s in said}.values() for found in COMPOUND.findall(line.text)}
    return written.union(*(s.words for s in said))


def by_word(said: Iterable[Sentence]) -> dict[str, list[Sentence]]:
    """The sentences in which each word stands."""
    found: dict[str, list[Sentence]] = {}
    for sentence in said:
        for word in sentence.words:
            found.setdefault(word, []).append(sentence)
    return found


def candidates(closed: Closed, said: Mapping[str, Sequence[Sentence]]) -> list[Sentence]:
    """The sentences in which a closed memory may be repeated, were they the reply to it."""
    values = DETAILS.decode(closed.details).values
    of = telling(closed.text, values=values, subject=closed.subject, attribute=closed.attribute)
    found: dict[tuple[str, int], Sentence] = {}
    for wanted in (*of.values, of.whole):
        for sentence in min((said.get(word, ()) for word in wanted), key=len, default=()):
            if sentence.line.at >= closed.recorded_at and repeats(sentence.words, of, reply=True):
                found[sentence.line.key, sentence.start] = sentence
    return list(found.values())


def of_memory(memory: Remembered) -> Telling:
    return telling(memory.text, values=memory.details.values, subject=memory.subject, attribute=memory.attribute)
