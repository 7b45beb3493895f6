"""Ranking: which statements answer a question, how well, and which of them are worth saying.

It knows nothing of how an answer is worded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from mnemon.model.builtin import lexicon, patterns, questions, reading, sentences, topics

SURE, CLOSE = 0.5, 0.33  # how much of a question a statement must cover to be an answer, or at least worth showing
MOST = 6  # statements of a list
_TRUST = {"user": 1.0, "memory": 0.95, "tool": 0.8, "system": 0.7, "assistant": 0.45}
_UNMARKED = {"why": 0.6, "when": 0.7, "count": 0.6, "who": 0.85, "where": 0.85}  # what an answer without a cause, date, … is worth
_PARTICULAR = patterns.lazy(r"\d|(?<=\w )[A-Z]")  # a number or a name


@dataclass(frozen=True, slots=True)
class Hit:
    """A statement, how much of the question it covers, and how well it answers."""

    statement: reading.Statement
    coverage: float
    score: float


def rank(question: questions.Question, passages: list[reading.Passage]) -> list[Hit]:
    """The statements that have anything to do with a question, best first; the newer of two equals first."""
    if not question.units:
        return []
    stems = {u.stem for u in question.units}
    about = list(dict.fromkeys(t for u in question.units for t in u.about))
    weights = [u.factor * _rarity(u.stem, passages) for u in question.units]
    hits = []
    for passage in passages:
        if stems.isdisjoint(passage.stems) and not any(t.strength(passage.stems, passage.text) for t in about):
            continue
        for statement in passage.statements:
            covered = sum(w * _match(u, statement) for u, w in zip(question.units, weights, strict=True)) / sum(weights)
            if covered:
                covered *= 1.0 if _marked(question, statement) else _UNMARKED.get(question.kind, 1.0)
                hits.append(Hit(statement, covered, covered * _worth(question, statement)))
    return sorted(hits, key=lambda h: (round(h.score, 2), h.statement.order), reverse=True)


def _rarity(stem: str, passages: list[reading.Passage]) -> float:
    """How much a word says among these passages; one that none of them has says less than a rare one."""
    count = sum(stem in p.stems for p in passages)
    return math.log((len(passages) + 10) / (1 + count)) * (1.0 if count else 0.75)


def _match(unit: questions.Unit, statement: reading.Statement) -> float:
    if unit.stem in statement.stems:
        return 1.0
    best = 0.6 if unit.stem in statement.before else 0.0
    for topic in unit.about:
        if topic is not topics.OWN_NAME or statement.role != "assistant":
            best = max(best, topic.strength(statement.stems, statement.text))
    return best


def _marked(question: questions.Question, statement: reading.Statement) -> bool:
    if question.kind == "when" and statement.date:
        return True
    return question.kind != "" and bool(questions.MARKS[question.kind]().search(statement.text))


def _worth(question: questions.Question, statement: reading.Statement) -> float:
    worth = _TRUST.get(statement.role, 0.8)
    if sentences.SUPPOSED().search(statement.text):
        worth *= 0.75
    if question.own and statement.role == "user" and sentences.FIRST_PERSON().search(statement.text):
        worth *= 1.1
    return worth


def chosen(question: questions.Question, hits: list[Hit]) -> list[reading.Statement]:
    """The statements to answer with, in order of time: the best, its equals, and what changed or added to it later."""
    if not hits or hits[0].coverage < (0.4 if question.many else SURE):
        return []
    best, picked, limit = hits[0], list[reading.Statement](), MOST if question.many else 3
    for hit in hits:
        least = 0.6 if question.many else 0.85
        if hit.statement.order > best.statement.order and hit.statement.role == "user":
            least = 0.4 if sentences.CHANGES().search(hit.statement.text) else 0.6
        if len(picked) < limit and hit.score >= least * best.score and not any(_repeats(hit.statement, p) for p in picked):
            picked.append(hit.statement)
    return sorted(picked, key=lambda s: s.order)


def _repeats(one: reading.Statement, other: reading.Statement) -> bool:
    """Whether a statement says what another already says, as the assistant's own echo of the user does."""
    mine, theirs = one.stems - lexicon.EMPTY, other.stems - lexicon.EMPTY
    return mine == theirs or (one.role != other.role and len(mine & theirs) >= 0.7 * min(len(mine), len(theirs)))


def overview(passages: list[reading.Passage]) -> list[reading.Statement]:
    """What the user has told about themself, when that is all that is asked."""
    told = [s for p in passages if p.role in ("user", "memory") for s in p.statements if len(s.stems) > 3]

    def weight(statement: reading.Statement) -> int:
        return bool(sentences.FIRST_PERSON().search(statement.text)) + bool(_PARTICULAR().search(statement.text))

    return sorted(sorted(told, key=lambda s: (weight(s), s.order))[-MOST:], key=lambda s: s.order)
