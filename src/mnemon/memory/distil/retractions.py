"""Wishes that something be forgotten, and what it is that they name. All patterns are for text in small letters.

Verbs of memory ("forget", "don't keep") speak of what is remembered by themselves; verbs of work ("delete", "wipe") only if what they
name is something that was told or a property of the speaker's: "delete my essay" is work for the assistant.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from mnemon.memory.distil import lexicon, patterns, times

HINTS = frozenset(
    "remember keep store save memorise memorize record remembering forget forgot unlearn forgetting delete remove erase disregard"
    " ignore drop wipe"
    " scrub strike scratch clear purge meant intended".split()
)
ASKS = (
    r"(?:(?:sorry|oh|oops|hm+|ok(?:ay)?|actually|wait|no|well|please|and|also|now)[,.!]?\s+)*"
    r"(?:(?:can|could|would|will)\s+you\s+(?:please\s+)?|you\s+(?:can|may|should|must)\s+(?:please\s+)?|i(?:['’]d|\s+would)\s+(?:like|prefer|rather)\s+(?:you\s+)?(?:to\s+)?"
    r"|i\s+(?:want|need)\s+you\s+to\s+|(?:please\s+)|(?:just\s+))*"
)
FORGET = (
    r"(?:forg[eo]t|unlearn|disregard|(?:don['’]t|do\s+not)\s+(?:remember|keep|store|save|memori[sz]e|record)|stop\s+(?:remembering|keeping|storing))"
    r"(?:\s+(?:in\s+mind|it\s+that))?"
)
WORK = r"(?:delete|remove|erase|drop|wipe|scrub|strike|scratch|ignore|clear|purge)"
ANY = rf"(?P<verb>{FORGET}|{WORK})\s+(?:out\s+)?(?:about\s+)?"
TELL = r"(?:told|said|gave|shared|mentioned|wrote|posted|sent)"
NAMED = r"(?:that\s+)?(?:i|we)(?:['’]ve)?\s+(?:just\s+|ever\s+)?"
MEMORY = r"(?:your\s+memory|memory|what\s+you\s+know|your\s+notes|your\s+records|your\s+files|the\s+record)"
RETRACTION = patterns.pattern(
    ASKS
    + ANY
    + r"(?:(?:everything|anything|all|what|whatever|(?:that|the)\s+(?:thing|part|bit|stuff|fact))\s+"
    + NAMED
    + rf"{TELL}(?:\s+to)?(?:\s+you)?(?:\s+(?:about|on|of|regarding))?\s+(?P<said>[^.,;!?]+)"
    rf"|{NAMED}{TELL}(?:\s+you)?(?:\s+anything)?\s+(?:about\s+|that\s+)?(?P<ever>[^.,;!?]+)"
    r"|(?:everything|anything|all|the\s+(?:thing|part|bit|stuff|story|business|matter))\s+(?:about|on|regarding|with)\s+(?P<all>[^.,;!?]+)"
    rf"|(?P<place>[^.,;!?]+?)\s+from\s+{MEMORY}"
    rf"|(?P<gave>(?:my|our|the|that|this)\s+[^.,;!?]+?)\s+{NAMED}{TELL}(?:\s+(?:you|to\s+you))?(?P<more>\s+(?:for|about|of)\s+[^.,;!?]+)?"
    r"|(?:(?:the\s+fact\s+)?that\s+(?=(?:i|we|my|our|he|she|they|his|her|their)\b)|(?=(?:i|we|he|she|they)\b))(?P<clause>[^;!?]+?)(?=[.!?]*$)"
    r"|(?:who|where|what|when|which|how)\s+(?P<asked>(?:i|we|my|our|he|she|his|her)\b[^.;!?]+?)(?=[.!?]*$)"
    r"|(?P<mine>(?:my|our|the)\s+[^.,;!?]+?)(?=\s*(?:[,.!?]|please|$))"
    r"|(?P<name>[^\s.,;!?]+(?:\s+[^\s.,;!?]+){0,2}?)(?=(?:\s*,?\s*please)?[.!]*$))"
)
DEICTIC = patterns.pattern(
    ASKS + r"(?:forget|strike|scratch|disregard|ignore|delete|erase|wipe|scrub|unlearn"
    r"|(?:don['’]t|do\s+not)\s+(?:remember|keep|store))\s+(?:about\s+)?"
    r"(?:that|it|this|what\s+i\s+(?:just\s+)?said|my\s+last\s+message)"
    r"(?:\s*,?\s*(?:please|again|last\s+(?:bit|part)|from\s+(?:the\s+record|your\s+memory)|i\s+(?:said|posted).*))?[.!?]*$"
)
BIT = (
    r"(?P<bit>the\s+(?:bit|part|thing|stuff|story|remark|detail)s?\s+(?:about|on|with)\s+"
    r"|what\s+(?:i|we)\s+(?:said|told\s+you|wrote)\s+about\s+)?"
)
THING = r"(?P<thing>(?:(?:my|our|the)\s+)?[^\s,;:.!?][^,;:.!?]{1,80}?)"
WIPED = rf"(?:so\s+|and\s+)?(?:please\s+)?(?:{WORK}|forget)\s+(?:it|that|this|them)(?:\s*,?\s*please)?"
AMISS = patterns.pattern(  # it should not be there: "you shouldn't have my address, please delete it"
    r"(?:(?:sorry|oh|oops|okay|actually|please|no)[,.!]?\s+)*"
    r"(?P<told>you\s+(?:should|must|need|ought)(?:n['’]t|\s+not)\s+(?:to\s+)?(?:have|keep|store|save|know|remember)\s+(?:about\s+)?"
    r"|i\s+should(?:n['’]t|\s+not)\s+have\s+(?:told\s+you|mentioned|shared|said|given\s+you)\s+(?:about\s+)?)?"
    rf"{BIT}{THING}\s*[,;:–—-]+\s*{WIPED}[.!]*$"
)
MEANT = patterns.pattern(  # or was told by mistake: "my salary was not meant for you"
    rf"{BIT}{THING}\s+(?:was|were|is|are)(?:n['’]t|\s+not|\s+never)\s+(?:meant|intended)\s+for\s+"
    rf"(?:you|your\s+(?:memory|records|notes|files|ears|eyes))(?:\s*[,;–—-]+\s*{WIPED})?[.!]*$"
)
REPLACEMENT = patterns.pattern(  # "forget the tiles idea, we take wood" takes nothing back: it changes its mind
    r"[,;:–—-]\s*(?:a|an|the|we|it|let|go|take|make|i(?:['’]ll|\s+(?:want|prefer|take|use|go|need)))\b"
)
ELSEWHERE = patterns.pattern(
    r"\b(?:in|from|of)\s+(?:this|that|the|my)\s+(?:\w+\s+)?(?:text|letter|mail|email|essay|list|file|document|draft|message|table|code|form|cv)\b"
)
MEMORY_VERB = patterns.pattern(FORGET)
NO_NAMES = frozenset([*times.DAYS, *times.MONTHS])


class Found(NamedTuple):
    """What is to be forgotten, as said: nothing if it is what was said last; `clause` if it is told as a statement."""

    about: str = ""
    clause: bool = False


def find(text: str, low: str) -> Found | None:
    """The wish to forget that a sentence is, if it is one; `low` is it in small letters."""
    if DEICTIC.match(low):
        return Found()
    found = RETRACTION.match(low)
    if found is None and (amiss := MEANT.match(low) or AMISS.match(low)):
        return _amiss(text[slice(*amiss.span("thing"))], told=_told(amiss.groupdict()), low=low)
    if found is None or REPLACEMENT.search(low, found.end()):
        return None
    name = next(n for n in ("said", "ever", "all", "place", "gave", "clause", "asked", "mine", "name") if found[n])
    about = text[slice(*found.span(name))].strip()
    if name == "name":
        return Found(about) if _of_memory(found) and _called(about) else None
    if name == "mine" and not _of_memory(found) and not _own_property(about, low):
        return None
    return Found(about + (text[slice(*found.span("more"))] if found["more"] else ""), clause=name == "clause")


def _told(groups: dict[str, str | None]) -> bool:
    """Whether the words themselves say that it was told; those that say it was not meant for you always do."""
    return "told" not in groups or bool(groups["told"] or groups["bit"])


def _amiss(about: str, *, told: bool, low: str) -> Found | None:
    """What should not be known; where that is not said, only a property of the speaker's: not "my essay has a bad end, delete it"."""
    if about.lower() in ("that", "this", "it"):
        return Found() if told else None
    return Found(about) if told or (about.lower().startswith(("my ", "our ")) and _own_property(about, low)) else None


def _of_memory(found: re.Match[str]) -> bool:
    return MEMORY_VERB.match(found["verb"]) is not None


def _called(about: str) -> bool:
    return all(w[:1].isupper() for w in about.split()) and not NO_NAMES & set(about.lower().split())


def _own_property(about: str, low: str) -> bool:
    """My number, our address: what somebody has, not something that they made or wrote."""
    last = about.lower().split()[-1]
    return not about.lower().startswith("the ") and last in lexicon.ONE and not ELSEWHERE.search(low)
