"""The port behind which every memory provider stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from mnemon.core.records import Identity, Json, Message, Recalled, Stated
from mnemon.memory.statements import Origin
from mnemon.store.base import Tx


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What is to be recalled, and for whom.

    `size` and `memories` are how many passages and memories the scope had when the turn began, `erasures` and `changes` how often
    something was erased from it or changed in it. `lineage` and `live` say which messages
    are in the prompt already: those of the lineage behind position `live`.
    """

    tenant: str
    scope: int
    size: int
    lineage: int
    live: int
    text: str
    identity: Identity
    changes: int
    memories: int = 0
    erasures: int = 0
    at: float = 0.0
    """The time of asking."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """What a turn adds: `plans` are (position of the message, plan); `at` is when it was said."""

    tenant: str
    scope: int
    lineage: int
    plans: Sequence[tuple[int, Any]]
    session_id: str = ""
    at: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What became of it: a mark for `committed`, and the account that the turn's receipt shows."""

    mark: int
    diff: Json


class Memory(Protocol):
    """Recalls what was said in a scope, and learns from what is committed."""

    async def recall(self, query: Query) -> list[Recalled]:
        """What may help with the newest message, best first. Never touches another scope."""
        ...

    async def stated(self, *, tenant: str, scope: int, lineage: int, positions: Sequence[int]) -> list[Stated]:
        """What these messages of a lineage state, in the order of saying, each with what became of it."""
        ...

    def prepare(self, messages: Sequence[Message], *, at: float, origin: Origin = "user") -> list[Any]:
        """One plan for each message said at this time, made outside any transaction: all the thinking happens here.

        `origin` is whose words those of role `user` are: only a user's become facts by being said.
        """
        ...

    def learn(self, tx: Tx, learned: Learned) -> Taken:
        """Write what was planned, inside the transaction of the turn."""
        ...

    def reword(self, tx: Tx, learned: Learned) -> None:
        """Words were erased from messages, and all that made them findable: make them findable by what is left.

        The `plans` are the messages as they are now.
        """
        ...

    def committed(self, learned: Learned, taken: Taken) -> None:
        """That transaction is durable now: caches may take it up."""
        ...
