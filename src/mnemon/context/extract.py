"""Sentences that nothing was made of, and may be worth a line all the same: what is still asked for, conclusions, names and numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from mnemon.context import blocks
from mnemon.context.notes import LONGEST_NOTE, REQUEST, SCORES
from mnemon.core.records import Stated, StateLine, StoredMessage

SHORTEST_NOTE = 8
MOST_SENTENCES = 400
MOST_OF_A_MESSAGE = 4  # what has more to say is a document or a log
SHORTEST_VALUE = 4  # characters; a shorter word without a figure stands in sentences about anything

SENTENCE = re.compile(r"\n+|(?<=[.!?。！？])\s+|(?<=[。！？])")
IDENTIFIER = re.compile(r"\d|[A-Za-z][_/:@-][A-Za-z0-9]|\b[A-Z]{2,}\b|[a-z][A-Z]|[`\"]")
REQUESTS = re.compile(r"\b(todo|to do|please|remind me|need to|still have to|next step|follow up|(can|could|would) you)\b", re.IGNORECASE)
CHATTER = re.compile(
    r"^(ok(ay)?|thanks?|thank you|hi|hello|hey|yes|no|sure|great|cool|nice|bye|good (morning|evening|night)|noted|lol)\b.{0,30}$",
    re.IGNORECASE,
)


class Extract:
    """Chooses sentences beside what is stated: none that is a statement, and none that repeats a value which holds no more."""

    def __init__(self, stated: Sequence[Stated]) -> None:
        self.spans: dict[int, list[tuple[int, int]]] = {}
        for each in stated:
            self.spans.setdefault(each.position, []).append((each.start, each.start + each.length))
        self.current: dict[str, list[str]] = {}
        for value, memory in ((value, each.memory) for each in stated if each.holds for value in each.values):
            self.current.setdefault(value.casefold(), []).append(memory)
        self.outdated = naming({v for each in stated if not each.holds for v in each.values if v.casefold() not in self.current})
        self.named = naming(self.current)

    def still_worth(self, state: Sequence[StateLine]) -> list[StateLine]:
        """The lines of an earlier state that are no statement's: those are made anew."""
        return [line for line in state if not self.understood(line.position, line.start, line.text) and not self.outdated.search(line.text)]

    def repeated(self, text: str) -> tuple[str, ...]:
        """The memories with a value that these words name: with such a memory they go."""
        return tuple(memory for found in self.named.finditer(text) for memory in self.current.get(found[0].casefold(), ()))

    def sentences(self, group: Iterable[StoredMessage], *, recent: bool) -> list[StateLine]:
        """The sentences of an exchange that are worth keeping, each with a score; the best few of each message."""
        found = []
        for message in group:
            if message.role in ("user", "assistant"):
                best = sorted(self.weighed(message, recent=recent), key=lambda line: -line.score)
                found += best[:MOST_OF_A_MESSAGE]
        return found

    def weighed(self, message: StoredMessage, *, recent: bool) -> Iterator[StateLine]:
        for start, text in islice(pieces(blocks.blanked(message.text)), MOST_SENTENCES):
            if not SHORTEST_NOTE <= len(text) <= LONGEST_NOTE or CHATTER.match(text):
                continue
            if self.understood(message.position, start, text) or self.outdated.search(text):
                continue
            kind, score = weigh(text, by_user=message.speaker == "user", recent=recent)
            if score > 0:
                yield StateLine(
                    position=message.position, start=start, role=message.speaker, at=message.at, kind=kind, text=text, score=score
                )

    def understood(self, position: int, start: int, text: str) -> bool:
        """Whether any of it is stated."""
        return start >= 0 and any(begins < start + len(text) and start < ends for begins, ends in self.spans.get(position, ()))


def pieces(text: str) -> Iterator[tuple[int, str]]:
    """The sentences of a text, each with where it begins."""
    start = 0
    for gap in SENTENCE.finditer(text):
        yield stripped(start, text[start : gap.start()])
        start = gap.end()
    yield stripped(start, text[start:])


def stripped(start: int, text: str) -> tuple[int, str]:
    return start + len(text) - len(text.lstrip()), text.strip()


def naming(values: Iterable[str]) -> re.Pattern[str]:
    """Finds these values where they stand as words of their own, as in the reply of an assistant that repeats them."""
    telling = sorted((v for v in values if len(v) >= SHORTEST_VALUE or any(c.isdigit() for c in v)), key=lambda v: (-len(v), v))
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, telling))})(?!\w)" if telling else r"(?!)", re.IGNORECASE)


def weigh(text: str, *, by_user: bool, recent: bool) -> tuple[str, float]:
    """(kind, score) of a sentence: whether it asks for something, and how many names, numbers and identifiers would be lost with it."""
    if text.endswith(("?", "？")) or (by_user and REQUESTS.search(text)):
        return (REQUEST, SCORES[REQUEST]) if by_user and recent else ("question", 0.0)
    telling = [token for token in text.split() if not (token.isalpha() and token.islower())]  # neither a number nor a name is such a word
    score = 0.3 * min(4, sum(IDENTIFIER.search(token) is not None for token in telling))
    score += 0.2 * min(3, sum(token[0].isupper() for token in telling[1:]))
    return "sentence", (score + 0.2) if by_user else score / 2
