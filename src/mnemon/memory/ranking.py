"""How passages are ranked: by words and by meaning, helped by what stands near them, weighed by who spoke. Pure.

The unit of every score is the best match by words, which counts 1. The constants were chosen on public conversations, in the middle of a
plateau (ADR 0012).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mnemon.memory.vectors import Floats

Rows = NDArray[np.int64]

MEANING = 0.12  # what a standard deviation of likeness counts
LEAST_SPREAD = 0.05  # in a scope of a few passages their likeness spreads by chance
NEAR = 300.0  # characters over which the help of a neighbour falls to a third: a few short turns, or half a long passage
REACH = 8  # passages to either side that are looked at, at most
MOST_HELP = 2.5  # neighbours that count in full; where turns are very short there are more of them, and each counts less
FULL = 8  # words of a passage that may be shown for its neighbours' sake; "Noted." is not
STANDING = 0.3  # what an instruction that is to hold always gains
STATED = 0.19  # what a statement gains over questions and small talk, for each unit of its rarity
AVERAGE = 0.5  # what a passage is worth before anything speaks for it
RECENT = 0.05  # what the newest passage is worth more than the oldest
REPLY = 0.5  # what the model or a tool said, against what the user said
OTHERS = 0.6  # what others said, where the question names a speaker
ENOUGH = 0.1  # what a passage must be better than the average one to be shown though it shares no word with the question
TELLING = 2.5  # standard deviations of likeness that speak for a passage by themselves


def by_words(rows: Rows, matches: Floats, count: int) -> Floats:
    """Scores of all passages around their mean, the best one counting 1, from the rows that matched at all."""
    best = float(matches.max(initial=0.0))
    if not best:
        return np.zeros(count, np.float32)
    scores = np.full(count, -float(matches.sum()) / count / best, np.float32)
    scores[rows] += matches * np.float32(1 / best)
    return scores


def by_meaning(likeness: Floats, sample: Floats) -> Floats:
    """Likeness in standard deviations of a sample of the scope."""
    mean = np.add.reduce(sample) / np.float32(len(sample))
    around = sample - mean
    spread = max(math.sqrt(float(around @ around) / len(sample)), LEAST_SPREAD)
    return np.asarray((around if sample is likeness else likeness - mean) * np.float32(1 / spread), dtype=np.float32)


def reach_of(size: float) -> int:
    """How many passages to either side may help, where they have so many characters on average."""
    return min(REACH, 1 + int(4 * NEAR / max(size, 1)))


def with_reach(rows: Rows, count: int, reach: int, *, beside: NDArray[Any]) -> Rows:
    """These rows with their neighbours, and others beside, in order."""
    wanted = np.zeros(count + 2 * reach, np.bool_)
    wanted[rows[:, None] + np.arange(2 * reach + 1)] = True
    wanted[beside.astype(np.int64) + reach] = True
    return np.flatnonzero(wanted[reach : count + reach])


def helped(rows: Rows, scores: Floats, *, places: NDArray[np.int64], lengths: NDArray[Any], reach: int) -> Floats:
    """Scores of rows with what their neighbours' scores add.

    `places` says where in its conversation a passage stands, in characters; those of another conversation are far away. So short turns
    help each other and long ones hardly do, and no setting is needed for either kind of conversation.
    """
    around = rows[:, None] + np.arange(-reach, reach + 1)
    inside = (around >= 0) & (around < len(scores))
    inside[:, reach] = False  # itself
    full = np.minimum(lengths * np.float32(1 / FULL), 1)
    distance = np.abs(places.take(around, mode="clip") - places[rows, None]).astype(np.float32)
    weights = np.exp(distance * np.float32(-1 / NEAR)) * inside
    near = np.einsum("ij,ij->i", weights, scores.take(around, mode="clip"))
    helpers = np.einsum("ij,ij->i", weights, full.take(around, mode="clip"))
    near *= np.float32(MOST_HELP) / np.maximum(helpers, np.float32(MOST_HELP))
    return np.asarray(scores[rows] + near * full[rows], dtype=np.float32)


def prior(rows: Rows, count: int) -> Floats:
    """What passages are worth before anything speaks for them."""
    return np.asarray(AVERAGE + RECENT * rows / count, dtype=np.float32)


def among(rows: Rows, others: NDArray[Any], count: int) -> NDArray[np.bool_]:
    """Which of these rows are among the others."""
    there = np.zeros(count, np.bool_)
    there[others] = True
    return there[rows]


def fitting(costs: NDArray[Any], room: float) -> int:
    """How many of the first fit the room; one at least."""
    return max(1, int(np.searchsorted(np.cumsum(costs), room, side="right")))
