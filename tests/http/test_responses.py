"""`/v1/responses`: turns in the shape of OpenAI's Responses API, known by a name."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from mnemon.core import errors
from tests.http.world import CHANNEL, ID, RECEIPT, REPLAYED, Frame, Json, World, background, error, frames, running, text, until

AGAIN = {"Idempotency-Key": "try-1"}
TOOL = {"type": "function", "name": "weather", "parameters": {"type": "object", "properties": {}}}
CALL = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Oslo"}'}}
CALLED = {"role": "assistant", "content": None, "tool_calls": [CALL]}
ORPHAN = {"type": "function_call_output", "call_id": "c", "output": "x"}
SDK: TypeAdapter[Any] = TypeAdapter(Response)
SDK_EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)


async def ask(world: World, said: Any, headers: Json | None = None, **fields: Any) -> httpx2.Response:
    """A request as it is answered."""
    return await world.post("/v1/responses", {"input": said, **fields}, headers)


async def made(world: World, said: Any, headers: Json | None = None, **fields: Any) -> Json:
    """A response that must succeed, and fit the official types."""
    response = await ask(world, said, headers, **fields)
    assert response.status_code == 200, response.text
    found: Json = response.json()
    SDK.validate_python(found)
    return found


async def streamed(world: World, said: Any, headers: Json | None = None, **fields: Any) -> list[Frame]:
    """The events of a streamed response, which must fit the official types and be numbered without a gap."""
    response = await ask(world, said, headers, stream=True, **fields)
    assert response.status_code == 200, response.text
    return checked(response.content)


def checked(body: bytes) -> list[Frame]:
    """Well-formed events."""
    found = frames(body)
    for frame in found:
        SDK_EVENT.validate_python(frame.json)
        assert frame.event == frame.json["type"]
    return found


def said(part: Json) -> list[Json]:
    """A user's message with one part."""
    return [{"role": "user", "content": [part]}]


def words(response: Json) -> str:
    """The text of a response's output."""
    return "".join(p.get("text", "") for i in response["output"] if i["type"] == "message" for p in i["content"])


def deltas(found: list[Frame]) -> str:
    """The text that was streamed."""
    return "".join(f.json["delta"] for f in found if f.event == "response.output_text.delta")


async def ended(world: World, name: str) -> Json:
    """A response when it has ended."""
    found: Json = {}

    async def over() -> bool:
        nonlocal found
        found = await world.get(f"/v1/responses/{name}")
        return found["status"] not in ("queued", "in_progress")

    await until(over)
    return found


# -- objects ----------------------------------------------------------------------------------------------------------------


async def test_a_response_is_complete_and_stays(world: World) -> None:
    """It fits the official type, repeats its request, and reads the same when it is asked for later."""
    asked: Json = {
        "instructions": "Be brief.",
        "metadata": {"k": "v"},
        "temperature": 0.5,
        "max_output_tokens": 50,
        "tools": [TOOL],
        "user": "u",
    }
    first = await made(world, "Hello.", **asked)
    assert words(first) == "Reply 1."
    assert (first["status"], first["object"], first["error"], first["previous_response_id"]) == ("completed", "response", None, None)
    assert {name: first[name] for name in asked} == asked | {"tools": [{**TOOL, "description": None, "strict": None}]}
    assert first["usage"]["total_tokens"] == first["usage"]["input_tokens"] + first["usage"]["output_tokens"] > 0
    assert await world.get(f"/v1/responses/{first['id']}") == first
    sent = world.model.requests[0]
    assert (sent["temperature"], sent["max_tokens"], sent["user"]) == (0.5, 50, "u")
    assert sent["tools"] == [{"type": "function", "function": {"name": "weather", "parameters": TOOL["parameters"]}}]
    assert world.model.prompt[0] == {"role": "system", "content": "Be brief."}
    assert "metadata" not in sent


async def test_deleting_a_response_leaves_its_turn(world: World) -> None:
    """It is gone for good, and the transcript keeps what was said."""
    first = await made(world, "Hello.", {ID: "s"})
    deleted = await world.client.delete(f"/v1/responses/{first['id']}")
    assert deleted.json() == {"id": first["id"], "object": "response", "deleted": True}
    error(await world.client.get(f"/v1/responses/{first['id']}"), 404, "response_not_found", "response_id")
    error(await world.client.delete(f"/v1/responses/{first['id']}"), 404, "response_not_found")
    error(await ask(world, "More.", previous_response_id=first["id"]), 404, "response_not_found", "previous_response_id")
    assert len(await world.messages("s")) == 2


