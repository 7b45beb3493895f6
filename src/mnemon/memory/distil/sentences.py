"""Cut a message into sentences with their exact places, and set aside what nobody says: code, logs, quoted mail, pasted documents.

Every pattern here is linear: a message of a megabyte is read once.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from mnemon.memory.distil import borrowed, patterns

LONGEST = 1000  # characters; what is longer is no sentence
LONG_PASTE = 1500
PERSONAL_EVERY = 400  # a text of one's own says "I" or "we" at least this often

FENCE = patterns.pattern(r"[ \t]*(?:>[ \t]?)*(?P<mark>`{3,}|~{3,})")
NOTE = patterns.pattern(
    r"[\s#/*;>-]*(?:(?:side)?note|n\.?b\.?|p\.?\s?s\.?|reminder|remember|fyi|heads[- ]?up|memo|todo)\b[^:.!?\n]{0,40}?[:,]\s*(?=\S)",
    re.IGNORECASE,
)
LOG = patterns.pattern(
    r"\s*(?:[\[(<]?(?:\d{4}[-/]\d\d[-/]\d\d|\d\d[:.]\d\d[:.]\d\d|[A-Z][a-z]{2}\s+\d{1,2}\s\d\d:\d\d)|"
    r"\[?(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL|CRITICAL|SEVERE)\b[\]:]?\s|"
    r"(?:\$|>>>|%|C:\\>)\s\S|at\s+[\w$.]+\([\w.]+:\d+\)|File\s\"[^\"]*\",\sline\s\d|Traceback\b|\w+(?:Error|Exception):\s|"
    r"\d{1,3}(?:\.\d{1,3}){3}\s+-|\[\d+(?:/\d+)?\]\s|={5,}|-{5,}|\*{5,}|\+-{3,}|\|\s)"
)
CODE = patterns.pattern(
    r"\s*(?:(?:def|class|func|fn|const|let|var|import|from|return|public|private|static|select|insert|update|delete|#include|package|using)\s"
    r"[^.!?]*[;:{}()=]\s*$|[}{)\]];?\s*$|</?\w+[^>]*>|\w+(?:\.\w+)*\([^)]*\);?\s*$|[\w.\[\]]+\s*[-+*/|&]?=\s*\S+\s*;?$|//|/\*|[\w.-]+:\s*[\[{]|"
    r"\"[\w.-]+\":\s|[\w-]+:\s[\w.\"'-]+$|--\w)"
)
QUOTED_LINE = patterns.pattern(r"\s*>\s?\S")
FENCED = patterns.pattern(r"```[^`]*```")
BULLET = patterns.pattern(r"\s*(?:[-*•–—]|\d{1,2}[.)]|[a-z]\))\s+")
INTRO = patterns.pattern(
    r"(?:here(?:'s|\s+is|\s+are|\s+comes)|below|pasting|pasted|copy\s+of|this\s+is\s+what|output|see\s+the|attached|long\s+output|the\s+(?:text|mail|email|article|"
    r"log|document|transcript|page|letter)\b)[^\n]{0,120}:\s*$",
    re.IGNORECASE,
)
PERSONAL = patterns.pattern(r"\b(?:I|I'm|I've|I'll|[Ww]e|[Ww]e're|[Ww]e've|[Mm]y|[Oo]ur|me|us)\b")
QUOTE = patterns.pattern(r"\"[^\"\n]{1,600}\"|“[^”\n]{1,600}”|„[^“”\n]{1,600}[“”]|«[^»\n]{1,600}»")
# Both ends begin with a sign, named first: so the text is searched for the signs alone.
STOP = patterns.pattern(r"[.!?…。！？](?:(?<=[.!?…])[.!?…]*[\"”’)\]]*(?=\s|$)|(?<=[。！？])[。！？]*[」』”]?)\s*")
ABBREVIATIONS = frozenset(
    "dr mr mrs ms prof st sr jr no nr vs e.g i.e approx ca cf fig corp dept est gen col sgt rev hon min max u.s jan feb mar apr jun jul"
    " aug sep sept oct nov dec ave blvd vol p pp art ph.d".split()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A stretch of the message: a sentence (`rule` is empty), or what is set aside and by which rule; `noted` if a note marks it."""

    start: int
    end: int
    rule: str = ""
    noted: bool = False


