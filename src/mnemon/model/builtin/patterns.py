"""Regular expressions that are compiled when they are first used: compiling all of the package's takes longer than importing it."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable

Lazy = Callable[[], re.Pattern[str]]


def lazy(pattern: str, flags: re.RegexFlag = re.NOFLAG) -> Lazy:
    """The pattern as a function to call wherever it is used; the first call compiles it, the others find it ready."""
    return functools.cache(functools.partial(re.compile, pattern, flags))
