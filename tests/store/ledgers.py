"""What the tests of memories do over and over."""

from __future__ import annotations

from typing import Any

from mnemon.store.memories import Details, Evidence, Filter, Link, Memories, Remembered
from mnemon.store.removals import Removals
from tests.store.steps import Talk


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

    def states(self) -> dict[str, str]:
        """The state of every memory in the scope."""
        return {m.id: m.state for m in everything(self.memories)}


def everything(memories: Memories) -> list[Remembered]:
    """All of a scope, oldest first."""
    return memories.page(Filter(), limit=1000)[::-1]
