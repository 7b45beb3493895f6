"""Long conversations: a bounded prompt, a lineage of sessions, and nothing lost."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path
from statistics import median

import pytest

from tests.http.world import ID, Json, World, error, frames, path_of, running, size, text

BUDGET = 700
FACT = "By the way, my cat Mirabelle was born in Trondheim."
ASK = "Where was my cat Mirabelle born?"
WORDS = (
    "amber basket copper dragon ember falcon garden harbor island jungle kettle lantern meadow nectar orchid pepper quartz river saddle"
    " timber umbrella velvet walnut yonder zephyr anchor beacon candle desert engine forest glacier hammer insect jacket"
).split()


def chatter(number: int, words: int = 40) -> str:
    """A message about nothing, different for every number."""
    chance = random.Random(number)
    return f"Turn {number}: " + " ".join(chance.choice(WORDS) for _ in range(words)) + "."


@pytest.fixture
async def small(tmp_path: Path, database_url: str) -> AsyncIterator[World]:
    """A server whose prompts may hold 700 tokens, so that a conversation is compressed every few turns."""
    async with running(tmp_path, database_url, context_budget=BUDGET, recall_tokens=200) as world:
        yield world


async def talk(world: World, turns: int, session: str, *, start: int = 1) -> list[Json]:
    """So many turns, each by the name the conversation began with; the `hermes` object of each reply."""
    found = []
    for number in range(start, start + turns):
        said = chatter(number)
        if number % 2:
            found.append((await world.say(said, session)).json()["hermes"])
        else:
            found.append((await world.stream(said, session)).end["hermes"])
    return found


def within(world: World, budget: int = BUDGET) -> bool:
    """Whether every prompt so far was within the budget."""
    return max(size(request) for request in world.model.requests) <= budget


async def test_j12_every_id_of_a_lineage_continues_at_the_tip(small: World) -> None:
    """Oldest, middle and newest id continue one compressed conversation, and the prompt is within the budget at every turn."""
    await small.say(FACT, "root", "chan")
    turns = await talk(small, 20, "root")
    ids = list(dict.fromkeys(["root", *(t["session_id"] for t in turns)]))
    assert len(ids) >= 4
    tip = ids[-1]
    for number, name in enumerate((ids[0], ids[1], ids[-2], tip)):
        response = await small.say(f"I come by door {number}.", name)
        ids.append(response.headers[ID])
        assert response.json()["hermes"]["session_id"] == response.headers[ID]
        if number:
            assert f"I come by door {number - 1}." in small.model.seen
    assert within(small)
    assert len(await small.messages("root")) == 2 * 25
    assert (await small.say("By the key.", key="chan")).json()["hermes"]["session_key"] == "chan"


async def test_a_compressed_session_is_continued_by_a_child(small: World) -> None:
    """The child names its parent, the parent's end is told, and a listing shows the tip with the root's id."""
    turns = await talk(small, 16, "root")
    changes = [t for t in turns if t["compressed"]]
    assert len(changes) >= 2
    assert turns[0] == {**turns[0], "session_id": "root", "parent_session_id": None, "compressed": False}
    chain = ["root", *(t["session_id"] for t in changes)]
    for parent, child in pairwise(chain):
        assert (await small.session(parent))["end_reason"] == "compression"
        assert (await small.session(parent))["ended_at"] is not None
        row = await small.session(child)
        assert row["parent_session_id"] == parent
        assert row["_lineage_root_id"] == "root"
        assert row["_lineage_tip_id"] == chain[-1]
    for before, after in pairwise(turns):
        if not after["compressed"]:
            assert (after["session_id"], after["parent_session_id"]) == (before["session_id"], before["parent_session_id"])
    assert (await small.session(chain[-1]))["end_reason"] is None
    (row,) = (await small.get("/api/sessions"))["data"]
    assert (row["id"], row["_lineage_root_id"]) == (chain[-1], "root")
    assert row["preview"].startswith("Turn 1:")
    assert sorted(await small.listed("include_children=true")) == sorted(chain)


async def test_j13_a_streaming_client_learns_the_effective_id(small: World) -> None:
    """A stream's header has the id as known at the start, its finish chunk the one that holds now, and the old one keeps working."""
    changed = 0
    known = "root"
    for number in range(1, 15):
        streamed = await small.stream(chatter(number), "root")
        hermes = streamed.end["hermes"]
        assert set(hermes) == {"session_id", "parent_session_id", "session_key", "compressed", "receipt_id"}
        assert streamed.response.headers[ID] == known
        assert hermes["compressed"] == (hermes["session_id"] != known)
        if hermes["compressed"]:
            assert hermes["parent_session_id"] == known
            changed += 1
        known = hermes["session_id"]
    assert changed >= 2
    assert len(await small.messages("root")) == 28


