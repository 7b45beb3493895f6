"""Patterns that are compiled late: they are what `re.compile` gives, and none of ours has a mistake in it."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from typing import Any

import pytest

from mnemon.memory import distil
from mnemon.memory.distil import patterns

MODULES = [module.name for module in pkgutil.iter_modules(distil.__path__, "mnemon.memory.distil.")]


def within(value: Any) -> Iterator[Any]:
    """The patterns that a value is, or holds."""
    if isinstance(value, patterns.Later):
        yield value
    elif isinstance(value, tuple | list | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from within(each)


@pytest.mark.parametrize("module", MODULES)
def test_every_pattern_can_be_compiled(module: str) -> None:
    """A mistake in a pattern is found here, and not by the first sentence that comes to it."""
    for value in vars(importlib.import_module(module)).values():
        for late in within(value):
            assert isinstance(late.pattern, str)


def test_a_late_pattern_is_a_pattern() -> None:
    """Before its first use and after, it finds what the compiled one finds."""
    late, now = patterns.pattern(r"(?P<word>\w+)!", re.IGNORECASE), re.compile(r"(?P<word>\w+)!", re.IGNORECASE)
    for _ in range(2):
        found, expected = late.search("so there!"), now.search("so there!")
        assert found is not None
        assert expected is not None
        assert found.groupdict() == expected.groupdict()
        assert late.sub("", "so there!") == now.sub("", "so there!")
        assert late.pattern == now.pattern
        assert late.match("!") is None
