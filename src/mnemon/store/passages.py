"""Passages: the pieces of messages that can be found again, numbered without gaps of visibility within their scope.

The number comes from a counter in the scope's own row, which a transaction holds until it commits: whoever has read up to a number has read
everything below it, on any server.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from mnemon.core.records import NOTHING, Recalled, spoken_by, text_of
from mnemon.store.base import Row, Tx

Spans = Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A piece of a message's text, the words it is found by, and the vector of its meaning, if it was worked out already."""

    start: int
    length: int
    words: str
    vector: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A passage as an index needs it."""

    number: int
    words: str
    lineage: int
    position: int
    length: int
    vector: bytes | None

    @classmethod
    def of(cls, passage: Passage, *, number: int, lineage: int, position: int) -> Entry:
        """What `since` would give for a passage that was just stored."""
        return cls(number=number, words=passage.words, lineage=lineage, position=position, length=passage.length, vector=passage.vector)


class Passages:
    """Passages of one tenant's memory scope."""

    def __init__(self, tx: Tx, tenant: str, scope: int) -> None:
        self.tx = tx
        self.key = {"tenant": tenant, "scope": scope}

    def reserve(self, more: int) -> int:
        """Take the next numbers; the last one that was taken before."""
        row = self.tx.one("scopes_grow", **self.key, more=more)
        return int(row["passages"]) - more if row else 0

    def add(self, lineage: int, rows: Sequence[tuple[int, Passage]]) -> int:
        """Store passages of a lineage as (position, passage); the number before the first of them."""
        if not rows:
            return 0
        base = self.reserve(len(rows))
        self.tx.many(
            "passages_add",
            [
                {
                    **self.key,
                    "number": base + i,
                    "lineage": lineage,
                    "position": at,
                    "start": p.start,
                    "length": p.length,
                    "words": p.words,
                    "vector": p.vector,
                }
                for i, (at, p) in enumerate(rows, 1)
            ],
        )
        return base

    def embed(self, vectors: Mapping[int, bytes]) -> None:
        """Store the vectors of passages, by number. Those that are gone are passed over."""
        self.tx.many("passages_embed", [{**self.key, "number": number, "vector": vector} for number, vector in vectors.items()])

    def since(self, number: int, *, limit: int) -> list[Entry]:
        """What came after a number, in order."""
        rows = self.tx.all("passages_since", **self.key, number=number, limit=limit)
        return [Entry(**{name: row[name] for name in Entry.__dataclass_fields__}) for row in rows]

    def texts(self, numbers: Iterable[int]) -> dict[int, tuple[Recalled, Spans]]:
        """The passages with these numbers, without scores, each with the stretches of its message that state something.

        What was deleted or moved to an old branch since is left out.
        """
        wanted = msgspec.json.encode(list(numbers)).decode()
        return {row["number"]: recalled(row) for row in self.tx.all("passages_texts", **self.key, numbers=wanted)}


def recalled(row: Row) -> tuple[Recalled, Spans]:
    """A line as it may be kept: names that many lines share are the same object."""
    body: dict[str, Any] = msgspec.json.decode(row["body"])
    whole = text_of(body.get("content"))
    piece = whole[row["start"] : row["start"] + row["length"]]
    text = piece.strip()
    start = row["start"] + len(piece) - len(piece.lstrip())
    stated: list[tuple[int, int, int, str, int]] = sorted(
        (at, at + length, *rest) for at, length, *rest in msgspec.json.decode(row["stated"])
    )
    line = Recalled(
        text=text,
        start=start,
        tokens=row["tokens"] if text == whole else None,
        counted_by=row["counted_by"] and sys.intern(row["counted_by"]),
        role=sys.intern(spoken_by(row["role"], row["origin"])),
        at=row["at"],
        session_id=sys.intern(row["session_id"]),
        position=row["position"],
        score=0.0,
        memories=tuple(dict.fromkeys(memory for begin, end, _, memory, _ in stated if begin < start + len(text) and end > start)),
        told=max((told for *_, told in stated), default=NOTHING),
    )
    return line, [(begin, end) for begin, end, *_ in stated]
