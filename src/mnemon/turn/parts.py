"""What every step of a turn works with: built once by the composition root."""

from __future__ import annotations

from dataclasses import dataclass, field

from mnemon.context.tokens import Counter
from mnemon.core.clock import Clock
from mnemon.core.metrics import Metrics
from mnemon.memory.base import Memory
from mnemon.model.base import Model
from mnemon.store.base import Driver
from mnemon.turn.naming import Names
from mnemon.turn.resolve import Begun
from mnemon.turn.tails import Tails

BESIDE_TRANSCRIPT = 0.75  # of what compression leaves free; the rest is for notes, system text and the newest message


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How large a prompt may be, and what of it may be what."""

    budget: int
    recall_tokens: int
    compress_at: float

    def recall(self, counter: Counter) -> int:
        """What recalled passages may fill, as this counter counts.

        An estimate's margin comes on top as far as a transcript that is nearly due for compression leaves room for it: recall is not to
        push that out of the prompt.
        """
        left = int(self.budget * (1 - self.compress_at) * BESIDE_TRANSCRIPT)
        return max(self.recall_tokens, min(counter.allowance(self.recall_tokens), left))


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The backends and rules of this process, and the transcripts it has at hand."""

    driver: Driver
    model: Model
    memory: Memory
    counter: Counter
    names: Names
    limits: Limits
    clock: Clock
    metrics: Metrics
    tails: Tails = field(default_factory=Tails)
    owed: list[Begun] = field(default_factory=list)
    """Turns that failed while the database could not be reached: what they hold is still to be given back."""