async def test_a_json_reply_carries_the_new_id_in_header_and_body(small: World) -> None:
    """The turn that compresses answers with the child's id already."""
    for number in range(1, 12):
        response = await small.say(chatter(number), "root")
        assert response.headers[ID] == response.json()["hermes"]["session_id"]
    assert response.headers[ID] != "root"
    whole = await small.post(f"{path_of('root')}/chat", {"message": "Hello."})
    assert whole.json()["session_id"] == whole.headers[ID] == whole.json()["hermes"]["session_id"]
    events = frames((await small.post(f"{path_of('root')}/chat/stream", {"message": "Hello."})).content)
    assert events[-1].event == "done"
    assert events[-1].json["hermes"]["session_id"] == events[-1].json["session_id"]


async def test_j14_every_original_message_stays_readable(small: World) -> None:
    """After many compressions all messages are there, in order, from every id, page by page, with nothing made up among them."""
    turns = await talk(small, 18, "root")
    expected = [(role, said) for n in range(1, 19) for role, said in (("user", chatter(n)), ("assistant", f"Reply {n}."))]
    for name in ("root", turns[9]["session_id"], turns[-1]["session_id"]):
        assert await small.messages(name) == expected
    paged = []
    for offset in range(0, 40, 7):
        body = await small.get(f"{path_of('root')}/messages?limit=7&offset={offset}")
        assert body["has_more"] == body["pagination"]["has_more"] == (offset + 7 < 36)
        paged += [(m["role"], m["content"]) for m in body["data"]]
    assert paged == expected
    assert await small.messages("root", "order=latest&limit=3") == expected[:-4:-1]
    sessions = {m["session_id"] for m in (await small.get(f"{path_of('root')}/messages"))["data"]}
    assert sessions >= {"root", turns[-2]["session_id"]}


async def test_j15_a_fact_in_the_middle_of_a_long_message_survives(tmp_path: Path, database_url: str) -> None:
    """A sentence in the middle of 40 KB is found again after the message left the prompt."""
    async with running(tmp_path, database_url) as world:
        half = " ".join(chatter(n) for n in range(1000, 1070))
        long = f"{half} The spare key lies under the third flowerpot in Grünwald. {half}"
        assert 38_000 <= len(long) <= 44_000
        await world.say(long, "s")
        for number in range(4):
            await world.say(" ".join(chatter(n) for n in range(number * 20, number * 20 + 20)), "s")
        assert half[-200:] not in world.model.seen
        await world.say("Where does the spare key lie?", "s")
        assert "third flowerpot in Grünwald" in world.model.seen
        assert half[-3000:] not in world.model.seen
        assert within(world, 16384)


async def test_j16_compression_asks_no_model_and_does_not_repeat(small: World) -> None:
    """Each turn is one model call, and between two compressions there are turns without one."""
    turns = await talk(small, 30, "root")
    assert len(small.model.requests) == 30
    changes = [n for n, t in enumerate(turns) if t["compressed"]]
    assert len(changes) >= 3
    assert all(later - earlier >= 2 for earlier, later in pairwise(changes))
    assert all("summar" not in str(request).lower() for request in small.model.requests)


async def test_the_stable_prefix_is_byte_identical_between_compressions(small: World) -> None:
    """Until the next compression every prompt begins with all of the one before it, save its newest message: prompt caches hit."""
    await small.post("/api/sessions", {"id": "root", "system_prompt": "You are terse."})
    turns = await talk(small, 20, "root")
    checked = 0
    for number in range(1, 20):
        if not turns[number - 1]["compressed"]:
            before, after = (small.model.requests[n]["messages"] for n in (number - 1, number))
            assert after[: len(before) - 1] == before[:-1]
            checked += 1
    assert checked >= 8
    assert all(r["messages"][0]["content"].startswith("You are terse.") for r in small.model.requests)


async def test_j20_turn_200_is_as_cheap_as_turn_10_and_knows_turn_1(tmp_path: Path, database_url: str) -> None:
    """With short turns the last prompts are no larger than those after the first compression, and turn 200 holds the fact of turn 1."""
    async with running(tmp_path, database_url, context_budget=2000, recall_tokens=300) as world:
        await world.say(FACT, "root")
        first = 0
        for number in range(2, 200):
            hermes = (await world.say(chatter(number, words=12), "root")).json()["hermes"]
            first = first or (number if hermes["compressed"] else 0)
        response = await world.say(ASK, "root")
        assert text(response) == "Reply 200."
        assert "born in Trondheim" in world.model.seen
        sizes = [size(request) for request in world.model.requests]
        assert max(sizes) <= 2000
        assert 0 < first <= 100
        assert median(sizes[150:]) <= 1.2 * median(sizes[first : first + 50])
        assert len(await world.messages("root")) == 400


async def test_recall_finds_what_compression_left_out(small: World) -> None:
    """A fact that is no longer in the prompt comes back when it is asked for, and not with every turn."""
    await small.say("The green folder holds the tax papers of Mirabelle GmbH.", "root")
    await talk(small, 14, "root", start=2)
    shown = await small.preview("Which folder holds the tax papers of Mirabelle GmbH?", "root")
    assert "green folder" in str(shown["messages"])
    await small.say("Which folder holds the tax papers of Mirabelle GmbH?", "root")
    assert "green folder" in small.model.seen
    assert within(small)


