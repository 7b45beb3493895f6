"""Questions taken apart: what they ask about, of which kind they are, and what an answer to them would have.

It knows nothing of what there is to answer with.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from mnemon.model.builtin import lexicon, patterns, sentences, topics

_KINDS = (
    ("when", r"\b(?:when|(?:what|which)\s+(?:time|day|date|month|year|week)|how long ago)\b"),
    ("why", r"\b(?:why|reasons?|how come|what\s+(?:made|caused|led)|cause)\b"),
    ("count", r"\bhow\s+(?:many|much|long|often|old|far|big|tall|high|large|fast|hot|heavy)\b|\bwhat\s+(?:number|share|percentage)\b"),
    ("who", r"\b(?:who|whom|whose)\b"),
    ("where", r"\bwhere\b"),
)
_MONTHS = (
    "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?"
)
MARKS = {  # what a statement has that answers a question of this kind
    "why": patterns.lazy(
        r"\b(?:because|since|due to|caus(?:e|ed|es|ing)|reasons?|so that|in order to|why|thanks to|account of|owing to|as a result"
        r"|therefore|hence|so|led to|after|to (?:avoid|prevent|reduce|save|improve|cut|stop|help|protect))\b",
        re.IGNORECASE,
    ),
    "when": patterns.lazy(
        rf"\b(?:\d{{4}}-\d\d|(?:19|20)\d\d|q[1-4]|\d\d?(?::\d\d)? ?(?:am|pm)|\d\d?:\d\d|(?:{_MONTHS})\b|may \d|(?:in|since|until|\d) may"
        r"|(?:mon|tues|wednes|thurs|fri|satur|sun)days?|yesterday|today|tomorrow|tonight|noon|midnight|morning|evening|ago|spring"
        r"|summer|autumn|winter|easter|christmas|(?:last|next|this|every) (?:week|month|year|night|sprint)|(?:days|weeks|months)\b)",
        re.IGNORECASE,
    ),
    "count": patterns.lazy(
        r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|twelve|dozen|half|once|twice|couple|daily|weekly|every|until)\b",
        re.IGNORECASE,
    ),
    "who": patterns.lazy(
        r"(?<=[\w,:] )[A-Z][^\W\d_]+|^[A-Z][^\W\d_]+(?='s| (?:is|was|has|had|and|will|owns|leads|does|wants|lives|works))"
    ),
    "where": patterns.lazy(
        r"\b(?:in|at|near|under|behind|inside|above|below|beside|via|between) |\b(?:from|to|on|for) (?:the |our |my )?[A-Z]|\bhome\b"
    ),
}
_MANY = patterns.lazy(
    r"\b(?:list|all|every|everything|summar\w+|overview|review|recap|decisions|things|options|facts|reasons|steps|changes|issues|problems"
    r"|incidents|anything|identify|report|before|after|order|sequence|history|originally|previously|used to|over time|reversed)\b"
    r"|\b(?:what|which)\s+(?:\w+\s+){0,2}?(?!(?:is|was|does|has|this|his|us)\b)\w+[^s\W]s\s+(?:are|were|do|did|have|can|will)\b",
    re.IGNORECASE,
)
_OVERVIEW = patterns.lazy(
    r"\b(?:know|remember|told|tell|said|learned|noted)\b.*\b(?:me|us|you|i|we)\b|\bsummar|\bso far\b|\brecap|\bconversation\b",
    re.IGNORECASE,
)
_OWN_NAME_ASKED = patterns.lazy(
    r"\bmy (?:first |last |full |own |sur)?name\b|\bwho (?:am i|i am)\b|\b(?:am i|i am|i['’]m) called\b|\b(?:call|address) me\b"
    r"|\bi (?:be|am) addressed\b",
    re.IGNORECASE,
)
_STRETCH = patterns.lazy(
    r"\b(?:(?:from|in|over|during|of|for|within|since) )?(?:the |this |these |my |our )?(?:past|last|previous|recent) "
    r"(?:(?:\d+|few|couple of|two|three|four|six) )?(?:days?|weeks?|months?|quarters?|years?|sprints?)\b",
    re.IGNORECASE,
)
_NAME = patterns.lazy(r"(?<=[\w,'’] )[A-Z]\w+|\b[A-Za-z]*\d\w*")
_JOINED = patterns.lazy(rf",?\s+and\s+(?={sentences.WH}\b)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Unit:
    """One thing that a question asks about: a stem, the topics it stands for, and how much it matters."""

    stem: str
    about: tuple[topics.Topic, ...] = ()
    factor: float = 1.0


@dataclass(frozen=True, slots=True)
class Question:
    """A question taken apart; `many` wants a list, `own` is about the asker, `open` wants all there is to know."""

    units: tuple[Unit, ...]
    kind: str
    many: bool
    own: bool
    open: bool


def _kept(text: str) -> list[str]:
    return [w for w in map(lexicon.plain, lexicon.words(text)) if w not in lexicon.STOP and (len(w) > 1 or not w.isascii())]


def _units(text: str) -> tuple[Unit, ...]:
    """The words of a text that carry its meaning; next to a mere sort of thing, such as decisions, a stretch of time carries none."""
    rest = _OWN_NAME_ASKED().sub(" ", sentences.TELL_ME().sub(" ", text).replace("for a living", "job"))
    kept, timeless = _kept(rest), _kept(_STRETCH().sub(" ", rest))
    if timeless and all(lexicon.stem(w) in lexicon.WEAK for w in timeless):
        kept = timeless
    found = dict.fromkeys(map(lexicon.stem, kept))
    firm = any(s not in lexicon.WEAK for s in found)
    names = lexicon.stems(" ".join(_NAME().findall(text)))
    weights = {s: 0.35 if firm and s in lexicon.WEAK else 1.5 if s in names else 1.0 for s in found if s}
    made = [Unit(s, tuple(t for t in topics.ALL if s in t.asked), weight) for s, weight in weights.items()]
    return (Unit("my name", (topics.OWN_NAME,)), *made) if _OWN_NAME_ASKED().search(text) else tuple(made)


def _question(text: str, earlier: tuple[Unit, ...] = ()) -> Question:
    """A question taken apart; what it only points at is looked for in what was said before."""
    units = _units(text)
    firm = [u for u in units if u.factor >= 1]
    everything = bool(_OVERVIEW().search(text)) and all(u.stem in lexicon.WEAK for u in units)
    if earlier and not everything and (not firm or (len(firm) == 1 and sentences.POINTING().search(text))):
        share, known = (0.8 if firm else 1.0) / len(earlier), {u.stem for u in units}
        units += tuple(replace(u, factor=share) for u in earlier if u.stem not in known)
    kind = next((name for name, pattern in _KINDS if re.search(pattern, text, re.IGNORECASE)), "")
    return Question(units, kind, bool(_MANY().search(text)), bool(sentences.FIRST_PERSON().search(text)), everything)


def asked(text: str, earlier: str) -> list[Question]:
    """The questions in a text, at most three; `earlier` is what was said before it."""
    before, found = _units(earlier[:1000])[:8], []
    for sentence in [s for s in sentences.cut(text) if sentences.is_question(s)][:3]:
        for part in _JOINED().split(sentence[:1000]):
            found.append(_question(part, before))
            before = found[-1].units[:8] or before
    return found[:3]
