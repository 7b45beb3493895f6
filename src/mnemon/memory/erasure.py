"""Deletion on demand: what a wish to forget takes along, told before it happens and done in one transaction.

A memory stands on its evidence, and the other way round: with a message goes what only it states, and with a memory go the words that state
it. Copies of those words elsewhere in the scope go too, and sentences of replies that repeat them. What has other evidence stays with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from mnemon.core import errors
from mnemon.core.records import Message
from mnemon.memory import echoes
from mnemon.memory.base import Learned, Memory
from mnemon.store.base import Tx
from mnemon.store.erasures import Erasures, Said, Spot
from mnemon.store.memories import BY_HAND, EVER, Evidence, Filter, Memories, Remembered, as_json
from mnemon.store.removals import Removals
from mnemon.store.sessions import Sessions, missing

COPY = 12  # characters; shorter words stand in many a message by chance
EVERYTHING = 10**9
RESULTS = 256  # messages behind a call among which its results are looked for

Place = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """What is to be deleted: a memory; messages of a session; a whole session; a stretch of time; or the whole scope."""

    memory: str = ""
    session_id: str = ""
    position: int = 0
    to_position: int = 0
    since: float | None = None
    until: float | None = None
    scope: bool = False

    @property
    def kind(self) -> str:
        if self.memory:
            return "memory"
        if self.session_id:
            return "message" if self.position else "session"
        return "scope" if self.scope else "time"


@dataclass(slots=True)
class Plan:
    """What goes. `whole` are messages deleted, `cut` those that lose words; `kept` are memories that lose evidence and stay."""

    conversations: dict[int, str] = field(default_factory=dict)
    whole: dict[Place, Said] = field(default_factory=dict)
    cut: dict[Place, Said] = field(default_factory=dict)
    spans: dict[Place, set[tuple[int, int]]] = field(default_factory=dict)
    words: dict[str, None] = field(default_factory=dict)
    lost: dict[Spot, None] = field(default_factory=dict)
    gone: dict[str, Remembered] = field(default_factory=dict)
    kept: dict[str, Remembered] = field(default_factory=dict)

    def reworded(self) -> dict[Place, dict[str, Any]]:
        """The messages that lose words, as they will be."""
        copies = [text for text in self.words if len(text) >= COPY]
        return {place: without(said.message.body, self.spans.get(place, ()), copies) for place, said in self.cut.items()}

    def texts(self) -> list[str]:
        """Everything that will not be said any more."""
        return [*(said.message.text for said in self.whole.values()), *self.words]

    def values(self) -> list[str]:
        """What the memories that go are about, by itself: a name, a number."""
        return list(dict.fromkeys(value for memory in self.gone.values() for value in memory.details.values))


def planned(tx: Tx, tenant: str, scope: int | None, selector: Selector, *, hold: bool = False) -> Plan:
    """What a deletion would take along; changes nothing. With `hold`, no turn does until the transaction ends. Raises `NotFound`."""
    if scope is None:
        return Plan()
    planning = Planning(tx, tenant, scope)
    roots = planning.rows.lineages(hold=hold)
    planning.choose(selector, roots)
    planning.spread()
    return planning.plan


def left(tx: Tx, tenant: str, scope: int | None, values: Iterable[str]) -> list[tuple[str, Said]]:
    """The messages of a scope in which such values stand still, each with the value: nobody stated or repeated them there."""
    rows = Erasures(tx, tenant, scope) if scope is not None else None
    return [
        (value, said)
        for value in values
        for said in (rows.holding(value) if rows else ())
        if re.search(rf"(?<!\w){re.escape(value)}(?!\w)", said.message.text)
    ]


class Planning:
    """Goes from what was chosen to all that depends on it, until nothing more does."""

    def __init__(self, tx: Tx, tenant: str, scope: int) -> None:
        self.tx = tx
        self.tenant = tenant
        self.scope = scope
        self.rows = Erasures(tx, tenant, scope)
        self.memories = Memories(tx, tenant, scope)
        self.plan = Plan()

    def choose(self, selector: Selector, roots: dict[int, str]) -> None:
        kind = selector.kind
        if kind == "memory":
            self._take_memories([self.memories.get(selector.memory)])
        elif kind == "message":
            self._take(self._messages(selector, roots))
        elif kind == "session":
            lineage = self._lineage(selector.session_id, roots)
            self.plan.conversations[lineage] = roots[lineage]
            self._take(self.rows.messages(lineage))
        elif kind == "time":
            since, until = selector.since or 0.0, EVER if selector.until is None else selector.until
            self._take(self.rows.between(since=since, until=until))
            self._take_memories(self.rows.by_hand(since=since, until=until))
        else:
            self.plan.conversations |= roots
            for lineage in roots:
                self._take(self.rows.messages(lineage))
            self._take_memories(self.memories.page(Filter(), limit=EVERYTHING))

    def _lineage(self, session_id: str, roots: dict[int, str]) -> int:
        found = Sessions(self.tx, self.tenant).lineage_of(session_id)
        if found is None or found.id not in roots:
            raise missing(session_id)
        return found.id

    def _messages(self, selector: Selector, roots: dict[int, str]) -> list[Said]:
        """The messages chosen by position; a tool's result goes with the call that asked for it."""
        lineage = self._lineage(selector.session_id, roots)
        last = max(selector.to_position, selector.position)
        chosen = self.rows.messages(lineage, first=selector.position, last=last)
        if not chosen:
            message = f"the session {selector.session_id!r} has no message at position {selector.position}"
            raise errors.NotFound(message, code="message_not_found", param="position")
        asked = {call.get("id") for said in chosen for call in said.message.calls}
        following = self.rows.messages(lineage, first=last + 1, last=last + RESULTS) if asked else []
        return [*chosen, *(said for said in following if said.message.body.get("tool_call_id") in asked)]

    def _take(self, messages: Iterable[Said]) -> None:
        self.plan.whole |= {said.place: said for said in messages if not said.erased}

    def _take_memories(self, going: Sequence[Remembered]) -> None:
        """Memories that go, and the words that state them, wherever they stand."""
        new = {m.id: m for m in going if m.id not in self.plan.gone}
        self.plan.gone |= new
        stated = self.memories.evidence(new)
        for memory in new.values():
            self._strike(memory.text)
            self._strike_repeated(memory, stated.get(memory.id, ()))
            for evidence in stated.get(memory.id, ()):
                self._cut(evidence.lineage, evidence.position, evidence.start, evidence.length)
                self._strike(evidence.quote)

    def _strike(self, text: str) -> None:
        """Words that are not to be said any more."""
        copy = text.strip()
        if not copy or copy in self.plan.words:
            return
        self.plan.words[copy] = None
        if len(copy) < COPY:
            return
        for said in self.rows.holding(copy):
            if said.place not in self.plan.whole:
                self.plan.cut[said.place] = said
                found = re.finditer(re.escape(copy), said.message.text)
                self.plan.spans.setdefault(said.place, set()).update(m.span() for m in found)

    def _strike_repeated(self, memory: Remembered, stated: Sequence[Evidence]) -> None:
        """Sentences of replies that repeat it, as "Noted: your cat is called Miso" does."""
        telling, answers = echoes.of_memory(memory), {(e.lineage, e.position + 1) for e in stated if self._states_one(e)}
        anchors = {longest(text) for text in (memory.text, *memory.details.values)} - {""}
        found = {said.place: said for anchor in anchors for said in self.rows.holding(anchor)}
        for place, said in found.items():
            if said.message.role != "assistant" or place in self.plan.whole:
                continue
            for start, end in echoes.sentences(said.message.text):
                sentence = said.message.text[start:end]
                if echoes.repeats(echoes.words_of(sentence), telling, reply=place in answers):
                    self._cut(*place, start, end - start)
                    self.plan.words[sentence.strip()] = None

    def _states_one(self, evidence: Evidence) -> bool:
        """Whether a message states one memory only: what a reply to it repeats is that."""
        there = self.rows.evidence(evidence.lineage, first=evidence.position, last=evidence.position)
        return len({spot.memory for spot in there}) == 1

    def _cut(self, lineage: int, position: int, start: int, length: int) -> None:
        place = (lineage, position)
        if place in self.plan.whole:
            return
        if place not in self.plan.cut:
            self.plan.cut |= {said.place: said for said in self.rows.messages(lineage, first=position, last=position)}
        self.plan.spans.setdefault(place, set()).add((start, start + length))

    def spread(self) -> None:
        """Evidence is lost with the words it stands in, a memory with its last evidence, and more words with the memory."""
        plan = self.plan
        looked: set[Place] = set()
        while True:
            self._lose(plan.whole.keys() - looked)
            looked |= plan.whole.keys()
            for place, spans in list(plan.spans.items()):
                for spot in self.rows.evidence(place[0], first=place[1], last=place[1]):
                    if any(spot.start < end and start < spot.start + spot.length for start, end in spans):
                        plan.lost[spot] = None
            going = self._unsupported()
            if not going:
                return
            self._take_memories(going)

    def _lose(self, places: Iterable[Place]) -> None:
        wanted = set(places)
        for lineage in {lineage for lineage, _ in wanted}:
            positions = [position for other, position in wanted if other == lineage]
            for spot in self.rows.evidence(lineage, first=min(positions), last=max(positions)):
                if (spot.lineage, spot.position) in wanted:
                    self.plan.lost[spot] = None

    def _unsupported(self) -> list[Remembered]:
        """Memories that rest on nothing any more and are not among those that go yet; those that lose some evidence are noted."""
        lost: dict[str, int] = {}
        for spot in self.plan.lost:
            lost[spot.memory] = lost.get(spot.memory, 0) + 1
        if not lost:
            return []
        counts = self.tx.all("evidence_counts", tenant=self.tenant, scope=self.scope, ids=as_json(lost))
        without_any = {row["id"] for row in counts if row["n"] <= lost[row["id"]] and row["version"] != BY_HAND}
        rows = self.memories.some(lost)
        self.plan.kept = {m.id: m for m in rows if m.id not in without_any and m.id not in self.plan.gone}
        return [m for m in rows if m.id in without_any and m.id not in self.plan.gone]


