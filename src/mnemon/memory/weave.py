"""Passages and ledger in one: each recalled line says what became of it, and what is over never comes without what took its place. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

from mnemon.core import clock
from mnemon.core.records import Recalled
from mnemon.memory import echoes
from mnemon.memory.statements import CHANGE_OF_MIND
from mnemon.store.memories import BY_HAND, Called, Evidence, Link, Remembered

STANDING = "instruction"
STANDING_CHARACTERS = 600
NOTE = "note "
ALPHABET = 26
BROUGHT = ("successor", "predecessor", "link")
LIKELY = ("kind", "terms", "period")
GOOD = 0.5  # of the best score
WORD = re.compile(r"\w")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a question asks for, as far as the ledger can help.

    Slots by name, terms and a kind of statement to look for; and whether it is about times, about what was before, or about all there is.
    `oneself`: it is about the user, of whom whatever was stated tells something.
    `days` is how far back it wants to look over what was stated, however that is worded: None for a question that is no review.
    """

    slots: tuple[str, ...] = ()
    terms: tuple[str, ...] = ()
    kind: str = ""
    when: bool = False
    history: bool = False
    every: bool = False
    oneself: bool = False
    days: int | None = None

    @property
    def wants(self) -> bool:
        """Whether it asks for anything beside what is found by its words."""
        return bool(self.slots or self.terms or self.kind or self.days is not None)


@dataclass(slots=True, kw_only=True)
class Known:
    """What the ledger has to say: what was called up, and the rows, first evidence, links and closings around it."""

    called: list[Called] = field(default_factory=list)
    memories: dict[str, Remembered] = field(default_factory=dict)
    evidence: dict[str, Evidence] = field(default_factory=dict)
    links: list[Link] = field(default_factory=list)
    closings: dict[str, str] = field(default_factory=dict)
    echoed: dict[str, list[echoes.Sentence]] = field(default_factory=dict)
    sessions: frozenset[str] = frozenset()
    """Those of the conversation that is going on."""

    def head(self, memory: str) -> str:
        """What was not superseded yet in the line of closings from a memory on."""
        return chain(memory, self.closings)[-1]


def chain(memory: str, closings: Mapping[str, str]) -> list[str]:
    """A memory, what closed it, what closed that, and so on."""
    passed = [memory]
    while (after := closings.get(passed[-1])) and after not in passed:  # rows that were imported may close each other
        passed.append(after)
    return passed


class Spot(NamedTuple):
    """Where in a message a memory stands."""

    memory: str
    start: int
    end: int
    number: int = 0


def woven(passages: Sequence[Recalled], known: Known, wish: Wish, *, lineage: int, live: int) -> list[Recalled]:
    """The lines to show, best first. What stands in the prompt already (`lineage` behind `live`) comes only if another line needs it."""
    if not known.memories:
        return plainly(passages, known)
    weave = Weave(known, wish, lineage=lineage, live=live)
    weave.find(passages)
    weave.call()
    weave.bring()
    return weave.dressed()


def plainly(passages: Sequence[Recalled], known: Known) -> list[Recalled]:
    """Lines about which there is nothing to say: all that they state still holds."""
    spots = spots_of(known)
    return [stating(passage, on(passage, spots)) for passage in passages]


