"""Recalled passages in a prompt: which of them fit, and how they are written.

They stand in the order in which they were said, under the day they were said on. A stamp in brackets that messages open with, as bridges of
other chats put there, is written once for all that follow with the same; pieces that follow each other in one message are one item.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mnemon.context import blocks, tokens
from mnemon.core import clock
from mnemon.core.records import Recalled

STAMP = re.compile(r"\[[^\]\n]{1,60}\](?= \S)")
BREAK = 4  # characters that may stand between two pieces of a message: blanks and line breaks
LINE_JOIN = 1
STAMP_JOIN = 2
DAY = 15  # what "2026-11-18" and its line break cost at most, with any margin
BLOCK_JOIN = 2
LABEL = 10  # what "- [assistant] " costs at most, with any margin


def block(shown: Sequence[Recalled]) -> str:
    """The passages as the model sees them."""
    lines: list[str] = []
    day = in_force = ""
    for index, passage in enumerate(shown):
        if (today := clock.day(passage.at)) != day:
            lines.append(today)
            day = today
        own = stamp(passage)
        text = passage.text[len(own) :] if own == in_force else passage.text
        in_force = own or in_force
        goes_on = index and follows(shown[index - 1], passage)
        lines.append(f"  {blocks.body(text)}" if goes_on else item(passage.role, text))
    return blocks.recall(lines)


def fit(found: Sequence[Recalled], *, counter: tokens.Counter, room: int) -> tuple[list[Recalled], int]:
    """The best passages that fit, in the order in which they were said, and their price."""
    shown: list[Recalled] = []
    spent = frame = counter.count(blocks.recall([])) + BLOCK_JOIN
    headings: set[str] = set()
    for passage in found:
        day, own = clock.day(passage.at), stamp(passage)
        cost = price(passage, counter) + DAY * (day not in headings) + stamp_price(own, counter) * (own not in headings)
        if spent + cost <= room:
            shown.append(passage)
            spent += cost
            headings |= {day, own}
    ordered = in_order(shown)
    while ordered and (spent := frame + written_price(ordered, counter)) > room:  # sessions took turns: a day or a stamp stands there twice
        ordered.remove(shown.pop())
    return (ordered, spent) if ordered else ([], 0)


def in_order(passages: Sequence[Recalled]) -> list[Recalled]:
    return sorted(passages, key=lambda r: (r.at, r.position, r.start))


def written_price(ordered: Sequence[Recalled], counter: tokens.Counter) -> int:
    """What passages cost in this order: each with the headings that `block` writes before it."""
    total = 0
    day = in_force = ""
    for passage in ordered:
        today, own = clock.day(passage.at), stamp(passage)
        total += price(passage, counter)
        total += DAY * (today != day) + stamp_price(own, counter) * (own != in_force)
        day, in_force = today, own or in_force
    return total


def price(passage: Recalled, counter: tokens.Counter) -> int:
    """The count of a passage's line without its stamp; where the whole text was counted before and is shown as it is, only its label is."""
    own = stamp(passage)
    known = passage.tokens is not None and passage.counted_by == counter.name
    if known and not own and passage.text.isprintable() and "<" not in passage.text:
        return int(passage.tokens or 0) + LABEL
    return counter.count(item(passage.role, passage.text[len(own) :])) + LINE_JOIN


def stamp_price(own: str, counter: tokens.Counter) -> int:
    return counter.count(own) + STAMP_JOIN if own else 0


def stamp(passage: Recalled) -> str:
    """What a message opens with in brackets, if anything."""
    found = STAMP.match(passage.text) if passage.start == 0 else None
    return found[0] if found else ""


def item(role: str, text: str) -> str:
    return f"- [{role}] {blocks.body(text)}"


def follows(before: Recalled, passage: Recalled) -> bool:
    """Whether a passage goes on where another of the same message ends."""
    same = (before.session_id, before.position) == (passage.session_id, passage.position)
    return same and 0 <= passage.start - before.start - len(before.text) <= BREAK
