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

    `size` is how many passages the scope had when the turn began. `lineage` and `live` say which messages are in the prompt already: those
    of the lineage behind position `live`.
    """

    tenant: str
    scope: int
    size: int
    lineage: int
    live: int
    text: str
    identity: Identity


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """What a turn adds: `plans` are (position of the message, plan)."""

    tenant: str
    scope: int
    lineage: int
    plans: Sequence[tuple[int, Any]]


class Memory(Protocol):
    """Recalls what was said in a scope, and learns from what is committed."""

    async def recall(self, query: Query) -> list[Recalled]:
        """What may help with the newest message, best first. Never touches another scope."""
        ...

    def prepare(self, messages: Sequence[Message]) -> list[Any]:
        """One plan for each message, made outside any transaction: all the thinking happens here."""
        ...

    def learn(self, tx: Tx, learned: Learned) -> int:
        """Write what was planned, inside the transaction of the turn; a mark for `committed`."""
        ...

    def committed(self, learned: Learned, mark: int) -> None:
        """That transaction is durable now: caches may take it up."""
        ...
