"""From a message to candidates: each sentence is refused by a named rule, or kept word for word with what was understood of it."""

from __future__ import annotations

from collections.abc import Iterator
from zoneinfo import ZoneInfo

from mnemon.memory.distil import clauses, phrases, readings, refusals, sentences, times, turning, worth
from mnemon.memory.distil.readings import Reading
from mnemon.memory.statements import CHANGE_OF_MIND, Candidate, Distilled, Kind, Origin, Refusal

VERSION = 1
MOST = 200  # candidates of one message; a message that says more is a document
MOST_PIECES = 4000  # sentences that are looked at


def distil(text: str, *, origin: Origin, said_at: float, timezone: str = "UTC") -> Distilled:
    """All that a message says which may be remembered, and what it says which may not.

    Only what users say, and what is imported for them, becomes a memory: what an assistant, a tool or a job says is no fact of the user's.
    """
    if origin not in ("user", "import"):
        return _refused_whole(text, rule=f"said_by_{origin}")
    zone = times.zone_named(timezone)
    candidates: list[Candidate] = []
    refused: list[Refusal] = []
    announced = False
    for count, piece in enumerate(sentences.pieces(text)):
        if count == MOST_PIECES:
            refused.append(
                Refusal(
                    text=text[piece.start : piece.start + sentences.LONGEST],
                    start=piece.start,
                    end=min(len(text), piece.start + sentences.LONGEST),
                    rule="too_much",
                )
            )
            break
        rule = piece.rule or ("too_much" if len(candidates) >= MOST else "")
        found: list[Candidate] = []
        if not rule:
            reading = _read(text[piece.start : piece.end])
            rule = reading.refused
            if announced and not rule:
                reading = readings.turned(reading)
            found = [] if rule else list(_candidates(reading, at=piece.start, noted=piece.noted, said_at=said_at, zone=zone))
            rule = rule or ("" if found else worth.nothing_in(reading))
            # "Okay, you win. We take the train." "Scratch that. We walk."
            announced = reading.turned and not found if reading.cue.cue != "retraction" else not reading.cue.about
        candidates += found
        if not found:
            end = min(piece.end, piece.start + sentences.LONGEST)
            refused.append(Refusal(text=text[piece.start : end], start=piece.start, end=end, rule=rule))
    return Distilled(candidates=tuple(candidates), refusals=tuple(refused))


def _read(text: str) -> Reading:
    """Read a sentence; of one that first tells and then asks, what it tells."""
    reading = readings.read(text)
    if reading.refused == "question" and (end := refusals.told_before_asking(reading.low)):
        told = readings.read(text[:end])
        return reading if told.refused or not worth.anchored(told) else told
    return reading


def _refused_whole(text: str, *, rule: str) -> Distilled:
    if not text.strip():
        return Distilled()
    end = min(len(text), sentences.LONGEST)
    return Distilled(refusals=(Refusal(text=text[:end], start=0, end=end, rule=rule),))


def _candidates(reading: Reading, *, at: int, noted: bool, said_at: float, zone: ZoneInfo) -> Iterator[Candidate]:
    """The candidates of one sentence: one, or one for each of its clauses if each of them fills a slot of its own."""
    if reading.cue.cue == "retraction":
        yield _retraction(reading, at)
        return
    parts = readings.apart(reading) if reading.cause is None else []
    if len(parts) > 1 and all(_stands_alone(part) for _, part in parts):
        for start, part in parts:
            yield _candidate(part, at=at + start, noted=noted, said_at=said_at, zone=zone)
    elif noted or worth.keeping(reading):
        yield _candidate(reading, at=at, noted=noted, said_at=said_at, zone=zone)


def _stands_alone(part: Reading) -> bool:
    return part.slot is not None and bool(part.slot.subject and part.slot.values) and part.cue.cue == "none" and worth.keeping(part)


def _retraction(reading: Reading, at: int) -> Candidate:
    about = reading.cue.about
    told = readings.read(about) if reading.cue.clause else None
    slot = told.slot if told else None
    return Candidate(
        text=reading.text,
        start=at,
        end=at + len(reading.text),
        kind="instruction",
        rule="retraction",
        subject=slot.subject if slot else phrases.USER if phrases.own(about) else "",
        attribute=slot.attribute if slot else "",
        values=slot.values if slot else (),
        cue="retraction",
        about=about,
        terms=readings.terms(clauses.tokens(about)),
    )


def _rule(reading: Reading, kind: Kind, *, noted: bool) -> str:
    """The rule that found a statement, by the words that tell most of it."""
    if reading.turned:
        return CHANGE_OF_MIND
    return reading.slot.rule if reading.slot is not None else "note" if noted else kind


def _candidate(reading: Reading, *, at: int, noted: bool, said_at: float, zone: ZoneInfo) -> Candidate:
    slot, cause, text = reading.slot, reading.cause, reading.text
    cue = reading.cue.cue
    if cue == "none" and ((slot is not None and slot.changed) or turning.soft(text)):
        cue = "update"
    kind = worth.kind_of(reading)
    return Candidate(
        text=text,
        start=at,
        end=at + len(text),
        kind=kind,
        rule=_rule(reading, kind, noted=noted),
        subject=slot.subject if slot else "",
        attribute=slot.attribute if slot else "",
        values=slot.values if slot else (),
        single=slot is not None and slot.single and cue != "addition",
        negated=worth.negated(reading),
        cue=cue,
        about=reading.cue.about or (slot.old if slot else ""),
        cause=cause.cause if cause else "",
        effect=cause.effect if cause else "",
        happened=times.happened(text, reading.lows, said_at=said_at, zone=zone, past=reading.clause is not None and reading.clause.past),
        terms=reading.terms,
    )