async def test_deleting_words_reaches_responses(world: World) -> None:
    """What was deleted from the conversation cannot be read from its responses, nor from their events."""
    found = await streamed(world, "Hello.", {ID: "s"})
    name = found[-1].json["response"]["id"]
    assert (await world.post("/v1/memory/delete", {"session_id": "s", "position": 2}, {ID: "s"})).status_code == 200
    assert (await world.get(f"/v1/responses/{name}"))["output"] == []
    assert "Reply" not in (await world.client.get(f"/v1/responses/{name}?stream=true")).text
    await world.client.delete("/api/sessions/s")
    error(await world.client.get(f"/v1/responses/{name}"), 404, "response_not_found")


async def test_nothing_of_another_tenant_is_there(two: tuple[World, World]) -> None:
    """Ids of others are unknown, on every route."""
    ours, theirs = two
    name = (await made(ours, "Hello."))["id"]
    path = f"/v1/responses/{name}"
    for response in (
        await theirs.client.get(path),
        await theirs.client.get(path + "?stream=true"),
        await theirs.client.delete(path),
        await theirs.client.get(path + "/input_items"),
        await theirs.client.post(path + "/cancel"),
    ):
        error(response, 404, "response_not_found")
    error(await ask(theirs, "Hi.", previous_response_id=name), 404, "response_not_found", "previous_response_id")


async def test_without_store_nothing_is_kept(world: World) -> None:
    """`store: false` is stateless without a session; in one, the turn is part of it and the response cannot be read."""
    loose = await made(world, "Hello.", store=False)
    assert "hermes" not in loose
    error(await world.client.get(f"/v1/responses/{loose['id']}"), 404, "response_not_found")
    assert await world.listed() == []
    bound = await made(world, "Hello.", {ID: "s"}, store=False)
    error(await world.client.get(f"/v1/responses/{bound['id']}"), 404, "response_not_found")
    assert len(await world.messages("s")) == 2


