"""Items of the Responses API as chat messages, and back."""

from __future__ import annotations

from typing import Any

import pytest

from mnemon.core import errors
from mnemon.core.records import Json, Message
from mnemon.edge.responses import items, objects

CALL: Json = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
OUTPUT: Json = {"type": "function_call_output", "call_id": "c", "output": "x"}
IMAGE: Json = {"type": "image_url", "image_url": {"url": "https://a/b", "detail": "auto"}}
CALLED: Json = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def message(content: Any = None, **fields: Any) -> Json:
    """A chat message of the assistant."""
    return {"role": "assistant", "content": content, **fields}


def said(text: str) -> Json:
    """Words of the assistant."""
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def thought(text: str) -> Json:
    """Reasoning of the assistant."""
    return {"type": "reasoning", "id": "rs", "summary": [], "content": [{"type": "reasoning_text", "text": text}]}


def read(*given: Json) -> list[Json]:
    """The messages that items stand for."""
    return [found.body for found, _ in items.read(list(given))]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([said("A"), CALL], [message("A", tool_calls=[CALLED])]),
        ([CALL, said("A")], [message("A", tool_calls=[CALLED])]),
        ([said("A"), CALL, said("B")], [message("AB", tool_calls=[CALLED])]),
        ([CALL, CALL], [message(tool_calls=[CALLED, CALLED])]),
        ([said("A"), said("B")], [message("A"), message("B")]),
        ([thought("T"), said("A")], [message("A", reasoning_content="T")]),
        ([said("A"), thought("T"), said("B")], [message("A"), message("B", reasoning_content="T")]),
        ([thought("T")], []),
        ([CALL, OUTPUT], [message(tool_calls=[CALLED]), {"role": "tool", "tool_call_id": "c", "content": "x"}]),
        ([{"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "…"}, said("A")], [message("A")]),
        ([{"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}], [message(refusal="No.")]),
        ([{"role": "user", "content": [{"type": "input_text", "text": "A"}]}], [{"role": "user", "content": "A"}]),
    ],
)  # fmt: skip
def test_items_of_one_step_are_one_message(given: list[Json], expected: list[Json]) -> None:
    """Thoughts, words and calls belong together; two things said are two messages; thoughts that led to nothing are none."""
    assert read(*given) == expected


@pytest.mark.parametrize(
    "given",
    [
        {"role": "user", "content": "A"},
        {"role": "user", "content": [{"type": "text", "text": "A"}, IMAGE]},
        {"role": "assistant", "content": "A", "reasoning_content": "T", "tool_calls": [CALLED]},
        {"role": "assistant", "content": None, "refusal": "No."},
        {"role": "assistant", "content": None, "tool_calls": [CALLED]},
        {"role": "tool", "tool_call_id": "c", "content": "x"},
    ],
)  # fmt: skip
def test_a_message_survives_as_items(given: Json) -> None:
    """What is listed as items and sent back stands for the same message."""
    listed = objects.items_of(Message(given), lambda prefix, index: f"{prefix}_{index}")
    assert read(*listed) == [given]


def test_places_name_the_item_that_is_wrong() -> None:
    """Each message knows where in the request it began."""
    found = items.read([{"role": "user", "content": "A"}, CALL, said("B"), OUTPUT])
    assert [place for _, place in found] == ["input[0]", "input[1]", "input[3].call_id"]


@pytest.mark.parametrize(
    ("given", "param"),
    [
        (5, "input"),
        ([], "input"),
        ("", "input"),
        (["x"], "input[0]"),
        ([{}], "input[0]"),
        ([{"role": "tool", "content": "x"}], "input[0].role"),
        ([{"role": "user", "content": ""}], "input[0].content"),
        ([{"role": "user", "content": [{"type": "input_text"}]}], "input[0].content[0].text"),
        ([{**CALL, "call_id": ""}], "input[0].call_id"),
        ([{**CALL, "arguments": {}}], "input[0].arguments"),
        ([{"type": "function_call_output", "call_id": "c"}], "input[0].output"),
        ([{**OUTPUT, "output": [{"type": "input_image", "image_url": "https://a/b"}]}], "input[0].output[0]"),
        ([{"type": "reasoning", "content": "x"}], "input[0].content"),
        ([{"role": "system", "content": "only"}], "input"),
    ],
)
def test_a_wrong_item_is_named(given: Any, param: str) -> None:
    """The error says which one."""
    with pytest.raises(errors.Invalid) as refused:
        items.asked(given)
    assert refused.value.param == param


def test_an_item_says_where_it_is() -> None:
    """From its name alone the response and its place in it are known."""
    name = "resp_" + "a1" * 24
    assert items.place_of(items.item_id("msg", name, 3)) == (name, False, 3)
    assert items.place_of(items.item_id("fc", name, 300, given=True)) == (name, True, 300)
    assert items.place_of("msg_of_somebody_else") is None


def test_an_order_that_does_not_fit_any_more_is_the_usual_one() -> None:
    """Where words were deleted from a reply, what is left is shown in the usual order."""
    reply = message("After all.", tool_calls=[CALLED])
    segments = [["call", 0], ["words", 10]]
    kinds = [item["type"] for item in objects.output("resp_", reply, status="completed", segments=segments)]
    assert kinds == ["function_call", "message"]
    less = {**reply, "content": "After."}
    assert [item["type"] for item in objects.output("resp_", less, status="completed", segments=segments)] == ["message", "function_call"]
