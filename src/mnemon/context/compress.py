"""Compression without a model: which messages leave the prompt, and which of their sentences stay behind as notes.

Everything is extractive. A note is a sentence somebody wrote, word for word, and points at its message; the messages themselves stay where
they are. What was not kept as a note can still be found by recall.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from mnemon.context import blocks, tokens
from mnemon.context.assemble import size
from mnemon.context.exchanges import exchanges, units
from mnemon.core.records import StateLine, StoredMessage

KEPT_SHARE = 0.4  # of the threshold: far enough below it that the next compression is many turns away
STATE_SHARE = 0.12  # of the budget
LONGEST_NOTE = 400
SHORTEST_NOTE = 8
RECENT_EXCHANGES = 2
MOST_SENTENCES = 400

SENTENCE = re.compile(r"\n+|(?<=[.!?。！？])\s+|(?<=[。！？])")
SELF = re.compile(
    r"\b(my|our|mine|ours|i am|i'm|we are|we're|i have|i've|we have|we've|i use|we use|i work|i live|call me)\b", re.IGNORECASE
)
WISH = re.compile(
    r"\b(prefer|like|love|hate|want|always|never|must|should not|don't|do not|from now on|remember|important)\b", re.IGNORECASE
)
DECISION = re.compile(
    r"\b(decid\w+|decision|chose\w*|choos\w+|agreed|committed|go(?:ing)? with|switch\w*|mov(?:ed|ing)|migrat\w+|revert\w*|remov\w+|"
    r"replac\w+|merg\w+|drop(?:ped|ping)|"
    r"adopt\w*|cancel\w*|renam\w+|add(?:ed|ing)|use[sd]?|using|build(?:ing)?|built|deadline|due)\b",
    re.IGNORECASE,
)
CAUSE = re.compile(r"\b(because|due to|caused?|since|therefore|so that|reason)\b", re.IGNORECASE)
IDENTIFIER = re.compile(r"\d|[A-Za-z]+[_/:@-][A-Za-z0-9]|\b[A-Z]{2,}\b|[a-z][A-Z]|`[^`]+`|\"[^\"]+\"")
NAME = re.compile(r"(?<=[a-z,;] )[A-Z][a-z]+")
OPEN = re.compile(r"\b(to-?do|remind me|need to|still have to|next step|follow up|please|can you|could you|would you)\b", re.IGNORECASE)
CHATTER = re.compile(
    r"^(ok(ay)?|thanks?|thank you|hi|hello|hey|yes|no|sure|great|cool|nice|bye|good (morning|evening|night)|noted|lol)\b.{0,30}$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """Messages up to and with position `upto` leave the prompt; `state` stands for them."""

    upto: int
    state: tuple[StateLine, ...]


def plan(
    live: Sequence[StoredMessage], state: Sequence[StateLine], *, counter: tokens.Counter, budget: int, compress_at: float
) -> Compaction | None:
    """What to compress now, or None while the live transcript is below its share of the budget."""
    threshold = int(budget * compress_at)
    if sum(size(counter, m) for m in live) <= threshold:
        return None
    groups = exchanges(live)
    if len(groups) == 1 and not live[-1].message.calls and any(m.role == "tool" for m in live):
        groups = units(groups[0])  # one exchange of many tool calls: its older steps may go
    room = int(threshold * KEPT_SHARE) - sum(size(counter, m) for m in groups[-1])
    keep = 1
    while keep < len(groups) and (price := sum(size(counter, m) for m in groups[-keep - 1])) <= room:
        room -= price
        keep += 1
    leaving = groups[:-keep]
    if not leaving:
        return None
    notes = [
        *state,
        *(note for index, group in enumerate(leaving) for note in extract(group, recent=index >= len(leaving) - RECENT_EXCHANGES)),
    ]
    chosen = select(notes, counter=counter, room=int(budget * STATE_SHARE))
    return Compaction(upto=leaving[-1][-1].position, state=tuple(chosen))


def extract(group: Sequence[StoredMessage], *, recent: bool) -> list[StateLine]:
    """The sentences of an exchange that are worth keeping, each with a score."""
    found = []
    for message in group:
        if message.role not in ("user", "assistant"):
            continue
        for sentence in SENTENCE.split(blocks.without_fences(message.text))[:MOST_SENTENCES]:
            text = sentence.strip()
            if SHORTEST_NOTE <= len(text) <= LONGEST_NOTE and not CHATTER.match(text):
                kind, score = weigh(text, by_user=message.role == "user", recent=recent)
                if score > 0:
                    found.append(StateLine(position=message.position, role=message.role, at=message.at, kind=kind, text=text, score=score))
    return found


def weigh(text: str, *, by_user: bool, recent: bool) -> tuple[str, float]:
    """(kind, score) of a sentence: what it is, and how much would be lost without it."""
    asks = text.endswith(("?", "？")) or (by_user and OPEN.search(text) is not None)
    if asks:
        return ("request", 1.5) if by_user and recent else ("question", 0.0)
    score = 0.3 * len(IDENTIFIER.findall(text)[:4]) + 0.2 * len(NAME.findall(text)[:3])
    decided = DECISION.search(text) is not None
    score += 1.0 * decided + 0.7 * (CAUSE.search(text) is not None)
    if by_user:
        score += 1.5 * (SELF.search(text) is not None) + 0.8 * (WISH.search(text) is not None) + 0.2
    return ("decision" if decided else "fact"), score * (1.0 if by_user else 0.5)


def select(notes: Sequence[StateLine], *, counter: tokens.Counter, room: int) -> list[StateLine]:
    """The best notes that fit, in the order in which they were said. Of equal notes the newest stays, and old open requests expire."""
    newest = {(n.role, " ".join(n.text.casefold().split())): n for n in notes}
    unique = list(newest.values())
    recent = max((n.position for n in unique if n.kind == "request"), default=0)
    ranked = sorted(unique, key=lambda n: (-n.score, -n.position))
    room -= counter.count(blocks.state(())) + 4
    chosen = []
    for note in ranked:
        if note.kind == "request" and note.position < recent - 2 * RECENT_EXCHANGES:
            continue
        price = counter.count(blocks.state_line(note)) + 1
        if price <= room:
            chosen.append(note)
            room -= price
    return sorted(chosen, key=lambda n: n.position)
