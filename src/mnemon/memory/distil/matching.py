"""Whether the words of one statement stand in another, also where one is a part of the other: deliver and delivery. Pure.

A new statement is compared with dozens of known ones, so what is known of words is worked out once and kept, and most pairs are told apart
by a look at how their words begin and end.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from mnemon.memory import words
from mnemon.memory.distil.readings import GENERIC

KEPT = 4096  # statements whose words are kept
NOUNS = frozenset({"ment", "ement", "ation", "ition"})  # what makes a noun of a verb: postpone, postponement
HEAD, TAIL = 5, 6  # letters that two words have in common at least where one is a part of the other


class Bag(NamedTuple):
    """Words without order, and how the longer ones begin and end."""

    words: frozenset[str]
    heads: frozenset[str]
    tails: frozenset[str]


@lru_cache(maxsize=2 * KEPT)
def bag(found: tuple[str, ...]) -> Bag:
    return Bag(
        frozenset(found),
        frozenset([w[:HEAD] for w in found if len(w) >= HEAD]),
        frozenset([w[-TAIL:] for w in found if len(w) >= TAIL]),
    )


@lru_cache(maxsize=KEPT)
def said(text: str) -> tuple[str, ...]:
    """The words of a statement."""
    return words.found_in(text)


@lru_cache(maxsize=KEPT)
def content(text: str) -> tuple[str, ...]:
    """Those of them that not every sentence may have."""
    return tuple([w for w in said(text) if w not in GENERIC])


def meet(one: Bag, two: Bag) -> bool:
    """Whether any word of one may be found in the other; where this is False, none can."""
    return not (one.words.isdisjoint(two.words) and one.heads.isdisjoint(two.heads) and one.tails.isdisjoint(two.tails))


def has(term: str, there: Bag) -> bool:
    """Whether the word is there, or one that it is a part of: deliver and delivery, service and microservice."""
    if term in there.words:
        return True
    if len(term) < HEAD or not term.isalpha() or (term[:HEAD] not in there.heads and term[-TAIL:] not in there.tails):
        return False
    return any(len(t) >= HEAD and (_stretched(t, term) or _stretched(term, t)) for t in there.words)


def all_in(terms: Iterable[str], there: Bag) -> bool:
    return all(has(term, there) for term in terms)


def _stretched(long: str, short: str) -> bool:
    return (long.startswith(short) and (len(long) - len(short) <= 3 or long[len(short) :] in NOUNS)) or (
        len(short) >= TAIL and long.endswith(short)
    )
