"""One sentence, read once: its words, its cue, its reason, its main clause and the slot that fills."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from mnemon.memory import words
from mnemon.memory.distil import causes, clauses, cues, frames, lexicon, patterns, phrases, refusals, retractions, slots, turning
from mnemon.memory.distil.clauses import Clause, Word

MOST_TERMS = 40
LEAD_IN = patterns.pattern(
    r"(?:(?:[#*•>\s-]*(?:(?:(?:before|after|first|one|two|more|another|last|small|quick|big|good|bad|sad|happy|important|little|short|minor|things?|news|updates?|info|we|start"
    r"|begin|continue|that|off|topic|on|a|the|me|my|side|from|to|for|your|records?|information|just|here|some|today|file|status|while|have|i|forget)\s+){1,6}?"
    r"(?:start|begin|continue|that|forget|thing|things|news|update|topic|records?|information|you|here|file|today|side|me)(?=\s*:)|side\s?note|note(?:\s+(?:from|to|for)\s+\w+(?:\s+\w+)?)?|n\.?b\.?|p\.?s\.?|reminder(?:\s+to\s+self)?|fyi"
    r"|heads[- ]?up|memo|for\s+the\s+record|just\s+so\s+you\s+know|quick\s+(?:one|note|update)|update|correction"
    r"|change\s+of\s+(?:plans?|heart|mind)(?:\s+(?:on|for|about|regarding|with)\s+[\w\s]{1,40}?(?=[,:;]))?"
    r"|decision(?:\s+from\s+[\w'’\s]{1,30})?|we\s+talked\s+it\s+over|keep\s+in\s+mind(?:\s+for\s+\w+)?|remember|so\s+much\s+for\s+[\w\s]{1,30}"
    r"|typo|(?:sorry,\s+)?wrong\s+\w+|sorry|wait|no|yes|well|okay|ok|so|oh|also|and|but|btw|by\s+the\s+way|actually|anyway|unrelated(?:\s+to\s+[\w\s]{1,20})?"
    r"|then|later|next|as\s+(?:i|we)\s+(?:said|mentioned)(?:\s+\w+)?|as\s+you\s+know|in\s+short|in\s+the\s+end|after\s+the\s+\w+|these\s+days|nowadays|now"
    r"|from\s+(?:now|today)(?:\s+on)?|as\s+of\s+(?:today|now)|until\s+now|what\s+i\s+meant\s+(?:is|was)|i\s+meant\s+to\s+say(?:\s+that)?|i\s+(?:was\s+mistaken|misread|misspoke|miscounted|mixed|got|confused|was\s+wrong|misheard|mistyped)\b[^,:;]{0,40}"
    r"|(?:it\s+)?turned\s+out(?:\s+that)?)\s*(?:[,:;–—-]|\.\s|(?<=days)|(?<=today)|(?<=now)|(?<=\son)|(?<=out)|(?<=that)|(?<=way)|(?<=fyi)|(?<=to\ssay)|(?<=meant\swas)|(?<=meant\sis))\s*))+",
)
TIME_LEAD = patterns.pattern(
    r"(?:(?:on|in|since|until|by|from|at|during|after|before)\s+[^,]{2,30},\s+|(?:yesterday|today|tonight|tomorrow|(?:last|next|this|every|each)\s+\w+"
    r"|(?:since|in|on|from)\s+(?:\d{1,2}\s+)?(?:\w+day|\w+uary|march|april|may|june|july|august|\w+ember|october|spring|summer|autumn|winter|\d{4}|q[1-4]))\s*,?\s+"
    r"(?=(?:i|we|i'm|we're|i've|we've|my|our|the)\b))",
)
FOR_TOPIC = patterns.pattern(r"(?:for|on|at|in)\s+(?:the\s+|my\s+|our\s+)?[\w-]+\s+(?=(?:i|we|i'm|we're)\b)")
CALL_ME = patterns.pattern(
    r"(?:please\s+|just\s+|you\s+can\s+)*\b(?:call|address)\s+me\s+(?:as\s+)?(?P<name>[^\s,.;!?]+(?:\s+[A-Z][^\s,.;!?]*)?)|\bi\s+go\s+by\s+(?P<by>[^\s,.;!?]+)",
    re.IGNORECASE,
)
HELLO = r"(?:(?:[Hh]i|[Hh]ello|[Hh]ey|[Gg]ood\s+\w+|[Gg]reetings)(?:\s+(?:there|all|again))?[,.!]?\s+)"
PERSON = r"(?P<{}>[A-Z][\w'’-]+(?:\s+[A-Z][\w'’-]+){{0,2}})"
INTRODUCED = patterns.pattern(  # Ada here; Ada speaking; hello, this is Ada; this is Ada, I …
    rf"{HELLO}?(?!(?:Same|Right|Nothing|Nobody|Everyone|Everybody|Everything|All|Still|Over|Down|Up|Back|New|First|Me|You|Out|Live|Only|Also)\b)"
    + PERSON.format("name")
    + r"\s+(?:here|speaking)(?=\s*(?:[:,;.!–—-]|$))"
    + rf"|(?:{HELLO}[Tt]his\s+is\s+|[Tt]his\s+is\s+(?=[^,.]+(?:\s+(?:from|speaking|here)\b|,\s+(?:I|my|we|your)\b)))"
    + PERSON.format("this")
)
SPLIT = patterns.pattern(r"(?:;\s+|,?\s+(?:and|but)\s+)(?=(?:i|we|my|our|the|he|she)\b|i['’]m\b|we['’]re\b)")
INNER = patterns.pattern(r"[-'’./&@:+,_%]")
GENERIC = frozenset(s for w in lexicon.GENERIC for s in words.normal(w))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What was understood of a sentence.

    `words` are those of its main part, `low` and `lows` the text and all its words in
    small letters; `refused` names the rule if its form alone shows that it is no statement; `turned` if it says that its speaker
    turned something round.
    """

    text: str
    low: str
    words: Sequence[Word]
    lows: frozenset[str]
    refused: str = ""
    cue: cues.Found = cues.NOTHING
    cause: causes.Cause | None = None
    clause: Clause | None = None
    slot: slots.Slot | None = None
    terms: tuple[str, ...] = ()
    turned: bool = False


