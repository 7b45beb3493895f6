"""`/v1/conversations`: sessions, as OpenAI's Conversations API sees them."""

from __future__ import annotations

from typing import Any

import pytest
from openai.types.conversations import Conversation, ConversationItemList
from pydantic import TypeAdapter

from mnemon.core import errors
from tests.http.world import CHANNEL, ID, REPLAYED, Json, World, background, error

AGAIN = {"Idempotency-Key": "try-1"}
SDK: TypeAdapter[Any] = TypeAdapter(Conversation)
SDK_LIST: TypeAdapter[Any] = TypeAdapter(ConversationItemList)
TALK: list[Json] = [
    {"type": "message", "role": "user", "content": "My bike is green."},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Nice."}]},
]


async def created(world: World, headers: Json | None = None, **fields: Any) -> Json:
    """A conversation that must be made."""
    response = await world.post("/v1/conversations", fields, headers)
    assert response.status_code == 200, response.text
    found: Json = response.json()
    SDK.validate_python(found)
    return found


async def items(world: World, name: str, query: str = "order=asc&limit=100") -> Json:
    """A page of a conversation's items."""
    found = await world.get(f"/v1/conversations/{name}/items?{query}")
    SDK_LIST.validate_python(found)
    return found


def texts(page: Json) -> list[str]:
    """The words of a page."""
    return [part["text"] for item in page["data"] if item["type"] == "message" for part in item["content"]]


async def test_a_conversation_keeps_its_metadata(world: World) -> None:
    """It is made, read, changed and deleted."""
    made = await created(world, metadata={"topic": "bikes"})
    assert made["id"].startswith("conv_")
    assert await world.get(f"/v1/conversations/{made['id']}") == made
    changed = await world.post(f"/v1/conversations/{made['id']}", {"metadata": {"topic": "cars"}})
    assert changed.json() == {**made, "metadata": {"topic": "cars"}}
    assert await world.get(f"/v1/conversations/{made['id']}") == changed.json()
    deleted = await world.client.delete(f"/v1/conversations/{made['id']}")
    assert deleted.json() == {"id": made["id"], "object": "conversation.deleted", "deleted": True}
    for response in (
        await world.client.get(f"/v1/conversations/{made['id']}"),
        await world.client.get(f"/v1/conversations/{made['id']}/items"),
        await world.client.delete(f"/v1/conversations/{made['id']}"),
        await world.post(f"/v1/conversations/{made['id']}", {"metadata": {}}),
        await world.post(f"/v1/conversations/{made['id']}/items", {"items": TALK}),
    ):
        error(response, 404, "conversation_not_found", "conversation_id")


async def test_a_conversation_is_a_session(world: World) -> None:
    """The same transcript goes on through responses, chat completions and session chat, and its items show all of it."""
    name = (await created(world, {CHANNEL: "chan"}, items=TALK, metadata={"a": "b"}))["id"]
    session = await world.session(name)
    assert (session["session_key"], session["message_count"]) == ("chan", 2)
    await world.post("/v1/responses", {"input": "Which bike?", "conversation": name})
    assert [m["content"] for m in world.model.prompt] == ["My bike is green.", "Nice.", "Which bike?"]
    await world.say("And?", name)
    await world.post(f"/api/sessions/{name}/chat", {"message": "So?"})
    assert len(world.model.prompt) == 7
    page = await items(world, name)
    assert texts(page) == ["My bike is green.", "Nice.", "Which bike?", "Reply 1.", "And?", "Reply 2.", "So?", "Reply 3."]
    assert (page["first_id"], page["last_id"], page["has_more"]) == (page["data"][0]["id"], page["data"][-1]["id"], False)
    assert (await world.get(f"/v1/conversations/{name}"))["metadata"] == {"a": "b"}
    other = (await world.post("/v1/responses", {"input": "Hi."}, {ID: "plain"})).json()
    assert other["conversation"] is None
    assert texts(await items(world, "plain")) == ["Hi.", "Reply 4."]


