"""To what a statement is limited: on weekends, in winter, after three. What holds only then contradicts nothing that holds in general."""

from __future__ import annotations

from functools import lru_cache

from mnemon.memory import words
from mnemon.memory.distil import patterns

DAYS = (
    r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|week-?ends?|weekdays?|holidays?|birthdays"
    r"|evenings|mornings|nights|afternoons|some\s+days|days\s+off|tour)"
)
SEASONS = r"(?:spring|summers?|autumn|fall|winters?|mornings?|evenings?|afternoons?|off-season|season)"
LIMIT = patterns.pattern(
    rf"\bon\s+(?:\w+\s+)?{DAYS}\b|\b(?:at|over)\s+(?:the\s+)?(?:week-?ends?|christmas|easter|times|[a-z]+ies)\b"
    r"|\bat\s+(?:night|lunch|noon|work|school|home)(?=\s*(?:[,.;!]|$|(?:i|we|my|our|the|and|when|he|she|it)\b))"
    r"|\b(?:tomorrow|tonight|this\s+(?:week|weekend|evening|afternoon|morning|time|once)|just\s+this\s+once|for\s+once|exceptionally)\b"
    rf"|\b(?:in|over)\s+(?:the\s+)?{SEASONS}\b|\bduring\s+(?:the\s+|my\s+|our\s+)?\w+|\b(?:after|before)\s+(?:\d[\d:.]*(?:\s*[ap]m)?|noon|midnight|lunch|dinner|breakfast|work|school|training|bed)\b"
    r"|\b(?:when(?:ever)?|while|unless|except|if)\s+(?:i|we|i['’]m|we['’]re|it|it['’]s|there|the|my|our|on|at|for|in|travell?ing|driving)\b[^,;.]*"
    r"|\b(?:sometimes|occasionally|rarely|now\s+and\s+then|from\s+time\s+to\s+time|abroad|for\s+(?:breakfast|lunch|dinner|now|fun|work|guests|christmas))\b"
    r"|\b(?:within|outside|inside)\s+\w+|\bbetween\s+\w+\s+and\s+\w+"
)
BREAK = patterns.pattern(
    r"[,;:.!?(–—]|\b(?:because|since|so|and|but|as|due|owing|thanks|any\s?more|now|again|these\s+days|after\s+all|instead)\b"
)
PREPOSITION = patterns.pattern(r"\s*(?:on|in|at|with|without|for|after|before|during|from|by|to|near|over|under|until|when|while|if)\b")
NO_LIMIT = frozenset(s for w in "all year years long time moment good".split() for s in words.words(w))
KEPT = 4096


@lru_cache(maxsize=KEPT)
def limits(text: str, values: tuple[str, ...]) -> frozenset[tuple[str, ...]]:
    """What a statement is limited to, in normal form; what fills its slot is no limit: training is on Mondays."""
    low = text.lower()
    found = {
        words.words(m.group()) for m in LIMIT.finditer(low) if not any(v.lower() in m.group() or m.group() in v.lower() for v in values)
    }
    return frozenset(found - {()})


@lru_cache(maxsize=KEPT)
def behind(text: str, values: tuple[str, ...]) -> tuple[str, ...]:
    """The words that stand behind what fills the slot, up to the next clause: "with rice" behind "meat"."""
    low = text.lower()
    at = max((low.find(v.lower()) + len(v) for v in values if v.lower() in low), default=len(low))
    rest = BREAK.split(low[at:], maxsplit=1)[0]
    return tuple(w for w in words.words(rest) if w not in NO_LIMIT) if PREPOSITION.match(rest) else ()
