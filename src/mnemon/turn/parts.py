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
from mnemon.turn.tails import Tails


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How large a prompt may be, and what of it may be what."""

    budget: int
    recall_tokens: int
    compress_at: float


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
