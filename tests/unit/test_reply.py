"""A reply put together from its chunks is the message that the model meant."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemon.core.records import Json
from mnemon.turn.reply import Reply, counted, detail, stored_form


def collected(*deltas: Json, finish: str | None = None) -> Reply:
    """What is made of these deltas."""
    reply = Reply()
    for delta in deltas:
        reply.add({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    reply.add({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    return reply


def piece(index: int, call_id: str | None = None, name: str | None = None, arguments: str | None = None) -> Json:
    """A delta of a tool call."""
    return {"tool_calls": [{"index": index, "id": call_id, "function": {"name": name, "arguments": arguments}}]}


@given(st.lists(st.text()))
def test_words_are_joined_as_they_came(pieces: list[str]) -> None:
    """The text is that of the deltas, one after the other, every blank kept."""
    reply = collected({"role": "assistant", "content": ""}, *({"content": p} for p in pieces), finish="stop")
    assert reply.message() == {"role": "assistant", "content": "".join(pieces)}
    assert reply.finish_reason == "stop"


def test_calls_are_merged_by_index() -> None:
    """Pieces of several calls that come interleaved end in whole calls, in the order of their index."""
    reply = collected(
        {"role": "assistant", "content": None},
        piece(1, "b", "second", ""),
        piece(0, "a", "first", '{"x"'),
        piece(1, None, None, "{}"),
        piece(0, None, None, ":1}"),
        finish="tool_calls",
    )
    assert reply.message() == {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "first", "arguments": '{"x":1}'}},
            {"id": "b", "type": "function", "function": {"name": "second", "arguments": "{}"}},
        ],
    }
    assert reply.finish_reason == "tool_calls"


def test_several_calls_in_one_chunk() -> None:
    """A server that sends whole calls, without an index even, is understood."""
    calls = [{"id": c, "type": "function", "function": {"name": c, "arguments": "{}"}} for c in ("a", "b")]
    reply = collected({"tool_calls": calls})
    assert [c["id"] for c in reply.message()["tool_calls"]] == ["a", "b"]


def test_words_beside_calls_are_kept() -> None:
    """A text that comes with tool calls stays; an empty one is null, as OpenAI has it."""
    assert collected({"content": "Let me look."}, piece(0, "a", "f", "{}")).message()["content"] == "Let me look."
    assert collected({"content": ""}, piece(0, "a", "f", "{}")).message()["content"] is None


def test_reasoning_and_refusal_are_collected() -> None:
    """Every text field of the deltas is put together under its own name."""
    reply = collected({"reasoning_content": "hm"}, {"reasoning_content": "…"}, {"refusal": "I'd "}, {"refusal": "rather not"})
    assert reply.message() == {"role": "assistant", "content": "", "reasoning_content": "hm…", "refusal": "I'd rather not"}


def test_indexed_parts_are_merged() -> None:
    """Pieces of a part grow together by index and type, as `reasoning_details` come; what is said each time stays once."""
    thought = {"type": "reasoning.text", "index": 0, "format": "f"}
    sealed = {"type": "reasoning.encrypted", "index": 0, "data": "x"}
    reply = collected(
        {"reasoning_details": [{**thought, "text": "Let ", "signature": None}]},
        {"reasoning_details": [{**thought, "text": "me see.", "signature": "s", "format": None}, sealed]},
        {"reasoning_details": [{**thought, "index": 1, "text": "Ah."}, {**sealed, "data": "y"}]},
        {"content": "Yes."},
    )
    assert reply.message() == {
        "role": "assistant",
        "content": "Yes.",
        "reasoning_details": [
            {**thought, "text": "Let me see.", "signature": "s"},
            {**sealed, "data": "xy"},
            {**thought, "index": 1, "text": "Ah."},
        ],
    }


def test_other_values_are_collected() -> None:
    """Lists without an index are put one after the other, of other values the last one counts, and null says nothing."""
    reply = collected(
        {"annotations": [{"url": "a"}], "audio": {"id": 1}, "score": 1, "safe": True},
        {"annotations": [{"url": "b"}, "c"], "audio": {"id": 2}, "score": 0, "safe": None},
    )
    assert reply.message() == {
        "role": "assistant",
        "content": "",
        "annotations": [{"url": "a"}, {"url": "b"}, "c"],
        "audio": {"id": 2},
        "score": 0,
        "safe": True,
    }


def test_content_in_parts_is_kept_as_text() -> None:
    """A server that streams its words as parts is understood; a text of a transcript is a text."""
    parts = [{"type": "thinking", "thinking": []}, {"type": "text", "text": "Yes, "}]
    assert collected({"content": parts}, {"content": "indeed."}).message()["content"] == "Yes, indeed."


@pytest.mark.parametrize(
    "odd", [{}, {"choices": None}, {"choices": []}, {"choices": [{"delta": None}]}, {"choices": [{"delta": {"tool_calls": None}}]}]
)
def test_empty_chunks_say_nothing(odd: Json) -> None:
    """Chunks without a delta are passed over."""
    reply = Reply()
    reply.add(odd)
    assert reply.message() == {"role": "assistant", "content": ""}


def test_the_last_usage_counts() -> None:
    """Usage is that of the last chunk that carries one."""
    reply = Reply()
    for total in (1, 2):
        reply.add({"choices": [], "usage": {"total_tokens": total}})
    reply.add({"choices": [], "usage": None})
    assert reply.usage == {"total_tokens": 2}


@pytest.mark.parametrize(
    ("message", "kept"),
    [
        ({"role": "assistant", "content": "a", "refusal": None, "tool_calls": [], "audio": None}, {"role": "assistant", "content": "a"}),
        ({"content": "a"}, {"role": "assistant", "content": "a"}),
        ({"role": "model", "content": None}, {"role": "assistant", "content": ""}),
        (
            {"role": "assistant", "content": None, "tool_calls": [{"id": "c"}]},
            {"role": "assistant", "content": None, "tool_calls": [{"id": "c"}]},
        ),
        ({"role": "assistant", "content": "", "x": 0}, {"role": "assistant", "content": "", "x": 0}),
    ],
)
def test_what_is_stored_of_a_message(message: Json, kept: Json) -> None:
    """Fields that say nothing are left out, all others stay, and the role is the assistant's."""
    assert stored_form(message) == kept


@pytest.mark.parametrize("usage", [None, {}, {"total_tokens": None}, {"prompt_tokens": 1}, [], "many"])
def test_missing_usage_is_estimated_and_says_so(usage: Any) -> None:
    """Where the model reported no usage, ours stands in and is marked."""
    assert counted(usage, prompt=10, completion=5) == {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15, "estimated": True}


def test_the_model_s_own_usage_is_kept() -> None:
    """What the model reported is passed on as it is, details included."""
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3, "prompt_tokens_details": {"cached_tokens": 1}}
    assert counted(usage, prompt=10, completion=5) is usage
    assert detail(usage, "prompt_tokens_details", "cached_tokens") == 1
    for group, name in (("prompt_tokens_details", "audio_tokens"), ("completion_tokens_details", "reasoning_tokens")):
        assert detail(usage, group, name) == 0
    assert detail({"g": {"n": "x"}}, "g", "n") == 0
