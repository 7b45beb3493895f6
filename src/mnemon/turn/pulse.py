"""How the model is doing, by what its last calls showed. No call is made to find out."""

from __future__ import annotations

from mnemon.core import errors
from mnemon.core.records import Json


class Pulse:
    """The newest success and the newest run of failures of one process."""

    def __init__(self) -> None:
        self.answered_at: float | None = None
        self.failing_since: float | None = None
        self.last_error: str | None = None

    def answered(self, at: float) -> None:
        self.answered_at, self.failing_since, self.last_error = at, None, None

    def failed(self, error: errors.ModelError, at: float) -> None:
        """A model that refuses one request is well; any other failure is its own."""
        if isinstance(error, errors.ModelRejected):
            self.answered(at)
        else:
            self.failing_since, self.last_error = self.failing_since or at, error.code

    def shown(self) -> Json:
        """`unknown` until the first call has ended."""
        status = "failing" if self.failing_since is not None else "ok" if self.answered_at is not None else "unknown"
        return {
            "status": status,
            "last_answer_at": self.answered_at,
            "failing_since": self.failing_since,
            "last_error": self.last_error,
        }
