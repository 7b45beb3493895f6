"""The port behind which every memory provider stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from mnemon.core.records import Identity, Message, Recalled
from mnemon.store.base import Tx


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What is to be recalled, and for whom.

    `lineage` and `live` say which messages are in the prompt already: those of the lineage behind position `live`.
    """

    tenant: str
    scope: int
    lineage: int
    live: int
    text: str
    identity: Identity


class Memory(Protocol):
    """Recalls what was said in a scope, and learns from what is committed."""

    async def recall(self, query: Query) -> list[Recalled]:
        """What may help with the newest message, best first. Never touches another scope."""
        ...

    def prepare(self, messages: Sequence[Message]) -> list[Any]:
        """One plan for each message, made outside any transaction: all the thinking happens here."""
        ...

    def learn(self, tx: Tx, *, tenant: str, scope: int, plans: Sequence[tuple[int, Any]]) -> None:
        """Write what was planned, as (message row id, plan), inside the transaction of the turn."""
        ...
