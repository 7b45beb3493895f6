"""A turn as events of a response: whatever a model sends, the events say the same as the finished object."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mnemon.core.records import Effective, Json
from mnemon.edge.responses.wire import ResponseWire
from mnemon.turn.reply import Reply, stored_form
from mnemon.turn.running import Outcome

USAGE = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
NAME = "resp_" + "0" * 48

words = st.text(st.characters(codec="utf-8"), min_size=1, max_size=5)
calls = st.tuples(st.integers(0, 2), words).map(
    lambda c: {"tool_calls": [{"index": c[0], "id": f"call_{c[0]}", "function": {"name": "", "arguments": c[1]}}]}
)
delta = st.one_of(
    words.map(lambda text: {"content": text}),
    words.map(lambda text: {"reasoning_content": text}),
    words.map(lambda text: {"refusal": text}),
    calls,
)


def wire() -> ResponseWire:
    """A response that begins."""
    return ResponseWire(NAME, {"model": "m"}, system=[], clock=lambda: 5.0)


def named(deltas: list[Json]) -> list[Json]:
    """The same, with the name of each call in its first piece, as models send it."""
    seen: set[int] = set()
    for each in deltas:
        for piece in each.get("tool_calls", ()):
            if piece["index"] not in seen:
                seen.add(piece["index"])
                piece["function"]["name"] = f"f{piece['index']}"
    return deltas


def streamed(deltas: list[Json]) -> tuple[ResponseWire, list[Json]]:
    """(the wire, its events) of a stream."""
    shown, reply, frames = wire(), Reply(), []
    frames += shown.begin(Effective())
    for each in deltas:
        chunk = {"choices": [{"index": 0, "delta": each, "finish_reason": None}]}
        reply.add(chunk)
        frames += shown.chunk(chunk)
    frames += shown.finish(outcome(stored_form(reply.message())))
    return shown, events(frames)


def outcome(message: Json) -> Outcome:
    """The end of a turn."""
    return Outcome(reply=message, finish_reason="stop", usage=USAGE, effective=Effective(), whole={})


def events(frames: list[bytes]) -> list[Json]:
    """What frames say; each is one event."""
    assert all(frame.count(b"\n\n") == 1 for frame in frames)
    return [json.loads(frame.split(b"data: ", 1)[1]) for frame in frames]


def put_together(found: list[Json]) -> list[Json]:
    """The output as a client collects it from the events: items, parts, deltas."""
    output: dict[int, Any] = {}
    for event in found:
        kind = event["type"].removeprefix("response.")
        if kind == "output_item.added":
            output[event["output_index"]] = event["item"]
        elif kind == "content_part.added":
            assert event["content_index"] == len(output[event["output_index"]]["content"])
            output[event["output_index"]]["content"].append(event["part"])
        elif kind == "function_call_arguments.delta":
            output[event["output_index"]]["arguments"] += event["delta"]
        elif kind.endswith(".delta"):
            part = output[event["output_index"]]["content"][event["content_index"]]
            part["refusal" if kind.startswith("refusal") else "text"] += event["delta"]
    return [{**output[index], "status": "completed"} for index in sorted(output)]


@given(st.lists(delta, max_size=12))
def test_events_add_up_to_the_output(deltas: list[Json]) -> None:
    """In any order and mixture: deltas, the items that are done, and the finished response agree, and so does what is stored."""
    shown, found = streamed(named(deltas))
    final = found[-1]["response"]["output"]
    done = {event["output_index"]: event["item"] for event in found if event["type"] == "response.output_item.done"}
    assert [done[index] for index in sorted(done)] == final
    fields = ("type", "content", "arguments")
    assert [[c.get(f) for f in fields] for c in put_together(found)] == [[item.get(f) for f in fields] for item in final]
    assert [event["sequence_number"] for event in found] == list(range(len(found)))
    again = wire().retell(shown.shown(), status="completed", output=final)
    assert events(again)[-1]["response"]["output"] == final


@given(st.lists(delta, max_size=12))
def test_told_again_nothing_has_a_higher_number(deltas: list[Json]) -> None:
    """Whoever saw the first events of a stream, and gets the others told anew, never gets words twice."""
    shown, found = streamed(named(deltas))
    again = events(wire().retell(shown.shown(), status="completed", output=found[-1]["response"]["output"]))
    assert again[-1]["sequence_number"] == found[-1]["sequence_number"]

    def begun(told: list[Json]) -> dict[tuple[int, int], int]:
        firsts: dict[tuple[int, int], int] = {}
        for event in told:
            if event["type"].endswith(".delta"):
                firsts.setdefault((event["output_index"], event.get("content_index", 0)), event["sequence_number"])
        return firsts

    first = begun(found)
    assert all(number <= first[place] for place, number in begun(again).items() if place in first)


def test_a_reply_as_json_is_that_of_the_stream() -> None:
    """Both show the same object."""
    message = {"role": "assistant", "content": "Words.", "reasoning_content": "Hm."}
    plain = json.loads(wire().whole(outcome(message)))
    _, found = streamed([{"reasoning_content": "Hm."}, {"content": "Words."}])
    assert plain == found[-1]["response"]