@pytest.mark.parametrize("streaming", [False, True])
async def test_a_request_that_cannot_fit_is_refused_and_nothing_is_stored(small: World, *, streaming: bool) -> None:
    """A request larger than the budget gets 400 with both numbers and the setting's name; the session is not made, and not blocked."""
    long = " ".join(chatter(n) for n in range(40))
    refused = error(await small.chat(long, "s", stream=streaming), 400, "context_length_exceeded", "messages")
    assert str(BUDGET) in refused["message"]
    assert "MNEMON_CONTEXT_BUDGET" in refused["message"]
    assert sum(part.isdigit() for part in refused["message"].replace(",", " ").split()) >= 2
    assert not small.model.requests
    assert await small.listed() == []
    for part in (
        {"messages": [{"role": "system", "content": long}, {"role": "user", "content": "Hi."}]},
        {"messages": [{"role": "user", "content": "Hi."}], "tools": [{"type": "function", "function": {"name": "f", "description": long}}]},
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x.test/i.png"}}]}]},
    ):
        error(await small.post("/v1/chat/completions", {"stream": streaming, **part}, {ID: "s"}), 400, "context_length_exceeded")
        error(await small.post("/v1/context/preview", part, {ID: "s"}), 400, "context_length_exceeded")
    await small.say("Short.", "s")
    error(await small.chat(long, "s", stream=streaming), 400, "context_length_exceeded")
    error(await small.post(f"{path_of('s')}/chat", {"message": long}), 400, "context_length_exceeded")
    error(await small.post(f"{path_of('s')}/chat/stream", {"message": long}), 400, "context_length_exceeded")
    assert len(await small.messages("s")) == 2
    await small.say("Still alive?", "s")


async def test_a_large_reply_does_not_break_the_bound(small: World) -> None:
    """A reply far larger than the budget is stored whole, and the next prompt leaves it out."""
    long = " ".join(chatter(n) for n in range(60))
    small.model.script.append(long)
    await small.say("Write a novel.", "s")
    await small.say("And now something short.", "s")
    assert within(small)
    assert (await small.messages("s"))[1] == ("assistant", long)
    shown = await small.preview("Next?", "s")
    assert shown["tokens"] <= BUDGET


async def test_a_tool_call_and_its_result_are_never_split(small: World) -> None:
    """However often the conversation is compressed, each tool result in a prompt stands behind its call."""
    for number in range(12):
        call = {"id": f"call_{number}", "type": "function", "function": {"name": "look", "arguments": f'{{"n": {number}}}'}}
        small.model.script.append({"content": None, "tool_calls": [call]})
        await small.say(chatter(number, 20), "s")
        await small.say([{"role": "tool", "tool_call_id": f"call_{number}", "content": chatter(100 + number, 20)}], "s")
    assert within(small)
    for request in small.model.requests:
        called: set[str] = set()
        for message in request["messages"]:
            called.update(call["id"] for call in message.get("tool_calls") or ())
            assert message["role"] != "tool" or message["tool_call_id"] in called
    assert [role for role, _ in await small.messages("s")] == ["user", "assistant", "tool", "assistant"] * 12
    assert (await small.session("s"))["end_reason"] == "compression"


async def test_a_fork_of_a_compressed_session_has_it_all(small: World) -> None:
    """A fork taken by an old id copies the whole conversation with its state, and tip resolution never enters it."""
    await small.say(FACT, "root")
    tip = (await talk(small, 14, "root", start=2))[-1]["session_id"]
    assert tip != "root"
    await small.post(f"{path_of('root')}/fork", {"id": "fork"})
    assert await small.messages("fork") == await small.messages("root")
    for name in ("root", tip):
        assert (await small.say("Hi.", name)).headers[ID] != "fork"
    await small.say(ASK, "fork")
    assert "Trondheim" in small.model.seen
    assert within(small)
    assert len(await small.messages("fork")) == 32


async def test_an_edit_inside_the_compressed_part_branches(small: World) -> None:
    """A resent history that differs before the last compression goes back to there; nothing later shines through."""
    history: list[Json] = []
    for number in range(1, 13):
        history.append({"role": "user", "content": chatter(number, 25)})
        response = await small.say(history, "root")
        history.append({"role": "assistant", "content": text(response)})
    assert response.headers[ID] != "root"
    edited = [*history[:4], {"role": "user", "content": "I changed my mind about turn three."}]
    await small.say(edited, "root")
    assert "Turn 12:" not in small.model.seen
    assert within(small)
    assert len(await small.messages("root")) == 6
    assert len(await small.messages("root", "branch=1")) == 24
    await small.say("Go on.", "root")
    assert len(await small.messages("root")) == 8
