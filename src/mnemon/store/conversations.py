"""Conversations as OpenAI's API knows them: a lineage, seen as one thing with metadata of the client's own."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from mnemon.core import errors
from mnemon.core.records import Json
from mnemon.store.base import Tx


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A lineage with what the client said about it."""

    lineage: int
    root: str
    metadata: Json
    started_at: float


class Conversations:
    """Conversations of one tenant. Any session of one names it."""

    def __init__(self, tx: Tx, tenant: str) -> None:
        self.tx = tx
        self.tenant = tenant

    def get(self, name: str) -> Conversation:
        """One conversation. Raises `NotFound`."""
        row = self.tx.one("conversations_get", tenant=self.tenant, id=name)
        if row is None:
            raise errors.NotFound(f"there is no conversation {name!r}", code="conversation_not_found", param="conversation_id")
        metadata = msgspec.json.decode(row["metadata"])
        return Conversation(lineage=row["id"], root=row["root"], metadata=metadata, started_at=row["started_at"])

    def describe(self, lineage: int, metadata: Json, *, system_prompt: str | None = None) -> None:
        """Put other metadata in the place of the old; a `system_prompt` is in every prompt from now on."""
        self.tx.run(
            "conversations_describe",
            tenant=self.tenant,
            lineage=lineage,
            metadata=msgspec.json.encode(metadata).decode(),
            system_prompt=system_prompt,
        )
