"""Lines of a compressed state that are made from statements: what holds now, and what it took the place of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from mnemon.core import clock
from mnemon.core.records import Replaced, Stated, StateLine, StoredMessage

LONGEST_NOTE = 400
REQUEST = "request"
SCORES = {REQUEST: 9.0, "instruction": 8.0, "decision": 7.0, "event": 5.0}  # a sentence that was not understood never has as much
OTHERS = 6.0
SLOT, REASON = 0.5, 0.3  # what it adds that a place is filled that may be asked for, and that it is known why


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A line that may be kept, and the memories it rests on. One that `follows` a memory stands only where that one does."""

    line: StateLine
    memories: tuple[str, ...] = ()
    follows: str = ""


def of_statements(stated: Sequence[Stated], messages: Sequence[StoredMessage], state: Sequence[StateLine]) -> list[Note]:
    """A line for every statement that holds, where it was said last; before a reversal what it reversed."""
    by_position = {m.position: m for m in messages}
    before = {(line.position, line.start): line for line in state}
    lines: dict[str, tuple[Stated, StateLine]] = {}
    for each in sorted(stated, key=lambda s: (s.position, s.start)):
        line = quoted(each, by_position.get(each.position), before.get((each.position, each.start)))
        if each.holds and line:
            lines[each.memory] = (each, line)
    places = {memory: line.position for memory, (_, line) in lines.items()}
    return [note for each, line in lines.values() for note in notes_of(each, line, places)]


def quoted(stated: Stated, message: StoredMessage | None, before: StateLine | None) -> StateLine | None:
    """The words of a statement: those of its message, or of the line that stood for it before. None if there are none, or too many."""
    if message:
        text, role, at = message.text[stated.start : stated.start + stated.length].strip(), message.role, message.at
    elif before:
        text, role, at = before.text, before.role, before.at
    else:
        return None
    if not 0 < len(text) <= LONGEST_NOTE:
        return None
    kind = "decision" if stated.replaced else stated.kind  # what took the place of something is how things stand, not a thing that happened
    score = SCORES.get(kind, OTHERS) + SLOT * bool(stated.slot) + REASON * stated.reasoned
    return StateLine(position=stated.position, start=stated.start, role=role, at=at, kind=kind, text=text, score=score)


def notes_of(stated: Stated, line: StateLine, places: Mapping[str, int]) -> Iterator[Note]:
    """The line of a statement with what the server says about it, and marked lines for what it reversed."""
    yield Note(line=replace(line, mark=marks(stated, places)), memories=(stated.memory,))
    for old in stated.replaced:
        if old.reversal and old.position and 0 < len(old.text) <= LONGEST_NOTE:
            over = f"(superseded {clock.day(stated.since)}: see #{line.position})"
            yield Note(line=reversed_line(old, score=line.score, mark=over), memories=(old.memory, stated.memory), follows=stated.memory)


def reversed_line(old: Replaced, *, score: float, mark: str) -> StateLine:
    """Just below what took its place: where room is short it goes first."""
    return StateLine(
        position=old.position, start=old.start, role=old.role, at=old.at, kind="reversed", text=old.text, score=score - 0.01, mark=mark
    )


def marks(stated: Stated, places: Mapping[str, int]) -> str:
    """When it happened, since when it holds and in place of what, and what it is the reason for, each as far as it is known."""
    found = [f"(happened {stated.happened})"] if stated.happened else []
    if stated.replaced:
        parts = [f"current since {clock.day(stated.since)}", *map(taken_from, stated.replaced)]
        found.append(f"({'; '.join(dict.fromkeys(part for part in parts if part))})")
    found += [f"(reason for #{places[effect]})" for effect in stated.explains if effect in places]
    return " ".join(dict.fromkeys(found))


def taken_from(old: Replaced) -> str:
    if not old.position:
        return "a reversal" if old.reversal else ""
    return f"{'reversal of' if old.reversal else 'supersedes'} #{old.position}"
