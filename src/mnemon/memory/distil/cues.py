"""How a sentence speaks of what was said before: it corrects, reverses, updates, adds or takes back, and of what.

All patterns are for text in small letters: looking for either case is three times as slow.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from mnemon.memory.statements import Cue


def _any(*patterns: str) -> re.Pattern[str]:
    """Any of these, where a word begins: said once, since then a look at the next letter rules out most of them."""
    return re.compile(rf"\b(?:{'|'.join(patterns)})")


SIGH = r"(?:(?:sorry|oh|oops|hm+|ok(?:ay)?|actually|wait|no|well|please)[,.!]?\s+)*"
WITHDRAW = (
    r"(?:please\s+)?(?:you\s+(?:can|may|should)\s+)?(?:forget(?:\s+about)?|(?:don['’]t|do\s+not)\s+(?:remember|keep|store|save)|stop\s+remembering"
    r"|delete|remove|erase|disregard|ignore|drop|wipe|scrub|strike)\s+"
)
TELL = r"(?:told|said|gave|shared|mentioned|wrote|posted|sent)"
FORGETTING = re.compile(r"\b(?:forget|unlearn|disregard|remember|remembering|keep|store|save)\b")
RETRACTION = re.compile(
    SIGH
    + WITHDRAW
    + r"(?:(?:everything|anything|all|what|whatever|(?:that|the)\s+(?:thing|part|bit))\s+(?:that\s+)?(?:i|we)(?:['’]ve)?\s+(?:just\s+)?"
    rf"{TELL}(?:\s+to)?(?:\s+you)?(?:\s+(?:about|on|of|regarding))?\s+(?P<said>[^.,;!]+)"
    r"|(?:everything|all)\s+(?:about|on|regarding)\s+(?P<all>[^.,;!]+)"
    r"|(?P<from>[^.,;!]+?)\s+from\s+(?:your\s+memory|memory|what\s+you\s+know|your\s+notes|your\s+records|the\s+record)"
    rf"|(?P<gave>(?:my|our|the|that|this)\s+[^.,;!]+?)\s+(?:that\s+)?(?:i|we)\s+(?:just\s+)?{TELL}(?:\s+(?:you|to\s+you))?(?P<more>\s+(?:for|about|of)\s+[^.,;!]+)?"
    r"|(?P<mine>(?:my|our|the)\s+[^.,;!]+?)(?=\s*(?:[,.!]|please|$)))"
)
DEICTIC = re.compile(
    SIGH + r"(?:forget|strike|scratch|disregard|ignore|delete|erase)\s+(?:that|it|this|what\s+i\s+(?:just\s+)?said|my\s+last\s+message)"
    r"(?:\s*,?\s*(?:please|again|last\s+(?:bit|part)|i\s+(?:said|posted).*))?[.!]*$"
)
REPLACEMENT = re.compile(  # "forget the tiles idea, we take wood" takes nothing back: it changes its mind
    r"[,;:–—-]\s*(?:a|an|the|we|it|let|go|take|make|i(?:['’]ll|\s+(?:want|prefer|take|use|go|need)))\b"
)

OLD = r"[\"“']?(?P<old>[^\s,;:.!?\"”]+(?:[.:,/-]\w+)*(?:\s+[^\s,;:.!?\"”]+){0,3}?)[\"”']?"
OLD_VALUE = (
    re.compile(
        r"\b(?:instead\s+of|rather\s+than|in\s+place\s+of|replac(?:es|ed|ing)(?!\s+(?:by|with)\b)|no\s+longer|used\s+to\s+be|previously|formerly)\s+"
        r"(?:the\s+|a\s+|an\s+|my\s+|our\s+)?" + OLD + r"(?=\s*(?:[,;.!?)]|with\b|by\b|for\b|as\b|in\b|on\b|$))"
    ),
    re.compile(r"(?:^|,\s*|\s+and\s+|\s+)not\s+(?:in\s+|on\s+|at\s+|the\s+|for\s+)*" + OLD + r"(?=\s*(?:[,;.!?)]|for\b|as\b|in\b|$))"),
    re.compile(
        r"^" + SIGH + r"(?:forget|scrap|ditch|drop|never\s+mind|scratch|so\s+much\s+for|kill)\s+(?:about\s+)?(?:the|our|my)\s+"
        r"(?P<old>[^,;:.!]+?)(?:\s+(?:idea|plan|thing))?\s*(?=[,;:.!]|$)"
    ),
)
OLD_HINTS = frozenset(
    "not instead rather place replaces replaced replacing longer used previously formerly forget scrap ditch drop mind scratch"
    " much kill".split()
)

CORRECTION = _any(
    r"correction\b|typo\b|^oops\b|^(?:scratch|strike)\s+that\s*[,:]|^(?:no,\s+|sorry,\s+)?make\s+that\b|my\s+(?:mistake|bad)\b[:,]",
    r"i\s+(?:meant|mixed|confused|was\s+wrong|mis(?:read|spoke|typed|counted|heard|took|remembered|stated|spelt|spelled|said|wrote))\b",
    r"i\s+(?:got\s+(?:that|it|this|them|the\s+\w+)\s+wrong|(?:wrote|gave\s+you)\s+the\s+wrong)\b",
    r"wrong\s+(?:number|date|name|one|day|way\s+round)\b\s*[:,]|should\s+(?:read|have\s+(?:said|been))\b",
    r"^(?:no|sorry|wait|oops|actually|err?)\b[,:]?\s[^.!?]*(?:,|\band)\s+not\s+\S|^not\s[^,]{1,30},\s",
)
REVERSAL = _any(
    r"after\s+all\b|on\s+second\s+thoughts?\b|thought\s+better\b|pulled\s+out\b|fell\s+through\b|ended\s+up\b|reconsidered\b|shelved\b",
    r"(?:is|are)\s+off\b(?!\s+(?:to|the|with)\b)|instead\b(?!\s+of\s+\w+ing\b)|so\s+much\s+for\b|flipped\b|u-turn\b|backtrack\w*",
    r"changed\s+(?:course|(?:my|our)\s+minds?|tack|direction)\b|change\s+of\s+(?:plans?|heart|mind|course)\b",
    r"scrap(?:ped)?\s+(?:that|the|it|our|my)\b|gave\s+in\b|caved(?:\s+in)?\b|overrul\w+|backed\s+out\b|withdr[ae]wn?\b",
    r"no\s+longer\b|any\s?more\b|revert(?:ed|ing|s)?\b|(?:went|going|gone|came|go|are)\s+back\s+to\b|again[.!]?$",
    r"(?:merged|brought|folded|consolidated|moved|moving|switched|switching)\b[^.;]{0,50}?\bback\b",
    r"cancel(?:led|ed|s|ling)?\b|call(?:ed|ing)\s+(?:it\s+)?off\b|(?:ditched|abandoned|dropped)\s+(?:the|our|my)\b",
    r"^" + SIGH + r"(?:forget|ditch|drop|scratch|abandon)\s+(?:about\s+)?(?:the|that|our|my)\b[^,;:.]{2,60}[,;:]",
)
ADDITION = _any(
    r"also\b|as\s+well\b(?!\s+as)|too(?:[.!]?$|,|\s+and\b)|another\b|other\s+\w+\b|in\s+addition\b|besides\b|additional\b|one\s+more\b",
)
CHANGED = (
    r"(?:bumped|upgraded|downgraded|migrated|relocated|renamed|rescheduled|postponed|switched|moved|raised|lowered|increased|reduced|changed"
    r"|transferred|converted|extended|shortened|replaced|handed|brought\s+forward|pushed\s+back)"
)
UPDATE = _any(
    r"these\s+days\b|nowadays\b|since\s+then\b|from\s+(?:today|now|this|next|tomorrow|\w+\s+on\b|\w+day)",
    r"as\s+of\s+(?:today|now|this|next|last|\d|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|mon|tue|wed|thu|fri|sat|sun)\w*)",
    r"(?:is|are|am|'s|'re|has|have|was|were)\s+now\b|now\s+(?:is|are|has|lives?|works?|runs?|uses?|goes|costs?|takes?|starts?|ends?)\b|now[.!]?$",
    rf"(?:was|were|been|got|being)\s+{CHANGED}\b|{CHANGED}\b[^.;]{{0,60}}?\bto\b|replaced\b|swapped\b|relocated\b|ha(?:s|ve)\s+moved\b|(?:was|been)\s+set\s+to\b",
    r"(?:is|are)\s+(?:down|up)\s+to\b|slipped\s+to\b|(?:pushed|put)\s+back\s+to\b|(?:rose|fell|dropped|grew|climbed|jumped|went\s+(?:up|down))\s+to\b",
    r"(?:is|are|am|'re|'m)\s+(?:moving|switching|migrating|changing|relocating)\b|changed\s+hands\b|(?:became|becomes|ha(?:s|ve)\s+become)\b",
    r"hand(?:s|ed|ing)?\b[^.;]{0,40}?\b(?:over|to)\b|(?:took|taken|takes|taking)\s+over\b|started\s+(?:a\s+|my\s+)?new\b|left\s+and\b",
    r"^(?:my|our|the)\s+new\b",
)
TAKES_BACK = frozenset(
    "remember keep store save remembering forget delete remove erase disregard ignore drop wipe scrub strike scratch".split()
)
# A pattern is tried only where one of its words stands: most sentences have none of them.
CUES: tuple[tuple[Cue, re.Pattern[str], frozenset[str]], ...] = (
    (
        "correction",
        CORRECTION,
        frozenset(
            "correction typo oops scratch strike make mistake bad meant mixed confused wrong read said been not misread misspoke mistyped"
            " miscounted misheard mistook misremembered misstated misspelt misspelled missaid miswrote".split()
        ),
    ),
    (
        "reversal",
        REVERSAL,
        frozenset(
            "after second thought pulled fell ended reconsidered shelved off instead so flipped u-turn backtracked backtracking"
            " course mind minds"
            " tack direction change scrap scrapped gave caved overrule overruled overrules backed withdrawn withdrew longer"
            " anymore any revert"
            " reverted reverts reverting back again cancel cancelled canceled cancels cancelling ditched abandoned dropped forget"
            " ditch drop"
            " scratch abandon".split()
        ),
    ),
    ("addition", ADDITION, frozenset("also well too another other addition besides additional more".split())),
    (
        "update",
        UPDATE,
        frozenset(
            "these nowadays since from as now bumped upgraded downgraded migrated relocated renamed rescheduled postponed"
            " switched moved raised"
            " lowered increased reduced changed transferred converted extended shortened replaced handed set brought pushed swapped down up"
            " slipped put rose fell dropped grew climbed jumped went moving switching migrating changing relocating became"
            " becomes become hand"
            " hands handing took taken takes taking started left new".split()
        ),
    ),
)
DETERMINER = re.compile(r"(?:[Mm]y|[Oo]ur|[Tt]he|[Tt]hat|[Tt]his)\s+")


class Found(NamedTuple):
    """A cue, and what it is about, as said."""

    cue: Cue = "none"
    about: str = ""


NOTHING = Found()


def cue_of(text: str, low: str, lows: frozenset[str]) -> Found:
    """The strongest cue of a sentence; `low` is it in small letters, `lows` are its words so."""
    if lows & TAKES_BACK:
        if DEICTIC.match(low):
            return Found("retraction")
        taken_back = RETRACTION.match(low)
        if taken_back and taken_back["mine"] and not FORGETTING.search(low):
            taken_back = None  # "delete my essay" is work for the assistant, not for its memory
        if taken_back and not REPLACEMENT.search(low, taken_back.end()):
            return _retraction(text, taken_back)
    old = _old(text, low) if lows & OLD_HINTS else ""
    for name, pattern, hints in CUES:
        if lows & hints and pattern.search(low):
            return Found(name, old if name != "addition" else "")
    return NOTHING


def _retraction(text: str, found: re.Match[str]) -> Found:
    name = next(n for n in ("said", "all", "from", "gave", "mine") if found[n])
    about = DETERMINER.sub("", text[slice(*found.span(name))].strip(), count=1)
    return Found("retraction", about + (text[slice(*found.span("more"))] if found["more"] else ""))


def _old(text: str, low: str) -> str:
    for pattern in OLD_VALUE:
        found = pattern.search(low)
        if found:
            return text[slice(*found.span("old"))].strip(" '\"“”")
    return ""
