"""Phrases by which people turn round what they held: "you win", "is history", "we moved everything out of there". Pure.

Some say so by themselves (`firm`). Others are said of many things ("again", "is gone", "since Friday we …") and are a change of mind
only beside a position that they turn round (`soft`); which one that is, is for `judging` to find. All patterns are for small letters, and
none is tried unless one of its words stands in the sentence.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from mnemon.memory import words
from mnemon.memory.distil import patterns, times

Soft = Literal["", "thing", "there", "all", "matter"]

WE = r"(?:i|we|i['’](?:m|ve|ll|d)|we['’](?:re|ve|ll|d))"
SPEAKERS = frozenset("i we me us my our mine ours".split())
OTHERS = patterns.pattern(r"\b(?:his|her|their|he|she|they)\b")
BREAK = r"\s*(?:[,:;–—-]|\.\s)+\s*"
OURS_NEXT = rf"(?:(?:so|and|then|now)\s+)?(?:{WE}|there(?:['’]s|\s+(?:is|are))|my|our|it['’]s|no|both|all|from)\b"
CONCEDES = r"^(?:(?:ok(?:ay)?|fine|all\s*right|very\s+well)[,.!\s]+)+"
WON = r"(?:win|wins|won|prevailed|had\s+(?:his|her|their)\s+way|got\s+(?:his|her|their)\s+way)"
TEAM = r"(?:team|club|side|squad|party|band|horse|who|that|nobody|everybody|we|i|it)\b"
WHOLE = r"(?:everything|it\s+all|them\s+all|the\s+(?:whole\s+)?lot|all\s+of\s+(?:it|them))"
TOOK = r"(?:\w+ed|put|took|taken|brought|sent)"
PHASE = (
    r"(?:phase|days|era|times|chapter|experiment|rule|ban|policy|habit|tradition|diet|boycott|regime"
    r"|idea|plan|principle|vow|pledge|embargo)"
)
NAMED_DAYS = "|".join([*times.DAYS, *times.MONTHS, *times.SEASONS])
TIME = rf"(?:(?:this|last|next)\s+\w+|yesterday|today|tomorrow|now|then|easter|christmas|new\s+year|{NAMED_DAYS}|(?:19|20)\d\d|q[1-4])"

TAKEN_BACK = patterns.pattern(rf"\b(?:scratch|forget|strike)\s+that{BREAK}{OURS_NEXT}")
# What says by itself that the speaker turned something round.
FIRM = patterns.pattern(
    rf"{WE}\s.*\b(?:(?:my|our)\s+minds?|thought\s+better|rethought|reconsidered|gave\s+in|caved|relented|(?:backed|pulled)\s+out(?!\s+of\s+the\s+(?:drive|garage|parking))"
    r"|backed\s+down|climbed\s+down|decided\s+against|instead(?!\s+of\s+\w+ing\b)|changed\s+course|called\s+off)\b"
    rf"|\b{WE}\b.*\bafter\s+all(?=\s*(?:[,;:.!–—]|$|\s(?:and|so|because|since|in|on|at|to|for|with|from|by)\b))"
    r"|\bno\s+\w+\s+after\s+all\b(?!\s+(?:the|these|those|this|my|our)\b)"
    r"|\bon\s+second\s+thoughts?\b|\bchange\s+of\s+(?:plans?|heart|mind|course)\b|\bso\s+much\s+for\s+(?:that|the|our|my)\b|\bscrap\s+(?:that|the|our|my)\b"
    r"|\b(?:plans?|move|wedding|trip|deal|lawsuit|sale)\s+(?:\w+\s+)?(?:is|are)\s+off\b(?!\s+(?:to|the)\b)"
    r"|\b(?:i|we)(?:['’]ve|\s+have)?\s+changed\s+(?:my|our)\s+minds?\b"
    r"|\b(?:overruled|outvoted|overrode|outargued)\s+(?:me|us)\b"
    rf"|\b{WE}\s+(?:(?:was|were|got|have|been|finally|simply)\s+)*(?:overruled|outvoted|overridden|talked\s+(?:into|out\s+of|round)|won\s+over|worn\s+down)\b"
    r"|\b(?:wore|worn|won|talked|argued)\s+(?:me|us)\s+(?:down|over|round|around|into|out\s+of)\b|\b(?:persuaded|convinced)\s+(?:me|us)\s+(?:to|otherwise)\b"
    rf"|^(?:{CONCEDES[1:]})?you(?:\s+(?:win|won|were\s+right)|['’]ve\s+won)\b|^ok(?:ay)?[,.\s]+fine\b|{CONCEDES}.*\bfrom\s+now\s+on\b"
    rf"|\bturns\s+out\s+(?:that\s+)?(?:i|we)\s+(?:do|did|can|need|like|am|are)\b|\b{WE}\s+(?:have\s+)?thought\s+(?:it|this|that)\s+over\b|{CONCEDES}[^,:;.]{{1,30}}\s{WON}(?={BREAK}\S|[.!]?$)"
    rf"|^(?:{CONCEDES[1:]})?(?:the\s+|my\s+|our\s+)?(?!{TEAM})\w[\w-]*\s+(?!{TEAM}){WON}{BREAK}{OURS_NEXT}|^(?:the\s+|my\s+)?(?!{TEAM})[\w-]+\s+{WON}{BREAK}{OURS_NEXT}"
    rf"|{CONCEDES}[^.;]{{1,40}}\sit\s+is(?=\s*[.!,;:]|$)"
    rf"|{TAKEN_BACK.pattern}"
    rf"|\b{WE}\s+(?:(?:have|finally|slowly)\s+)*c[ao]me\s+a?round(?=\s*[,:;.!–—]|$|\s+to\s+(?!(?:the|my|our|your)\s+(?:house|place|flat|office|door|back)\b))"
    r"|\bmade\s+(?:my|our)\s+peace\s+with\b|\bi\s+take\s+(?:it|that)\s+(?:all\s+)?back\b"
    rf"|\b{PHASE}\s+(?:is|are|was)\s+(?:over|gone|dead|history|no\s+more|finished|off)\b"
    rf"|\b{TOOK}\s+{WHOLE}\s+(?:\w+\s+)?out\s+of\s+(?:there|here|it|them)\b"
)
OVER = patterns.pattern(
    r"(?P<thing>\S[^,:;.]{0,50}?)(?:\s+(?:is|are)|['’](?:s|re))\s+(?:now\s+|all\s+|ancient\s+|finally\s+|officially\s+)?"
    r"(?:history|off\s+the\s+table|dead\s+and\s+buried)(?=\s*(?:[,:;.!–—]|$|\s(?:now|since|and|from|because|for\s+good)\b))"
)
OVER_HINTS = frozenset({"history", "table", "buried"})
CONCEDING = ("ok", "fine", "all right", "alright", "very well", "you ")
FIRM_HINTS = frozenset(
    "mind minds take rethought reconsidered gave caved relented backed pulled climbed down against instead course called after thought"
    " thoughts change changed much scrap off overruled outvoted overrode outargued overridden talked won worn wore argued persuaded"
    " convinced win wins prevailed way scratch forget strike round around peace over gone dead finished everything"
    " lot turns".split()
)
# What "is history" in other ways: a subject of school, or the rest.
TAUGHT = frozenset(
    "subject subjects major degree minor course field passion topic theme class hobby lesson book books section shelf rest study teach read"
    " love like it this thing forte strength interest genre exam faculty department which who half part most".split()
)
UNTURNED = patterns.pattern(
    r"(?:\bnot|\bnever|n['’]t)\s+(?:\w+ly\s+|ever\s+|be\s+|been\s+|let\s+)?(?:chang|back|giv|gave|cav|relent|overrul|outvot|talk|persuad|convinc"
    r"|reconsider|rethought|won|worn|call|com|cam|mad|mak|scrap|decided\s+against|pull)"
)

GONE = patterns.pattern(
    r"^(?P<thing>[^,:;.]{2,50}?)(?:\s+(?:is|are)|['’](?:s|re))\s+(?:now\s+|all\s+|finally\s+|long\s+)?(?:gone|back|over|dead|out)\b|^(?P<left>[^,:;.]{2,50}?)\s+had\s+to\s+go(?=\s*[,:;.!–—]|$)"
)
THERE = patterns.pattern(r"\bthere(?:['’]s|['’]re|\s+(?:is|are))\s.*\bnow\b")
ALL = patterns.pattern(rf"\b{TOOK}\s+{WHOLE}\s+(?:\w+\s+)?(?:into|onto|to|in|on|over|across)\b")
MATTER = patterns.pattern(
    rf"\b(?:since|from|as\s+of|starting)\s+(?:\d{{1,2}}\.?\s+)?{TIME}\b|{CONCEDES}|\bturns\s+out\b|\bit\s+turned\s+out\b|\bagain[.!]?$"
    r"|\b(?:picked|took|taken|take)\s+(?:\w+\s+){0,3}?up\b|\breturned\s+to\b|\bback\s+(?:to|on|in|into)\b|\bswitched\s+to\b|\bresumed\b"
)
GONE_HINTS = frozenset("gone back over dead out go".split())
ALL_HINTS = frozenset("everything all lot".split())
SOFT_HINTS = frozenset(
    "gone back over dead out go there everything all lot since from as starting ok okay fine alright turns"
    " turned again picked took taken take returned resumed switched".split()
)
PASSING = patterns.pattern(r"\b(?:for|while|during|until|when|tonight|today)\b")


def firm(low: str, lows: frozenset[str]) -> bool:
    """Whether a sentence says that its speaker turned something round; `lows` are its words."""
    if lows & OVER_HINTS and (over := OVER.search(low)) and not UNTURNED.search(low):
        return TAUGHT.isdisjoint(words.WORD.findall(over["thing"])) and not OTHERS.search(over["thing"])
    if lows.isdisjoint(FIRM_HINTS) and not low.startswith(CONCEDING):
        return False
    found = FIRM.search(low)
    if found is None or UNTURNED.search(low):
        return False
    return not lows.isdisjoint(SPEAKERS) or "there" in low or found.start() == 0


def kept(low: str) -> bool:
    """Whether it says that nothing was turned round: I haven't changed my mind."""
    return UNTURNED.search(low) is not None


@lru_cache(maxsize=4096)
def soft(text: str) -> Soft:
    """How a sentence may turn something round if there is what it turns round: the thing it names, that there is one, all, its matter."""
    low = text.lower()
    lows = frozenset(words.WORD.findall(low))
    if lows.isdisjoint(SOFT_HINTS):
        return ""
    if lows & GONE_HINTS and GONE.search(low):
        return "thing"
    if "there" in lows and "now" in lows and THERE.search(low):
        return "there"
    if lows & ALL_HINTS and ALL.search(low):
        return "" if PASSING.search(low) else "all"
    return "matter" if not lows.isdisjoint(SPEAKERS) and MATTER.search(low) else ""


@lru_cache(maxsize=4096)
def thing(text: str) -> tuple[str, ...]:
    """The words of what is gone, or back."""
    found = GONE.search(text.lower())
    return words.words(found["thing"] or found["left"]) if found else ()
