"""Recalled passages in a prompt: which of them fit, and how they are written.

They stand in the order in which they were said, under the day they were said on. A stamp in brackets that messages open with, as bridges of
other chats put there, is written once for all that follow with the same; pieces that follow each other in one message are one item. The
server's own words about a passage stand behind what they are about, and a passage that others speak of shows its number.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

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
        goes_on = index and follows(shown[index - 1], passage) and passage.key not in spoken_of
        lines.append(f"  {blocks.body(text)}" if goes_on else item(passage, text, numbered=passage.key in spoken_of))
    return blocks.recall(lines)


def named(shown: Sequence[Recalled]) -> set[str]:
    """The keys of passages that have something said about them, or that others speak of."""
    return {r.key for r in shown if r.marks} | {key for r in shown for key in (*r.needs, r.beside)}


def marked(passage: Recalled) -> str:
    """A passage with the server's own words in it."""
    pieces = []
    start = 0
    for end, words in passage.marks:
        pieces += [passage.text[start:end], f" {words}"]
        start = end
    return "".join([*pieces, passage.text[start:]])


def fit(found: Sequence[Recalled], *, counter: tokens.Counter, room: int) -> tuple[list[Recalled], int]:
    """The best passages that fit, each with those it needs or not at all, in the order in which they were said, and their price."""
    if not found:
        return [], 0
    frame = spent = counter.count(blocks.recall([])) + BLOCK_JOIN
    by_key = {passage.key: passage for passage in found}
    units: list[list[Recalled]] = []
    shown: dict[str, Recalled] = {}
    headings: set[str] = set()
    for passage in found:
        unit = [each for each in together(passage, by_key) if each.key not in shown]
        opened = {heading for each in unit for heading in (clock.day(each.at), stamp(each))} - headings
        cost = sum(price(each, counter) for each in unit) + sum(heading_price(heading, counter) for heading in opened)
        if unit and spent + cost <= room:
            units.append(unit)
            shown |= {each.key: each for each in unit}
            headings |= opened
            spent += cost
    ordered = in_order(shown.values())
    while units and (spent := frame + written_price(ordered, counter)) > room:  # sessions took turns: a day or a stamp stands there twice
        for each in units.pop():
            ordered.remove(each)
    return (ordered, spent) if ordered else ([], 0)


def together(passage: Recalled, by_key: Mapping[str, Recalled]) -> list[Recalled]:
    """A passage, what it needs, and what that needs; nothing if any of it is missing."""
    found = {passage.key: passage}
    todo = list(passage.needs)
    for key in todo:
        if key not in by_key:
            return []
        if key not in found:
            found[key] = by_key[key]
            todo += by_key[key].needs
    return list(found.values())


def in_order(passages: Iterable[Recalled]) -> list[Recalled]:
    """In the order of saying, but one that is to stand beside another follows it."""
    order = {r.key: (r.at, r.position, r.start) for r in passages}
    return sorted(passages, key=lambda r: (*order.get(r.beside, order[r.key]), r.beside in order, *order[r.key]))


def written_price(ordered: Sequence[Recalled], counter: tokens.Counter) -> int:
    """What passages cost in this order: each with the headings that `block` writes before it."""
    total = 0
    day = in_force = ""
    for passage in ordered:
        today, own = clock.day(passage.at), stamp(passage)
        total += price(passage, counter)
        total += heading_price(today, counter) * (today != day) + heading_price(own, counter) * (own != in_force)
        day, in_force = today, own or in_force
    return total


def price(passage: Recalled, counter: tokens.Counter) -> int:
    """The count of a passage's line without its stamp, and of the numbers it makes others show.

    Where the whole text was counted before and is shown as it is, only its label is counted.
    """
    own = stamp(passage)
    numbers = NUMBER * len(passage.needs)
    known = passage.tokens is not None and passage.counted_by == counter.name and not passage.marks
    if known and not own and passage.text.isprintable() and "<" not in passage.text:
        return int(passage.tokens or 0) + LABEL + numbers
    return counter.count(item(passage, marked(passage)[len(own) :], numbered=bool(passage.marks))) + LINE_JOIN + numbers


def heading_price(heading: str, counter: tokens.Counter) -> int:
    """What a day or a stamp costs on a line of its own."""
    return counter.count(heading) + HEADING_JOIN if heading else 0


def stamp(passage: Recalled) -> str:
    """What a message opens with in brackets, if anything."""
    found = STAMP.match(passage.text) if passage.start == 0 else None
    return found[0] if found else ""


def item(passage: Recalled, text: str, *, numbered: bool) -> str:
    return f"- [{f'{passage.name} ' if numbered and passage.name else ''}{passage.role}] {blocks.body(text)}"


def follows(before: Recalled, passage: Recalled) -> bool:
    """Whether a passage goes on where another of the same message ends."""
    same = (before.session_id, before.position) == (passage.session_id, passage.position)
    return same and 0 <= passage.start - before.start - len(before.text) <= BREAK
