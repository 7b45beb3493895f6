"""Time as an argument, so that tests can hold it still."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache

Clock = Callable[[], float]

system: Clock = time.time


def shown(at: float) -> bool:
    """Whether a calendar has this instant: between the years 1 and 9999."""
    return -62_135_596_800 <= at < 253_402_300_800


def day(at: float) -> str:
    """The calendar day of an instant, in UTC, as people write it in a log."""
    return written(int(at // 86400))


@lru_cache(maxsize=4096)
def written(days: int) -> str:
    return datetime.fromtimestamp(days * 86400, UTC).strftime("%Y-%m-%d")
