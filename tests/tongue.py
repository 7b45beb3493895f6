"""A language of very few sentences, for tests of the ledger that are not about English.

"colour is red" fills a slot with one value, "pets has cat" adds one of several, "colour reverts to red" is a reversal, "rain explains
colour" gives a reason, "forget colour" takes back, "obey quietly" is a standing instruction. Anything else is refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from mnemon.memory.builtin import Language
from mnemon.memory.statements import Candidate, Distilled, Origin, Refusal, Statement, Verdict
from mnemon.memory.weave import Wish
from mnemon.memory.words import words

SENTENCE = re.compile(r"(\w+) (is|has|reverts to|explains) (\w+)|(forget|obey) (\w+)")


def distil(text: str, *, origin: Origin, said_at: float, timezone: str) -> Distilled:
    """Statements of the few sentences; a sentence that is none of them is refused."""
    found, refused = [], []
    for piece in re.finditer(r"[^.]+", text):
        start = piece.start() + len(piece[0]) - len(piece[0].lstrip())
        said = SENTENCE.fullmatch(text, start, piece.end())
        if said:
            found.append(candidate(said))
        elif piece[0].strip():
            refused.append(Refusal(text=piece[0].strip(), start=start, end=piece.end(), rule="not_understood"))
    return Distilled(candidates=tuple(found), refusals=tuple(refused))


def candidate(said: re.Match[str]) -> Candidate:
    """What one sentence states."""
    subject, verb, value, order, object_ = said.groups()
    more: dict[str, Any] = {
        "kind": "fact",
        "subject": subject,
        "attribute": "value",
        "values": (value,),
        "terms": words(f"{subject} {value}"),
    }
    if order == "obey":
        more = {"kind": "instruction", "terms": words(object_)}
    elif order == "forget":
        more = {"kind": "instruction", "cue": "retraction", "about": object_, "terms": words(object_)}
    elif verb == "explains":
        more = {"kind": "fact", "cause": subject, "effect": value, "terms": words(f"{subject} {value}")}
    elif verb == "reverts to":
        more |= {"kind": "decision", "cue": "reversal", "single": True}
    else:
        more |= {"single": verb == "is"}
    return Candidate(text=said[0], start=said.start(), end=said.end(), rule=verb or order, **more)


def judge(candidate: Candidate, *, said_at: float, origin: Origin, known: Sequence[Statement]) -> Verdict:
    """As simple as can be: by slot, in whatever order the known come."""
    if candidate.cue == "retraction":
        return Verdict(outcome="refused", rule="retraction", retracts=tuple(s.id for s in known if s.candidate.subject == candidate.about))
    same = [s for s in known if candidate.subject and s.candidate.subject == candidate.subject]
    repeated = next(
        (s for s in known if s.candidate.text == candidate.text or (s in same and s.candidate.values == candidate.values)), None
    )
    if repeated:
        return Verdict(outcome="merged", rule="repeats", into=repeated.id)
    explained = tuple(s.id for s in known if candidate.effect and s.candidate.subject == candidate.effect)
    closed = tuple(s.id for s in same if candidate.single and s.candidate.single)
    return Verdict(outcome="added", rule="new", closes=closed, explains=explained, reversal=candidate.cue == "reversal")


def wish(text: str) -> Wish:
    """Every word may be a slot; "all", "when" and "before" say how it is asked."""
    said = tuple(dict.fromkeys(re.findall(r"\w+", text)))
    slots = tuple(f"{word}/value" for word in said)
    return Wish(slots=slots, terms=words(text), every="all" in said, when="when" in said, history="before" in said)


TONGUE = Language(version=7, distil=distil, judge=judge, wish=wish)
