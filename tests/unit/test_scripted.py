"""The scripted model: what it promises the tests that stand on it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mnemon.core import errors
from mnemon.model.base import Model
from mnemon.model.scripted import Scripted

REQUEST: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "one two three"}]}
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}


async def streamed(model: Model) -> list[dict[str, Any]]:
    """All chunks of a reply."""
    return [chunk async for chunk in model.stream(REQUEST)]


def deltas(chunks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the chunks say."""
    return [choice["delta"] for chunk in chunks for choice in chunk["choices"]]


async def test_a_text_is_streamed_word_by_word() -> None:
    """A text comes in words that join to it again, then the end, then the usage."""
    chunks = await streamed(Scripted(["Hello  big\nworld"]))
    assert deltas(chunks) == [{"role": "assistant", "content": ""}, {"content": "Hello  "}, {"content": "big\n"}, {"content": "world"}, {}]
    assert chunks[-2]["choices"][0]["finish_reason"] == "stop"
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"] == {"prompt_tokens": 3, "completion_tokens": 3, "total_tokens": 6}


async def test_a_text_in_one_piece() -> None:
    """The same text as a completion, with the same usage."""
    whole = await Scripted(["Hello  big\nworld"]).complete(REQUEST)
    assert whole["object"] == "chat.completion"
    assert whole["choices"] == [
        {"index": 0, "message": {"role": "assistant", "content": "Hello  big\nworld"}, "logprobs": None, "finish_reason": "stop"}
    ]
    assert whole["usage"]["total_tokens"] == 6
    assert "usage" not in await Scripted(["x"], usage=False).complete(REQUEST)


async def test_a_message_with_tool_calls() -> None:
    """A message keeps all its fields, streamed and whole; its calls get an index in a stream."""
    reply = {"content": "let me see", "reasoning_content": "hm", "tool_calls": [CALL, {**CALL, "id": "c2"}]}
    model = Scripted([reply, reply])
    chunks = await streamed(model)
    assert deltas(chunks)[1] == {"reasoning_content": "hm"}
    assert [d["tool_calls"][0]["index"] for d in deltas(chunks) if "tool_calls" in d] == [0, 1]
    assert chunks[-2]["choices"][0]["finish_reason"] == "tool_calls"
    choice = (await model.complete(REQUEST))["choices"][0]
    assert choice["message"] == {"role": "assistant", **reply}
    assert choice["finish_reason"] == "tool_calls"
    bare = (await Scripted([{"tool_calls": [CALL]}]).complete(REQUEST))["choices"][0]["message"]
    assert bare == {"role": "assistant", "content": None, "tool_calls": [CALL]}


async def test_a_finish_reason_of_its_own() -> None:
    """A message may say how it ends."""
    whole = await Scripted([{"content": "cut", "finish_reason": "length"}]).complete(REQUEST)
    assert whole["choices"][0]["finish_reason"] == "length"
    assert "finish_reason" not in whole["choices"][0]["message"]


async def test_an_exception_comes_before_the_first_chunk() -> None:
    """An exception in place of a reply is raised at once, and the next reply follows."""
    model = Scripted([errors.ModelBusy("busy", retry_after=7), errors.ModelTimeout("slow"), "fine"])
    with pytest.raises(errors.ModelBusy):
        await anext(model.stream(REQUEST))
    with pytest.raises(errors.ModelTimeout):
        await model.complete(REQUEST)
    assert (await model.complete(REQUEST))["choices"][0]["message"]["content"] == "fine"


async def test_pieces_with_gates_and_failures() -> None:
    """A reply in pieces waits for its events and breaks off where the script says so."""
    gate, got = asyncio.Event(), []
    model = Scripted([["a ", gate, 0.001, {"reasoning_content": "hm"}, "b", errors.BadReply("broke off")]])
    stream = model.stream(REQUEST)
    got += [await anext(stream), await anext(stream)]
    waiting = asyncio.create_task(anext(stream))
    await asyncio.sleep(0.01)
    assert not waiting.done()
    assert model.running == 1
    gate.set()
    got += [await waiting, await anext(stream)]
    with pytest.raises(errors.BadReply):
        await anext(stream)
    assert deltas(got)[1:] == [{"content": "a "}, {"reasoning_content": "hm"}, {"content": "b"}]
    assert model.running == 0


async def test_a_function_in_place_of_a_list() -> None:
    """A function, plain or async, sees the request and makes the reply."""

    async def later(request: dict[str, Any]) -> str:
        await asyncio.sleep(0)
        return str(request["model"])

    for script in (lambda request: request["model"], later):
        assert (await Scripted(script).complete(REQUEST))["choices"][0]["message"]["content"] == "m"


async def test_every_request_is_kept() -> None:
    """Requests are kept as they were, whatever happens to them later."""
    model, request = Scripted(), {"model": "m", "messages": [{"role": "user", "content": "x"}]}
    await model.complete(request)
    request["messages"] = []
    assert model.requests == [{"model": "m", "messages": [{"role": "user", "content": "x"}]}]
    assert model.asked.is_set()


async def test_the_end_of_a_script() -> None:
    """Without a script there is always a reply; after the last of one there is none."""
    free, bound = Scripted(), Scripted(["only"])
    assert [(await free.complete(REQUEST))["choices"][0]["message"]["content"] for _ in range(2)] == ["Reply 1.", "Reply 2."]
    await bound.complete(REQUEST)
    with pytest.raises(errors.ModelError):
        await bound.complete(REQUEST)


async def test_the_gate_holds_replies_back() -> None:
    """While the gate is shut a request has been noted and gets no answer."""
    model = Scripted()
    model.gate.clear()
    task = asyncio.create_task(model.complete(REQUEST))
    await model.asked.wait()
    await asyncio.sleep(0.01)
    assert not task.done()
    model.gate.set()
    assert (await task)["choices"]


async def test_leaving_a_stream_ends_it() -> None:
    """A stream that its reader closes is no longer running."""
    model = Scripted(["a b c d"], delay=0.001)
    stream = model.stream(REQUEST)
    await anext(stream)
    assert model.running == 1
    await stream.aclose()
    assert model.running == 0
    await model.close()
    assert model.closed
    assert (await model.models())[0]["id"] == "scripted"
