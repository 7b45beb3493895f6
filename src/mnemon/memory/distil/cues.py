"""How a sentence speaks of what was said before: it corrects, reverses, updates, adds or takes back, and of what."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mnemon.memory.statements import Cue

# All patterns are for text in small letters: looking for either case is three times as slow.
NEVER_SAID = (  # take back: group `of` says what
    r"(?:please\s+)?(?:actually,?\s+)?(?:please\s+)?(?:can\s+you\s+)?(?:forget|delete|remove|erase|disregard|ignore|drop|wipe|scrub|strike)\s+"
    r"(?:(?:everything|anything|all|what|whatever|that\s+thing|the\s+thing|the\s+part|the\s+bit)\s+(?:that\s+)?(?:i|we)(?:['’]ve)?\s+(?:just\s+)?(?:told|said|gave|shared|mentioned|wrote|posted)(?:\s+to)?(?:\s+you)?(?:\s+(?:about|on|of|regarding))?\s+(?P<said>[^.,;!]+)"
    r"|(?:everything|all)\s+(?:about|on|regarding)\s+(?P<all>[^.,;!]+)"
    r"|(?P<from>[^.,;!]+?)\s+from\s+(?:your\s+memory|memory|what\s+you\s+know|your\s+notes|your\s+records|the\s+record)"
    r"|(?P<gave>(?:my|our|the|that|this)\s+[^.,;!]+?)\s+(?:that\s+)?(?:i|we)\s+(?:just\s+)?(?:gave|told|shared|mentioned|sent|posted)(?:\s+(?:you|to\s+you))?(?P<more>\s+(?:for|about|of)\s+[^.,;!]+)?"
    r"|(?P<mine>(?:my|our|the)\s+[^.,;!]+?)(?=\s*(?:[,.!]|please|$)))"
)
RETRACTION = re.compile(rf"(?:(?:sorry|oh|oops|hm+|ok(?:ay)?|actually|wait|no)[,.!]?\s+)*{NEVER_SAID}")
DEICTIC = re.compile(
    r"(?:(?:sorry|oh|oops|ok(?:ay)?|actually|wait|no)[,.!]?\s+)*(?:please\s+)?(?:forget|strike|scratch|disregard|ignore|delete|erase)\s+(?:that|it|this|what\s+i\s+(?:just\s+)?said|my\s+last\s+message)"
    r"(?:\s*,?\s*(?:please|again|last\s+(?:bit|part)|i\s+(?:said|posted).*))?[.!]*$",
)
REPLACEMENT = re.compile(
    r"[,;:–—-]\s*(?:a|an|the|we|it|let|go|take|make|i(?:['’]ll|\s+(?:want|prefer|take|use|go|need)))\b"
)  # "forget the tiles idea, we take wood"

OLD = r"[\"“']?(?P<{0}>[^\s,;:.!?\"”]+(?:[.:,/-]\w+)*(?:\s+[^\s,;:.!?\"”]+){{0,3}}?)[\"”']?"
NOT_OLD = re.compile(
    rf"(?:,\s*|\s+and\s+|\s+)not\s+(?:in\s+|on\s+|at\s+|the\s+|for\s+)*{OLD.format('old')}(?=\s*(?:[,;.!?)]|for\b|as\b|in\b|$))"
)
INSTEAD_OF = re.compile(
    r"\b(?:instead\s+of|rather\s+than|in\s+place\s+of|replac(?:es|ed|ing)|no\s+longer|used\s+to\s+be|previously|formerly)\s+(?:the\s+|a\s+|an\s+|my\s+|our\s+)?"
    + OLD.format("old")
    + r"(?=\s*(?:[,;.!?)]|with\b|by\b|for\b|as\b|in\b|on\b|$))"
)
SCRAP = re.compile(
    r"^(?:(?:please|ok(?:ay)?|well|no|sorry|actually)[,\s]+)*(?:forget|scrap|ditch|drop|never\s+mind|scratch|so\s+much\s+for|kill)\s+(?:about\s+)?(?:the|our|my)\s+(?P<old>[^,;:.!]+?)(?:\s+(?:idea|plan|thing))?\s*(?=[,;:.!]|$)"
)

CORRECTION = re.compile(
    r"\bcorrection\b|\btypo\b|\bi\s+(?:meant|mis(?:read|spoke|typed|counted|heard|took|remembered|stated|spelt|spelled|said|wrote)|mixed|got\s+(?:that|it|this|the\s+\w+|them)\s+wrong|was\s+wrong|confused|wrote\s+the\s+wrong|gave\s+you\s+the\s+wrong)|\bmy\s+(?:mistake|bad)\b[:,]|"
    r"\bwrong\s+(?:number|date|name|one|day|way\s+round)\b\s*[:,]|\bshould\s+(?:read|have\s+(?:said|been))\b|^(?:no|sorry|wait|oops|actually|err?)\b[,:]?\s[^.!?]*(?:,|\band)\s+not\s+\S|^(?:no,\s+|sorry,\s+)?make\s+that\b|^scratch\s+that\s*[,:]|"
    r"^(?:actually|no)[,:]?\s+(?:it\s+is|it['’]s|the)\b",
)
REVERSAL = re.compile(
    r"\bafter\s+all\b|\binstead(?!\s+of\s+\w+ing\b)\b|\bchanged\s+(?:course|(?:my|our)\s+minds?|tack|direction)\b|\bchange\s+of\s+(?:plans?|heart|mind|course)\b|\bscrap(?:ped)?\s+(?:that|the|it|our|my)\b|"
    r"\bgave\s+in\b|\bcaved(?:\s+in)?\b|\boverrul\w+|\bno\s+longer\b|\bany\s?more\b|\brevert(?:ed|ing|s)?\b|\b(?:merged|brought|folded|consolidated|moved|moving|switched|switching)\b[^.;]{0,50}?\bback\b|"
    r"\b(?:went|going|gone|came|go|are)\s+back\s+to\b|\bcancel(?:led|ed|s|ling)?\b|\bcall(?:ed|ing)\s+off\b|\bcalled\s+it\s+off\b|\bso\s+much\s+for\b|\bflipped\b|\bu-turn\b|\bbacked\s+out\b|\bbacktrack\w*|"
    r"\b(?:forget|ditch(?:ed)?|drop|scratch|abandon(?:ed)?)\s+(?:about\s+)?(?:the|that|our|my)\b[^,;:.]{2,60}[,;:]|\bagain\b[.!]?$|\bwithdr[ae]wn?\b|\bdropped\s+the\b|\bnot\b[^.;]{0,60}\bany\s?more\b",
)
UPDATE = re.compile(
    r"\bthese\s+days\b|\bnowadays\b|\bas\s+of\s+(?:today|now|this|next|last|\d|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|mon|tue|wed|thu|fri|sat|sun)|\bfrom\s+(?:today|now|this|next|tomorrow|\w+\s+on\b|\w+day)|"
    r"\b(?:is|are|am|'s|'re|has|have|was|were)\s+now\b|\bnow\s+(?:is|are|has|lives?|works?|runs?|uses?|goes|costs?|takes?|starts?|ends?)\b|\bnow\b[.!]?$|"
    r"\b(?:was|were|been|got|being)\s+(?:bumped|upgraded|moved|relocated|changed|switched|renamed|raised|lowered|increased|reduced|extended|shortened|postponed|rescheduled|brought\s+forward|pushed\s+back|replaced|handed|transferred|migrated|set)\b|"
    r"\b(?:bumped|upgraded|downgraded|migrated|relocated|renamed|rescheduled|postponed|switched|moved|raised|lowered|increased|reduced|changed|transferred|converted)\b[^.;]{0,60}?\bto\b|"
    r"\b(?:is|are|am|'re|'m)\s+(?:moving|switching|migrating|changing|relocating)\b|\bhand(?:s|ed|ing)?\b[^.;]{0,40}?\b(?:over|to)\b|\b(?:took|taken|takes|taking)\s+over\b|\bchanged\s+hands\b|\b(?:became|becomes|ha(?:s|ve)\s+become)\b|"
    r"\bstarted\s+(?:a\s+|my\s+)?new\b|\bsince\s+then\b|\bwent\s+(?:up|down)\s+to\b|\bhas\s+moved\b|\bhave\s+moved\b|\brelocated\b|\bleft\s+and\b|^(?:my|our|the)\s+new\b",
)
ADDITION = re.compile(
    r"\balso\b|\bas\s+well\b(?!\s+as)|\btoo[.!]?$|\btoo,|\btoo\s+and\b|\banother\b|\bother\s+(?:brother|sister|son|daughter|\w+)\b,?|\bin\s+addition\b|\bbesides\b|\badditional\b|\bone\s+more\b"
)


@dataclass(frozen=True, slots=True)
class Found:
    """A cue, and what it is about, as said."""

    cue: Cue = "none"
    about: str = ""


NOTHING = Found()
DETERMINER = re.compile(r"(?:[Mm]y|[Oo]ur|[Tt]he|[Tt]hat|[Tt]his)\s+")
TAKES_BACK = frozenset("forget delete remove erase disregard ignore drop wipe scrub strike scratch".split())
OLD_HINTS = frozenset(
    "not instead rather place replaces replaced replacing longer used previously formerly forget scrap ditch drop mind scratch much kill".split()
)
# A pattern is tried only where one of its words stands: most sentences have none of them.
CUES: tuple[tuple[Cue, re.Pattern[str], frozenset[str]], ...] = (
    (
        "correction",
        CORRECTION,
        frozenset(
            "correction typo meant mixed wrong confused mistake bad read been said not scratch actually no make misread misspoke mistyped miscounted misheard mistook misremembered misstated".split()
        ),
    ),
    (
        "reversal",
        REVERSAL,
        frozenset(
            "after instead course mind minds tack direction change scrap scrapped gave caved overrule overruled overrules longer anymore any revert reverted reverts reverting back cancel"
            " cancelled canceled cancels cancelling off so flipped u-turn backed backtracked forget ditch ditched drop scratch abandon abandoned again withdrawn withdrew dropped".split()
        ),
    ),
    ("addition", ADDITION, frozenset("also well too another other addition besides additional more".split())),
    (
        "update",
        UPDATE,
        frozenset(
            "these nowadays as from now bumped upgraded downgraded moved relocated changed switched renamed raised lowered increased reduced extended shortened postponed rescheduled brought"
            " pushed replaced handed transferred migrated set converted moving switching migrating changing relocating hand hands handing took taken takes taking became become becomes"
            " started since went has have left new".split()
        ),
    ),
)


def cue_of(text: str, low: str, lows: frozenset[str]) -> Found:
    """The strongest cue of a sentence; `low` is it in small letters, `lows` are its words so."""
    if lows & TAKES_BACK:
        if DEICTIC.match(low):
            return Found("retraction")
        taken_back = RETRACTION.match(low)
        if taken_back and not REPLACEMENT.search(low, taken_back.end()):
            return _retraction(text, taken_back)
    old = _old(text, low) if lows & OLD_HINTS else ""
    for name, pattern, hints in CUES:
        if lows & hints and pattern.search(low):
            return Found(name, old if name != "addition" else "")
    return Found("none", old) if old and INSTEAD_OF.search(low) else NOTHING


def _retraction(text: str, found: re.Match[str]) -> Found:
    name = next(n for n in ("said", "all", "from", "gave", "mine") if found[n])
    about = DETERMINER.sub("", text[slice(*found.span(name))].strip())
    return Found("retraction", about + (text[slice(*found.span("more"))] if found["more"] else ""))


def _old(text: str, low: str) -> str:
    for pattern in (INSTEAD_OF, NOT_OLD, SCRAP):
        found = pattern.search(low)
        if found:
            return text[slice(*found.span("old"))].strip(" '\"“”")
    return ""
