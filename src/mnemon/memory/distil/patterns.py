"""Regular expressions that are compiled when they are first used.

Most sentences are told apart by their words, and reach few of the patterns; to compile all of them takes a fifth of a server's start.
"""

from __future__ import annotations

import re
from typing import Any, cast

METHODS = ("search", "match", "fullmatch", "finditer", "findall", "sub", "split")


class Later:
    """Becomes the pattern: after its first use each method is the compiled one's own."""

    def __init__(self, text: str, flags: int) -> None:
        self._text = text
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        compiled = re.compile(self._text, self._flags)
        for method in METHODS:
            setattr(self, method, getattr(compiled, method))
        return getattr(compiled, name)


def pattern(text: str, flags: int = 0) -> re.Pattern[str]:
    """What `re.compile` would give, later. A mistake in the text shows at its first use."""
    return cast("re.Pattern[str]", Later(text, flags))
