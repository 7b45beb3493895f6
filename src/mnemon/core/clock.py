"""Time as an argument, so that tests can hold it still."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], float]

system: Clock = time.time


def day(at: float) -> str:
    """The calendar day of an instant, in UTC, as people write it in a log."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d")
