"""What else a turn leaves behind besides its messages, in the very transactions that make the turn: a response, a run, a job's outcome.

A turn knows neither; it says when it began, when it was committed and when it failed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from mnemon.core import errors
from mnemon.core.records import Effective, Json
from mnemon.store.base import Tx


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A turn at its commit: where its messages stand, and the frames that are not in the event log yet, from number `number` on."""

    effective: Effective
    lineage: int
    first: int | None
    last: int | None
    chain: bytes
    usage: Json
    number: int
    frames: bytes
    at: float


class Keeper(Protocol):
    """Writes along with a turn. Its name is that of the turn, and of its stream, in its tenant."""

    @property
    def name(self) -> str:
        """What it is asked for by."""
        ...

    @property
    def early(self) -> bool:
        """Whether it is known from its beginning."""
        ...

    def begun(self, tx: Tx, *, session_id: str | None, at: float) -> None:
        """The turn has its session."""
        ...

    def committed(self, tx: Tx, made: Made) -> None:
        """The turn is being committed. What this raises undoes the whole turn."""
        ...

    def failed(self, tx: Tx, error: errors.MnemonError, *, number: int, frames: bytes, at: float) -> None:
        """The turn failed and left nothing; `frames` are those that are not in the event log yet."""
        ...