async def test_what_is_put_in_is_remembered(world: World) -> None:
    """Messages that were put into a conversation are found under its key like any others; no model is called for them."""
    name = (await created(world, {CHANNEL: "chan"}))["id"]
    added = await world.post(f"/v1/conversations/{name}/items", {"items": TALK})
    assert texts(added.json()) == ["My bike is green.", "Nice."]
    assert world.model.requests == []
    assert (await items(world, name))["data"] == added.json()["data"]
    await world.say("What colour is my bike?", "another", "chan")
    assert "green" in world.model.seen


async def test_system_text_holds_for_the_conversation(world: World) -> None:
    """Given when it is created, it is in every prompt; afterwards it is refused."""
    name = (await created(world, items=[{"role": "developer", "content": "Be brief."}, *TALK]))["id"]
    bare = (await created(world, items=[{"role": "system", "content": "Be kind."}]))["id"]
    for conversation, text in ((name, "Be brief."), (bare, "Be kind.")):
        await world.post("/v1/responses", {"input": "Hello.", "conversation": conversation})
        assert world.model.prompt[0] == {"role": "system", "content": text}
    response = await world.post(f"/v1/conversations/{name}/items", {"items": [{"role": "system", "content": "No."}]})
    error(response, 400, "unsupported_item", "items[0].role")


async def test_items_come_in_pages(world: World) -> None:
    """Each once, in either direction, also where one message is several items."""
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    given = [
        {"role": "user", "content": "One."},
        {"role": "assistant", "content": "Two."},
        call,
        {"type": "function_call_output", "call_id": "c", "output": "Three."},
        {"role": "assistant", "content": "Four."},
    ]
    name = (await created(world, items=given))["id"]
    whole = [item["id"] for item in (await items(world, name))["data"]]
    assert len(whole) == len(set(whole)) == 5
    for order, expected in (("asc", whole), ("desc", whole[::-1])):
        for limit in (1, 2, 3):
            seen: list[str] = []
            after = ""
            while True:
                page = await items(world, name, f"order={order}&limit={limit}{after}")
                seen += [item["id"] for item in page["data"]]
                after = f"&after={page['last_id']}"
                if not page["has_more"]:
                    break
            assert seen == expected
    error(await world.client.get(f"/v1/conversations/{name}/items?after=msg_x"), 400, "invalid_request", "after")
    assert (await items(world, (await created(world))["id"]))["data"] == []


async def test_one_item_is_read_and_deleted(world: World) -> None:
    """It is gone from the list, from the prompt and from memory; ids of other conversations are unknown."""
    name = (await created(world, items=[*TALK, {"role": "user", "content": "I live in Oslo."}]))["id"]
    listed = (await items(world, name))["data"]
    path = f"/v1/conversations/{name}/items/{listed[0]['id']}"
    assert await world.get(path) == listed[0]
    other = (await created(world, items=TALK))["id"]
    error(await world.client.get(f"/v1/conversations/{other}/items/{listed[0]['id']}"), 404, "item_not_found", "item_id")
    deleted = await world.client.delete(path)
    assert deleted.json()["object"] == "conversation"
    error(await world.client.get(path), 404, "item_not_found", "item_id")
    error(await world.client.delete(path), 404, "item_not_found", "item_id")
    assert "My bike is green." not in texts(await items(world, name))
    await world.post("/v1/responses", {"input": "Where?", "conversation": name})
    assert "green" not in world.model.seen
    assert "Oslo" in world.model.seen


async def test_a_reference_to_an_item_of_the_conversation(world: World) -> None:
    """An item of the conversation that is continued can be named by its id."""
    name = (await created(world, items=TALK))["id"]
    listed = (await items(world, name))["data"]
    given = [{"type": "item_reference", "id": listed[0]["id"]}, {"role": "user", "content": "Again."}]
    await world.post("/v1/responses", {"input": given, "conversation": name})
    assert [m["content"] for m in world.model.prompt][-2:] == ["My bike is green.", "Again."]
    foreign = await world.post("/v1/responses", {"input": given})
    error(foreign, 404, "item_not_found", "input[0].id")


