"""From a message to candidates: each sentence is refused by a named rule, or kept word for word with what was understood of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from mnemon.memory import words
from mnemon.memory.distil import causes, clauses, cues, lexicon, phrases, refusals, sentences, slots, times
from mnemon.memory.distil.clauses import Clause, Word
from mnemon.memory.statements import Candidate, Distilled, Kind, Origin, Refusal

VERSION = 1
MOST = 200  # candidates of one message; a message that says more is a document
MOST_TERMS = 40

LEAD_IN = re.compile(
    r"(?:(?:[#*•>\s-]*(?:side\s?note|note(?:\s+(?:from|to|for)\s+[\w\s]{1,20})?|n\.?b\.?|p\.?s\.?|reminder(?:\s+to\s+self)?|fyi|heads[- ]?up|memo|for\s+the\s+record|just\s+so\s+you\s+know|quick\s+(?:one|note|update)|update|correction|"
    r"change\s+of\s+(?:plan|plans|heart)(?:\s+on\s+[\w\s]{1,30})?|decision(?:\s+from\s+[\w'’\s]{1,30})?|we\s+talked\s+it\s+over|keep\s+in\s+mind(?:\s+for\s+\w+)?|remember|so\s+much\s+for\s+[\w\s]{1,30}|"
    r"sorry|typo|sorry,\s+typo|(?:sorry,\s+)?wrong\s+\w+|wait|no|yes|well|okay|ok|so|oh|also|and|but|btw|by\s+the\s+way|actually|anyway|unrelated(?:\s+to\s+[\w\s]{1,20})?|then|later|next|"
    r"as\s+(?:i|we)\s+(?:said|mentioned)(?:\s+\w+)?|as\s+you\s+know|in\s+short|in\s+the\s+end|after\s+the\s+\w+|these\s+days|nowadays|now|from\s+(?:now|today)(?:\s+on)?|as\s+of\s+(?:today|now)|until\s+now|"
    r"(?:wait,\s+)?i\s+(?:misread|misspoke|miscounted|mixed|got|confused|was\s+wrong|misheard|mistyped)\b[^,:;]{0,40}|turned\s+out|it\s+turned\s+out(?:\s+that)?)\s*(?:[,:;–—-]|\.\s|(?<=days)|(?<=today)|(?<=now)|(?<=on)|(?<=out)|(?<=that))\s*))+",
    re.IGNORECASE,
)
TIME_LEAD = re.compile(
    r"(?:(?:on|in|since|until|by|from|at|during|after|before)\s+[^,]{2,30},\s+|(?:yesterday|today|tonight|tomorrow|(?:last|next|this|every|each)\s+\w+|(?:since|in|on|from)\s+(?:\d{1,2}\s+)?(?:\w+day|\w+uary|march|april|may|june|july|august|\w+ember|october|spring|summer|autumn|winter|\d{4}|q[1-4]))\s*,?\s+(?=(?:i|we|i'm|we're|i've|we've|my|our|the)\b))",
    re.IGNORECASE,
)
FOR_TOPIC = re.compile(r"(?:for|on|at|in)\s+(?:the\s+|my\s+|our\s+)?[\w-]+\s+(?=(?:i|we|i'm|we're)\b)", re.IGNORECASE)
PLEASE = re.compile(r"(?:please|pls|kindly|do|don['’]t|do\s+not|never|always|and|also|just|only)\b[,\s]*", re.IGNORECASE)
CALL_ME = re.compile(r"(?:please\s+|just\s+|you\s+can\s+)*call\s+me\s+(?P<name>[^\s,.;!?]+(?:\s+[A-Z][^\s,.;!?]*)?)|\bi\s+go\s+by\s+(?P<by>[A-Z][^\s,.;!?]*)", re.IGNORECASE)
STANDING = re.compile(r"\b(?:always|never|every|each|from\s+now\s+on|from\s+today|in\s+future|in\s+the\s+future|only|any\s?more|whenever|by\s+default|at\s+all\s+times)\b", re.IGNORECASE)
SPLIT = re.compile(r"(?:;\s+|,?\s+(?:and|but)\s+)(?=(?:i|we|my|our|the|he|she)\b|i['’]m\b|we['’]re\b)", re.IGNORECASE)
COMMITTED = re.compile(r"\b(?:decided|decide|agreed|chose|chosen|settled|committed|opted|resolved|signed|approved|we['’]ll\s+never|i['’]ll\s+never|gone\s+with|went\s+with|going\s+with|stay(?:s|ing)?\s+with|stick(?:ing)?\s+with|stays?\s+on|no\s+discussion|decision)\b", re.IGNORECASE)
PLANNED = re.compile(r"\b(?:will|'ll|going\s+to|plan(?:s|ning)?\s+to|booked|about\s+to|scheduled)\b", re.IGNORECASE)
NEGATED = re.compile(r"\b(?:not|never|no|nothing|nobody|none|neither|cannot|without)\b|n['’]t\b|\bno\s+longer\b", re.IGNORECASE)
AIMLESS = re.compile(r"(?:while|before|when)\s[^,]*[.!]?$|quick\s+(?:one|question)\b|(?:one|two|three|a\s+few)\s+(?:more\s+)?things?\b", re.IGNORECASE)
NAME = re.compile(r"(?<=[a-z0-9,;:)’'\"“]\s)(?:[\"“(]?)[A-Z][\w'’-]*")
NUMBER = re.compile(r"\d")
MINE = re.compile(r"\b(?:my|our)\s+(?:other\s+|new\s+|old\s+|own\s+|little\s+|big\s+|youngest\s+|eldest\s+)?(\w+)", re.IGNORECASE)
GENERIC = frozenset(s for w in lexicon.GENERIC for s in words.normal(w))
CHATTY = frozenset(
    "think guess know see need hope wonder mean feel understand agree try look talk ask say tell wait bet suppose notice realise realize remember"
    " forget worry hear find want wish thank appreciate apologise apologize promise get let make come go do be have seem sound continue stand main".split()
) - {"stand", "main"}
TALK = frozenset(
    s
    for w in (
        "coffee lunch break breakfast dinner nap sleep meeting meetings question answer joke traffic weather rain morning evening night day week"
        " weekend moment second minute message reply explanation output response link chat conversation today help thanks track time typo"
        " delivery sun snow wind news fun luck idea point mind found".split()
    )
    for s in words.normal(w)
)


def distil(text: str, *, origin: Origin, said_at: float, timezone: str = "UTC") -> Distilled:
    """All that a message says which may be remembered, and what it says which may not.

    Only what users say, and what is imported for them, becomes a memory: what an assistant, a tool or a job says is no fact of the user's.
    """
    if origin not in ("user", "import"):
        rule = f"said_by_{origin}"
        whole = Refusal(text=text[: sentences.LONGEST], start=0, end=min(len(text), sentences.LONGEST), rule=rule)
        return Distilled(refusals=(whole,)) if text.strip() else Distilled()
    zone = times.zone_named(timezone)
    candidates: list[Candidate] = []
    refused: list[Refusal] = []
    for piece in sentences.pieces(text):
        said = text[piece.start : piece.end]
        if piece.rule or len(candidates) >= MOST:
            said = said[: sentences.LONGEST]
            refused.append(Refusal(text=said, start=piece.start, end=piece.start + len(said), rule=piece.rule or "too_much"))
            continue
        rule = refusal(said)
        found = [] if rule else list(read(said, noted=piece.noted, said_at=said_at, zone=zone))
        for candidate in found:
            candidates.append(moved(candidate, piece.start))
        if not found:
            refused.append(Refusal(text=said, start=piece.start, end=piece.end, rule=rule or no_matter(said)))
    return Distilled(candidates=tuple(candidates), refusals=tuple(refused))


def moved(candidate: Candidate, by: int) -> Candidate:
    values = {name: getattr(candidate, name) for name in Candidate.__slots__}
    return Candidate(**values | {"start": candidate.start + by, "end": candidate.end + by})


def refusal(text: str) -> str:
    """The rule by which a sentence is no statement, judged by its form alone; empty if it may be one."""
    body = bare(text)
    if refusals.asks(text) or refusals.asks(body):
        return "question"
    if quoted := refusals.quotes(body):
        return quoted
    if refusals.supposes(body):
        return "hypothetical"
    if refusals.WISH.search(body):
        return "wish"
    return ""


def no_matter(text: str) -> str:
    """The rule by which a sentence that says nothing to keep is refused."""
    if refusals.GREETING.match(text) or refusals.PASSING.match(text):
        return "small_talk"
    return "request" if asked_for(text, cue="none") else "nothing_to_keep"


def bare(text: str) -> str:
    """The sentence without what leads into it."""
    lead = LEAD_IN.match(text)
    return text[lead.end() :] if lead and lead.end() < len(text) else text


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What was understood of a stretch of a sentence."""

    clause: Clause | None
    slot: slots.Slot | None
    cause: causes.Cause | None
    cue: cues.Found
    words: list[Word]


