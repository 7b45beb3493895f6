"""What strains a conversation: long tool loops, abandoned calls, a message too long for the live part, deletion under a running turn."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from tests.http import world as worlds
from tests.http.world import running

TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}]


def call(name: str) -> dict[str, Any]:
    """What the model says when it wants a tool."""
    function = {"name": "look", "arguments": "{}"}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": name, "type": "function", "function": function}]}


async def test_a_tool_loop_may_be_longer_than_the_budget(tmp_path: Path) -> None:
    """Thirty results in one exchange: each turn is answered within the budget, with the question, the newest call and its result."""
    async with running(tmp_path, context_budget=700, recall_tokens=100) as world:
        world.model.script.extend([call(f"c{n}") for n in range(30)] + ["done"])
        await world.say("Look everywhere for the key.", "s", tools=TOOLS)
        for n in range(30):
            result = [{"role": "tool", "tool_call_id": f"c{n}", "content": f"place {n}: " + "dust " * 60}]
            await world.say(result, "s", tools=TOOLS)
            prompt = world.model.prompt
            assert worlds.size(world.model.requests[-1]) <= 700
            assert [m["role"] for m in prompt if m["role"] == "user"] == ["user"]
            assert prompt[-1]["content"].startswith(f"place {n}:")
            assert prompt[-2]["tool_calls"][0]["id"] == f"c{n}"
        await world.say("And what did you find last?", "s")
        assert "place 29" in world.model.seen


async def test_an_abandoned_call_does_not_spoil_the_session(tmp_path: Path) -> None:
    """A client that drops a tool call and goes on gets prompts in which every call has a result."""
    async with running(tmp_path) as world:
        world.model.script.append(call("c1"))
        await world.say("Look for it.", "s", tools=TOOLS)
        await world.say("Never mind, tell me a joke.", "s")
        roles = [m["role"] for m in world.model.prompt]
        assert roles == ["user", "assistant", "tool", "user"]
        assert world.model.prompt[2]["tool_call_id"] == "c1"
        assert [role for role, _ in await world.messages("s")] == ["user", "assistant", "user", "assistant"]


async def test_what_does_not_fit_is_recalled_at_once(tmp_path: Path) -> None:
    """A live message that is too long for this prompt is not forgotten for a turn: its passage is recalled."""
    async with running(tmp_path, context_budget=1000, recall_tokens=400) as world:
        await world.say("The codeword is zanzibar. " + "filler words here. " * 140, "s")
        await world.say("What was the codeword? " + "other padding stands here. " * 45, "s")
        assert "zanzibar" in world.model.seen
        assert worlds.size(world.model.requests[-1]) <= 1000


async def test_deleted_passages_hide_no_living_ones(tmp_path: Path) -> None:
    """After a session of a key is deleted, what another one said of the same thing is still found."""
    async with running(tmp_path) as world:
        await world.say("The zebra is called Marty.", "a", "k")
        for n in range(32):
            await world.say(f"zebra {n}", "b", "k")
        await world.say("Which zebra?", "c", "k")
        assert (await world.client.delete("/api/sessions/b")).status_code == 200
        await world.say("Which zebra?", "d", "k")
        assert "Marty" in world.model.seen


async def test_a_session_deleted_under_its_turn(tmp_path: Path) -> None:
    """The turn of a session that is deleted meanwhile ends with 409 and stores nothing."""
    async with running(tmp_path) as world:
        await world.say("hello", "s")
        world.model.script.append([0.3, "late"])
        turn = asyncio.create_task(world.chat("again", "s"))
        await asyncio.sleep(0.1)
        await world.client.delete("/api/sessions/s")
        worlds.error(await turn, 409, "session_deleted")
        await world.get("/api/sessions/s", 404)


async def test_creation_is_idempotent(tmp_path: Path) -> None:
    """A session or a fork asked for twice with one Idempotency-Key is made once."""
    async with running(tmp_path) as world:
        first = await world.post("/api/sessions", {"title": "t"}, {"Idempotency-Key": "k1"})
        again = await world.post("/api/sessions", {"title": "t"}, {"Idempotency-Key": "k1"})
        assert first.status_code == again.status_code == 201
        assert first.json() == again.json()
        assert (again.headers.get("idempotency-replayed"), first.headers.get("idempotency-replayed")) == ("true", None)
        made = first.json()["session"]["id"]
        forks = [await world.post(f"/api/sessions/{made}/fork", {}, {"Idempotency-Key": "k2"}) for _ in range(2)]
        assert forks[0].json() == forks[1].json()
        assert len(await world.listed()) == 2


async def test_the_title_goes_with_the_tip(tmp_path: Path) -> None:
    """A listing shows the title of a conversation after it was compressed."""
    async with running(tmp_path, context_budget=600, recall_tokens=100) as world:
        await world.post("/api/sessions", {"id": "s", "title": "The harbour"})
        for n in range(12):
            await world.say(f"note {n} " + "words " * 30, "s")
        (row,) = (await world.get("/api/sessions"))["data"]
        assert row["id"] != "s"
        assert row["title"] == "The harbour"


async def test_a_stream_that_was_lost_is_not_spliced(tmp_path: Path) -> None:
    """`Last-Event-ID` with a key that belongs to no finished or running turn is refused before any model call."""
    async with running(tmp_path) as world:
        headers = {"Idempotency-Key": "k", "Last-Event-ID": "7"}
        worlds.error(await world.chat("hello", "s", headers=headers, stream=True), 409, "stream_lost")
        assert world.model.requests == []
        await world.stream("hello", "s", headers={"Idempotency-Key": "k"})
        answer = await world.chat("hello", "s", headers={"Idempotency-Key": "k", "Last-Event-ID": "99"}, stream=True)
        worlds.error(answer, 400, "invalid_last_event_id")


async def test_a_window_may_be_regenerated(tmp_path: Path) -> None:
    """A client that sends only the end of its history and asks again keeps what came before."""
    async with running(tmp_path) as world:
        for n in (1, 2, 3):
            await world.say(f"question {n}", "s")
        window = [
            {"role": "user", "content": "question 2"},
            {"role": "assistant", "content": "Reply 2."},
            {"role": "user", "content": "question 3"},
        ]
        await world.say(window, "s")
        said = [content for _, content in await world.messages("s")]
        assert said == ["question 1", "Reply 1.", "question 2", "Reply 2.", "question 3", "Reply 4."]


async def test_a_tool_result_is_given_once(tmp_path: Path) -> None:
    """The same result sent again, without its history, answers nothing and is refused."""
    async with running(tmp_path) as world:
        world.model.script.append(call("c1"))
        await world.say("Look.", "s", tools=TOOLS)
        result = [{"role": "tool", "tool_call_id": "c1", "content": "found"}]
        await world.say(result, "s", tools=TOOLS)
        worlds.error(await world.chat(result, "s", tools=TOOLS), 400, "unknown_tool_call")
        assert len(await world.messages("s")) == 4


async def test_a_message_of_megabytes_is_refused_soon(tmp_path: Path) -> None:
    """Nine megabytes for a budget of sixteen thousand tokens: 400 at once, while others are served."""
    async with running(tmp_path) as world:
        await world.say("hello", "s", "k")
        started = asyncio.get_running_loop().time()
        worlds.error(await world.chat("all work and no play " * 450_000, "t", "k"), 400, "context_length_exceeded")
        assert asyncio.get_running_loop().time() - started < 5
