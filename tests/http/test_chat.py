"""Chat completions in OpenAI's shape: JSON, streams, tools, images, and every field on its way to the model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.http.world import RECEIPT, Json, World, error, frames, path_of, running, text

CALL = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Bergen"}'}}
TOOLS = [
    {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}
]
PNG = "data:image/png;base64,iVBORw0KGgo="


def user(said: Any) -> Json:
    """A user's message."""
    return {"role": "user", "content": said}


async def test_a_reply_has_the_shape_of_openai(world: World) -> None:
    """Id, object, created, model, one choice, usage as the model reported it, and the receipt."""
    response = await world.say("Hi.", "s", model="hermes")
    body = response.json()
    assert body["id"].startswith("chatcmpl-")
    assert body["object"] == "chat.completion"
    assert isinstance(body["created"], int)
    assert body["model"] == "hermes"
    (choice,) = body["choices"]
    assert (choice["index"], choice["finish_reason"]) == (0, "stop")
    assert choice["message"]["role"] == "assistant"
    assert body["usage"] == {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    assert body["hermes"]["receipt_id"] == response.headers[RECEIPT]
    assert set(body["hermes"]) == {"session_id", "parent_session_id", "session_key", "compressed", "receipt_id"}


async def test_a_stream_has_the_shape_of_openai(world: World) -> None:
    """Every frame is a chunk with one id, the role comes first, usage is on the finish chunk, and `[DONE]` is last."""
    world.model.script.append("One two three.")
    streamed = await world.stream("Hi.", "s")
    chunks = streamed.chunks
    assert {(c["id"], c["object"], c["model"]) for c in chunks} == {(chunks[0]["id"], "chat.completion.chunk", "mnemon")}
    assert chunks[0]["choices"][0]["delta"]["role"] == "assistant"
    assert streamed.text == "One two three."
    assert chunks[-1] is not None
    assert streamed.end == chunks[-1]
    assert streamed.end["usage"]["total_tokens"] == 4
    assert streamed.end["choices"][0]["delta"] == {}
    assert all("hermes" not in c and c.get("usage") is None for c in chunks[:-1])
    assert all(len(c["choices"]) == 1 for c in chunks)
    assert [f.id for f in streamed.frames] == list(range(1, len(streamed.frames) + 1))
    assert all(f.event is None for f in streamed.frames)
    assert streamed.response.headers["cache-control"] == "no-cache"
    assert streamed.response.headers["x-accel-buffering"] == "no"


async def test_include_usage_comes_on_a_last_chunk_without_choices(light: World) -> None:
    """With `stream_options.include_usage` the finish chunk has no usage and one more chunk has nothing else."""
    streamed = await light.stream("Hi.", "s", stream_options={"include_usage": True})
    assert streamed.chunks[-1]["choices"] == []
    assert streamed.chunks[-1]["usage"]["total_tokens"] == 3
    assert streamed.end is not None
    assert streamed.end["hermes"]["session_id"] == "s"
    assert streamed.end.get("usage") is None


@pytest.mark.parametrize(
    "said", ["Two\n\nparagraphs.\n", "  leading", "trailing  \n\n", 'Ünïcode 😀 “quoted” \\ "json"', "data: x\n\nid: 3\n"]
)
async def test_j28_streamed_text_equals_the_json_text(light: World, said: str) -> None:
    """The pieces of a stream put together are the JSON text, and both are stored as they were said."""
    light.model.script.extend([said, said])
    assert text(await light.say("Hi.", "s")) == said
    assert (await light.stream("Hi.", "s")).text == said
    assert [m for _, m in await light.messages("s")][1::2] == [said, said]


async def test_usage_is_estimated_and_marked_so_where_the_model_is_silent(light: World) -> None:
    """A model that reports no usage gets an estimate that says it is one."""
    light.model.usage = False
    for usage in ((await light.say("Hello there.", "s")).json()["usage"], (await light.stream("Hello there.", "s")).end["usage"]):
        assert usage["estimated"] is True
        assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"] > 4


async def test_j30_every_field_reaches_the_model(light: World) -> None:
    """Sampling fields, tools, formats and fields nobody knows are passed on as they came, JSON and stream."""
    sent: Json = {
        "temperature": 0.3,
        "top_p": 0.9,
        "max_tokens": 50,
        "max_completion_tokens": 60,
        "presence_penalty": -1,
        "frequency_penalty": 1.5,
        "seed": 7,
        "stop": ["END"],
        "logprobs": True,
        "top_logprobs": 3,
        "logit_bias": {"50256": -100},
        "tools": TOOLS,
        "tool_choice": {"type": "function", "function": {"name": "weather"}},
        "parallel_tool_calls": False,
        "response_format": {"type": "json_object"},
        "reasoning_effort": "low",
        "metadata": {"a": "b"},
        "store": False,
        "user": "u",
        "service_tier": "flex",
        "x_vendor": {"deep": [1, None, {"y": "z"}]},
        "n": 1,
    }
    for streaming in (False, True):
        await light.chat("Hi.", "s", **sent, stream=streaming)
        asked = light.model.requests[-1]
        assert {name: asked[name] for name in sent} == sent
    assert asked["stream"] is True
    assert asked["stream_options"]["include_usage"] is True


async def test_null_means_not_given(light: World) -> None:
    """Fields that are null are left out, as the SDKs of some languages send them."""
    await light.say("Hi.", "s", temperature=None, tools=None, stop=None, stream=False, stream_options=None, user=None)
    assert "temperature" not in light.model.requests[-1]


async def test_extra_fields_of_the_model_come_through(light: World) -> None:
    """`system_fingerprint`, `service_tier` and the like are the model's and stay."""
    light.model.extra = {"system_fingerprint": "fp_1", "service_tier": "default"}
    assert (await light.say("Hi.", "s")).json()["system_fingerprint"] == "fp_1"
    assert (await light.stream("Hi.", "s")).chunks[0]["service_tier"] == "default"


@pytest.mark.parametrize("kept", ["s", None])
async def test_tool_calls_and_results_across_turns(world: World, kept: str | None) -> None:
    """The model's call is returned, the result continues the turn; in a session the newest message alone is enough."""
    world.model.script.extend([{"content": None, "tool_calls": [CALL]}, "It rains."])
    first = await world.say("Weather in Bergen?", kept, tools=TOOLS)
    choice = first.json()["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["tool_calls"] == [CALL]
    result = {"role": "tool", "tool_call_id": "call_1", "content": "rain, 8 degrees"}
    history = [user("Weather in Bergen?"), {"role": "assistant", "content": None, "tool_calls": [CALL]}, result]
    second = await world.say([result] if kept else history, kept, tools=TOOLS)
    assert text(second) == "It rains."
    asked = world.model.prompt
    assert [m["role"] for m in asked] == ["user", "assistant", "tool"]
    assert asked[1]["tool_calls"] == [CALL]
    assert asked[2] == result
    if kept:
        body = await world.get(f"{path_of(kept)}/messages")
        assert [m["role"] for m in body["data"]] == ["user", "assistant", "tool", "assistant"]
        assert body["data"][1]["tool_calls"] == [CALL]
        assert body["data"][2]["tool_call_id"] == "call_1"
        assert (await world.session(kept))["tool_call_count"] == 1


async def test_j27_a_streamed_tool_turn_survives_the_sdk_loop(light: World) -> None:
    """Each chunk of a tool turn has a choice with a delta; the pieces of the call add up; a result streams on."""
    pieces: list[Any] = [
        {"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": {"name": "weather", "arguments": ""}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"city": '}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '"Bergen"}'}}]},
        {"finish_reason": "tool_calls"},
    ]
    light.model.script.extend([pieces, "It rains."])
    streamed = await light.stream("Weather?", "s", tools=TOOLS)
    arguments = ""
    for chunk in streamed.chunks:
        delta = chunk["choices"][0]["delta"]
        assert not delta.get("content")
        arguments += "".join(call["function"].get("arguments") or "" for call in delta.get("tool_calls") or ())
    assert json.loads(arguments) == {"city": "Bergen"}
    assert streamed.end["choices"][0]["finish_reason"] == "tool_calls"
    after = await light.stream([{"role": "tool", "tool_call_id": "call_1", "content": "rain"}], "s", tools=TOOLS)
    assert after.text == "It rains."
    assert light.model.prompt[1]["tool_calls"] == [CALL]


async def test_a_whole_history_with_tools_is_recognised(world: World) -> None:
    """A client that sends calls and results again stores nothing twice."""
    world.model.script.append({"content": None, "tool_calls": [CALL]})
    await world.say("Weather?", "s")
    history = [
        user("Weather?"),
        {"role": "assistant", "content": "", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "call_1", "content": "rain"},
    ]
    await world.say(history, "s")
    await world.say([*history, {"role": "assistant", "content": "Reply 2."}, user("Thanks.")], "s")
    assert [role for role, _ in await world.messages("s")] == ["user", "assistant", "tool", "assistant", "user", "assistant"]
    assert (await world.session("s"))["branches"] == 0


async def test_an_orphan_tool_result_is_refused(light: World) -> None:
    """A result that answers no call gets 400 with its place, with and without a session, and nothing is stored."""
    result = {"role": "tool", "tool_call_id": "call_9", "content": "x"}
    for kept in ("s", None):
        error(await light.chat([result], kept), 400, "unknown_tool_call", "messages[0].tool_call_id")
        error(await light.chat([user("Hi."), result], kept), 400, "unknown_tool_call", "messages[1].tool_call_id")
    await light.say("Hi.", "s")
    error(await light.chat([result], "s"), 400, "unknown_tool_call")
    system, reply = {"role": "system", "content": "Be brief."}, {"role": "assistant", "content": "Reply 1."}
    whole = [system, user("Hi."), reply, {**system, "role": "developer"}, user("And?"), result]
    error(await light.chat(whole, "s"), 400, "unknown_tool_call", "messages[5].tool_call_id")
    assert len(await light.messages("s")) == 2


async def test_images_reach_the_model_and_stay(world: World) -> None:
    """Parts with images go to the model as they are, are stored, and stand in the next prompt."""
    parts = [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": PNG, "detail": "low"}}]
    await world.say([user(parts)], "s")
    assert world.model.prompt[-1]["content"] == parts
    await world.say("And the colour?", "s")
    assert world.model.prompt[0]["content"] == parts
    assert (await world.messages("s"))[0] == ("user", parts)
    await world.post(f"{path_of('s')}/chat", {"message": parts})
    assert world.model.prompt[-1]["content"] == parts


async def test_reasoning_and_refusals_are_passed_on_and_kept(world: World) -> None:
    """`reasoning_content` and `refusal` are in the reply, in the stream and in the transcript."""
    thought = {"content": "42.", "reasoning_content": "Six by nine."}
    refused = {"content": None, "refusal": "I will not."}
    world.model.script.extend([thought, thought, refused, refused])
    assert (await world.say("?", "s")).json()["choices"][0]["message"]["reasoning_content"] == "Six by nine."
    streamed = await world.stream("?", "s")
    assert "".join(c["choices"][0]["delta"].get("reasoning_content") or "" for c in streamed.chunks) == "Six by nine."
    assert streamed.text == "42."
    assert (await world.say("?", "s")).json()["choices"][0]["message"]["refusal"] == "I will not."
    streamed = await world.stream("?", "s")
    assert "".join(c["choices"][0]["delta"].get("refusal") or "" for c in streamed.chunks) == "I will not."
    stored = (await world.get(f"{path_of('s')}/messages"))["data"][1::2]
    assert [m["reasoning_content"] for m in stored] == ["Six by nine.", "Six by nine.", None, None]
    assert [m["refusal"] for m in stored] == [None, None, "I will not.", "I will not."]


async def test_finish_reasons_are_the_models(light: World) -> None:
    """`length` and `content_filter` come through, JSON and stream, and are stored."""
    light.model.script.extend([{"content": "Cut", "finish_reason": "length"}, {"content": "Cut", "finish_reason": "content_filter"}])
    assert (await light.say("Hi.", "s")).json()["choices"][0]["finish_reason"] == "length"
    assert (await light.stream("Hi.", "s")).end["choices"][0]["finish_reason"] == "content_filter"
    assert [m["finish_reason"] for m in (await light.get(f"{path_of('s')}/messages"))["data"]][1::2] == ["length", "content_filter"]


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"n": 2}, "n"),
        ({"n": 0}, "n"),
        ({"modalities": ["text", "audio"]}, "modalities"),
        ({"audio": {"voice": "x"}}, "modalities"),
        ({"functions": [{"name": "f"}]}, "functions"),
        ({"function_call": "auto"}, "function_call"),
    ],
)
async def test_what_would_change_the_meaning_is_refused(light: World, change: Json, param: str) -> None:
    """A field that cannot be honoured gets 400 `unsupported_parameter`, and nothing happens."""
    error(await light.chat("Hi.", "s", **change), 400, "unsupported_parameter", param)
    assert not light.model.requests
    assert await light.listed() == []


