"""Passages: the pieces of messages that full-text search finds again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from mnemon.core.records import Recalled, text_of
from mnemon.store.base import Row, Tx

# How many of the best hits are looked at; what is in the prompt anyway is among them and falls out afterwards.
CONSIDERED = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A piece of a message's text, and the words it is found by."""

    start: int
    length: int
    words: str


class Passages:
    """Passages of one tenant's memory scope."""

    def __init__(self, tx: Tx, tenant: str, scope: int) -> None:
        self.tx = tx
        self.key = {"tenant": tenant, "scope": scope}

    def add(self, message: int, passages: Iterable[Passage]) -> None:
        """Index a message."""
        rows = [{**self.key, "message": message, "start": p.start, "length": p.length, "words": p.words} for p in passages]
        if rows:
            self.tx.many("passages_add", rows)

    def count(self) -> int:
        """How many there are in the scope; large scopes may be counted only up to a limit."""
        row = self.tx.one("passages_in_scope", scope=self.key["scope"])
        return int(row["n"]) if row else 0

    def frequencies(self, words: Sequence[str]) -> dict[str, int]:
        """In how many passages each word stands. A word that stands nowhere is left out."""
        text = msgspec.json.encode(list(words)).decode()
        rows = self.tx.all("passages_frequencies", words=text, scope=self.key["scope"])
        return {row["word"]: row["n"] for row in rows if row["n"]}

    def search(self, words: Sequence[str], *, every: bool, lineage: int, live: int, limit: int) -> list[Recalled]:
        """The best passages that hold any (or `every`) of the words, best first.

        What stands behind position `live` of `lineage` is in the prompt anyway and is left out, and so are old branches.
        """
        query = self._query(words, every=every)
        rows = self.tx.all("passages_search", **self.key, query=query, lineage=lineage, live=live, limit=limit, considered=CONSIDERED)
        return [recalled(row) for row in rows]

    def _query(self, words: Sequence[str], *, every: bool) -> str:
        if self.tx.full_text == "fts5":
            terms = (" AND " if every else " OR ").join(f'"{w}"' for w in words)
            return f'scope : "{self.key["scope"]}" AND words : ({terms})'
        return (" & " if every else " | ").join(f"'{w}'" for w in words)


def recalled(row: Row) -> Recalled:
    body: dict[str, Any] = msgspec.json.decode(row["body"])
    whole = text_of(body.get("content"))
    piece = whole[row["start"] : row["start"] + row["length"]]
    text = piece.strip()
    return Recalled(
        text=text,
        start=row["start"] + len(piece) - len(piece.lstrip()),
        tokens=row["tokens"] if text == whole else None,
        role=row["role"],
        at=row["at"],
        session_id=row["session_id"],
        position=row["position"],
        message_id=row["id"],
        score=-row["rank"],
    )