async def test_a_reply_cut_short_is_incomplete(light: World) -> None:
    """The reason is given, and the item says so, too; as JSON, as a stream, and later."""
    light.model.script += [{"content": "Too", "finish_reason": "length"}, {"content": "Too", "finish_reason": "content_filter"}]
    first = await made(light, "Hello.")
    assert (first["status"], first["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})
    assert first["output"][0]["status"] == "incomplete"
    assert await light.get(f"/v1/responses/{first['id']}") == first
    found = await streamed(light, "Hello.")
    last = found[-1]
    assert (last.event, last.json["response"]["incomplete_details"]) == ("response.incomplete", {"reason": "content_filter"})


# -- streams ------------------------------------------------------------------------------------------------------------------


async def test_events_come_in_order(world: World) -> None:
    """Created, in progress, the item with its part, the end; `sequence_number` counts from 0 and is one below the frame's number."""
    world.model.script.append("Two words.")
    found = await streamed(world, "Hello.")
    assert [f.event for f in found] == [
        f"response.{name}"
        for name in (
            "created", "in_progress", "output_item.added", "content_part.added", "output_text.delta", "output_text.delta",
            "output_text.done", "content_part.done", "output_item.done", "completed",
        )
    ]  # fmt: skip
    assert [(f.id, f.json["sequence_number"]) for f in found] == [(n + 1, n) for n in range(len(found))]
    last = found[-1].json["response"]
    assert deltas(found) == words(last) == "Two words."
    assert found[-2].json["item"] == last["output"][0]
    assert last["hermes"]["session_id"]
    assert await world.get(f"/v1/responses/{last['id']}") == last


async def test_thoughts_words_and_calls_are_items(world: World) -> None:
    """Each has its own events, and the finished output says the same as the events did."""
    world.model.script.append({"reasoning_content": "Let me see.", "content": "I look.", "tool_calls": [CALL]})
    found = await streamed(world, "Weather?", tools=[TOOL])
    last = found[-1].json["response"]
    assert [item["type"] for item in last["output"]] == ["reasoning", "message", "function_call"]
    done = {f.json["output_index"]: f.json["item"] for f in found if f.event == "response.output_item.done"}
    assert [done[index] for index in range(3)] == last["output"]
    assert last["output"][0]["content"] == [{"type": "reasoning_text", "text": "Let me see."}]
    assert "".join(f.json["delta"] for f in found if f.event == "response.function_call_arguments.delta") == '{"city":"Oslo"}'
    assert await world.get(f"/v1/responses/{last['id']}") == last


async def test_an_unusual_order_is_kept(light: World) -> None:
    """A model that speaks after it called is shown as it spoke, in the stream and later."""
    light.model.script.append(
        [{"tool_calls": [{"index": 0, **CALL}]}, {"content": "After"}, {"reasoning_content": "Hm."}, {"content": " all."}]
    )
    found = await streamed(light, "Weather?", tools=[TOOL])
    last = found[-1].json["response"]
    assert [item["type"] for item in last["output"]] == ["function_call", "message", "reasoning", "message"]
    assert words(last) == "After all."
    assert await light.get(f"/v1/responses/{last['id']}") == last


async def test_a_refusal_is_a_part(light: World) -> None:
    """It has its own events and no text."""
    light.model.script += [{"refusal": "I will not."}, {"refusal": "I will not."}]
    found = await streamed(light, "Do it.")
    assert {"response.refusal.delta", "response.refusal.done"} <= {f.event for f in found}
    plain = await made(light, "Do it.")
    for response in (found[-1].json["response"], plain):
        assert response["output"][0]["content"] == [{"type": "refusal", "refusal": "I will not."}]


async def test_a_reply_of_nothing_is_an_empty_message(light: World) -> None:
    """An answer without words is one all the same."""
    light.model.script += [{"content": ""}, {"content": ""}]
    found = await streamed(light, "Hello.")
    assert found[-1].json["response"]["output"][0]["content"][0]["text"] == ""
    assert words(await made(light, "Hello.")) == ""


async def test_a_stream_without_a_session_has_no_frame_numbers(light: World) -> None:
    """It cannot be resumed; its events are numbered nevertheless."""
    found = await streamed(light, "Hello.", store=False)
    assert {f.id for f in found} == {None}
    assert [f.json["sequence_number"] for f in found] == list(range(len(found)))


async def test_j27_the_sdk_reads_a_stream_to_its_end(world: World) -> None:
    """Every delta belongs to an item and a part that were announced before it."""
    world.model.script.append({"content": "I look.", "tool_calls": [CALL]})
    parts: set[tuple[int, int]] = set()
    items: set[int] = set()
    for frame in await streamed(world, "Weather?", tools=[TOOL]):
        event = frame.json
        if frame.event == "response.output_item.added":
            items.add(event["output_index"])
        elif frame.event == "response.content_part.added":
            parts.add((event["output_index"], event["content_index"]))
        elif frame.event == "response.output_text.delta":
            assert (event["output_index"], event["content_index"]) in parts
        elif frame.event == "response.function_call_arguments.delta":
            assert event["output_index"] in items


# -- what was sent ------------------------------------------------------------------------------------------------------------


async def test_items_become_messages(light: World) -> None:
    """Roles, texts, images, calls and their results reach the model as chat messages; the session sees the same."""
    given = [
        {"role": "developer", "content": "Be kind."},
        {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": "Look"}, {"type": "input_image", "image_url": "https://a/b.png"}],
        },
        {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}]},
        {"type": "function_call", "call_id": "call_1", "name": "weather", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_1", "output": "snow"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Snow.", "annotations": []}]},
        {"role": "user", "content": "And now?"},
    ]
    first = await made(light, given, {ID: "s"})
    call = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    assert light.model.prompt == [
        {"role": "developer", "content": "Be kind."},
        {"role": "user", "content": [{"type": "text", "text": "Look"}, {"type": "image_url", "image_url": {"url": "https://a/b.png"}}]},
        {"role": "assistant", "content": None, "reasoning_content": "Hm.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "snow"},
        {"role": "assistant", "content": "Snow."},
        {"role": "user", "content": "And now?"},
    ]
    listed = await light.get(f"/v1/responses/{first['id']}/input_items?order=asc")
    kinds = [(item["type"], item.get("role")) for item in listed["data"]]
    assert kinds == [
        ("message", "developer"), ("message", "user"), ("reasoning", None), ("function_call", None), ("function_call_output", None),
        ("message", "assistant"), ("message", "user"),
    ]  # fmt: skip
    assert len({item["id"] for item in listed["data"]}) == 7


async def test_input_items_come_in_pages(light: World) -> None:
    """Newest first, or oldest first, each once."""
    first = await made(light, [{"role": "user", "content": f"Part {n}."} for n in range(5)])
    path, seen, after = f"/v1/responses/{first['id']}/input_items?limit=2", [], ""
    while True:
        page = await light.get(path + after)
        seen += [item["content"][0]["text"] for item in page["data"]]
        after = f"&after={page['last_id']}"
        if not page["has_more"]:
            break
    assert seen == [f"Part {n}." for n in (4, 3, 2, 1, 0)]
    error(await light.client.get(path + "&after=msg_x"), 400, "invalid_request", "after")
    error(await light.client.get(path + "&order=up"), 400, "invalid_request", "order")


async def test_an_item_can_be_named(world: World) -> None:
    """What a response said or was given can be referred to by its id; others' and unknown ids are not there."""
    first = await made(world, "My bike is green.")
    given = (await world.get(f"/v1/responses/{first['id']}/input_items"))["data"][0]["id"]
    names = [{"type": "item_reference", "id": given}, {"id": first["output"][0]["id"]}]
    await made(world, [*names, {"role": "user", "content": "Which colour?"}], store=False)
    assert [m["content"] for m in world.model.prompt] == ["My bike is green.", "Reply 1.", "Which colour?"]
    unknown = [{"type": "item_reference", "id": "msg_nothing"}, {"role": "user", "content": "Hi."}]
    error(await ask(world, unknown), 404, "item_not_found", "input[0].id")


async def test_input_tokens_are_counted(world: World) -> None:
    """The count is that of the prompt that would be sent; nothing is written and no model is called."""
    body = {"input": "How many?", "instructions": "Count.", "tools": [TOOL]}
    counted = (await world.post("/v1/responses/input_tokens", body)).json()
    assert counted["object"] == "response.input_tokens"
    fewer = (await world.post("/v1/responses/input_tokens", {"input": "How many?"})).json()
    assert 0 < fewer["input_tokens"] < counted["input_tokens"]
    assert world.model.requests == []
    assert await world.listed() == []
    error(await world.post("/v1/responses/input_tokens", {"input": "x", "stream": True}), 400, "unsupported_parameter", "stream")


@pytest.mark.parametrize(
    ("fields", "sent"),
    [
        ({"text": {"format": {"type": "json_object"}}}, {"response_format": {"type": "json_object"}}),
        (
            {"text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": True}, "verbosity": "low"}},
            {
                "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}, "strict": True}},
                "verbosity": "low",
            },
        ),
        ({"reasoning": {"effort": "low", "summary": "auto"}}, {"reasoning_effort": "low"}),
        ({"include": ["message.output_text.logprobs"], "top_logprobs": 3}, {"logprobs": True, "top_logprobs": 3}),
        (
            {"tools": [TOOL], "tool_choice": {"type": "function", "name": "weather"}},
            {"tool_choice": {"type": "function", "function": {"name": "weather"}}},
        ),
        ({"parallel_tool_calls": False, "seed": 7, "top_k": 5}, {"parallel_tool_calls": False, "seed": 7, "top_k": 5}),
    ],
)  # fmt: skip
async def test_wishes_reach_the_model(light: World, fields: Json, sent: Json) -> None:
    """What is asked for arrives under the name that chat completions have for it."""
    await made(light, "Hello.", **fields)
    assert {name: light.model.requests[0].get(name) for name in sent} == sent


