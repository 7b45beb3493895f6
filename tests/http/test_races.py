"""Things that happen at the same time."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.http.world import CHANNEL, ID, World, background, error, path_of, running, text


async def test_a_session_deleted_while_its_turn_runs(world: World) -> None:
    """The turn ends with an answer or a clear refusal, never with a failure of ours, and the id can be used again."""
    await world.say("Before.", "s", "chan")
    world.model.gate.clear()
    world.model.asked.clear()
    async with background(world.chat("Slow.", "s")) as turn:
        await world.model.asked.wait()
        assert (await world.client.delete(path_of("s"))).status_code == 200
        world.model.gate.set()
    response = turn.result()
    assert response.status_code in (200, 404, 409) or error(response, 503)
    await world.say("After.", "s")
    assert ("user", "Before.") not in await world.messages("s")


async def test_first_turns_of_a_key_at_once_make_one_session(world: World) -> None:
    """Parallel turns by a key that was never used share one transcript."""
    answers = await asyncio.gather(*(world.say(f"No {n}.", key="chan") for n in range(6)))
    (made,) = {a.headers[ID] for a in answers}
    assert len(await world.messages(made)) == 12
    assert await world.listed() == [made]


async def test_turns_by_different_names_of_a_conversation_wait_in_order(tmp_path: Path, database_url: str) -> None:
    """Whether they name its oldest, a middle or its newest id, or its key alone: turns run in the order in which they came."""
    async with running(tmp_path, database_url, context_budget=800, recall_tokens=100) as world:
        ids = ["root"]
        while len(set(ids)) < 3:
            ids.append((await world.say("stone river garden " * 30, "root", "chan")).headers[ID])
        names = [{"session": "root"}, {"session": ids[-2]}, {"session": ids[-1]}, {"key": "chan"}]
        world.model.gate.clear()
        before = len(world.model.requests)
        turns = []
        for number in range(12):
            turns.append(asyncio.create_task(world.say(f"No {number}.", **names[number * 7 % 4])))
            await asyncio.sleep(0.02)
        world.model.gate.set()
        await asyncio.gather(*turns)
        asked = [request["messages"][-1]["content"].rsplit("\n", 1)[-1] for request in world.model.requests[before:]]
        assert asked == [f"No {number}." for number in range(12)]


async def test_two_keys_that_race_for_a_new_session(world: World) -> None:
    """One of them gets the session, the other the conflict."""
    answers = await asyncio.gather(*(world.chat("Hi.", "s", key) for key in ("one", "two", "one", "two")))
    (owner,) = {a.headers[CHANNEL] for a in answers if a.status_code == 200}
    assert sorted(a.status_code for a in answers) == [200, 200, 409, 409]
    assert (await world.session("s"))["session_key"] == owner
    assert len(await world.messages("s")) == 4


async def test_a_fork_taken_while_a_turn_runs(world: World) -> None:
    """The fork has what was committed; the turn goes on in the parent alone."""
    await world.say("Before.", "s")
    world.model.gate.clear()
    world.model.asked.clear()
    async with background(world.say("Slow.", "s")) as turn:
        await world.model.asked.wait()
        await world.post(f"{path_of('s')}/fork", {"id": "fork"})
        await world.client.patch(path_of("s"), json={"title": "Renamed meanwhile"})
        world.model.gate.set()
    assert text(turn.result()) == "Reply 2."
    assert len(await world.messages("fork")) == 2
    assert len(await world.messages("s")) == 4
    assert (await world.session("s"))["title"] == "Renamed meanwhile"


async def test_rotating_while_a_turn_runs(world: World) -> None:
    """`/new` by another name of the channel does not disturb the turn: its reply stays in the old transcript."""
    old = (await world.say("Before.", key="chan")).headers[ID]
    world.model.gate.clear()
    world.model.asked.clear()
    async with background(world.say("Slow.", old)) as turn:
        await world.model.asked.wait()
        new = (await asyncio.wait_for(world.say("/new", key="chan"), 5)).headers[ID]
        world.model.gate.set()
    assert turn.result().headers[ID] == old
    assert len(await world.messages(old)) == 4
    assert await world.messages(new) == []
    assert (await world.say("Go on.", key="chan")).headers[ID] == new


async def test_many_sessions_at_once_stay_apart(world: World) -> None:
    """Forty conversations in parallel, three turns each: every prompt holds its own words only."""

    async def talk(number: int) -> None:
        for turn in range(3):
            await world.say(f"<{number}> turn {turn}", f"s{number}", f"chan{number % 4}" if number % 2 else None)

    await asyncio.gather(*(talk(n) for n in range(40)))
    for number in range(40):
        transcript = await world.messages(f"s{number}")
        assert [said for _, said in transcript[::2]] == [f"<{number}> turn {turn}" for turn in range(3)]
        assert [role for role, _ in transcript] == ["user", "assistant"] * 3
    for request in world.model.requests:
        own = request["messages"][-1]["content"].rsplit("<", 1)[1].split(">")[0]
        assert all(f"<{own}>" in m["content"] for m in request["messages"][:-1] if m["role"] == "user")


async def test_an_id_that_names_another_conversation_by_now(tmp_path: Path, database_url: str) -> None:
    """An id of a conversation that was deleted, on this server or on another one, begins its own, and nobody waits for the old one's."""
    async with running(tmp_path, database_url, context_budget=800, recall_tokens=100) as world:
        child = "root"
        while child == "root":
            child = (await world.say("stone river garden " * 30, "root")).headers[ID]
        await world.say("Known by this name, too.", child)
        assert (await world.client.delete(path_of("root"))).status_code == 200
        await world.say("Not taken for busy.", child, headers={"X-Mnemon-If-Busy": "reject"})
        assert (await world.client.delete(path_of(child))).status_code == 200
        async with asyncio.timeout(5):
            answers = await asyncio.gather(*(world.say(f"No {n}.", child) for n in range(3)), world.say("Anew.", "root"))
        assert [a.headers[ID] for a in answers] == [child] * 3 + ["root"]
        assert len(await world.messages(child)) == 6
        assert await world.messages("root") == [("user", "Anew."), ("assistant", text(answers[-1]))]


async def test_of_many_who_create_a_session_one_does(world: World) -> None:
    """The others hear that it is there, on either database."""
    for number in range(5):
        made = await asyncio.gather(*(world.post("/api/sessions", {"id": f"same {number}"}) for _ in range(8)))
        assert sorted(answer.status_code for answer in made) == [201, *[409] * 7]
        for answer in made:
            assert answer.status_code == 201 or error(answer, 409, "session_exists")


async def test_a_session_created_while_its_first_turn_runs(world: World) -> None:
    """The turn is stored in it and nothing of either is lost."""
    world.model.gate.clear()
    world.model.asked.clear()
    async with background(world.chat("First.", "s")) as turn:
        await world.model.asked.wait()
        made = await world.post("/api/sessions", {"id": "s", "title": "Mine"})
        world.model.gate.set()
    assert made.status_code == 201
    assert text(turn.result()) == "Reply 1."
    assert (await world.session("s"))["title"] == "Mine"
    assert await world.messages("s") == [("user", "First."), ("assistant", "Reply 1.")]
