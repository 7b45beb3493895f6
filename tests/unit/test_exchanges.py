"""Exchanges and their units."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mnemon.context.exchanges import NO_RESULT, completed, exchanges, told, units
from mnemon.core.records import Message, StoredMessage


def said(position: int, body: dict[str, Any]) -> StoredMessage:
    """A stored message."""
    return StoredMessage(message=Message(body), position=position, at=0.0, session_id="s")


def call(position: int, *names: str) -> StoredMessage:
    """The assistant calls tools."""
    calls = [{"id": name, "type": "function", "function": {"name": "f", "arguments": "{}"}} for name in names]
    return said(position, {"role": "assistant", "content": None, "tool_calls": calls})


def result(position: int, name: str) -> StoredMessage:
    """A tool's answer."""
    return said(position, {"role": "tool", "tool_call_id": name, "content": "done"})


def user(position: int) -> StoredMessage:
    """A question."""
    return said(position, {"role": "user", "content": "question"})


def test_units_keep_a_call_with_its_results() -> None:
    """Each message of the assistant is a unit with the results of its calls; the question stands alone."""
    history = [
        user(1),
        call(2, "a", "b"),
        result(3, "a"),
        result(4, "b"),
        call(5, "c"),
        result(6, "c"),
        said(7, {"role": "assistant", "content": "x"}),
    ]
    (exchange,) = exchanges(history)
    assert [[m.position for m in unit] for unit in units(exchange)] == [[1], [2, 3, 4], [5, 6], [7]]


def test_an_abandoned_call_gets_a_stand_in() -> None:
    """A call that was never answered is followed by a result that says so, before the next message."""
    history = [user(1), call(2, "a", "b"), result(3, "a"), user(4)]
    shown = [(m.role, m.message.body.get("tool_call_id")) for m in completed(history, [])]
    assert shown == [("user", None), ("assistant", None), ("tool", "a"), ("tool", "b"), ("user", None)]
    assert completed(history, [])[3].text == NO_RESULT


def test_a_call_that_is_answered_now_needs_none() -> None:
    """A result among the new messages counts; the history stays as it is."""
    history = [user(1), call(2, "a")]
    assert completed(history, [Message({"role": "tool", "tool_call_id": "a", "content": "now"})]) == history


def test_what_was_deleted_is_not_told() -> None:
    """Without its question an answer is left out, without its call a result; a deleted answer leaves its question."""
    history = [user(1), call(2, "a"), result(3, "a"), user(4), said(5, {"role": "assistant", "content": "yes"})]

    def without(*gone: int) -> list[int]:
        return [m.position for m in told([replace(m, erased=m.position in gone) for m in history])]

    assert without() == [1, 2, 3, 4, 5]
    assert without(1) == [4, 5]
    assert without(2) == [1, 4, 5]
    assert without(3) == [1, 2, 4, 5]
    assert without(5) == [1, 2, 3, 4]
