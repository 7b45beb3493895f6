"""Reasons: which part of a sentence gives the cause, and of what."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mnemon.memory.distil import patterns

HINTS = frozenset(
    "because since due owing thanks account as so why reason reasons turned hence therefore thus cause caused causes led leads"
    " forced made makes"
    " about regarding concerning wondered wonder asked result resulted fear on drove got convinced pushed kept".split()
)
# effect, then cause
BACKWARD = patterns.pattern(
    r",?\s+(?:(?:just\s+|mainly\s+|only\s+|partly\s+)?because\s+(?:of\s+)?|due\s+to\s+|owing\s+to\s+|on\s+account\s+of\s+|thanks\s+to\s+|as\s+a\s+result\s+of\s+|"
    r"(?:was|were|is|been)\s+caused\s+by\s+|for\s+fear\s+of\s+)",
)
# "since" and "as" give a reason only before a clause of their own: not in "since May", "as a teacher"
CLAUSE_AFTER = (
    r"(?=(?:(?:the|a|an|my|our|his|her|their|its|this|that|these|those|all|half|most|some|many|both|no|every|each)\s+)?(?:[\w'’-]+\s+){0,5}?"
    r"(?:is|are|was|were|has|have|had|am|can|can't|could|couldn't|will|won't|would|kept|keeps|keep|did|didn't|does|doesn't|do|don't|\w+ed|\w{3,}s|came|went|got|broke|lost|left|made|ran|fell|took)\b)"
)
SINCE = patterns.pattern(
    rf"(?P<comma>,)?\s+(?P<word>since|as)\s+{CLAUSE_AFTER}(?!\s*(?:spring|summer|autumn|winter|then|last|yesterday|\d|of\b|soon|well|long|far|if|said))"
)
LEADING = patterns.pattern(
    rf"(?:(?:due\s+to|owing\s+to|because\s+of|on\s+account\s+of|thanks\s+to|because)\s+(?P<cause>[^,;]+?)|(?:since|as)\s+{CLAUSE_AFTER}(?P<cause2>[^,;]+?)),\s+(?P<effect>.+)$",
    re.DOTALL,
)
LEADS = ("due", "owing", "because", "on", "thanks", "since", "as")
# cause, then effect
FORWARD = patterns.pattern(
    r"(?:,|;|\s+[–—-])\s*(?:and\s+)?(?:so(?!\s+(?:that|far|much|many|on|keep|please)\b)|which\s+is\s+why|(?:that|this)(?:['’]s|\s+is|\s+was)\s+why|hence|therefore|thus|which\s+(?:made|forced|led)\s+(?:us|me)\s+to)\s+"
    r"|\s+(?:caused|led\s+to|forced\s+us\s+to|made\s+us|resulted\s+in)\s+",
)
# A reason told later names its effect first: the reason we left is this, why we left, about leaving the choir
NAMED = patterns.pattern(
    r"(?:(?:the|my|our)\s+(?:main\s+|real\s+)?reason\s+(?:why\s+|that\s+|for\s+)?(?P<of>[^:,;]{3,120}?)(?:\s*:\s*|\s+(?:is|was)\s+(?:that\s+)?)"
    r"|(?:forgot\s+to\s+(?:say|mention)\s+)?why\s+(?P<why>(?!do|does|did|is|are|was|were|would|should|can|not)[^:?]{3,120}?)\s*:\s*"
    r"|(?:about|as\s+for|regarding|concerning|on)\s+(?P<about>[^:,;]{3,80}?)\s*:\s*"
    r"|(?P<thing>(?:the|my|our)\s+[^:,;]{2,60}?)\s*,?\s*in\s+case\s+you\s+(?:wondered|wonder|were\s+wondering|asked)[^:]{0,20}:\s*)(?P<cause>.+)$",
    re.DOTALL,
)
CLEFT = patterns.pattern(
    r"(?:(?P<cause3>[^,;:]{3,100}?)\s+(?:is|are|was|were)\s+(?:the|my|our)\s+(?:main\s+|real\s+|only\s+)?reason\s+(?:why\s+|that\s+|for\s+)?(?P<effect3>.+)|it\s+(?:is|was)\s+(?P<cause>[^,;]{2,100}?)\s+(?:that|which|who)\s+(?:made|forced|led|drove|got|convinced|pushed|kept)\s+(?:me|us)\s+(?:to\s+|from\s+)?(?P<effect>.+)"
    r"|what\s+(?:made|forced|led|drove|got|convinced|pushed)\s+(?:me|us)\s+(?:to\s+)?(?P<effect2>[^,;]{2,100}?)\s+(?:is|was)\s+(?P<cause2>.+))$",
    re.DOTALL,
)
TURNED_OUT = patterns.pattern(r"(?:it\s+)?turned\s+out\s+(?:that\s+)?")
COLON = patterns.pattern(
    r"(?P<effect>no\s+(?:more\s+)?[\w\s]{3,40}\s+for\s+(?:me|us)|(?:i|we)(?:['’]ve)?\s+(?:have\s+)?(?:gave|given|quit|sold|left|returned|stopped|dropped|cancelled|removed|sent|switched|moved|closed|ended|\w+ed)\b[^:;,]{3,60}):\s+"
    r"(?P<cause>(?:(?:the|my|our|its|his|her|their|it|they|he|she|there|since)\b).{5,})$",
    re.DOTALL,
)
AND_THEN = patterns.pattern(r",\s+(?:and\s+)?then\b|,\s+and\s+(?:we|I|i)\b|;\s")
SO_LONG = patterns.pattern(r"(?:\b(?:has|have|been)|['’]ve|['’]s\sbeen)\b")  # "have lived here since": how long, not why


@dataclass(frozen=True, slots=True)
class Cause:
    """The reason and what it is the reason of, as they stand in the sentence; `late` if the sentence speaks of an effect told before."""

    cause: str
    effect: str
    late: bool = False


def cause_of(text: str, low: str, lows: frozenset[str]) -> Cause | None:
    """The reason that a sentence gives, if it gives one; `low` is it in small letters, `lows` are its words so."""
    if not lows & HINTS:
        return _colon(text, low)
    named = NAMED.match(low) if ":" in low or "reason" in lows else None
    if named:
        effect = next(n for n in ("of", "why", "about", "thing") if named[n])
        return _made(text[slice(*named.span("cause"))], text[slice(*named.span(effect))], late=True)
    start = TURNED_OUT.match(low)
    text, low = (text[start.end() :], low[start.end() :]) if start else (text, low)
    if lows & {"it", "what", "reason"} and (cleft := CLEFT.match(low)):
        cause, effect = next((f"cause{n}", f"effect{n}") for n in ("", "2", "3") if cleft[f"cause{n}"])
        return _made(text[slice(*cleft.span(cause))], text[slice(*cleft.span(effect))], late=True)
    leading = LEADING.match(low) if low.startswith(LEADS) else None
    if leading:
        return _made(text[slice(*leading.span("cause" if leading["cause"] else "cause2"))], text[slice(*leading.span("effect"))])
    if backward := BACKWARD.search(low):
        return _made(text[backward.end() :], text[: backward.start()])
    forward = FORWARD.search(low)
    if forward and forward.start() > 2:
        return _made(text[: forward.start()], text[forward.end() :])
    since = SINCE.search(low) if lows & {"since", "as"} else None
    if since and since.start() > 2 and (since["comma"] or since["word"] == "as" or not SO_LONG.search(low[: since.start()])):
        return _made(text[since.end() :], text[: since.start()])
    return _colon(text, low)


def _colon(text: str, low: str) -> Cause | None:
    """No more running for me: my knee swells. I sent it back: the screen went dark."""
    found = COLON.match(low) if ":" in low else None
    return _made(text[slice(*found.span("cause"))], text[slice(*found.span("effect"))]) if found else None


def _made(cause: str, effect: str, *, late: bool = False) -> Cause | None:
    cause, effect = AND_THEN.split(cause, maxsplit=1)[0].strip(" .,;:!"), effect.strip(" .,;:!")
    return Cause(cause, effect, late) if len(cause) > 2 and len(effect) > 2 else None
