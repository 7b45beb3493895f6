"""Messages of a lineage: every original, in order, for ever.

The active path has branch 0. When a client edits or regenerates an earlier message, the messages from there on are moved to a branch
with a number of its own; positions are never used twice, which is what makes an old branch readable without copies: it is its own
messages, preceded by those of lower position that had not been moved away before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec

from mnemon.core.records import Message, StateLine, StoredMessage
from mnemon.store.base import Row, Tx

FAR = 2**62  # behind every position


def stored(row: Row) -> StoredMessage:
    return StoredMessage(
        message=Message(msgspec.json.decode(row["body"])),
        position=row["position"],
        at=row["at"],
        session_id=row["session_id"],
        tokens=row["tokens"],
        counted_by=row["counted_by"],
        finish_reason=row["finish_reason"],
        erased=bool(row["erased"]),
        origin=row["origin"],
    )


class Messages:
    """Messages of one tenant's lineage."""

    def __init__(self, tx: Tx, tenant: str, lineage: int) -> None:
        self.tx = tx
        self.key = {"tenant": tenant, "lineage": lineage}

    def live(self, *, after: int, before: int = FAR) -> list[StoredMessage]:
        """The active path between two positions, without them, in order."""
        return [stored(row) for row in self.tx.all("messages_live", **self.key, after=after, before=before)]

    def between(self, first: int, last: int) -> list[StoredMessage]:
        """The messages from one position to another, in order, whichever branch they stand on by now."""
        return [stored(row) for row in self.tx.all("messages_between", **self.key, first=first, last=last)]

    def page(self, *, limit: int, offset: int, latest: bool = False, branch: int = 0) -> list[StoredMessage]:
        """A page of the active path (or of an old branch), oldest first unless `latest`."""
        if branch:
            rows = self.tx.all("messages_page_branch", **self.key, limit=limit, offset=offset, branch=branch)
        else:
            rows = self.tx.all("messages_page_latest" if latest else "messages_page", **self.key, limit=limit, offset=offset)
        return [stored(row) for row in rows]

    def following(self, position: int, *, limit: int, backwards: bool = False) -> list[StoredMessage]:
        """The active path from a position on, itself included; with `backwards`, towards the beginning."""
        name = "messages_backwards" if backwards else "messages_following"
        return [stored(row) for row in self.tx.all(name, **self.key, position=position, limit=limit)]

    def digests(self) -> list[tuple[int, bytes, bytes]]:
        """(position, digest, chain) of the active path."""
        return [(r["position"], bytes(r["digest"]), bytes(r["chain"])) for r in self.tx.all("messages_digests", **self.key)]

    def chain_at(self, position: int) -> bytes:
        """The digest of the active path up to a position; empty if that stands on an old branch, or nowhere."""
        row = self.tx.one("messages_chain", **self.key, position=position)
        return bytes(row["chain"]) if row else b""

    def add(self, messages: Sequence[tuple[StoredMessage, bytes, bytes]]) -> None:
        """Append to the active path; each message with its digest and the chain's digest up to it."""
        self.tx.many("messages_add", [{**self.key, **columns(m), "digest": digest, "chain": chain} for m, digest, chain in messages])

    def archive(self, *, start: int, number: int, at: float) -> None:
        """Move the active path from `start` on to a branch of its own."""
        self.tx.run("messages_archive", **self.key, start=start, branch=number)
        self.tx.run("scopes_change_around", **self.key)
        self.tx.run("branches_add", lineage=self.key["lineage"], number=number, start=start, at=at)

    def compaction_before(self, position: int) -> tuple[int, tuple[StateLine, ...]]:
        """The newest compressed state that knows nothing of `position` or later: (up to where it reaches, its lines)."""
        row = self.tx.one("compactions_before", lineage=self.key["lineage"], position=position)
        return (row["upto"], lines(row["state"])) if row else (0, ())


def columns(message: StoredMessage) -> dict[str, Any]:
    return {
        "position": message.position,
        "session_id": message.session_id,
        "role": message.role,
        "body": msgspec.json.encode(message.message.body).decode(),
        "tokens": message.tokens,
        "counted_by": message.counted_by,
        "finish_reason": message.finish_reason,
        "origin": message.origin,
        "at": message.at,
    }


@lru_cache(maxsize=256)  # it changes only when a session is compressed, and is read at every turn
def lines(text: str) -> tuple[StateLine, ...]:
    return tuple(msgspec.json.decode(text, type=list[StateLine])) if text != "[]" else ()


def lines_json(state: Sequence[StateLine]) -> str:
    return msgspec.json.encode(list(state)).decode()


def wire(message: StoredMessage) -> dict[str, Any]:
    """A message as `/api/sessions/{id}/messages` shows it."""
    body = message.message.body
    return {
        "id": message.position,
        "session_id": message.session_id,
        "role": message.role,
        "content": body.get("content"),
        "tool_call_id": body.get("tool_call_id"),
        "tool_calls": body.get("tool_calls"),
        "tool_name": body.get("name"),
        "timestamp": message.at,
        "token_count": message.tokens,
        "finish_reason": message.finish_reason,
        "reasoning": body.get("reasoning"),
        "reasoning_content": body.get("reasoning_content"),
        "refusal": body.get("refusal"),
        "origin": message.origin or None,
        "deleted": message.erased,
    }
