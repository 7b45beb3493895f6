"""Positions that people take and turn round: what they hold, what gives it up, and whether another choice is about the same thing. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from mnemon.memory import words
from mnemon.memory.distil import cues, kinds, lexicon, matching, owners, patterns, phrases, turning
from mnemon.memory.distil.readings import GENERIC
from mnemon.memory.statements import Candidate, Statement

POSITIONS = ("decision", "plan", "preference")
AGAIN = patterns.pattern(r"\bagain[.!]?$", re.IGNORECASE)
DENIED = patterns.pattern(r"\b(?:no|never|not|without)\b|n['’]t\b", re.IGNORECASE)
AWAY = patterns.pattern(r"\b(?:off|out\s+of|gone|without)\b", re.IGNORECASE)
GIVEN_UP = patterns.pattern(
    r"\b(?:gave|given|giving)\s+up|\b(?:stop|quit|left|cancel|drop|no\s+more|never|vegan|vegetarian|sober|teetotal|done\s+with|through\s+with|retir|swor[en]\s+off|off\b.*\bfor\s+good)",
    re.IGNORECASE,
)
HELD = patterns.pattern(  # a position, though it is told as a fact
    r"\b(?:never|always|no\s+(?:more\s+)?\w+|only|stays?|staying|committed|settled|final|definitely|decided|chosen|chose|swore|sworn|agreed|picked|opted|signed|keeping|ourselves|myself|going\s+(?:to|on|with)"
    r"|will|certain|fixed|arranged|ordered|booked|out\s+of\s+the\s+question|for\s+good|go(?:es)?\s+into|vegan|vegetarian|sober|teetotal|done\s+with|through\s+with|retir\w+)\b"
    r"|['’]ll\b|\bit\s+is\s*[,.]",
    re.IGNORECASE,
)
ABSTAINED = (
    frozenset(s for w in "alcohol sober teetotal vegetarian vegan meat sugar".split() for s in words.normal(w)) | kinds.MEMBERS.keys()
)
OVER = patterns.pattern(  # that something ended, not only that something else was chosen
    r"\b(?:no\s+longer|any\s?more|cancel\w*|call(?:ed|ing)?\s+(?:it\s+)?off|(?:is|are)\s+off|revert\w*|back\s+(?:to|into|in|on)|merged?|again|withdr\w+|backed\s+out"
    r"|pulled\s+out|fell\s+through|scrap\w*|drop\w*|ditch\w*|abandon\w*|shelved|gone|instead\s+of|forget|replac\w+)\b",
    re.IGNORECASE,
)
CHOICE = patterns.pattern(
    r"\bcommitted\s+to\b|\b(?:go|goes|going|gone|went)\s+(?:with|for)\b|\bsettled\s+on\b|\b(?:chose|chosen|picked|opted)\b|\bdecided\s+(?:on|for)\b|\b(?:stay|staying|stick|sticking)\s+(?:on|with)\b"
    r"|\bsigned\s+(?:up\s+)?with\b|\b(?:all\s+in|built|build|moving|move|switch\w*|back)\s+(?:on|to|into|onto)\b",
    re.IGNORECASE,
)
GOT = patterns.pattern(r"\b(?:bought|got|have|having|there(?:['’]s|\s+is)|adopted|own|took)\s+(?:an?\s+)(?P<name>[A-Z]\w+)")
NO_THING = patterns.pattern(
    r"\b(?:never|no|not)\b(?:\s+\w+){0,4}?\s(?:own|owning|buy|buying|get|getting|have|having|want|cars?|pets?|dogs?|cats?)\b", re.IGNORECASE
)


@lru_cache(maxsize=matching.KEPT)
def turned(text: str) -> bool:
    low = text.lower()
    return cues.TURNED.search(low) is not None or turning.firm(low, frozenset(words.WORD.findall(low)))


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


KEPT_IN = patterns.pattern(r"\b(?:all|everything|every|only|whole|stays?|always|full\s+stop)\b", re.IGNORECASE)
PLACED = patterns.pattern(r"\b(?:in|on|at|with|to|into)\b", re.IGNORECASE)


def turned_round(candidate: Candidate, known: Sequence[Statement]) -> tuple[list[Statement], bool]:
    """The positions that a phrase turns round which is said of many things; and whether it denies just what was held."""
    how = turning.soft(candidate.text)
    if not how or owners.of_others(candidate):
        return [], False
    fits = TURNS[how]
    found = [s for s in known if s.candidate.kind != "event" and owners.compatible(candidate, s.candidate) and fits(candidate, s.candidate)]
    return found, how in ("thing", "there") and all(position(s.candidate) for s in found)


def _thing(candidate: Candidate, old: Candidate) -> bool:
    """What is gone was spoken of."""
    named = turning.thing(candidate.text)
    return bool(named) and matching.all_in(named, matching.bag(matching.said(old.text)))


def _there(candidate: Candidate, old: Candidate) -> bool:
    """There is now what was not to be."""
    return bool(old.negated or DENIED.search(old.text) or GIVEN_UP.search(old.text)) and _shares(candidate, old)


def _all(_: Candidate, old: Candidate) -> bool:
    """All was said to be in one place."""
    return old.kind not in ("instruction", "preference") and KEPT_IN.search(old.text) is not None and PLACED.search(old.text) is not None


def _matter(candidate: Candidate, old: Candidate) -> bool:
    """What was held is about the same things, or the same is done in another way."""
    if candidate.subject == old.subject == phrases.USER and candidate.attribute == old.attribute and candidate.values and old.values:
        return not old.negated and phrases.shape(candidate.values[0]) == phrases.shape(old.values[0])
    again = AGAIN.search(candidate.text) and AWAY.search(candidate.text) and old.negated  # it is as it was
    return not again and position(old) and (_shares(candidate, old) or _does(candidate) == _does(old) != "")


def _does(candidate: Candidate) -> str:
    """What the user does by a statement, if that says something."""
    verb = candidate.attribute.partition(" ")[0] if candidate.subject == phrases.USER else ""
    return "" if verb in lexicon.LIGHT or not GENERIC.isdisjoint(words.normal(verb)) else verb


def _shares(candidate: Candidate, old: Candidate) -> bool:
    there = matching.bag(old.terms)
    return any(matching.has(t, there) for t in candidate.terms if t not in owners.relatives() and not t[:1].isdigit())


TURNS = {"thing": _thing, "there": _there, "all": _all, "matter": _matter}
