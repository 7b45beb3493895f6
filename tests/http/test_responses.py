"""`/v1/responses`: what is asked for, and the object that comes of it."""

from __future__ import annotations

import pytest

from tests.http.responding import CALL, ORPHAN, TOOL, ask, deltas, made, said, streamed, words
from tests.http.world import ID, Json, World, error

ALLOWED: Json = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": ["x"]}]}


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
    first = await made(world, "A first question.")
    await made(world, "A second question, which is longer.", previous_response_id=first["id"])
    older = (await world.post("/v1/responses/input_tokens", {"input": "How many?", "previous_response_id": first["id"]})).json()
    await made(world, "How many?", previous_response_id=first["id"])
    assert [m["content"] for m in world.model.prompt] == ["A first question.", "Reply 1.", "How many?"]
    newest = {"input": "How many?", "conversation": first["hermes"]["session_id"]}
    whole = (await world.post("/v1/responses/input_tokens", newest)).json()
    assert fewer["input_tokens"] < older["input_tokens"] < whole["input_tokens"]
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
        ({"tool_choice": "required"}, "invalid_request", "tool_choice"),
        ({"tool_choice": {"type": "mcp"}}, "unsupported_tool", "tool_choice.type"),
        ({"tool_choice": {"type": "function", "name": "none"}}, "invalid_request", "tool_choice.name"),
        ({"prompt": {"id": "p"}}, "unsupported_parameter", "prompt"),
        ({"anything": 1}, "unsupported_parameter", "anything"),
        ({"truncation": "maybe"}, "invalid_request", "truncation"),
        ({"include": ["everything"]}, "invalid_request", "include"),
        ({"include": [{}]}, "invalid_request", "include"),
        ({"tools": [TOOL], "tool_choice": {"type": "function", "name": ["x"]}}, "invalid_request", "tool_choice.name"),
        ({"tools": [TOOL], "tool_choice": ALLOWED}, "invalid_request", "tool_choice.tools"),
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
