"""Compression without a model: which messages leave the prompt, and which lines stay behind for them.

A line is somebody's words as they stand in a message, and points at it; the messages themselves stay where they are. First come the
statements of the ledger that hold, then, as room is left, sentences that nothing was made of. What was not kept can be found by recall.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from mnemon.context import blocks, tokens
from mnemon.context.assemble import price
from mnemon.context.exchanges import exchanges, units
from mnemon.context.extract import Extract
from mnemon.context.notes import REQUEST, Note, of_statements
from mnemon.core.records import Stated, StateLine, StoredMessage

KEPT_SHARE = 0.4  # of the threshold: far enough below it that the next compression is many turns away
STATE_SHARE = 0.12  # of the budget
RECENT_EXCHANGES = 2
PASSING_SHARE = 0.25  # of the state, for open requests and for events each: what was asked or done last does not drive out what holds
SMALLEST_LINE = 20  # tokens: hardly a note with its label takes less


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """Messages up to and with position `upto` leave the prompt; `notes` stand for them."""

    upto: int
    notes: tuple[Note, ...]

    @property
    def state(self) -> tuple[StateLine, ...]:
        return tuple(note.line for note in self.notes)

    def without(self, over: Collection[str]) -> tuple[StateLine, ...]:
        """The state without the lines that rest on any of these memories."""
        return tuple(note.line for note in self.notes if not any(memory in over for memory in note.memories))


def leaving(live: Sequence[StoredMessage], *, counter: tokens.Counter, budget: int, compress_at: float) -> list[list[StoredMessage]]:
    """The oldest exchanges, if it is time for them to go: none while the live transcript is below its share of the budget."""
    threshold = int(budget * compress_at)
    if price(counter, live) <= threshold:
        return []
    groups = exchanges(live)
    if len(groups) == 1 and not live[-1].message.calls and any(m.role == "tool" for m in live):
        groups = units(groups[0])  # one exchange of many tool calls: its older steps may go
    room = int(threshold * KEPT_SHARE) - price(counter, groups[-1])
    keep = 1
    while keep < len(groups) and (cost := price(counter, groups[-keep - 1])) <= room:
        room -= cost
        keep += 1
    return groups[:-keep]


def plan(
    groups: Sequence[Sequence[StoredMessage]], state: Sequence[StateLine], stated: Sequence[Stated], *, counter: tokens.Counter, budget: int
) -> Compaction:
    """What stands for the exchanges that leave and for the state before them. `stated` is what their messages state."""
    extract = Extract(stated)
    notes = [
        *of_statements(stated, [message for group in groups for message in group], state),
        *(Note(line=line) for line in extract.still_worth(state)),
    ]
    for index, group in enumerate(groups):
        found = extract.sentences(group, recent=index >= len(groups) - RECENT_EXCHANGES)
        notes += [Note(line=line) for line in found]
    chosen = select(notes, counter=counter, room=int(budget * STATE_SHARE))
    resting = (note if note.memories else replace(note, memories=extract.repeated(note.line.text)) for note in chosen)
    return Compaction(upto=groups[-1][-1].position, notes=tuple(resting))


def select(notes: Sequence[Note], *, counter: tokens.Counter, room: int) -> list[Note]:
    """The best notes that fit, in the order in which they were said. Of equal notes the newest stays, and old open requests expire."""
    newest = {(n.line.role, " ".join(n.line.text.casefold().split())): n for n in sorted(notes, key=said)}
    ranked = sorted(newest.values(), key=lambda n: (-n.line.score, -n.line.position, n.line.start))
    latest = max((n.line.position for n in ranked if n.line.kind == REQUEST), default=0)
    room -= counter.count(blocks.state(())) + tokens.MESSAGE
    passing = dict.fromkeys((REQUEST, "event"), int(room * PASSING_SHARE))
    chosen: list[Note] = []
    shown: set[str] = set()
    for note in ranked:
        if room < SMALLEST_LINE:
            break
        kind = note.line.kind
        expired = kind == REQUEST and note.line.position < latest - 2 * RECENT_EXCHANGES
        if expired or (note.follows and note.follows not in shown):
            continue
        cost = counter.count(blocks.state_line(note.line)) + 1
        if cost <= min(room, passing.get(kind, room)):
            chosen.append(note)
            shown.update(note.memories)
            room -= cost
            if kind in passing:
                passing[kind] -= cost
    return sorted(chosen, key=said)


def said(note: Note) -> tuple[int, int]:
    """Orders notes as they were said."""
    return note.line.position, note.line.start