async def test_only_allowed_tools_are_offered(light: World) -> None:
    """`allowed_tools` leaves the others out."""
    other = {**TOOL, "name": "news"}
    choice = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "news"}]}
    await made(light, "Hello.", tools=[TOOL, other], tool_choice=choice)
    sent = light.model.requests[0]
    assert ([tool["function"]["name"] for tool in sent["tools"]], sent["tool_choice"]) == (["news"], "required")


@pytest.mark.parametrize(
    ("fields", "code", "param"),
    [
        ({"tools": [{"type": "web_search"}]}, "unsupported_tool", "tools[0].type"),
        ({"tools": [{"type": "function"}]}, "invalid_request", "tools[0].name"),
        ({"tool_choice": {"type": "mcp"}}, "unsupported_tool", "tool_choice.type"),
        ({"tool_choice": {"type": "function", "name": "none"}}, "invalid_request", "tool_choice.name"),
        ({"prompt": {"id": "p"}}, "unsupported_parameter", "prompt"),
        ({"anything": 1}, "unsupported_parameter", "anything"),
        ({"truncation": "maybe"}, "invalid_request", "truncation"),
        ({"include": ["everything"]}, "invalid_request", "include"),
        ({"metadata": {"k": 1}}, "invalid_request", "metadata.k"),
        ({"metadata": {str(n): "" for n in range(17)}}, "invalid_request", "metadata"),
        ({"background": True, "store": False}, "invalid_request", "store"),
        ({"stream_options": {}}, "invalid_request", "stream_options"),
        ({"conversation": {"id": 5}}, "invalid_request", "conversation.id"),
        ({"conversation": "a\nb"}, "invalid_session_id", "conversation"),
        ({"conversation": "a", "previous_response_id": "resp_x"}, "invalid_request", "previous_response_id"),
        ({"input": [{"type": "computer_call"}]}, "unsupported_item", "input[0].type"),
        ({"input": said({"type": "input_file", "file_id": "f"})}, "unsupported_content_type", "input[0].content[0]"),
        ({"input": said({"type": "input_image", "image_url": "ftp://x"})}, "invalid_image_url", "input[0].content[0].image_url"),
        ({"input": [{"role": "assistant", "content": "Hi."}]}, "invalid_request", "input"),
        ({"input": [ORPHAN]}, "unknown_tool_call", "input[0].call_id"),
        ({"conversation_history": [ORPHAN]}, "unknown_tool_call", "conversation_history[0].call_id"),
    ],
)  # fmt: skip
async def test_what_cannot_be_honoured_is_refused(light: World, fields: Json, code: str, param: str | None) -> None:
    """The field is named, nothing is stored and no model is called."""
    error(await light.post("/v1/responses", {"input": "Hi.", **fields}), 400, code, param)
    assert light.model.requests == []
    assert await light.listed() == []


