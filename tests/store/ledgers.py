"""What the tests of memories do over and over."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mnemon.context import recollection
from mnemon.context.tokens import Counter
from mnemon.core import clock
from mnemon.core.records import Identity, Json, Message, Recalled
from mnemon.memory.base import Learned, Query
from mnemon.memory.builtin import Builtin
from mnemon.store.memories import Details, Evidence, Filter, Link, Memories, Remembered
from mnemon.store.removals import Removals
from tests.store.steps import Store, Talk

DAY = 86_400.0


def memory(name: str, text: str = "", **more: Any) -> Remembered:
    """A memory as a distiller makes one; `values`, `terms` and the like are its details."""
    details = {key: more.pop(key) for key in list(more) if key in Details.__dataclass_fields__}
    at = more.pop("at", 1.0)
    given = {"kind": "fact", "origin": "user", "rule": "copula", "version": 1, "valid_from": at, "recorded_at": at, **more}
    return Remembered(id=name, text=text or f"This is {name}.", details=Details(**details), **given)


class Ledger:
    """The memories of a session's scope inside a transaction."""

    def __init__(self, talk: Talk, session_id: str) -> None:
        lineage = talk.lineage(session_id)
        self.talk = talk
        self.session = session_id
        self.lineage = lineage.id
        self.memories = Memories(talk.tx, talk.tenant, lineage.scope)
        self.removals = Removals(talk.tx, talk.tenant, lineage.scope)

    def say(self, *said: Remembered, at: float = 1.0) -> int:
        """One message that states these memories; its position."""
        (position,) = self.talk.say(self.session, " ".join(m.text for m in said), at=at)
        self.memories.add(said)
        start = 0
        for m in said:
            self.support(m.id, position, start=start, length=len(m.text), at=at)
            start += len(m.text) + 1
        return position

    def support(self, name: str, position: int, *, start: int = 0, length: int = 4, at: float = 1.0) -> None:
        """More evidence."""
        self.memories.support([(name, Evidence(lineage=self.lineage, position=position, start=start, length=length, at=at))])

    def supersede(self, old: str, new: str, *, kind: Any = "supersedes", at: float = 2.0) -> None:
        """One takes the place of another."""
        assert self.memories.close(old, by=new, rule="same_slot", at=at)
        self.memories.link([Link(source=new, target=old, kind=kind, rule="same_slot", at=at)])

    def explain(self, cause: str, effect: str) -> None:
        """One is the reason of another."""
        self.memories.link([Link(source=cause, target=effect, kind="cause", rule="because", at=2.0)])

    def states(self) -> dict[str, str]:
        """The state of every memory in the scope."""
        return {m.id: m.state for m in everything(self.memories)}


def everything(memories: Memories) -> list[Remembered]:
    """All of a scope, oldest first."""
    return memories.page(Filter(), limit=1000)[::-1]


def written(line: Recalled) -> str:
    """A line with what is said about it."""
    place = f"#{line.position} " if line.position else ""
    return (
        f"- [{line.name or place.strip()}{' ' if line.name or place else ''}{clock.day(line.at)} {line.role}] {recollection.marked(line)}"
    )


@dataclass
class Mind:
    """A server's memory, and one conversation or several that fill it; a day passes between two messages."""

    store: Store
    builtin: Builtin
    at: float = 0.0
    diffs: list[Json] = field(default_factory=list)

    async def say(self, *texts: str, session: str = "s", key: str | None = "k", reply: str = "") -> Json:
        """One turn for each text, as a commit writes them, with this reply if there is one; what the last did to memory."""
        for text in texts:
            self.at += DAY

            def work(talk: Talk, text: str = text) -> Json:
                if talk.sessions.lineage_of(session) is None:
                    talk.begin(session, session_key=key)
                bodies = [{"role": "user", "content": text}, *([{"role": "assistant", "content": reply}] if reply else [])]
                positions = talk.append(session, *bodies, at=self.at)
                lineage = talk.lineage(session)
                plans = self.builtin.prepare([Message(body) for body in bodies], at=self.at)
                learned = Learned(
                    tenant=talk.tenant,
                    scope=lineage.scope,
                    lineage=lineage.id,
                    plans=list(zip(positions, plans, strict=True)),
                    session_id=session,
                    at=self.at,
                )
                taken = self.builtin.learn(talk.tx, learned)
                return taken.diff

            self.diffs.append(await self.store.write(work))
        return self.diffs[-1]

    async def recall(self, text: str, *, session: str = "s", inside: bool = False, live: int = 0) -> list[Recalled]:
        """What is recalled for a text in the scope of a session; `inside`: by that session itself."""
        lineage = await self.store.read(lambda talk: talk.lineage(session))
        query = Query(
            tenant=self.store.tenant,
            scope=lineage.scope,
            size=2**40,
            memories=lineage.scope_memories,
            changes=lineage.scope_changes,
            lineage=lineage.id if inside else 0,
            live=live,
            text=text,
            identity=Identity(),
        )
        return await self.builtin.recall(query)

    async def lines(self, text: str, *, room: int = 4000, **more: Any) -> list[str]:
        """The same, fitted, each line with its place and day."""
        shown, _ = recollection.fit(await self.recall(text, **more), counter=Counter.for_model(None), room=room)
        return [written(line) for line in shown]

    async def states(self, session: str = "s") -> dict[str, str]:
        """What is in the ledger, by its words."""

        def work(talk: Talk) -> dict[str, str]:
            found = Memories(talk.tx, talk.tenant, talk.lineage(session).scope).page(Filter(), limit=1000)
            return {m.text: m.state for m in found}

        return await self.store.read(work)
