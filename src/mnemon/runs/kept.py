"""Keeps a turn under a name: a response or a run.

What is written says how far it is and what it was asked with; what was said stands in the transcript and nowhere else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from mnemon.core import errors
from mnemon.core.records import Json
from mnemon.store.base import Tx
from mnemon.store.frames import Frames
from mnemon.store.works import Kind, Said, Status, Works
from mnemon.turn.keeping import Made


class Shown(Protocol):
    """How the route's `Wire` shows the work itself, at this moment."""

    def shown(self) -> Json:
        """All that is worth keeping of it but what was said."""
        ...

    def ended_as(self) -> Status:
        """How a turn that was committed ended: completed, or incomplete."""
        ...

    def unsaid(self) -> Json:
        """What was answered without a turn, as `/new` is: it stands in no transcript, and is kept with the rest."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The keeper of one work. With `early`, it is known from its beginning, and its frames go into the event log."""

    tenant: str
    name: str
    kind: Kind
    owner: int
    wire: Shown
    early: bool

    def begun(self, tx: Tx, *, session_id: str | None, at: float) -> None:
        Works(tx, self.tenant).begin(
            self.name, self.kind, status="running", body=self.wire.shown(), session_id=session_id, owner=self.owner, at=at
        )

    def committed(self, tx: Tx, made: Made) -> None:
        said = Said(lineage=made.lineage, session_id=str(made.effective.session_id), first=made.first, last=made.last, chain=made.chain)
        body = self.wire.shown() | ({} if made.first else self.wire.unsaid())
        Works(tx, self.tenant).finish(self.name, self.kind, status=self.wire.ended_as(), body=body, said=said, at=made.at)
        if self.early:
            Frames(tx, self.tenant).add(self.name, number=made.number, data=made.frames, at=made.at)

    def failed(self, tx: Tx, error: errors.MnemonError, *, number: int, frames: bytes, at: float) -> None:
        works = Works(tx, self.tenant)
        found = works.find(self.name, self.kind)
        if found is None:
            return  # it failed before it began: whoever asked hears of it, and there is nothing to read later
        if found.status in ("completed", "incomplete"):
            return  # it was stopped while nobody knew that its commit went through
        works.finish(self.name, self.kind, status=end_of(error), body=self.wire.shown(), said=None, at=at)
        Frames(tx, self.tenant).add(self.name, number=number, data=frames, at=at)


def end_of(error: errors.MnemonError) -> Status:
    """How a work ends that fails with this."""
    if isinstance(error, errors.Cancelled):
        return "cancelled"
    return "interrupted" if isinstance(error, errors.Stopped) else "failed"
