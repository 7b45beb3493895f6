"""Recalled passages in a prompt: which of them fit, and how they are written.

They stand in the order in which they were said, under the day they were said on. A stamp in brackets that messages open with, as bridges of
other chats put there, is written once for all that follow with the same; pieces that follow each other in one message are one item. The
server's own words about a passage stand behind what they are about, and a passage that others speak of shows its number.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from mnemon.context import blocks, tokens
from mnemon.core import clock
from mnemon.core.records import Recalled

STAMP = re.compile(r"\[[^\]\n]{1,60}\](?= \S)")
BREAK = 4  # characters that may stand between two pieces of a message: blanks and line breaks
LINE_JOIN = 1
HEADING_JOIN = 5  # its line break, with the margin of a count in pieces
NUMBER = 10  # what "#12345ab " costs at most, with any margin
BLOCK_JOIN = 2
LABEL = 10  # what "- [assistant] " costs at most, with any margin


def block(shown: Sequence[Recalled]) -> str:
    """The passages as the model sees them."""
    lines: list[str] = []
    day = in_force = ""
    spoken_of = named(shown)
    for index, passage in enumerate(shown):
        if (today := clock.day(passage.at)) != day:
            lines.append(today)
            day = today
        own = stamp(passage)
        text = marked(passage)[len(own) :] if own == in_force else marked(passage)
        in_force = own or in_force
        numbered = bool(spoken_of) and passage.key in spoken_of
        goes_on = index and not numbered and follows(shown[index - 1], passage)
        lines.append(f"  {blocks.body(text)}" if goes_on else item(passage, text, numbered=numbered))
    return blocks.recall(lines)


def named(shown: Sequence[Recalled]) -> set[str]:
    """The keys of passages that have something said about them, or that others speak of."""
    return {r.key for r in shown if r.marks} | {key for r in shown if r.needs or r.beside for key in (*r.needs, r.beside)}


def marked(passage: Recalled) -> str:
    """A passage with the server's own words in it."""
    if not passage.marks:
        return passage.text
    pieces = []
    start = 0
    for end, words in passage.marks:
        pieces += [passage.text[start:end], f" {words}"]
        start = end
    return "".join([*pieces, passage.text[start:]])


class Line(NamedTuple):
    """A passage with what it takes long to work out: its key, the headings it needs, and its price without them."""

    passage: Recalled
    key: str
    day: str
    stamp: str
    price: int


def fit(found: Sequence[Recalled], *, counter: tokens.Counter, room: int) -> tuple[list[Recalled], int]:
    """The best passages that fit, each with those it needs or not at all, in the order in which they were said, and their price."""
    if not found:
        return [], 0
    frame = spent = counter.count(blocks.recall([])) + BLOCK_JOIN
    by_key = {line.key: line for line in (priced(passage, counter) for passage in found)}
    units: list[list[Line]] = []
    shown: dict[str, Line] = {}
    headings: set[str] = set()
    for line in by_key.values():
        unit = [each for each in together(line, by_key) if each.key not in shown]
        opened = {heading for each in unit for heading in (each.day, each.stamp)} - headings
        cost = sum([each.price for each in unit]) + sum([heading_price(heading, counter) for heading in opened])
        if unit and spent + cost <= room:
            units.append(unit)
            shown |= {each.key: each for each in unit}
            headings |= opened
            spent += cost
    ordered = in_order([line.passage for line in shown.values()])
    while units and (spent := frame + written_price([by_key[r.key] for r in ordered], counter)) > room:
        for each in units.pop():  # sessions took turns: a day or a stamp stands there twice
            ordered.remove(each.passage)
    return (ordered, spent) if ordered else ([], 0)


def priced(passage: Recalled, counter: tokens.Counter) -> Line:
    own = stamp(passage)
    return Line(passage, passage.key, clock.day(passage.at), own, price(passage, own, counter))


def together(line: Line, by_key: Mapping[str, Line]) -> list[Line]:
    """A line, what it needs, and what that needs; nothing if any of it is missing."""
    if not line.passage.needs:
        return [line]
    found = {line.key: line}
    todo = list(line.passage.needs)
    for key in todo:
        if key not in by_key:
            return []
        if key not in found:
            found[key] = by_key[key]
            todo += by_key[key].passage.needs
    return list(found.values())


def in_order(passages: Iterable[Recalled]) -> list[Recalled]:
    """In the order of saying, but one that is to stand beside another follows it."""
    order = {r.key: (r.at, r.position, r.start) for r in passages}
    return sorted(passages, key=lambda r: (*order.get(r.beside, order[r.key]), r.beside in order, *order[r.key]))


def written_price(ordered: Sequence[Line], counter: tokens.Counter) -> int:
    """What lines cost in this order: each with the headings that `block` writes before it."""
    total = 0
    day = in_force = ""
    for line in ordered:
        total += line.price
        if line.day != day:
            total += heading_price(line.day, counter)
        if line.stamp != in_force:
            total += heading_price(line.stamp, counter)
        day, in_force = line.day, line.stamp or in_force
    return total


def price(passage: Recalled, own: str, counter: tokens.Counter) -> int:
    """The count of a passage's line without its stamp, and of the numbers it makes others show.

    Where the whole text was counted before and is shown as it is, only its label is counted.
    """
    numbers = NUMBER * len(passage.needs)
    text = passage.text
    if (
        passage.tokens is not None
        and not (own or passage.marks)
        and passage.counted_by == counter.name
        and "<" not in text
        and text.isprintable()
    ):
        return passage.tokens + LABEL + numbers
    if passage.marks or not counter.loaded:
        return counter.count(item(passage, marked(passage)[len(own) :], numbered=bool(passage.marks))) + LINE_JOIN + numbers
    return counted(counter, passage.role, text, len(own)) + LINE_JOIN + numbers


@lru_cache(maxsize=2048)
def counted(counter: tokens.Counter, role: str, text: str, start: int) -> int:
    """What a line costs of which nothing is said. The same ones are priced turn after turn."""
    return counter.count(labelled(role, text[start:]))


def heading_price(heading: str, counter: tokens.Counter) -> int:
    """What a day or a stamp costs on a line of its own."""
    return counter.count(heading) + HEADING_JOIN if heading else 0


def stamp(passage: Recalled) -> str:
    """What a message opens with in brackets, if anything."""
    found = STAMP.match(passage.text) if passage.start == 0 else None
    return found[0] if found else ""


def item(passage: Recalled, text: str, *, numbered: bool) -> str:
    return labelled(f"{passage.name} {passage.role}" if numbered and passage.name else passage.role, text)


def labelled(label: str, text: str) -> str:
    return f"- [{label}] {blocks.body(text)}"


def follows(before: Recalled, passage: Recalled) -> bool:
    """Whether a passage goes on where another of the same message ends."""
    same = (before.session_id, before.position) == (passage.session_id, passage.position)
    return same and 0 <= passage.start - before.start - len(before.text) <= BREAK
