"""What a message says that may be remembered: the words that pass between distilling, judging and the ledger.

Nothing here reads a database or a clock. A candidate quotes its message; a statement is a candidate that was accepted and is in the ledger.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["fact", "preference", "instruction", "decision", "event", "plan"]
Cue = Literal["none", "addition", "update", "correction", "reversal", "retraction"]
Grain = Literal["instant", "day", "week", "month", "quarter", "year"]
Origin = Literal["user", "assistant", "tool", "job", "import"]
CHANGE_OF_MIND = "change_of_mind"  # the rule of a statement that turns a position round, whether or not it is known which
Asking = Literal["why", "when", "before", "after", "still", "changed", "how_many", "list_all", "who", "where", "which", "what", "how"]


@dataclass(frozen=True, slots=True, kw_only=True)
class When:
    """A stretch of time that something was said to happen in: "last month" is a month."""

    start: float
    end: float
    grain: Grain


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One statement of a message, word for word.

    `text` is `message[start:end]`. `subject` and `attribute` name the slot it fills, in normal form; both are empty where none was
    understood. `values` are what fills it, as said. `single` says that a newer value closes an older one. `cue` is how it speaks of what
    was said before, and `about` the words that say of what. `cause` is the part of `text` that gives the reason, `effect` what it is the
    reason of. `terms` are the content words it can be compared by. `rule` names the rule that found it.
    """

    text: str
    start: int
    end: int
    kind: Kind
    rule: str
    subject: str = ""
    attribute: str = ""
    values: tuple[str, ...] = ()
    single: bool = False
    negated: bool = False
    cue: Cue = "none"
    about: str = ""
    cause: str = ""
    effect: str = ""
    happened: When | None = None
    terms: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A sentence that did not become a memory, and the rule that said so."""

    text: str
    start: int
    end: int
    rule: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Distilled:
    """All that was found in one message."""

    candidates: tuple[Candidate, ...] = ()
    refusals: tuple[Refusal, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A candidate that was accepted: a row of the ledger, as judging needs it."""

    id: str
    candidate: Candidate
    origin: Origin
    said_at: float
    valid_to: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What becomes of a candidate: added, merged into the statement it repeats, or refused; and what it does to others, by a named rule.

    `closes` are statements it takes the place of, `retracts` those that are withdrawn with nothing in their place, `explains` those it
    gives the reason of.
    """

    outcome: Literal["added", "merged", "refused"]
    rule: str
    into: str | None = None
    closes: tuple[str, ...] = ()
    retracts: tuple[str, ...] = ()
    explains: tuple[str, ...] = ()
    reversal: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a question is after: its kinds, the (subject, attribute) it may mean, and its content words.

    The slots are guesses, best first: they are for looking up, a question changes nothing.
    """

    kinds: frozenset[Asking] = frozenset()
    slots: tuple[tuple[str, str], ...] = ()
    terms: tuple[str, ...] = ()
