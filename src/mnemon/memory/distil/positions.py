"""Positions that people take and turn round: what they hold, what gives it up, and whether another choice is about the same thing. Pure."""

from __future__ import annotations

import re
from functools import lru_cache

from mnemon.memory import words
from mnemon.memory.distil import cues, kinds, matching, phrases
from mnemon.memory.statements import Candidate

POSITIONS = ("decision", "plan", "preference")
AGAIN = re.compile(r"\bagain[.!]?$", re.IGNORECASE)
GIVEN_UP = re.compile(
    r"\b(?:gave|given|giving)\s+up|\b(?:stop|quit|left|cancel|drop|no\s+more|never|vegan|vegetarian|sober|teetotal|done\s+with|through\s+with|retir|swor[en]\s+off|off\b.*\bfor\s+good)",
    re.IGNORECASE,
)
HELD = re.compile(  # a position, though it is told as a fact
    r"\b(?:never|no\s+(?:more\s+)?\w+|only|stays?|staying|committed|settled|final|definitely|decided|chosen|chose|swore|sworn|agreed|picked|opted|signed|keeping|ourselves|myself|going\s+(?:to|on|with)"
    r"|will|certain|fixed|arranged|ordered|booked|out\s+of\s+the\s+question|for\s+good|go(?:es)?\s+into|vegan|vegetarian|sober|teetotal|done\s+with|through\s+with|retir\w+)\b"
    r"|['’]ll\b|\bit\s+is\s*[,.]",
    re.IGNORECASE,
)
ABSTAINED = (
    frozenset(s for w in "alcohol sober teetotal vegetarian vegan meat sugar".split() for s in words.normal(w)) | kinds.MEMBERS.keys()
)
OVER = re.compile(  # that something ended, not only that something else was chosen
    r"\b(?:no\s+longer|any\s?more|cancel\w*|call(?:ed|ing)?\s+(?:it\s+)?off|(?:is|are)\s+off|revert\w*|back\s+(?:to|into|in|on)|merged?|again|withdr\w+|backed\s+out"
    r"|pulled\s+out|fell\s+through|scrap\w*|drop\w*|ditch\w*|abandon\w*|shelved|gone|instead\s+of|forget|replac\w+)\b",
    re.IGNORECASE,
)
CHOICE = re.compile(
    r"\bcommitted\s+to\b|\b(?:go|goes|going|gone|went)\s+(?:with|for)\b|\bsettled\s+on\b|\b(?:chose|chosen|picked|opted)\b|\bdecided\s+(?:on|for)\b|\b(?:stay|staying|stick|sticking)\s+(?:on|with)\b"
    r"|\bsigned\s+(?:up\s+)?with\b|\b(?:all\s+in|built|build|moving|move|switch\w*|back)\s+(?:on|to|into|onto)\b",
    re.IGNORECASE,
)
GOT = re.compile(r"\b(?:bought|got|have|having|there(?:['’]s|\s+is)|adopted|own|took)\s+(?:an?\s+)(?P<name>[A-Z]\w+)")
NO_THING = re.compile(
    r"\b(?:never|no|not)\b(?:\s+\w+){0,4}?\s(?:own|owning|buy|buying|get|getting|have|having|want|cars?|pets?|dogs?|cats?)\b", re.IGNORECASE
)


@lru_cache(maxsize=matching.KEPT)
def turned(text: str) -> bool:
    return cues.TURNED.search(text.lower()) is not None


@lru_cache(maxsize=matching.KEPT)
def position(old: Candidate) -> bool:
    """Whether a statement is something that one can turn away from."""
    return old.kind in POSITIONS or old.negated or HELD.search(old.text) is not None


def same_matter(candidate: Candidate, old: Candidate) -> bool:
    """Whether a position was turned round by choosing another thing of its kind: no car, a Volvo; event sourcing, a monolith."""
    if candidate.about or not turned(candidate.text) or not position(old):
        return False
    mine, theirs = kinds.kinds(candidate.terms), kinds.kinds(old.terms)
    if mine & theirs:
        return not AGAIN.search(candidate.text) or not (ABSTAINED | {*nouns(candidate)}).isdisjoint(
            old.terms
        )  # not: wine again, never coffee
    if GOT.search(candidate.text) and NO_THING.search(old.text):
        return not mine or mine == theirs
    return not mine and not theirs and bool(_choice(candidate) and _choice(old))


def _choice(candidate: Candidate) -> bool:
    """A choice that says nothing of what it is for: "we're committed to tabs", but not "for the office we chose tabs"."""
    return (
        bool(candidate.values)
        and CHOICE.search(candidate.text) is not None
        and len(candidate.terms) <= len(words.words(candidate.values[0])) + 1
    )


def fills(about: tuple[str, ...], old: Candidate) -> bool:
    """Whether these words are what the user has or does by an older statement."""
    there = matching.bag((*words.words(" ".join(old.values)), *words.normal(old.attribute.partition(" ")[0])))
    mine = old.subject == phrases.USER or old.kind in POSITIONS
    return bool(about) and old.kind != "event" and mine and matching.all_in(about, there)


def nouns(old: Candidate) -> tuple[str, ...]:
    """The words of what an older statement is about and of what fills its slot."""
    return (*words.words(old.subject), *words.words(" ".join(old.values)), *words.words(old.attribute))
