"""Reasons: which part of a sentence gives the cause, and of what."""

from __future__ import annotations

import re
from dataclasses import dataclass

HINT = re.compile(
    r"\b(?:because|since|due|owing|thanks|account|as|so|why|reason|turned|hence|therefore|thus|caused?|causes|led|leads|forced|made|about|wondered|result)\b",
    re.IGNORECASE,
)
# effect, then cause
BACKWARD = re.compile(
    r",?\s+(?:(?:just\s+|mainly\s+|only\s+|partly\s+)?because\s+(?:of\s+)?|due\s+to\s+|owing\s+to\s+|on\s+account\s+of\s+|thanks\s+to\s+|as\s+a\s+result\s+of\s+|"
    r"(?:was|were|is|been)\s+caused\s+by\s+|for\s+fear\s+of\s+)",
    re.IGNORECASE,
)
# "since" and "as" give a reason only before a clause of their own: not in "since May", "as a teacher"
CLAUSE_AFTER = (
    r"(?=(?:(?:the|a|an|my|our|his|her|their|its|this|that|these|those|all|half|most|some|many|both|no|every|each)\s+)?(?:[\w'’-]+\s+){0,5}?"
    r"(?:is|are|was|were|has|have|had|am|can|can't|could|couldn't|will|won't|would|kept|keeps|keep|did|didn't|does|doesn't|do|don't|\w+ed|\w{3,}s|came|went|got|broke|lost|left|made|ran|fell|took)\b)"
)
SINCE = re.compile(rf"(?P<comma>,)?\s+(?P<word>since|as)\s+{CLAUSE_AFTER}(?!\s*(?:spring|summer|autumn|winter|then|last|yesterday|\d|of\b|soon|well|long|far|if|said))", re.IGNORECASE)
LEADING = re.compile(
    rf"(?:(?:due\s+to|owing\s+to|because\s+of|on\s+account\s+of|thanks\s+to|because)\s+(?P<cause>[^,;]+?)|(?:since|as)\s+{CLAUSE_AFTER}(?P<cause2>[^,;]+?)),\s+(?P<effect>.+)$",
    re.IGNORECASE | re.DOTALL,
)
# cause, then effect
FORWARD = re.compile(
    r"(?:,|;|\s+[–—-])\s*(?:and\s+)?(?:so(?!\s+(?:that|far|much|many|on|keep|please)\b)|which\s+is\s+why|(?:that|this)(?:['’]s|\s+is|\s+was)\s+why|hence|therefore|thus|which\s+(?:made|forced|led)\s+(?:us|me)\s+to)\s+"
    r"|\s+(?:caused|led\s+to|forced\s+us\s+to|made\s+us|resulted\s+in)\s+",
    re.IGNORECASE,
)
# "The reason we left: …", "Why we left: …", "About leaving the choir: …"
NAMED = re.compile(
    r"(?:(?:the|my|our)\s+(?:main\s+|real\s+)?reason\s+(?:why\s+|that\s+|for\s+)?(?P<of>[^:,;]{3,120}?)(?:\s*:\s*|\s+(?:is|was)\s+(?:that\s+)?)"
    r"|(?:forgot\s+to\s+(?:say|mention)\s+)?why\s+(?P<why>(?!do|does|did|is|are|was|were|would|should|can|not)[^:?]{3,120}?)\s*:\s*"
    r"|(?:about|as\s+for|regarding|concerning|on)\s+(?P<about>[^:,;]{3,80}?)\s*:\s*"
    r"|(?P<thing>(?:the|my|our)\s+[^:,;]{2,60}?)\s*,?\s*in\s+case\s+you\s+(?:wondered|wonder|were\s+wondering|asked)[^:]{0,20}:\s*)(?P<cause>.+)$",
    re.IGNORECASE | re.DOTALL,
)
TURNED_OUT = re.compile(r"(?:it\s+)?turned\s+out\s+(?:that\s+)?", re.IGNORECASE)
COLON = re.compile(
    r"(?P<effect>no\s+(?:more\s+)?[\w\s]{3,40}\s+for\s+(?:me|us)|(?:i|we)(?:['’]ve)?\s+(?:have\s+)?(?:gave|given|quit|sold|left|returned|stopped|dropped|cancelled|removed|sent|switched|moved|closed|ended|\w+ed)\b[^:;,]{3,60}):\s+"
    r"(?P<cause>(?:(?:the|my|our|its|his|her|their|it|they|he|she|there|since)\b).{5,})$",
    re.IGNORECASE | re.DOTALL,
)
AND_THEN = re.compile(r",\s+(?:and\s+)?then\b|,\s+and\s+(?:we|i)\b|;\s", re.IGNORECASE)
SO_LONG = re.compile(r"(?:\b(?:has|have|been)|['’]ve|['’]s\sbeen)\b", re.IGNORECASE)  # "have lived here since": how long, not why


@dataclass(frozen=True, slots=True)
class Cause:
    """The reason and what it is the reason of, as they stand in the sentence; `late` if the sentence speaks of an effect told before."""

    cause: str
    effect: str
    late: bool = False


def cause_of(text: str) -> Cause | None:
    """The reason that a sentence gives, if it gives one."""
    if not HINT.search(text):
        return _colon(text)
    named = NAMED.match(text)
    if named:
        effect = next(g for g in (named["of"], named["why"], named["about"], named["thing"]) if g)
        return _made(named["cause"], effect, late=True)
    start = TURNED_OUT.match(text)
    body = text[start.end() :] if start else text
    leading = LEADING.match(body)
    if leading:
        return _made(leading["cause"] or leading["cause2"] or "", leading["effect"])
    backward = BACKWARD.search(body)
    if backward:
        return _made(body[backward.end() :], body[: backward.start()])
    forward = FORWARD.search(body)
    if forward and forward.start() > 2:
        return _made(body[: forward.start()], body[forward.end() :])
    since = SINCE.search(body)
    if since and since.start() > 2 and (since["comma"] or since["word"].lower() == "as" or not SO_LONG.search(body[: since.start()])):
        return _made(body[since.end() :], body[: since.start()])
    return _colon(body)


def _colon(text: str) -> Cause | None:
    """No more running for me: my knee swells. I sent it back: the screen went dark."""
    found = COLON.match(text)
    return _made(found["cause"], found["effect"]) if found else None


def _made(cause: str, effect: str, *, late: bool = False) -> Cause | None:
    cause, effect = AND_THEN.split(cause, maxsplit=1)[0].strip(" .,;:!"), effect.strip(" .,;:!")
    return Cause(cause, effect, late) if len(cause) > 2 and len(effect) > 2 else None