def understand(text: str) -> Reading:
    cue = cues.cue_of(text)
    cause = causes.cause_of(bare(text))
    body = cause.effect if cause and not cause.late else bare(text)
    if cause and cause.late:
        body = cause.cause
    body = body[lead.end() :] if (lead := LEAD_IN.match(body)) and lead.end() < len(body) else body
    body = body[lead.end() :] if (lead := TIME_LEAD.match(body)) and lead.end() < len(body) else body
    body = body[lead.end() :] if (lead := FOR_TOPIC.match(body)) and lead.end() < len(body) else body
    if cause and cause.late and cue.cue != "correction":
        cue = cues.NOTHING
    found = clauses.tokens(body)
    clause, slot = slots.best(body, found)
    return Reading(clause=clause, slot=named(text) or slot, cause=cause, cue=cue, words=found)


def named(text: str) -> slots.Slot | None:
    """Call me Bo."""
    found = CALL_ME.search(text)
    return slots.Slot(rule="call_me", subject=phrases.USER, attribute="name", values=(found["name"] or found["by"],), single=True) if found else None


def read(text: str, *, noted: bool, said_at: float, zone: ZoneInfo) -> Iterator[Candidate]:
    """The candidates of one sentence: one, or one for each of its clauses if each of them fills a slot of its own."""
    reading = understand(text)
    if reading.cue.cue == "retraction":
        yield retraction(text, reading)
        return
    if reading.cause is None:
        parts = list(apart(text))
        if len(parts) > 1:
            readings = [understand(text[start:end]) for start, end in parts]
            if all(r.slot is not None and r.slot.subject and r.slot.values and r.cue.cue == "none" and worth(text[a:b], r, kind_of(text[a:b], r)) for (a, b), r in zip(parts, readings, strict=True)):
                for (start, end), part in zip(parts, readings, strict=True):
                    yield from whole(text[start:end], part, noted=noted, said_at=said_at, zone=zone, start=start)
                return
    yield from whole(text, reading, noted=noted, said_at=said_at, zone=zone)