def read(text: str) -> Reading:
    """Read a sentence; what is refused for its form alone is not read any further."""
    found = clauses.tokens(text)
    lows = frozenset([w.low for w in found])
    low = text.lower()
    if len(low) != len(text):  # a letter of another script that grows when it is made small
        low = text
    lead = LEAD_IN.match(low)
    at = lead.end() if lead and lead.end() < len(text) else 0
    cue = cues.cue_of(text[at:], low[at:], lows) if lows & retractions.HINTS else None
    if cue is not None and cue.cue == "retraction":  # also as a question: could you forget my address?
        return Reading(text=text, low=low, words=found, lows=lows, cue=cue)
    if refused := refusals.rule_for(low, low[at:], lows):
        return Reading(text=text, low=low, words=found, lows=lows, refused=refused)
    cue = cues.cue_of(text, low, lows)
    cause = causes.cause_of(text[at:], low[at:], lows)
    if cause and cause.late and cue.cue != "correction":
        cue = cues.NOTHING
    turned = not (cause and cause.late) and turning.firm(low, lows)
    if turned and (cue.cue != "correction" or turning.TAKEN_BACK.search(low)):
        cue = cues.Found("reversal", cue.about)
    elif cue.cue == "reversal" and turning.kept(low):
        cue = cues.NOTHING
    start, end = _main(text, low, at, cause)
    inner = found if end - start == len(text) else [w for w in found if start <= w.start and w.end <= end]
    clause, slot = frames.best(text, inner)
    slot = _named(text, lows) or (slot if slot is not None and slot.single else _introduced(text, lows) or slot)
    if cue.cue == "correction" and slot is None and clause is None:
        slot = slots.bare(text, inner)
    verb = clause.verb if clause and clause.subject else ""
    return Reading(
        text=text,
        low=low,
        words=inner,
        lows=lows,
        cue=cue,
        cause=cause,
        clause=clause,
        slot=slot,
        terms=terms(found, verb=verb),
        turned=turned,
    )


def turned(reading: Reading) -> Reading:
    """The same as what the sentence before it announced: if the speaker speaks of themselves, it tells what was turned round."""
    if reading.lows.isdisjoint(turning.SPEAKERS) or reading.cue.cue in ("correction", "retraction"):
        return reading
    return replace(reading, turned=True, cue=cues.Found("reversal", reading.cue.about))


def _main(text: str, low: str, at: int, cause: causes.Cause | None) -> tuple[int, int]:
    """Where the main clause stands: the effect if a reason is given, the reason if its effect is only named; leads left out."""
    start, end = at, len(text)
    if cause is not None:
        main = cause.cause if cause.late else cause.effect
        start = text.find(main, at)
        end = start + len(main)
        start = _behind(LEAD_IN, low, start, end)
    timed = _behind(TIME_LEAD, low, start, end)
    if timed > start:
        start = _behind(LEAD_IN, low, timed, end)
    return _behind(FOR_TOPIC, low, start, end), end


def _behind(lead: re.Pattern[str], low: str, start: int, end: int) -> int:
    found = lead.match(low, start, end)
    return found.end() if found and found.end() < end else start


def _named(text: str, lows: frozenset[str]) -> slots.Slot | None:
    """Call me Bo."""
    if not lows & {"call", "go", "address"}:
        return None
    found = CALL_ME.search(text)
    return (
        slots.Slot(rule="call_me", subject=phrases.USER, attribute="name", values=(found["name"] or found["by"],), single=True)
        if found
        else None
    )


def _introduced(text: str, lows: frozenset[str]) -> slots.Slot | None:
    """Ada here: I teach. The whole sentence says who the user is."""
    found = INTRODUCED.match(text) if lows & {"here", "speaking", "this"} else None
    return (
        slots.Slot(rule="introduced", subject=phrases.USER, attribute="name", values=(found["name"] or found["this"],)) if found else None
    )


def apart(reading: Reading) -> list[tuple[int, Reading]]:
    """The clauses of a sentence with their places, each read by itself."""
    if not reading.lows & {"and", "but"} and ";" not in reading.text:
        return []
    cuts = [0]
    for found in SPLIT.finditer(reading.low):
        cuts += found.span()
    if len(cuts) == 1:
        return []
    cuts.append(len(reading.text))
    return [(start, read(reading.text[start:end])) for start, end in zip(cuts[::2], cuts[1::2], strict=True) if start < end]


def terms(found: Sequence[Word], *, verb: str = "") -> tuple[str, ...]:
    """The content words of a sentence, numbers whole; its verb is left out, and so are words that any sentence may have."""
    got: dict[str, None] = {}
    for word in found:
        low = word.low
        if verb and low in lexicon.VERBS and lexicon.VERBS[low].lemma == verb:
            continue
        for stem in telling(low):
            got[stem] = None
    return tuple(got)[:MOST_TERMS]


@lru_cache(maxsize=16384)
def telling(low: str) -> tuple[str, ...]:
    """What a word is compared by: numbers whole, parts by themselves, what any sentence may have not at all."""
    if low.isalpha():
        stems = words.normal(low)
    elif any(c.isdigit() for c in low):
        return (low,)
    else:
        stems = tuple(stem for part in INNER.split(low) for stem in words.normal(part))
    return tuple([stem for stem in stems if stem not in GENERIC])