async def test_a_conversation_is_made_once(world: World) -> None:
    """The same `Idempotency-Key` gets the same conversation, with items or without, and adds items once."""
    for fields in ({"metadata": {"a": "b"}}, {"items": TALK}):
        key = {"Idempotency-Key": f"try-{len(str(fields))}"}
        first, second = [await world.post("/v1/conversations", fields, key) for _ in range(2)]
        assert first.json() == second.json()
        assert (first.headers.get(REPLAYED), second.headers.get(REPLAYED)) == (None, "true")
        assert first.headers[ID] == second.headers[ID] == first.json()["id"]
    name = first.json()["id"]
    changed, same = [await world.post(f"/v1/conversations/{name}", {"metadata": {"x": "y"}}, AGAIN) for _ in range(2)]
    assert changed.json() == same.json()
    assert same.headers[REPLAYED] == "true"
    one, two = [await world.post(f"/v1/conversations/{name}/items", {"items": TALK}, AGAIN) for _ in range(2)]
    assert one.content == two.content
    assert len((await items(world, name))["data"]) == 4


async def test_items_wait_for_the_turn_that_runs(world: World) -> None:
    """They are put behind it, and the next turn sees both."""
    name = (await created(world))["id"]
    world.model.gate.clear()
    async with background(world.post("/v1/responses", {"input": "First.", "conversation": name})):
        await world.model.asked.wait()
        async with background(world.post(f"/v1/conversations/{name}/items", {"items": TALK})):
            world.model.gate.set()
    assert texts(await items(world, name)) == ["First.", "Reply 1.", "My bike is green.", "Nice."]


async def test_a_conversation_can_bear_a_name(world: World) -> None:
    """The session header names it; a name that is taken is refused."""
    assert (await created(world, {ID: "bikes"}))["id"] == "bikes"
    error(await world.post("/v1/conversations", {}, {ID: "bikes"}), 409, "session_exists", "id")
    error(await world.post("/v1/conversations", {"items": TALK}, {ID: "bikes"}), 409, "session_exists", "id")
    assert (await items(world, "bikes"))["data"] == []
    error(await world.post("/v1/conversations/bikes/items", {"items": TALK}, {ID: "other"}), 400, "invalid_session_id", ID)


@pytest.mark.parametrize(
    ("body", "code", "param"),
    [
        ({"items": "x"}, "invalid_request", "items"),
        ({"items": [5]}, "invalid_request", "items[0]"),
        ({"items": TALK * 11}, "invalid_request", "items"),
        ({"items": [{"type": "function_call_output", "call_id": "c", "output": "x"}]}, "unknown_tool_call", "items[0].call_id"),
        ({"items": [{"type": "item_reference", "id": "msg_x"}]}, "unsupported_item", "items[0].id"),
        ({"metadata": []}, "invalid_request", "metadata"),
        ({"metadata": {"k": "v" * 513}}, "invalid_request", "metadata.k"),
        ({"title": "x"}, "unsupported_parameter", "title"),
        ({"model": 5}, "invalid_request", "model"),
    ],
)
async def test_what_cannot_be_honoured_is_refused(light: World, body: Json, code: str, param: str) -> None:
    """The field is named and nothing is made."""
    error(await light.post("/v1/conversations", body), 400, code, param)
    assert await light.listed() == []


async def test_nothing_of_another_tenant_is_there(two: tuple[World, World]) -> None:
    """A conversation of another tenant is unknown."""
    ours, theirs = two
    name = (await created(ours, items=TALK))["id"]
    error(await theirs.client.get(f"/v1/conversations/{name}"), 404, "conversation_not_found")
    error(await theirs.client.get(f"/v1/conversations/{name}/items"), 404, "conversation_not_found")
    error(await theirs.client.delete(f"/v1/conversations/{name}"), 404, "conversation_not_found")


async def test_putting_messages_in_says_nothing_of_the_model(world: World) -> None:
    """A model that failed when it was last asked is still known as one that fails."""
    name = (await created(world))["id"]
    world.model.script.append(errors.ModelError("no"))
    error(await world.chat("Hi.", name), 502, "upstream_error")
    await world.post(f"/v1/conversations/{name}/items", {"items": TALK})
    model = (await world.client.get("/health/detailed")).json()["readiness"]["checks"]["model"]
    assert model["failing_since"]