def apart(text: str) -> Iterator[tuple[int, int]]:
    """The places of the clauses of a sentence."""
    at = 0
    for found in SPLIT.finditer(text):
        yield at, found.start()
        at = found.end()
    yield at, len(text)


def retraction(text: str, reading: Reading) -> Candidate:
    return Candidate(
        text=text, start=0, end=len(text), kind="instruction", rule="retraction", cue="retraction", about=reading.cue.about, terms=terms(reading.cue.about)
    )


def whole(text: str, reading: Reading, *, noted: bool, said_at: float, zone: ZoneInfo, start: int = 0) -> Iterator[Candidate]:
    slot, cause, cue = reading.slot, reading.cause, reading.cue
    kind = kind_of(text, reading)
    if not noted and not worth(text, reading, kind):
        return
    past = reading.clause is not None and (reading.clause.past or reading.clause.verb in ("turn",))
    how = cue.cue
    if how == "none" and slot is not None and slot.changed:
        how = "update"
    if how == "update" and slot is not None and slot.values and slot.rule == "has":
        how = "update"
    yield Candidate(
        text=text,
        start=start,
        end=start + len(text),
        kind=kind,
        rule=slot.rule if slot is not None else ("note" if noted else kind),
        subject=slot.subject if slot else "",
        attribute=slot.attribute if slot else "",
        values=slot.values if slot else (),
        single=bool(slot and slot.single) and how != "addition",
        negated=bool(reading.clause and reading.clause.negated) or (kind == "instruction" and bool(NEGATED.search(text))) or cannot_stand(text),
        cue=how,
        about=cue.about or (slot.old if slot else ""),
        cause=cause.cause if cause else "",
        effect=cause.effect if cause else "",
        happened=times.happened(text, said_at=said_at, zone=zone, past=past),
        terms=terms(text, cue.spans, verb=reading.clause.verb if reading.clause and reading.clause.subject else ""),
    )


def cannot_stand(text: str) -> bool:
    return bool(refusals.re.search(r"\b(?:can['’]t|cannot)\s+stand\b|\bno\s+longer\b|\bnothing\s+of\b|\bno\s+(?:plans?|upgrade|car|more)\b", text, refusals.I))