# -- state --------------------------------------------------------------------------------------------------------------------


async def test_j21_a_chain_grows_by_two_messages_a_turn(world: World) -> None:
    """Each turn sends what was said and no more; `output` holds this turn's items only."""
    previous: str | None = None
    for turn in range(1, 13):
        response = await made(world, f"Turn {turn}.", previous_response_id=previous)
        assert len(world.model.prompt) == 2 * turn - 1
        assert words(response) == f"Reply {turn}."
        assert len(response["output"]) == 1
        previous = response["id"]
    assert len(world.model.prompt) <= 25


async def test_a_chain_stays_in_its_session(world: World) -> None:
    """The session is the same along a chain, and can be continued by its name through chat completions."""
    first = await ask(world, "My bike is green.")
    second = await ask(world, "And old.", previous_response_id=first.json()["id"])
    assert first.headers[ID] == second.headers[ID] == second.json()["hermes"]["session_id"]
    assert first.headers[RECEIPT] == first.json()["hermes"]["receipt_id"]
    await world.say("Which bike?", first.headers[ID])
    assert "green" in world.model.seen
    third = await made(world, "And mine?", {ID: first.headers[ID]})
    assert len(world.model.prompt) == 7
    assert third["hermes"]["session_id"] == first.headers[ID]


async def test_an_older_response_branches(world: World) -> None:
    """What came after it is not seen there, and both branches go on by themselves."""
    root = await made(world, "I like tea.")
    one = await made(world, "And milk.", previous_response_id=root["id"])
    two = await made(world, "And lemon.", previous_response_id=root["id"])
    assert "milk" not in world.model.seen
    assert one["hermes"]["session_id"] != two["hermes"]["session_id"]
    await made(world, "So?", previous_response_id=one["id"])
    assert "milk" in world.model.seen
    assert "lemon" not in world.model.seen
    await made(world, "So?", previous_response_id=two["id"])
    assert "lemon" in world.model.seen
    assert "milk" not in world.model.seen


async def test_what_is_sent_behind_a_response_never_edits_it(world: World) -> None:
    """Messages of the assistant in the input are added; they are not taken for a history that was changed."""
    first = await made(world, "I like tea.")
    given = [{"role": "user", "content": "Say yes."}, {"role": "assistant", "content": "Yes."}, {"role": "user", "content": "Why?"}]
    second = await made(world, given, previous_response_id=first["id"])
    assert [m["content"] for m in world.model.prompt] == ["I like tea.", "Reply 1.", "Say yes.", "Yes.", "Why?"]
    assert second["hermes"]["session_id"] == first["hermes"]["session_id"]
    assert len(await world.messages(first["hermes"]["session_id"])) == 6


async def test_j22_a_conversation_remembers_after_many_others(world: World) -> None:
    """101 other responses later it still knows, and every response can still be read."""
    first = await made(world, "My bike is green.", conversation="bikes")
    for _ in range(101):
        await made(world, "Something else.")
    await made(world, "Which bike?", conversation={"id": "bikes"})
    assert [m["content"] for m in world.model.prompt][:1] == ["My bike is green."]
    assert (await world.get(f"/v1/responses/{first['id']}"))["conversation"] == {"id": "bikes"}


