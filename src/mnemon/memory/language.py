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


def wish(text: str) -> Wish:
    """What to look for in the ledger when this is asked."""
    if not ASKING.search(text):
        return Wish()
    asked = distil.asked(text)
    return Wish(
        slots=tuple(slot_of(subject, attribute) for subject, attribute in asked.slots),
        terms=asked.terms,
        kind=next((KINDS[word] for word in words.words(text) if word in KINDS), ""),
        when=not WHEN.isdisjoint(asked.kinds),
        history=not HISTORY.isdisjoint(asked.kinds),
        every=not EVERY.isdisjoint(asked.kinds),
    )


LANGUAGE = Language(version=distil.VERSION, distil=distil.distil, judge=distil.judge, wish=wish)
