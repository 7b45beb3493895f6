"""What the tests of this folder do over and over, through the repositories and never past them."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from mnemon.app import open_driver
from mnemon.config import Settings
from mnemon.core.records import Identity, Json, Lineage, Message, Recalled, StateLine, StoredMessage, chained
from mnemon.memory.base import Learned, Query
from mnemon.memory.fulltext import FullText
from mnemon.store.base import Driver, Tx
from mnemon.store.messages import Messages, lines_json
from mnemon.store.passages import Passages
from mnemon.store.sessions import NewSession, Sessions

T = TypeVar("T")

PATIENCE = 20.0
LEARNING = FullText(None, embeddings=False)  # type: ignore[arg-type]  # planning and writing ask no driver
_numbers = itertools.count(1)


def unique(prefix: str) -> str:
    """A name that no other test uses."""
    return f"{prefix}-{next(_numbers)}"


@contextlib.asynccontextmanager
async def opened(url: str) -> AsyncIterator[Driver]:
    """A driver for the address, open."""
    found = open_driver(Settings(data_dir=Path(), database_url=url))
    await found.open()
    try:
        yield found
    finally:
        await found.close()


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that another process or thread brings about."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it never came about"
        await asyncio.sleep(0.005)


@dataclass(frozen=True, slots=True)
class Store:
    """A tenant in a database."""

    driver: Driver
    tenant: str
    memory: FullText

    @classmethod
    def new(cls, driver: Driver) -> Store:
        """A tenant that nobody used before, and a memory that stays, as a server's does."""
        return cls(driver, unique("tenant"), FullText(driver))

    async def write(self, work: Callable[[Talk], T]) -> T:
        """One unit of work."""
        return await self.driver.write(lambda tx: work(Talk(tx, self.tenant)))

    async def read(self, work: Callable[[Talk], T]) -> T:
        """One snapshot."""
        return await self.driver.read(lambda tx: work(Talk(tx, self.tenant)))

    async def recall(self, scope: int, text: str, *, changes: int = 0, lineage: int = 0, live: int = 0) -> list[Recalled]:
        """What is found for a text in a scope, best first."""
        query = Query(
            tenant=self.tenant, scope=scope, size=2**40, changes=changes, lineage=lineage, live=live, text=text, identity=Identity()
        )
        return await self.memory.recall(query)

    async def found(self, session_id: str, text: str, *, live: int | None = None) -> list[str]:
        """The texts that are found in the scope of a session; `live`: by a turn of it whose prompt holds what is behind that position."""
        lineage = await self.read(lambda talk: talk.lineage(session_id))
        inside = {} if live is None else {"lineage": lineage.id, "live": live}
        return [r.text for r in await self.recall(lineage.scope, text, changes=lineage.scope_changes, **inside)]

    def other(self) -> Store:
        """Another tenant of the same database."""
        return Store(self.driver, unique("tenant"), self.memory)


def user(text: Any) -> Json:
    """A user's message."""
    return {"role": "user", "content": text}


def assistant(text: str | None, *calls: str) -> Json:
    """A model's message, with tool calls of these ids."""
    body: Json = {"role": "assistant", "content": text}
    if calls:
        body["tool_calls"] = [{"id": c, "type": "function", "function": {"name": "look", "arguments": "{}"}} for c in calls]
    return body


def said(bodies: Sequence[Json | str]) -> list[Message]:
    """Messages; a text is a user's."""
    return [Message(b if isinstance(b, dict) else user(b)) for b in bodies]


def note(position: int, text: str) -> StateLine:
    """A line of compressed state."""
    return StateLine(position=position, role="user", at=1.0, kind="fact", text=text, score=1.0)


class Talk:
    """Conversations of one tenant inside a transaction, written as a commit writes them."""

    def __init__(self, tx: Tx, tenant: str) -> None:
        self.tx = tx
        self.tenant = tenant
        self.sessions = Sessions(tx, tenant)

    def begin(self, session_id: str, *, at: float = 1.0, **more: Any) -> Lineage:
        """A new session."""
        return self.sessions.begin(NewSession(id=session_id, source=more.pop("source", "api"), **more), at=at)

    def lineage(self, session_id: str) -> Lineage:
        """The lineage of a session that exists."""
        found = self.sessions.lineage_of(session_id)
        assert found is not None
        return found

    def messages(self, session_id: str) -> Messages:
        """The messages of a session's lineage."""
        return Messages(self.tx, self.tenant, self.lineage(session_id).id)

    def say(self, session_id: str, *bodies: Json | str, at: float = 1.0) -> list[int]:
        """Append messages (a text is a user's) and make them findable by their words; their positions."""
        lineage = self.lineage(session_id)
        positions = self.append(session_id, *bodies, at=at)
        plans = list(zip(positions, LEARNING.prepare(said(bodies), [()] * len(bodies)), strict=True))
        LEARNING.learn(self.tx, Learned(tenant=self.tenant, scope=lineage.scope, lineage=lineage.id, plans=plans))
        return positions

    def append(self, session_id: str, *bodies: Json | str, at: float = 1.0) -> list[int]:
        """Append messages (a text is a user's) and leave them to whoever learns them; their positions."""
        lineage = self.lineage(session_id)
        rows, chain = [], lineage.chain
        for position, message in enumerate(said(bodies), lineage.next_position):
            chain = chained(chain, message.digest())
            rows.append((StoredMessage(message=message, position=position, at=at, session_id=lineage.tip), message.digest(), chain))
        self.sessions.advance(lineage.id, next_position=lineage.next_position + len(rows), chain=chain, at=at)
        Messages(self.tx, self.tenant, lineage.id).add(rows)
        return [stored.position for stored, _, _ in rows]

    def compress(self, session_id: str, child: str, *, upto: int, at: float = 1.0) -> None:
        """Continue a session in a child."""
        lineage = self.lineage(session_id)
        state = lines_json([note(upto, f"state up to {upto}")])
        self.sessions.continue_in(child, lineage, upto=upto, state=state, at=at)

    def branch(self, session_id: str, *, start: int, at: float = 1.0) -> None:
        """What an edit does: the active path from a position on is left as a branch."""
        lineage = self.lineage(session_id)
        messages = self.messages(session_id)
        upto, state = messages.compaction_before(start)
        digests = [chain for position, _, chain in messages.digests() if position < start]
        messages.archive(start=start, number=lineage.branches + 1, at=at)
        if start <= lineage.compacted_to:
            self.sessions.rewind(lineage.id, upto=upto, state=lines_json(state))
        else:
            self.sessions.branched(lineage.id)
        self.sessions.advance(lineage.id, next_position=lineage.next_position, chain=digests[-1] if digests else b"", at=at)

    def path(self, session_id: str, *, branch: int = 0) -> list[str]:
        """The texts of a path, in order."""
        return [m.text for m in self.messages(session_id).page(limit=1000, offset=0, branch=branch)]

    def passages(self, scope: int) -> int:
        """How many passages a scope holds."""
        return len(Passages(self.tx, self.tenant, scope).since(0, limit=10_000))