async def test_j19_the_session_header_works_here_too(world: World) -> None:
    """Chat completions and responses share a transcript; a header that contradicts the body is refused."""
    await world.say("My bike is green.", "s", "chan")
    response = await ask(world, "Which bike?", {ID: "s"})
    assert "green" in world.model.seen
    assert (response.headers[ID], response.headers[CHANNEL]) == ("s", "chan")
    error(await ask(world, "Hi.", {ID: "s"}, conversation="other"), 400, "invalid_session_id", ID)
    foreign = (await made(world, "Hi.", {ID: "elsewhere"}))["id"]
    error(await ask(world, "Hi.", {ID: "s"}, previous_response_id=foreign), 400, "invalid_session_id", ID)
    error(await ask(world, "Hi.", {ID: "s", CHANNEL: "another"}), 409, "session_key_conflict", CHANNEL)


async def test_a_key_alone_continues_its_transcript(world: World) -> None:
    """As with chat completions, the key's current session is the one."""
    await world.say("My bike is green.", "s", "chan")
    response = await made(world, "Which bike?", {CHANNEL: "chan"})
    assert response["hermes"]["session_id"] == "s"


async def test_identity_is_kept_and_echoed(world: World) -> None:
    """The identity headers, or the field `user`, say who it was."""
    response = await ask(world, "Hi.", {ID: "s", "X-Hermes-Chat-Id": "room"}, user="ann")
    assert response.headers["X-Hermes-Chat-Id"] == "room"
    session = await world.session("s")
    assert (session["user_id"], session["chat_id"]) == ("ann", "room")


async def test_a_given_history_stands_in_place_of_the_stored_one(world: World) -> None:
    """`conversation_history` wins over `previous_response_id` in the prompt; only the new input is stored."""
    first = await made(world, "My bike is green.")
    history = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "My bike is red."},
        {"role": "assistant", "content": "Nice."},
    ]
    second = await made(world, "Which colour?", previous_response_id=first["id"], conversation_history=history)
    assert [m["content"] for m in world.model.prompt if m["role"] != "system"] == ["My bike is red.", "Nice.", "Which colour?"]
    assert "green" not in world.model.seen
    stored = await world.messages(second["hermes"]["session_id"])
    assert [content for _, content in stored] == ["My bike is green.", "Reply 1.", "Which colour?", "Reply 2."]


async def test_a_tool_loop_runs_across_responses(world: World) -> None:
    """The call is answered by its output alone, and the model sees both."""
    world.model.script.append(CALLED)
    first = await made(world, "Weather?", tools=[TOOL])
    (call,) = first["output"]
    assert (call["type"], call["call_id"], call["status"]) == ("function_call", "call_1", "completed")
    output = {"type": "function_call_output", "call_id": "call_1", "output": "snow"}
    await made(world, [output], previous_response_id=first["id"], tools=[TOOL])
    assert [m["role"] for m in world.model.prompt] == ["user", "assistant", "tool"]
    again = await ask(world, [output], previous_response_id=first["id"])
    assert again.status_code == 200, "an older response branches, where the call still waits"
    error(
        await ask(world, [{**output, "call_id": "call_2"}], previous_response_id=first["id"]), 400, "unknown_tool_call", "input[0].call_id"
    )


async def test_a_failed_branch_leaves_nothing(world: World) -> None:
    """A fork that was made for a turn that failed is taken back."""
    root = await made(world, "I like tea.")
    await made(world, "And milk.", previous_response_id=root["id"])
    before = await world.listed()
    world.model.script.append(errors.ModelError("no"))
    error(await ask(world, "And lemon.", previous_response_id=root["id"]), 502, "upstream_error")
    assert await world.listed() == before


async def test_new_through_responses(world: World) -> None:
    """`/new` begins a transcript under the same key; what it answered can be read, and gone on from."""
    await made(world, "My bike is green.", {ID: "s", CHANNEL: "chan"})
    response = await made(world, "/new", {ID: "s", CHANNEL: "chan"})
    assert len(world.model.requests) == 1
    fresh = response["hermes"]["session_id"]
    assert fresh != "s"
    assert await world.get(f"/v1/responses/{response['id']}") == response
    await made(world, "Hi.", previous_response_id=response["id"])
    assert [m["content"] for m in world.model.prompt if m["role"] == "user"][-1:] == ["Hi."]
    branch = await made(world, "Hi again.", previous_response_id=response["id"])
    assert branch["hermes"]["session_id"] not in ("s", fresh)
    found = await streamed(world, "/reset", {ID: "s", CHANNEL: "chan"})
    assert (found[0].event, found[-1].event) == ("response.created", "response.completed")
    assert [f.json["sequence_number"] for f in found] == list(range(len(found)))