class Weave:
    """First all lines are found, then each is told what became of what it says."""

    def __init__(self, known: Known, wish: Wish, *, lineage: int, live: int) -> None:
        self.known = known
        self.wish = wish
        self.inside = (lineage, live)
        self.lines: dict[str, Recalled] = {}
        self.ends: dict[str, Remembered | None] = {}
        self.by_message: dict[tuple[str, int], list[str]] = {}
        self.letters: dict[str, str] = {}
        self.names: dict[str, str] = {}
        self.first: list[str] = []
        self.likely: list[str] = []
        self.spots = spots_of(known)
        # Most statements simply hold: nothing is to be said about them, and their rows are not here.
        self.telling: dict[tuple[str, int], list[Spot]] = {}
        self.by_memory: dict[str, list[tuple[str, int, Spot]]] = {}
        for message, spots in self.spots.items():
            for spot in spots:
                if spot.memory in known.memories:
                    self.telling.setdefault(message, []).append(spot)
                    self.by_memory.setdefault(spot.memory, []).append((*message, spot))
        self.echoes = self.repeating()
        self.heads = set(known.closings.values()) - known.closings.keys()
        self.links: dict[str, dict[str, Link]] = {}
        for link in sorted(known.links, key=self.told):
            for side in (link.source, link.target):
                self.links.setdefault(side, {})[f"{link.source} {link.kind} {link.target}"] = link

    def told(self, link: Link) -> tuple[float, int, int]:
        """Orders links as they were made."""
        source, target = (self.known.memories.get(side) for side in (link.source, link.target))
        return link.at, source.number if source else 0, target.number if target else 0

    def repeating(self) -> dict[tuple[str, int], list[Spot]]:
        """Where what is over is repeated by words that state nothing, by message."""
        found: dict[tuple[str, int], list[Spot]] = {}
        for name, those in self.known.echoed.items():
            memory = self.known.memories[name]
            of, head = echoes.of_memory(memory), self.head(memory)
            instead = echoes.of_memory(head).values if head else ()
            for line, start, end, words in those:
                message = (line.session_id, line.position)
                if any(s.start < end and s.end > start for s in self.spots.get(message, ())):
                    continue  # the ledger knows what is stated here
                if any(value <= words for value in instead) or not echoes.repeats(words, of, reply=self.replies(line, name)):
                    continue
                found.setdefault(message, []).append(Spot(name, start, end, memory.number))
        return found

    def replies(self, line: Recalled, memory: str) -> bool:
        """Whether a line is of the very reply to the message that states a memory and nothing else."""
        return line.role == "assistant" and {s.memory for s in self.spots.get((line.session_id, line.position - 1), ())} == {memory}

    # -- which lines ----------------------------------------------------------------------------------------------------

    def find(self, passages: Sequence[Recalled]) -> None:
        """The passages that were found, without what was taken back in them."""
        for passage in passages:
            for piece in without(passage, self.withdrawn(passage)):
                self.place(piece)

    def call(self) -> None:
        """Lines of their own for what comes along whether or not a passage was found for it."""
        room = STANDING_CHARACTERS
        found = set(self.lines)
        for called in self.known.called:
            if called.why == "words":
                continue
            memory = self.known.memories.get(called.id)
            if memory is None:  # it went away between two looks
                continue
            if memory.state == "superseded" and not (self.wish.history or called.why == "kind"):
                continue
            if called.why == STANDING:
                room -= len(memory.text)
                if room < 0:
                    continue
            key = self.line_of(called.id, why=called.why)
            if key is None or (key in found and called.why in LIKELY):
                continue  # it has its place by its score
            (self.likely if called.why in LIKELY and not self.wish.every else self.first).append(key)

    def bring(self) -> None:
        """What belongs to those lines: the end of every closing, and one step along the links of what was found or called."""
        own = set(self.lines)
        todo = list(self.lines)
        for key in todo:
            for memory in self.stated_on(self.lines[key]):
                for other, why in self.belonging(memory, onward=key in own):
                    if self.shown(other) is None and (line := self.line_of(other, why=why, needed=True)):
                        todo.append(line)

    def belonging(self, memory: Remembered, *, onward: bool) -> list[tuple[str, str]]:
        """(memory, why) of what is to stand in the prompt too."""
        found = []
        if memory.state == "superseded" and (head := self.head(memory)):
            found.append((head.id, "successor"))
        for link in self.links.get(memory.id, {}).values() if onward else ():
            if link.kind == "cause":
                found.append((link.target if memory.id == link.source else link.source, "link"))
            elif link.source == memory.id and memory.state == "active" and (link.kind == "reverses" or self.wish.history):
                found.append((link.target, "predecessor"))
        return found

    def line_of(self, memory: str, *, why: str, needed: bool = False) -> str | None:
        """The line that states a memory: one that is there, or one of its own. None if there is nothing to show, or it is shown anyway."""
        row = self.known.memories.get(memory)
        if row is None or self.taken_back(row):
            return None
        if key := self.shown(memory):
            return key
        evidence = self.known.evidence.get(memory)
        if not evidence:
            return self.place(noted(row, why=why)) if row.version == BY_HAND else None
        if not needed and evidence.lineage == self.inside[0] and evidence.position > self.inside[1]:
            return None
        line = stated(row, evidence, why=why)
        return None if self.withdrawn(line) else self.place(line)

    def shown(self, memory: str) -> str | None:
        """The first line that states all of a memory, if there is one."""
        if memory in self.lines:
            return memory
        for session_id, position, spot in self.by_memory.get(memory, ()):
            for key in self.by_message.get((session_id, position), ()):
                line = self.lines[key]
                if line.start <= spot.start and spot.end <= line.start + len(line.text):
                    return key
        return None

    def place(self, line: Recalled) -> str:
        key = line.key
        self.lines[key] = line
        self.by_message.setdefault((line.session_id, line.position), []).append(key)
        return key

    def stated_on(self, line: Recalled) -> list[Remembered]:
        ids = [s.memory for spots in (self.telling, self.echoes) for s in on(line, spots)] if line.session_id else line.memories
        return [self.known.memories[i] for i in ids if i in self.known.memories]

    def withdrawn(self, line: Recalled) -> list[tuple[int, int]]:
        """The stretches of a line's text that were taken back, as (start, end) within it."""
        stated = [*on(line, self.telling), *on(line, self.echoes)]
        gone = [s for s in stated if self.taken_back(self.known.memories[s.memory])]
        return sorted((max(0, s.start - line.start), s.end - line.start) for s in gone)

    def taken_back(self, memory: Remembered) -> bool:
        """Was it withdrawn, or what took its place? Who wants a value forgotten does not want to be told the one before."""
        return memory.state != "active" and self.head(memory) is None

    def head(self, memory: Remembered) -> Remembered | None:
        """What holds now in place of a memory; None if that was withdrawn."""
        if memory.id not in self.ends:
            found = self.known.memories.get(self.known.head(memory.id))
            self.ends[memory.id] = found if found and found.state == "active" else None
        return self.ends[memory.id]

    # -- what is said about them ----------------------------------------------------------------------------------------

    def dressed(self) -> list[Recalled]:
        """Every line with what became of it, best first, each followed by what it needs.

        What only shares its subject with the question stands behind the passages that match it well, before those that hardly do.
        """
        dressed = {key: self.dress(line) for key, line in self.lines.items()}
        lines = {key: line._replace(name=self.name(line)) if line.marks or key in self.names else line for key, line in dressed.items()}
        found: dict[str, Recalled] = {}
        good = max((line.score for line in lines.values()), default=0.0) * GOOD
        brought = [key for key in lines if lines[key].why in BROUGHT]
        rest = [key for key in lines if key not in self.likely and key not in brought]
        well = [key for key in rest if lines[key].score >= good]
        for key in (*self.first, *well, *self.likely, *rest, *brought):
            for each in (key, *lines[key].needs):
                if each in lines:
                    found.setdefault(each, lines[each])
        return list(found.values())

    def dress(self, line: Recalled) -> Recalled:
        spots = on(line, self.spots) if line.session_id else [Spot(i, line.start, line.start + len(line.text)) for i in line.memories]
        repeated = on(line, self.echoes)
        if line.session_id and not repeated and not on(line, self.telling):
            return stating(line, spots)
        marks: list[tuple[int, str]] = []
        needs: dict[str, None] = {}
        beside = ""
        for spot in spots:
            memory = self.known.memories.get(spot.memory)
            if memory is None:
                continue
            words = [*self.happening(memory), *self.standing(memory, line, needs)]
            for effect in self.effects(memory, line, needs):
                words.append(f"(reason for {self.name(self.lines[effect])})")
                beside = effect
            marks += [(min(spot.end - line.start, len(line.text)), text) for text in words]
        for spot in repeated:
            over = self.standing(self.known.memories[spot.memory], line, needs)
            marks += [(min(spot.end - line.start, len(line.text)), text) for text in over]
        ordered = tuple(sorted(dict.fromkeys(marks), key=lambda m: m[0]))
        return stating(line, [*spots, *repeated])._replace(marks=ordered, needs=tuple(needs), beside=beside)

    def happening(self, memory: Remembered) -> list[str]:
        return [f"(happened {period(*memory.happened)})"] if self.wish.when and memory.happened else []

    def standing(self, memory: Remembered, line: Recalled, needs: dict[str, None]) -> list[str]:
        """Whether it still holds. What is over names what holds now, and needs it."""
        if memory.state == "active":
            return self.current(memory, line)
        after = self.known.memories.get(memory.closed_by or "")
        word = "corrected" if after and after.details.cue == "correction" else "superseded"
        over = f"{word} {clock.day(memory.valid_to or memory.recorded_at)}"
        turned = self.turned(memory, line)
        head = self.head(memory)
        other = self.shown(head.id) if head else None
        if other is None:  # it stands amid words that were taken back: the line needs what is not there, so it is not shown
            needs[memory.id] = None
            return [f"({over})"]
        if other == line.key:
            return [f"({over} by what follows{turned})"]
        needs[other] = None
        return [f"({over}: see {self.name(self.lines[other])}{turned})"]

    def turned(self, memory: Remembered, line: Recalled) -> str:
        """What it turned round while it held, if that is shown: without it, who came first of three could not be told."""
        links = [k for k in self.links.get(memory.id, {}).values() if k.source == memory.id and k.kind == "reverses"]
        shown = [old for link in links if (old := self.shown(link.target)) and old != line.key]
        return f"; reversal of {self.name(self.lines[shown[0]])}" if shown else ""

    def current(self, memory: Remembered, line: Recalled) -> list[str]:
        """What took the place of something says since when it holds."""
        replaced = [k for k in self.links.get(memory.id, {}).values() if k.source == memory.id and k.kind != "cause"]
        if not replaced and memory.id not in self.heads:
            turned = memory.rule == CHANGE_OF_MIND  # it says itself that it took the place of something
            return [f"(current since {clock.day(memory.valid_from)}; a change of mind)"] if turned else []
        parts = [f"current since {clock.day(memory.valid_from)}"]
        for link in replaced:
            old = self.shown(link.target)
            if old and old != line.key:
                parts.append(f"{'reversal of' if link.kind == 'reverses' else 'supersedes'} {self.name(self.lines[old])}")
            elif link.kind == "reverses":
                parts.append("a reversal")
        return [f"({'; '.join(dict.fromkeys(parts))})"]

    def name(self, line: Recalled) -> str:
        """How other lines speak of a line: by its place in its conversation, or as a note if no message states it."""
        if line.key not in self.names:
            if not line.session_id:
                notes = sum(each.startswith(NOTE) for each in self.names.values())
                self.names[line.key] = f"{NOTE}{notes + 1}"
            elif line.session_id in self.known.sessions:
                self.names[line.key] = f"#{line.position}"
            else:
                letter = self.letters.setdefault(line.session_id, lettered(len(self.letters)))
                self.names[line.key] = f"#{line.position}{letter}"
        return self.names[line.key]

    def effects(self, memory: Remembered, line: Recalled, needs: dict[str, None]) -> list[str]:
        """The lines that this memory is the reason of. A reason and what it is the reason of stand together."""
        found = []
        for link in self.links.get(memory.id, {}).values():
            if link.kind != "cause":
                continue
            other = self.shown(link.target if link.source == memory.id else link.source)
            if other and other != line.key:
                needs[other] = None
                if link.source == memory.id:
                    found.append(other)
        return found


