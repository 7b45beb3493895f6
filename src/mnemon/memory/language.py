"""The language part that the builtin memory works with, and what a question means to the ledger."""

from __future__ import annotations

import re

from mnemon.memory import distil, words
from mnemon.memory.builtin import Language
from mnemon.memory.weave import Wish
from mnemon.store.memories import slot_of

WHEN = frozenset({"when", "before", "after"})
HISTORY = frozenset({"before", "after", "still", "changed"})
ASKING = re.compile(r"\?|\b(?:what|which|who|whom|whose|when|where|why|how|tell|remind|list)\b", re.IGNORECASE)
EVERY = frozenset({"how_many", "list_all"})
KINDS = {
    stem: kind
    for kind, names in {
        "decision": "decision decide decided",
        "plan": "plan planned",
        "preference": "preference prefer",
        "instruction": "instruction rule",
        "event": "event",
    }.items()
    for stem in words.words(names)
}
# What a question calls by its kind was told by what one does with such a thing: a book is read, a hobby is taken up.
DONE = {
    stem: tuple(slot_of("user", attribute.replace("_", " ")) for attribute in attributes.split())
    for names, attributes in {
        "book novel reading": "read finish start through_with reading favourite",
        "hobby hobbies interest pastime": "pick_up take_up get_into collect into practise start do play",
        "job work living profession occupation career trade": "employer work_as is work_in job run",
        "employer company": "employer",
        "car vehicle drive": "car own buy sell",
        "pet animal": "have adopt pet dog cat",
        "instrument music": "play play_in learn instrument start",
        "sport exercise": "play play_for run row_for train_for swim do",
        "team club": "play_for play_in row_for support",
        "holiday vacation trip summer travel": "go_to fly_to travel_to visit spend book stay_in stay_at plan",
        "medicine medication drug pill": "take on medication",
        "diet eat food": "is eat allergy diet",
        "drink": "drink like favourite",
        "allergy allergic": "allergy",
        "language": "language speak learn write",
        "home address house place": "home address where live_in stay_at",
        "family relative": "have spouse sister brother son daughter child",
        "study studies university degree": "study study_in study_at major read",
        "doctor": "gp doctor dentist",
        "bank": "bank bank_with",
    }.items()
    for stem in words.words(names)
}
SELF = re.compile(
    r"\b(?:who\s+(?:am\s+i|are\s+we|i\s+am|we\s+are)|(?:about|know|describe|introduce|remember)\s+(?:me|us|myself|ourselves)\b(?!\s+to\b)|what\s+am\s+i"
    r"|what\s+(?:do|did)\s+(?:i|we)\s+do(?=\s*(?:[?.!]|$|for\s+(?:a\s+living|work)))|(?:my|our)\s+names?\b|where\s+do\s+(?:i|we)\s+(?:work|live|come)"
    r"|(?:have|did)\s+i\s+(?:told|tell)\s+you(?=\s*(?:[?.!]|$|so\s+far|about\s+(?:me|us)))|for\s+a\s+living)",
    re.IGNORECASE,
)
SPEAKER = re.compile(r"\b(?:i|me|my|mine|we|us|our|ours)\b", re.IGNORECASE)
OF_SELF = tuple(
    slot_of("user", attribute)
    for attribute in ("name", "is", "from", "home", "employer", "work as", "job", "age", "spouse", "have kid", "write", "build")
)


def told_as(text: str) -> tuple[str, ...]:
    """The slots in which the user may have told what a question calls by its kind: one about somebody else asks for none of them."""
    if not SPEAKER.search(text):
        return ()
    found = [slot for word in words.words(text) for slot in DONE.get(word, ())]
    return tuple(dict.fromkeys((*(OF_SELF if SELF.search(text) else ()), *found)))


REVIEW = re.compile(r"\b(?:review|summar\w+|recap|report|digest|identify|overview|look\s+back|retrospective)\b", re.IGNORECASE)
REVIEWED = re.compile(
    r"\b(?:memor(?:y|ies)|decisions?|decided|remember(?:ed)?|learn(?:ed|t)|happened|changed|reversed|(?:what|everything)\s+(?:we|i)\b)",
    re.IGNORECASE,
)
PERIOD = re.compile(
    r"\b(?:(?:past|last|this)\s+(?P<count>\d{1,3}\s+)?(?P<unit>day|week|month|quarter|year)s?|(?P<word>today|yesterday|daily|weekly|monthly))\b",
    re.IGNORECASE,
)
DAYS = {"day": 1, "week": 7, "month": 31, "quarter": 92, "year": 366, "today": 1, "yesterday": 2, "daily": 1, "weekly": 7, "monthly": 31}
EVER = 0


def looks_back(text: str) -> int | None:
    """How many days a text asks to look over, as an order for a report does; all there are if it names memory and no time."""
    if not REVIEW.search(text):
        return None
    named = PERIOD.search(text)
    if named is None:
        return EVER if REVIEWED.search(text) else None
    return int(named["count"] or 1) * DAYS[(named["unit"] or named["word"]).lower()]


def wish(text: str) -> Wish:
    """What to look for in the ledger when this is asked."""
    days = looks_back(text)
    if not ASKING.search(text):
        return Wish(days=days, history=days is not None)
    asked = distil.asked(text)
    return Wish(
        days=days,
        slots=tuple(dict.fromkeys((*(slot_of(subject, attribute) for subject, attribute in asked.slots), *told_as(text)))),
        terms=asked.terms,
        kind=next((KINDS[word] for word in words.words(text) if word in KINDS), ""),
        when=not WHEN.isdisjoint(asked.kinds),
        history=days is not None or not HISTORY.isdisjoint(asked.kinds),
        every=not EVERY.isdisjoint(asked.kinds),
        oneself=SELF.search(text) is not None,
    )


LANGUAGE = Language(version=distil.VERSION, distil=distil.distil, judge=distil.judge, wish=wish)