def pieces(text: str) -> Iterator[Piece]:
    """The sentences of a message and what stands between them, in order."""
    pasted = not own_words(text)
    run: list[tuple[int, int]] = []
    aside: Piece | None = None
    others = borrowed.stretches(text)
    for start, end, kind in borrowed.set_aside(lines(text), others) if others else lines(text):
        rule = kind
        if not kind and pasted and (aside is None or aside.rule != "log"):  # words among log lines are somebody's
            rule = "pasted"
        if run and rule:
            yield from sentences(text, run)
            run = []
        if rule not in ("", "note"):
            if aside is not None and aside.rule != rule:
                yield aside
                aside = None
            aside = Piece(start=aside.start if aside else start, end=end, rule=rule)
            continue
        if aside is not None:
            yield aside
            aside = None
        if rule == "note":
            yield from (Piece(start=s.start, end=s.end, noted=True) for s in sentences(text, [(start, end)]))
            continue
        run.append((start, end))
        pasted = pasted or (len(text) > LONG_PASTE and bool(INTRO.search(text, start, end)) and not FENCE.match(text, end + 1))
    yield from sentences(text, run)
    if aside is not None:
        yield aside


def own_words(text: str) -> bool:
    """Does somebody speak here, or is it a document? Code does not count."""
    if len(text) <= LONG_PASTE:
        return True
    prose = FENCED.sub("", text)
    enough = len(prose) // PERSONAL_EVERY
    return sum(1 for _ in zip(range(enough), PERSONAL.finditer(prose), strict=False)) >= enough


def lines(text: str) -> Iterator[tuple[int, int, str]]:
    """(start, end, rule) of each line that is not blank; `rule` says what kind of no-prose it is."""
    fence = ""
    start = 0
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        opened = FENCE.match(text, start, end)
        if opened and (not fence or opened["mark"].startswith(fence)):
            fence = "" if fence else opened["mark"]
            yield start, end, "code"
        elif fence:
            yield start, end, "code"
        elif not text[start:end].isspace() and end > start:
            yield start, end, kind_of(text, start, min(end, start + LONGEST))
        start = end + 1


def kind_of(text: str, start: int, end: int) -> str:
    if NOTE.match(text, start, min(end, start + 200)):
        return "note"
    if QUOTED_LINE.match(text, start, end):
        return "quotation"
    if LOG.match(text, start, end):
        return "log"
    if CODE.match(text, start, end):
        return "code"
    return ""


def sentences(text: str, run: list[tuple[int, int]]) -> Iterator[Piece]:
    """The sentences of some lines of prose; a line that goes on in small letters is one with the next."""
    quoted = '"' in text or "“" in text or "„" in text or "«" in text
    for start, end in paragraphs(text, run):
        quotes = [m.span() for m in QUOTE.finditer(text, start, end)] if quoted else []
        starts = [s for s, _ in quotes]
        at = start
        for stop in STOP.finditer(text, start, end):
            place = bisect_right(starts, stop.start()) - 1
            if place >= 0 and stop.end() < quotes[place][1]:
                continue
            if goes_on(text, at, stop, end):
                continue
            yield from trimmed(text, at, stop.end())
            at = stop.end()
        yield from trimmed(text, at, end)


def goes_on(text: str, at: int, stop: re.Match[str], end: int) -> bool:
    """Whether this full stop is part of an abbreviation, a number or an ellipsis."""
    if stop.end() >= end:
        return False
    following = text[stop.end()]
    mark = text[stop.start()]
    if following.islower() and mark in ".…" and text[stop.start() : stop.end()].strip().endswith((".", "…")):
        return True
    if mark != ".":
        return False
    word = text[max(at, stop.start() - 12, text.rfind(" ", at, stop.start()) + 1) : stop.start()].lower().lstrip("([\"'“")
    return word in ABBREVIATIONS or (len(word) == 1 and word.isalpha() and word != "i")


def paragraphs(text: str, run: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    begun: tuple[int, int] | None = None
    for start, end in run:
        bullet = BULLET.match(text, start, end)
        if begun is not None:
            if not bullet and begun[1] == start - 1 and text[start].islower() and text[begun[1] - 1] not in ".!?:;":
                begun = (begun[0], end)
                continue
            yield begun
        begun = (bullet.end() if bullet else start, end)
    if begun is not None:
        yield begun


def trimmed(text: str, start: int, end: int) -> Iterator[Piece]:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if start < end:
        yield Piece(start=start, end=end, rule="too_long" if end - start > LONGEST else "")
