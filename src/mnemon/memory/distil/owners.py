"""Whom and what a statement is about: what is said of my sister is not said of me, nor what is said of the barn of the house. Pure."""

from __future__ import annotations

from functools import lru_cache

from mnemon.memory import words
from mnemon.memory.distil import lexicon, matching, phrases
from mnemon.memory.statements import Candidate


def compatible(one: Candidate, two: Candidate) -> bool:
    """May they speak of the same thing? Not if each says of its own thing what the other does not say."""
    a, b = thing(one.subject), thing(two.subject)
    ours, theirs = people(one.subject), people(two.subject)
    if ours != theirs and (phrases.USER in (one.subject, two.subject) or (ours and theirs)) and not named_in(one, two):
        return False
    if not a or not b:
        return True
    return matching.all_in(a, matching.bag(matching.said(two.text))) or matching.all_in(b, matching.bag(matching.said(one.text)))


def named_in(one: Candidate, two: Candidate) -> bool:
    """Whether both texts name the people of both subjects: my sister's wedding, my sister marries."""
    both = {s for w in people(one.subject) | people(two.subject) for s in words.normal(w)}
    return all(both <= {*matching.said(c.text)} for c in (one, two))


@lru_cache(maxsize=matching.KEPT)
def thing(subject: str) -> frozenset[str]:
    """The words of what is spoken of, if it is not the user."""
    return frozenset() if subject in ("", phrases.USER) else frozenset(words.words(subject))


@lru_cache(maxsize=matching.KEPT)
def people(subject: str) -> frozenset[str]:
    """The people other than the speaker whom a subject names."""
    return frozenset([w for w in subject.split() if w in lexicon.PEOPLE])


def of_others(candidate: Candidate) -> bool:
    return bool(people(candidate.subject))


@lru_cache(maxsize=1)
def relatives() -> frozenset[str]:
    return frozenset([s for w in lexicon.PEOPLE for s in words.normal(w)])
