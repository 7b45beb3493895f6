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
SMALLEST_LINE = 20  # tokens: hardly a note with its label takes less

SENTENCE = re.compile(r"\n+|(?<=[.!?。！？])\s+|(?<=[。！？])")
WORD = re.compile(r"[a-z]+(?:'[a-z]+)?")
SELF = frozenset("my our mine ours i'm we're i've we've".split())
SELF_PHRASES = ("i am ", "we are ", "i have ", "we have ", "i use ", "we use ", "i work ", "i live ", "call me ")
WISH = frozenset("prefer like love hate want always never must don't remember important".split())
WISH_PHRASES = ("should not ", "do not ", "from now on ")
DECISION = frozenset(
    "decision agreed committed dropped dropping added adding use used uses using build building built deadline due moved moving".split()
)
DECISION_STEMS = ("decid", "chose", "choos", "switch", "migrat", "revert", "remov", "replac", "merg", "adopt", "cancel", "renam")
DECISION_PHRASES = ("go with ", "going with ")
CAUSE = frozenset("because cause caused since therefore reason".split())
CAUSE_PHRASES = ("due to ", "so that ")
IDENTIFIER = re.compile(r"\d|[A-Za-z][_/:@-][A-Za-z0-9]|\b[A-Z]{2,}\b|[a-z][A-Z]|[`\"]")
OPEN = frozenset(["todo", "please"])
OPEN_PHRASES = ("to do ", "remind me ", "need to ", "still have to ", "next step ", "follow up ", "can you ", "could you ", "would you ")
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
    found = WORD.findall(text.lower().replace("’", "'"))
    words, spoken = set(found), f"{' '.join(found)} "
    if text.endswith(("?", "？")) or (by_user and says(words, spoken, OPEN, OPEN_PHRASES)):
        return ("request", 1.5) if by_user and recent else ("question", 0.0)
    telling = [token for token in text.split() if not (token.isalpha() and token.islower())]  # neither a number nor a name is such a word
    score = 0.3 * min(4, sum(IDENTIFIER.search(token) is not None for token in telling))
    score += 0.2 * min(3, sum(token[0].isupper() for token in telling[1:]))
    decided = says(words, spoken, DECISION, DECISION_PHRASES) or any(word.startswith(DECISION_STEMS) for word in words)
    score += 1.0 * decided + 0.7 * says(words, spoken, CAUSE, CAUSE_PHRASES)
    if by_user:
        score += 1.5 * says(words, spoken, SELF, SELF_PHRASES) + 0.8 * says(words, spoken, WISH, WISH_PHRASES) + 0.2
    return ("decision" if decided else "fact"), score * (1.0 if by_user else 0.5)


def says(words: set[str], spoken: str, single: frozenset[str], phrases: tuple[str, ...]) -> bool:
    """Whether a sentence has one of these words or phrases. Sets, since a regular expression of so many words takes ten times as long."""
    return not single.isdisjoint(words) or any(phrase in spoken for phrase in phrases)


def select(notes: Sequence[StateLine], *, counter: tokens.Counter, room: int) -> list[StateLine]:
    """The best notes that fit, in the order in which they were said. Of equal notes the newest stays, and old open requests expire."""
    newest = {(n.role, " ".join(n.text.casefold().split())): n for n in notes}
    unique = list(newest.values())
    recent = max((n.position for n in unique if n.kind == "request"), default=0)
    ranked = sorted(unique, key=lambda n: (-n.score, -n.position))
    room -= counter.count(blocks.state(())) + 4
    chosen = []
    for note in ranked:
        if room < SMALLEST_LINE:
            break
        if note.kind == "request" and note.position < recent - 2 * RECENT_EXCHANGES:
            continue
        price = counter.count(blocks.state_line(note)) + 1
        if price <= room:
            chosen.append(note)
            room -= price
    return sorted(chosen, key=lambda n: n.position)
