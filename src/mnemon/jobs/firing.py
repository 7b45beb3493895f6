"""A firing: an occurrence as an ordinary turn, which ends the occurrence in the very transaction it is committed in.

So at most one turn of an occurrence is ever committed, whoever else took it for abandoned meanwhile. What it asks and what it is told are
of origin `job`: findable as what they are, and never a user's words.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mnemon.core import errors
from mnemon.core.records import Effective, Json, Message, TurnRequest
from mnemon.jobs import planning
from mnemon.jobs.wishes import Wish
from mnemon.store.base import Tx
from mnemon.store.jobs import Claim, End, Occurrences
from mnemon.turn.keeping import Made
from mnemon.turn.running import Outcome

SOURCE = "job"


def request(claim: Claim, wish: Wish, *, model: str) -> TurnRequest:
    """The turn that an occurrence is."""
    instructions = [Message({"role": "system", "content": wish.instructions})] if wish.instructions else []
    return TurnRequest(
        tenant=claim.tenant,
        identity=wish.identity(claim.job),
        messages=(*instructions, Message({"role": "user", "content": wish.prompt})),
        params={"max_tokens": wish.max_tokens} if wish.max_tokens else {},
        model=wish.model or model,
        stream=True,  # a silent model is noticed, however long the whole answer takes
        source=SOURCE,
        origin="job",
        recalls=wish.memory != "none",
        learns=wish.memory == "read_write",
    )


class Unwatched:
    """The wire of a turn that nobody watches."""

    def begin(self, effective: Effective) -> list[bytes]:
        return []

    def chunk(self, chunk: Json) -> tuple[bytes, ...]:
        return ()

    def finish(self, outcome: Outcome) -> list[bytes]:
        return []

    def failure(self, error: errors.MnemonError) -> list[bytes]:
        return []

    def whole(self, outcome: Outcome) -> bytes:
        return b""


@dataclass(slots=True, kw_only=True)
class Firing:
    """The keeper of an occurrence. `became` is how it ended, as far as it is known here; `queued` if others are to take it up."""

    claim: Claim
    wish: Wish
    owner: int
    late: bool = False
    early: bool = True
    became: str = "lost"
    name: str = field(init=False)

    def __post_init__(self) -> None:
        self.name = self.claim.id

    def begun(self, tx: Tx, *, session_id: str | None, at: float) -> None:
        if not Occurrences(tx, self.claim.tenant).begun(self.claim, owner=self.owner, session_id=session_id, at=at):
            raise lost()

    def committed(self, tx: Tx, made: Made) -> None:
        end = End(
            status="done",
            at=made.at,
            session_id=made.effective.session_id,
            lineage=made.lineage,
            first=made.first,
            last=made.last,
            receipt=made.effective.receipt_id,
            usage=made.usage,
            deliver=bool(self.wish.webhook),
        )
        if not planning.finish(tx, self.claim, end, owner=self.owner):
            raise lost()
        self.became = "done"

    def failed(self, tx: Tx, error: errors.MnemonError, *, number: int, frames: bytes, at: float) -> None:
        """A run that failed for reasons of this server's own is taken up again; any other has failed."""
        if isinstance(error, errors.Stopped):
            self.became = "queued" if Occurrences(tx, self.claim.tenant).release(self.claim, owner=self.owner, died=False) else "lost"
            return
        if isinstance(error, errors.StoreError):
            self.became = planning.put_back(tx, self.claim, owner=self.owner, now=at)
            return
        told = {"code": error.code, "message": error.message}
        if self.late:
            told = {"code": "job_timeout", "message": f"it took longer than {self.wish.timeout:g} seconds"}
        end = End(status="failed", at=at, error=told, deliver=bool(self.wish.webhook))
        self.became = "failed" if planning.finish(tx, self.claim, end, owner=self.owner) else "lost"


def lost() -> errors.LeaseLost:
    return errors.LeaseLost("another process took this run over, or its job was deleted")