def carried_out(tx: Tx, tenant: str, scope: int, plan: Plan, *, memory: Memory, at: float) -> None:
    """Delete what was planned, in every row that holds it."""
    removals = Removals(tx, tenant, scope)
    evidence = [{"tenant": tenant, **{n: getattr(s, n) for n in ("memory", "lineage", "position", "start")}} for s in plan.lost]
    if evidence:
        tx.many("evidence_drop", evidence)
    removals.drop(list(plan.gone))
    sessions = Sessions(tx, tenant)
    for root in plan.conversations.values():
        sessions.delete(root)
    rows = Erasures(tx, tenant, scope)
    changed: dict[int, list[tuple[str, str]]] = {}
    for place, said in plan.whole.items():
        if place[0] not in plan.conversations:
            rows.reword(place, emptied(said.message.body), erased=True)
            changed.setdefault(place[0], []).append((said.message.text, ""))
    for place, body in plan.reworded().items():
        said, now = plan.cut[place], Message(body)
        if place[0] in plan.conversations:
            continue
        empty = not tells(now)
        if rows.reword(place, emptied(body) if empty else body, erased=empty) and not empty and not said.origin:
            memory.reword(tx, Learned(tenant=tenant, scope=scope, lineage=place[0], plans=[(place[1], now)], at=said.at))
        changed.setdefault(place[0], []).append((said.message.text, now.text))
    for lineage, texts in changed.items():
        rows.restate(lineage)
        rows.review(lineage, texts)
        rows.changed(lineage)
    rows.finish(at=at)