async def test_j25_a_long_message_arrives_whole(light: World) -> None:
    """100,000 characters reach the model unchanged, or are refused with the numbers; they are never cut."""
    long = "word " * 10_000
    await light.say(long, "s")
    assert light.model.prompt[-1]["content"] == long
    assert (await light.messages("s"))[0] == ("user", long)
    error(await light.chat("word " * 20_000, "s"), 400, "context_length_exceeded")


async def test_j25_a_long_message_fits_a_large_budget(tmp_path: Path) -> None:
    """With room for it, a message of 100,000 characters is sent as it is."""
    async with running(tmp_path, context_budget=200_000) as world:
        long = "word " * 20_000
        await world.say(long, "s")
        assert world.model.prompt[-1]["content"] == long


async def test_session_chat_in_json(world: World) -> None:
    """`POST …/chat` answers in Hermes' shape with the effective session, and `input` is another word for `message`."""
    await world.post("/api/sessions", {"id": "s"})
    response = await world.post(f"{path_of('s')}/chat", {"message": "Hi.", "temperature": 0.1})
    body = response.json()
    assert body["object"] == "hermes.session.chat.completion"
    assert body["session_id"] == "s"
    assert body["message"] == {**body["message"], "role": "assistant", "content": "Reply 1."}
    assert body["usage"] == {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    assert body["hermes"]["receipt_id"] == response.headers[RECEIPT]
    assert world.model.requests[-1]["temperature"] == 0.1
    assert (await world.post(f"{path_of('s')}/chat", {"input": "Again."})).status_code == 200
    assert [said for _, said in await world.messages("s")] == ["Hi.", "Reply 1.", "Again.", "Reply 2."]


async def test_session_chat_as_a_stream(world: World) -> None:
    """`POST …/chat/stream` sends Hermes' events in order, each with session, run, number and time; the last has the `hermes` object."""
    await world.post("/api/sessions", {"id": "s"})
    world.model.script.append({"content": "Hello you.", "reasoning_content": "Hm."})
    response = await world.post(f"{path_of('s')}/chat/stream", {"message": "Hi."})
    assert response.headers["content-type"].startswith("text/event-stream")
    events = frames(response.content)
    names = [e.event for e in events]
    assert names[:2] == ["run.started", "message.started"]
    assert names[-3:] == ["assistant.completed", "run.completed", "done"]
    assert set(names[2:-3]) == {"assistant.delta", "reasoning.delta"}
    assert [e.id for e in events] == [e.json["seq"] for e in events] == list(range(1, len(events) + 1))
    assert {e.json["session_id"] for e in events} == {"s"}
    assert len({e.json["run_id"] for e in events}) == 1
    assert all(e.json["run_id"].startswith("run_") and isinstance(e.json["ts"], float) for e in events)
    assert events[0].json["user_message"] == "Hi."
    assert "".join(e.json["delta"] for e in events if e.event == "assistant.delta") == "Hello you."
    assert events[-3].json["content"] == "Hello you."
    assert events[-2].json["usage"]["total_tokens"] > 0
    assert events[-1].json["hermes"]["session_id"] == "s"
    assert len(await world.messages("s")) == 2


async def test_j19_a_session_is_the_same_by_header_and_by_path(world: World) -> None:
    """Chat completions and the session routes see one history."""
    await world.say("One.", "s")
    await world.post(f"{path_of('s')}/chat", {"message": "Two."})
    await world.post(f"{path_of('s')}/chat/stream", {"message": "Three."})
    await world.say("Four.", "s")
    assert [m["content"] for m in world.model.prompt][::2] == ["One.", "Two.", "Three.", "Four."]


async def test_session_chat_needs_a_session_that_exists(light: World) -> None:
    """The session routes do not create: an unknown id gets 404."""
    for end in ("chat", "chat/stream"):
        error(await light.post(f"{path_of('nobody')}/{end}", {"message": "Hi."}), 404, "session_not_found")
    assert not light.model.requests


@pytest.mark.parametrize(
    "body", [{}, {"message": ""}, {"message": "  "}, {"message": 7}, {"message": []}, {"message": [{"type": "video"}]}, {"message": None}]
)
async def test_session_chat_refuses_what_is_no_message(light: World, body: Json) -> None:
    """A message that is missing, empty or of a wrong type gets 400."""
    await light.post("/api/sessions", {"id": "s"})
    for end in ("chat", "chat/stream"):
        error(await light.post(f"{path_of('s')}/{end}", body), 400)


async def test_model_names(light: World) -> None:
    """Our own names stand for the configured model; any other goes upstream as it is, and the reply bears the name that was asked for."""
    for name, sent in (("mnemon", "scripted"), ("hermes", "scripted"), ("hermes-agent", "scripted"), ("gpt-x/7", "gpt-x/7")):
        response = await light.say("Hi.", model=name)
        assert light.model.requests[-1]["model"] == sent
        assert response.json()["model"] == name
    body = {"messages": [user("Hi.")]}
    assert (await light.post("/v1/chat/completions", body)).json()["model"] == "mnemon"


async def test_without_an_upstream_a_foreign_name_is_unknown(tmp_path: Path) -> None:
    """The built-in model answers to our own names only."""
    async with running(tmp_path, builtin=True) as world:
        error(await world.chat("Hi.", "s", model="gpt-4o"), 404, "model_not_found", "model")
        error(await world.chat("Hi.", "s", model="gpt-4o", stream=True), 404, "model_not_found", "model")
        assert await world.listed() == []


async def test_the_builtin_model_answers_from_the_session(tmp_path: Path, database_url: str) -> None:
    """With no upstream a session still remembers, and the stream says what the JSON says."""
    async with running(tmp_path, database_url, builtin=True) as world:
        await world.say("My name is Alex. I'm building a distributed cache in Rust.", "s")
        assert "Rust" in text(await world.say("What tech stack are we using again?", "s"))
        assert "Rust" in (await world.stream("What tech stack are we using again?", "s")).text