def spots_of(known: Known) -> dict[tuple[str, int], list[Spot]]:
    """Where memories stand, by message, in the order of the text."""
    found: dict[tuple[str, int], set[Spot]] = {}
    for c in known.called:
        if c.why == "words":
            found.setdefault((c.session_id, c.position), set()).add(Spot(c.id, c.start, c.start + c.length, c.number))
    for memory, e in known.evidence.items():
        found.setdefault((e.session_id, e.position), set()).add(Spot(memory, e.start, e.start + e.length, known.memories[memory].number))
    return {message: sorted(spots, key=lambda s: (s.start, s.end, s.number)) for message, spots in found.items()}


def on(line: Recalled, spots: Mapping[tuple[str, int], Sequence[Spot]]) -> list[Spot]:
    """What stands on a line, at least in part."""
    here = spots.get((line.session_id, line.position))
    if not here:
        return []
    start, end = line.start, line.start + len(line.text)
    return [s for s in here if s.start < end and s.end > start]


def stating(line: Recalled, spots: Sequence[Spot]) -> Recalled:
    """A line that says which memories stand on it."""
    if all(s.memory in line.memories for s in spots):
        return line
    ids = tuple(dict.fromkeys((*line.memories, *(s.memory for s in spots))))
    return line._replace(memories=ids)