def longest(text: str) -> str:
    """The longest word of a text, as it is written: whoever repeats the text writes that, too."""
    return max(re.findall(r"[^\s.,;:!?\"'()]+", text), key=len, default="")


def tells(message: Message) -> bool:
    """Whether there is anything in a message still: words, tool calls, or a part that is no text."""
    content = message.body.get("content")
    others = isinstance(content, list) and any(part.get("type") not in ("text", "refusal") for part in content)
    return bool(message.text.strip() or message.calls or others)


def emptied(body: dict[str, Any]) -> dict[str, Any]:
    """A message of which nothing is left but who spoke."""
    return {"content": "", **{name: value for name, value in body.items() if name in ("role", "tool_call_id")}}


def without(body: dict[str, Any], spans: Iterable[tuple[int, int]], copies: Sequence[str]) -> dict[str, Any]:
    """A body with stretches of its text, and words wherever they stand in it, replaced by blanks: all other places stay what they were."""
    found = dict(body)
    found["content"] = blanked(body.get("content"), sorted(spans))
    cleaned: dict[str, Any] = struck(found, copies)
    return cleaned


def blanked(content: Any, spans: Sequence[tuple[int, int]]) -> Any:
    if isinstance(content, str):
        for start, end in spans:
            content = content[:start] + " " * (min(end, len(content)) - start) + content[end:]
        return content
    if not isinstance(content, list):
        return content
    found, offset = [], 0
    for part in content:
        name = next((n for n in ("text", "refusal") if part.get("type") == n), None)
        if name is None:
            found.append(part)
            continue
        text = part.get(name) or ""
        inside = [(max(0, s - offset), min(len(text), e - offset)) for s, e in spans if s < offset + len(text) and e > offset]
        found.append({**part, name: blanked(text, inside)})
        offset += len(text) + 1
    return found


def struck(value: Any, copies: Sequence[str]) -> Any:
    if isinstance(value, str):
        for each in copies:
            value = value.replace(each, " " * len(each))
        return value
    if isinstance(value, dict):
        return {name: struck(each, copies) for name, each in value.items()}
    if isinstance(value, list):
        return [struck(each, copies) for each in value]
    return value