async def test_a_chain_goes_on_through_compression(tmp_path: Path, database_url: str) -> None:
    """The newest response continues at the tip, in the child; an older one branches, though it was compressed since."""
    async with running(tmp_path, database_url, context_budget=1500, recall_tokens=200) as world:
        first = await made(world, "The code word is Zanzibar.")
        chain, sessions = [first], {first["hermes"]["session_id"]}
        while len(sessions) < 3:
            assert len(chain) < 80
            chain.append(await made(world, f"Turn {len(chain)}: " + "filler words go here " * 12, previous_response_id=chain[-1]["id"]))
            sessions.add(chain[-1]["hermes"]["session_id"])
        assert chain[-1]["hermes"]["compressed"]
        later = await made(world, "Still there?", previous_response_id=chain[-1]["id"])
        assert later["hermes"]["session_id"] == chain[-1]["hermes"]["session_id"]
        older = chain[len(chain) // 2]
        branch = await made(world, "What was said last?", previous_response_id=older["id"])
        assert branch["hermes"]["session_id"] not in sessions
        assert f"Turn {len(chain) - 1}:" not in world.model.seen
        assert words(await world.get(f"/v1/responses/{first['id']}")) == "Reply 1."


async def test_an_unfinished_or_failed_response_is_not_gone_on_from(world: World) -> None:
    """One that is still being made is a conflict; one that failed has nothing to continue."""
    world.model.gate.clear()
    name = (await made(world, "Hello.", background=True))["id"]
    error(await ask(world, "And?", previous_response_id=name), 409, "response_not_finished", "previous_response_id")
    error(await world.client.delete(f"/v1/responses/{name}"), 409, "response_not_finished", "response_id")
    await world.post(f"/v1/responses/{name}/cancel")
    world.model.gate.set()
    error(await ask(world, "And?", previous_response_id=name), 400, "response_not_usable", "previous_response_id")


# -- in the background ----------------------------------------------------------------------------------------------------------


async def test_in_the_background(world: World) -> None:
    """It is known at once, and completed later; then it reads like any other and can be gone on from."""
    world.model.gate.clear()
    response = await ask(world, "Hello.", {ID: "s"}, background=True)
    begun = response.json()
    SDK.validate_python(begun)
    assert begun["status"] in ("queued", "in_progress")
    assert begun["background"] is True
    assert response.headers[ID] == "s"
    assert (await world.get(f"/v1/responses/{begun['id']}"))["status"] in ("queued", "in_progress")
    world.model.gate.set()
    whole = await ended(world, begun["id"])
    assert (whole["status"], words(whole), whole["hermes"]["session_id"]) == ("completed", "Reply 1.", "s")
    await made(world, "And?", previous_response_id=begun["id"])
    assert len(world.model.prompt) == 3


async def test_a_response_is_cancelled(world: World) -> None:
    """Its turn leaves nothing, its stream ends, and cancelling what has ended changes nothing."""
    world.model.gate.clear()
    name = (await made(world, "Hello.", {ID: "s"}, background=True))["id"]
    async with background(world.client.get(f"/v1/responses/{name}?stream=true")) as watching:
        await world.model.asked.wait()
        cancelled = (await world.post(f"/v1/responses/{name}/cancel")).json()
        SDK.validate_python(cancelled)
        assert (cancelled["status"], cancelled["output"]) == ("cancelled", [])
    last = checked(watching.result().content)[-1]
    assert (last.event, last.json["response"]["status"]) == ("response.failed", "cancelled")
    world.model.gate.set()
    assert (await world.post(f"/v1/responses/{name}/cancel")).json() == cancelled
    assert await world.get(f"/v1/responses/{name}") == cancelled
    error(await world.client.get("/api/sessions/s/messages"), 404, "session_not_found")
    done = await made(world, "Hello.")
    assert (await world.post(f"/v1/responses/{done['id']}/cancel")).json() == done


async def test_a_background_response_that_fails_says_so(world: World) -> None:
    """The error is kept with it, and never a made-up answer; what fails before it begins does so, too."""
    world.model.script.append(errors.ModelBusy("slow down", retry_after=3))
    name = (await made(world, "Hello.", background=True))["id"]
    failed = await ended(world, name)
    SDK.validate_python(failed)
    assert (failed["status"], failed["output"], failed["error"]["code"]) == ("failed", [], "rate_limit_exceeded")
    early = (await made(world, [{"type": "function_call_output", "call_id": "c", "output": "x"}], background=True))["id"]
    failed = await ended(world, early)
    assert (failed["error"]["code"], failed["error"]["param"]) == ("invalid_prompt", "input[0].call_id")


async def test_a_background_stream_can_be_left_and_taken_up(world: World) -> None:
    """Its events are the same from the POST and from a GET, whole or behind a number."""
    world.model.script.append("One two three.")
    whole = await streamed(world, "Hello.", background=True)
    name = whole[-1].json["response"]["id"]
    assert whole[-1].event == "response.completed"
    for number in range(len(whole)):
        rest = await world.client.get(f"/v1/responses/{name}?stream=true&starting_after={number}")
        assert checked(rest.content) == (whole[number + 1 :] or whole[-1:])
    assert checked((await world.client.get(f"/v1/responses/{name}?stream=true")).content) == whole


# -- failures -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("failure", "status", "code", "shown"),
    [
        (errors.ModelDenied("no"), 502, "upstream_auth", "server_error"),
        (errors.ModelBusy("no", retry_after=7), 429, "upstream_rate_limited", "rate_limit_exceeded"),
        (errors.ModelError("no"), 502, "upstream_error", "server_error"),
        (errors.ModelTimeout("no"), 504, "upstream_timeout", "server_error"),
    ],
)
async def test_j23_a_failed_model_is_a_failed_response(light: World, failure: Exception, status: int, code: str, shown: str) -> None:
    """JSON gets the error of its kind; a stream ends with `response.failed`, and the response stays failed. Nothing is stored."""
    light.model.script += [failure, failure]
    plain = await ask(light, "Hello.", {ID: "s"})
    error(plain, status, code)
    assert plain.headers.get("Retry-After") == ("7" if status == 429 else None)
    found = await streamed(light, "Hello.", {ID: "s"})
    last = found[-1].json["response"]
    assert (found[-1].event, last["status"], last["error"]["code"], last["output"]) == ("response.failed", "failed", shown, [])
    SDK.validate_python(await light.get(f"/v1/responses/{last['id']}"))
    assert await light.get(f"/v1/responses/{last['id']}") == last
    assert await light.listed() == []