def without(passage: Recalled, stretches: Sequence[tuple[int, int]]) -> list[Recalled]:
    """What is left of a passage when these stretches are cut out of it: nothing, the whole, or pieces."""
    if not stretches:
        return [passage]
    found = []
    start = 0
    for cut, end in (*stretches, (len(passage.text), len(passage.text))):
        piece = passage.text[start:cut]
        if WORD.search(piece):
            text = piece.strip()
            begins = passage.start + start + piece.index(text)
            found.append(passage._replace(text=text, start=begins, tokens=None, memories=()))
        start = max(start, end)
    return found


def stated(row: Remembered, evidence: Evidence, *, why: str) -> Recalled:
    """A line of its own for a memory: its words, where they stand."""
    text = evidence.quote.strip()
    return Recalled(
        text=text,
        role=evidence.role,
        at=evidence.at,
        session_id=evidence.session_id,
        position=evidence.position,
        start=evidence.start + evidence.quote.find(text),
        score=0.0,
        why=why,
        memories=(row.id,),
    )


def noted(row: Remembered, *, why: str) -> Recalled:
    """A line for a memory that was added by hand: no message says it."""
    return Recalled(text=row.text, role=row.origin, at=row.recorded_at, session_id="", position=0, score=0.0, why=why, memories=(row.id,))


def lettered(number: int) -> str:
    """The letters of the first, second and so on: a, b, … z, aa, ab."""
    return (lettered(number // ALPHABET - 1) if number >= ALPHABET else "") + chr(ord("a") + number % ALPHABET)


def period(start: float, end: float, grain: str) -> str:
    """A stretch of time as people write it, in UTC."""
    day = datetime.fromtimestamp(start, UTC)
    if grain == "year":
        return f"{day.year}"
    if grain == "quarter":
        return f"{day.year} Q{(day.month + 2) // 3}"
    if grain == "month":
        return f"{day:%Y-%m}"
    if grain == "week":
        return f"{day:%Y-%m-%d} to {clock.day(end - 1)}"
    return f"{day:%Y-%m-%d}"
