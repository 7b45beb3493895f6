"""The language part that the builtin memory works with."""

from __future__ import annotations

from mnemon.memory.builtin import Language
from mnemon.memory.statements import Distilled, Verdict
from mnemon.memory.weave import Wish

LANGUAGE = Language(
    version=1,
    distil=lambda text, *, origin, said_at, timezone: Distilled(),  # noqa: ARG005
    judge=lambda candidate, *, said_at, origin, known: Verdict(outcome="refused", rule="none"),  # noqa: ARG005
    wish=lambda text: Wish(),  # noqa: ARG005
)
