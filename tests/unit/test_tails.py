"""Live transcripts kept in memory: for one history exactly, and not without bound."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mnemon.core.records import Lineage, Message, StoredMessage
from mnemon.turn import tails
from mnemon.turn.tails import Tails, Version

LINEAGE = Lineage(
    id=7,
    root="s",
    tip="s",
    parent=None,
    scope=1,
    scope_size=0,
    session_key=None,
    system_prompt=None,
    next_position=3,
    compacted_to=0,
    chain=b"abc",
    branches=0,
)


def said(position: int, *, tokens: int | None = 10) -> StoredMessage:
    """A stored message."""
    return StoredMessage(message=Message({"role": "user", "content": "x"}), position=position, at=0.0, session_id="s", tokens=tokens)


def test_the_very_history_is_found_and_no_other() -> None:
    """A transcript is handed out for its own history; after an append, an edit or a compression elsewhere it is not."""
    kept = Tails()
    kept.keep(7, Version.of(LINEAGE), [said(1), said(2)])
    assert kept.get(LINEAGE) == [said(1), said(2)]
    others = [replace(LINEAGE, chain=b"abd"), replace(LINEAGE, compacted_to=1), replace(LINEAGE, branches=1), replace(LINEAGE, id=8)]
    assert [kept.get(other) for other in others] == [None] * 4


def test_the_least_used_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is room for so many tokens; what was not used for longest leaves, and a newer transcript takes its older one's place."""
    monkeypatch.setattr(tails, "MOST_TOKENS", 50)
    kept = Tails()
    for number in (1, 2):
        kept.keep(number, Version.of(LINEAGE), [said(1), said(2)])
    assert kept.get(replace(LINEAGE, id=1))
    kept.keep(3, Version.of(LINEAGE), [said(1), said(2)])
    assert [kept.get(replace(LINEAGE, id=number)) is not None for number in (1, 2, 3)] == [True, False, True]
    kept.keep(3, Version.of(LINEAGE), [said(1)])
    assert kept.tokens == 30


def test_what_was_not_counted_is_not_kept() -> None:
    """A message whose price is not known has no place in a bound of tokens."""
    kept = Tails()
    kept.keep(7, Version.of(LINEAGE), [said(1, tokens=None)])
    assert kept.get(LINEAGE) is None
