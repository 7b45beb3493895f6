"""Keeps what a client says about a conversation, in the transaction of the turn that begins it."""

from __future__ import annotations

from dataclasses import dataclass

from mnemon.core import errors
from mnemon.core.records import Json
from mnemon.store.base import Tx
from mnemon.store.conversations import Conversations
from mnemon.turn.keeping import Made


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """The keeper of a conversation that begins with messages. `name` is the conversation's."""

    tenant: str
    name: str
    metadata: Json
    system_prompt: str | None
    early: bool = False

    def begun(self, tx: Tx, *, session_id: str | None, at: float) -> None:
        """There is nothing to say yet."""

    def committed(self, tx: Tx, made: Made) -> None:
        conversations = Conversations(tx, self.tenant)
        if conversations.get(self.name).started_at != made.at:
            raise errors.Conflict(f"there is a conversation {self.name!r} already", code="session_exists", param="id")
        conversations.describe(made.lineage, self.metadata, system_prompt=self.system_prompt)

    def failed(self, tx: Tx, error: errors.MnemonError, *, number: int, frames: bytes, at: float) -> None:
        """Nothing was begun."""