def terms(text: str, spans: tuple[tuple[int, int], ...] = (), *, verb: str = "") -> tuple[str, ...]:
    """The content words of a sentence, numbers whole; the words of its cue and its verb are left out."""
    for start, end in spans:
        text = f"{text[:start]} {text[end:]}"
    found: dict[str, None] = {}
    for match in clauses.WORD.finditer(text):
        word = match.group().lower()
        if any(c.isdigit() for c in word):
            found[word] = None
        elif not (verb and word in lexicon.VERBS and lexicon.VERBS[word].lemma == verb):
            found.update(dict.fromkeys(w for part in re.split(r"[-'’./&@]", word) for w in words.normal(part) if w not in GENERIC))
    return tuple(found)[:MOST_TERMS]


def kind_of(text: str, reading: Reading) -> Kind:
    clause = reading.clause
    if clause is not None and clause.subject and clause.verb in lexicon.TASTES and phrases.phrase(clause.subject).whole == phrases.USER:
        return "preference"
    if refusals.re.search(r"\b(?:favou?rite|rather\s+\w+\s+\w+\s+than|can['’]t\s+stand|prefer)\b", text, refusals.I):
        return "preference"
    if clause is not None and clause.command:
        return "instruction"
    if COMMITTED.search(text):
        return "decision"
    if clause is not None and (clause.modal in ("will", "won't", "shall") or clause.going) and (PLANNED.search(text) or clause.verb in ("go", "fly", "move", "travel", "visit", "take", "spend", "leave")):
        return "plan"
    if clause is not None and clause.past and clause.verb not in ("be", "have", "like"):
        return "event"
    return "fact"


def asked_for(text: str, *, cue: str) -> bool:
    """A task for here and now."""
    found = clauses.tokens(bare(text))
    i = 0
    while i < len(found) and found[i].low in ("please", "pls", "kindly", "just", "now", "then"):
        i += 1
    return i < len(found) and found[i].low in lexicon.TASKS and not STANDING.search(text) and cue == "none"


def worth(text: str, reading: Reading, kind: Kind) -> bool:
    """Is there anything in it that would be missed: a name, a number, a relation, a deed, a taste, a standing wish, a change?"""
    slot, clause = reading.slot, reading.clause
    content = [t for t in terms(text, reading.cue.spans) if t not in TALK]
    if not content or text.endswith(":") or AIMLESS.match(text):
        return False
    if asked_for(text, cue=reading.cue.cue):
        return False
    if kind == "instruction":
        return bool(STANDING.search(text) or reading.cue.cue != "none" or anchored(text) or (slot is not None and slot.rule == "call_me"))
    if slot is not None and slot.subject and any(phrases.shape(v) != "words" for v in slot.values):
        return True
    if reading.cause is not None and len(content) > 2:
        return True
    if clause is None:
        return anchored(text) and len(content) > 1 and not refusals.GREETING.match(text)
    if kind in ("decision", "plan") and len(content) > 1 and not refusals.PASSING.match(text) and not refusals.GREETING.match(text):
        return True
    if kind == "preference" and slot is not None and slot.values:
        return True
    if reading.cue.cue in ("correction", "reversal", "update"):
        return True
    return told(text, reading, content) or (anchored(text) and (not refusals.PASSING.match(text) or bool(NUMBER.search(text))) and not (refusals.GREETING.match(text) and len(content) < 3))


def anchored(text: str) -> bool:
    """Does it hold a name, a number or a relation of the speaker's?"""
    if NUMBER.search(text) or NAME.search(text):
        return True
    return any(m[1].lower() not in lexicon.PASSING for m in MINE.finditer(text))


def told(text: str, reading: Reading, content: list[str]) -> bool:
    """Does the speaker tell something about themselves, or of a deed?"""
    clause = reading.clause
    if clause is None:
        return False
    subject = phrases.phrase(clause.subject)
    if not clause.subject or subject.whole == phrases.USER:
        if reading.slot is not None and reading.slot.rule == "adjective" and clause.verb == "be":
            return True
        if clause.verb in lexicon.TASTES or clause.verb in lexicon.DEEDS:
            return bool(reading.slot and (reading.slot.values or clause.verb in lexicon.DEEDS))
        return bool(clause.subject) and (clause.verb not in CHATTY or clause.going) and not clause.modal and len(content) > 1 and not refusals.PASSING.match(text)
    return subject.definite and (clause.verb in lexicon.DEEDS or clause.going) and not subject.pronoun