async def test_a_response_is_run_once(world: World) -> None:
    """The same `Idempotency-Key` gets the same response, as JSON, as a stream and in the background; another body is refused."""
    first, second = [await ask(world, "Hello.", AGAIN) for _ in range(2)]
    assert first.content == second.content
    assert second.headers[REPLAYED] == "true"
    error(await ask(world, "Other.", AGAIN), 409, "idempotency_key_conflict", "Idempotency-Key")
    one, two = [await ask(world, "Hello.", {"Idempotency-Key": "try-2"}, stream=True) for _ in range(2)]
    assert one.content == two.content
    rest = await ask(world, "Hello.", {"Idempotency-Key": "try-2", "Last-Event-ID": "4"}, stream=True)
    assert frames(rest.content) == frames(one.content)[4:]
    three, four = [await ask(world, "Hello.", {"Idempotency-Key": "try-3"}, background=True) for _ in range(2)]
    assert three.json()["id"] == four.json()["id"]
    assert four.headers[REPLAYED] == "true"
    await ended(world, three.json()["id"])
    assert len(world.model.requests) == 3


async def test_a_busy_session_is_refused_if_asked(world: World) -> None:
    """`X-Mnemon-If-Busy: reject` holds here, too."""
    world.model.gate.clear()
    async with background(ask(world, "Hello.", {ID: "s"})):
        await world.model.asked.wait()
        error(await ask(world, "Hi.", {ID: "s", "X-Mnemon-If-Busy": "reject"}), 409, "session_busy")
        world.model.gate.set()


@pytest.fixture
async def slow(world: World) -> AsyncIterator[World]:
    """A model that waits after each word."""
    world.model.delay = 0.01
    yield world
    world.model.delay = 0.0


async def test_a_stream_is_finished_though_its_client_left(slow: World) -> None:
    """The response is completed and can be read."""
    slow.model.script.append("A longer reply of several words.")
    task = asyncio.create_task(ask(slow, "Hello.", {ID: "s"}, stream=True))
    await slow.model.asked.wait()
    task.cancel()

    async def stored() -> bool:
        return (await slow.client.get("/api/sessions/s/messages")).status_code == 200

    await until(stored)
    assert (await slow.messages("s"))[-1] == ("assistant", "A longer reply of several words.")


async def test_a_chat_sees_what_a_response_said(world: World) -> None:
    """One transcript, whichever way it is continued."""
    await made(world, "My bike is green.", {ID: "s"})
    assert text(await world.say("Which?", "s")) == "Reply 2."
    assert [m["content"] for m in world.model.prompt] == ["My bike is green.", "Reply 1.", "Which?"]
