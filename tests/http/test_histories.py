"""What clients send of a conversation: the newest message, all of it again, a part, or another version of it."""

from __future__ import annotations

from typing import Any

from mnemon.core.records import Identity, Message, TurnRequest
from mnemon.store.base import Tx
from mnemon.turn import resolve
from mnemon.turn.tails import Tails
from tests.http.world import ID, Json, World, error, path_of, text


def user(said: Any) -> Json:
    """A user's message."""
    return {"role": "user", "content": said}


def assistant(said: str) -> Json:
    """A model's message."""
    return {"role": "assistant", "content": said}


def stored(*said: str) -> list[tuple[str, str]]:
    """A transcript in which user and assistant take turns."""
    return [(("user", "assistant")[i % 2], text) for i, text in enumerate(said)]


async def test_a_whole_history_is_recognised_and_not_stored_twice(world: World) -> None:
    """A client that sends everything again gets the same prompt and the same transcript as one that sends its newest message."""
    history = [user("One.")]
    for number in range(1, 5):
        response = await world.say(history, "s")
        history += [{"role": "assistant", **response.json()["choices"][0]["message"]}, user(f"Turn {number + 1}.")]
        assert len(world.model.prompt) == 2 * number - 1
    assert await world.messages("s") == stored("One.", "Reply 1.", "Turn 2.", "Reply 2.", "Turn 3.", "Reply 3.", "Turn 4.", "Reply 4.")
    assert (await world.session("s"))["branches"] == 0
    await world.say("Only the newest now.", "s")
    assert len(world.model.prompt) == 9


async def test_what_clients_change_on_the_way_is_still_the_same_message(world: World) -> None:
    """White space, lost reasoning and content as a list of parts make no other message of it."""
    world.model.script.append({"content": "Well, hello.", "reasoning_content": "They greet."})
    await world.say("Hello there.", "s")
    parts = [{"type": "text", "text": "Hello there."}]
    await world.say([user(parts), assistant("Well, hello.\n"), user("Next.")], "s")
    assert await world.messages("s") == stored("Hello there.", "Well, hello.", "Next.", "Reply 2.")
    assert (await world.session("s"))["branches"] == 0


async def test_an_edited_message_branches_and_the_old_branch_stays_readable(world: World) -> None:
    """History from the edited message on is replaced; what was there before is read with `?branch=`."""
    await world.say("One.", "s")
    await world.say("Two.", "s")
    await world.say("Three.", "s")
    edited = [user("One."), assistant("Reply 1."), user("Two, but better.")]
    await world.say(edited, "s")
    assert [m["content"] for m in world.model.prompt] == ["One.", "Reply 1.", "Two, but better."]
    assert await world.messages("s") == stored("One.", "Reply 1.", "Two, but better.", "Reply 4.")
    old = stored("One.", "Reply 1.", "Two.", "Reply 2.", "Three.", "Reply 3.")
    assert await world.messages("s", "branch=1") == old
    assert (await world.session("s"))["branches"] == 1
    await world.say("Go on.", "s")
    assert [m["content"] for m in world.model.prompt][-1] == "Go on."
    assert "Three." not in world.model.seen
    await world.say([user("Another beginning."), assistant("Made up."), user("Then?")], "s")
    assert await world.messages("s") == stored("Another beginning.", "Made up.", "Then?", "Reply 6.")
    assert await world.messages("s", "branch=1") == old
    assert await world.messages("s", "branch=2") == stored("One.", "Reply 1.", "Two, but better.", "Reply 4.", "Go on.", "Reply 5.")
    error(await world.client.get(f"{path_of('s')}/messages?branch=3"), 400, param="branch")


class Counting:
    """A transaction that counts the rows it was asked for, by statement."""

    def __init__(self, tx: Any) -> None:
        self.tx = tx
        self.rows: dict[str, int] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.tx, name)

    def all(self, name: str, /, **params: Any) -> list[Any]:
        """As the transaction does."""
        found: list[Any] = self.tx.all(name, **params)
        self.rows[name] = len(found)
        return found


async def test_an_edit_loads_nothing_of_what_it_replaces(world: World) -> None:
    """Of a long conversation whose beginning is edited only what stands before the edit is read for the prompt."""
    for number in range(20):
        await world.say(f"No {number}.", "s")
    edited = tuple(map(Message, [user("No 0."), assistant("Reply 1."), user("Another.")]))
    request = TurnRequest(tenant="default", identity=Identity(session_id="s"), messages=edited, params={}, model="mnemon", stream=False)

    def look(tx: Tx) -> tuple[list[str], dict[str, int]]:
        counting = Counting(tx)
        begun = resolve.look(counting, request, tails=Tails())
        return [m.text for m in begun.history], counting.rows

    history, rows = await world.app.state.services.driver.read(look)
    assert history == ["No 0.", "Reply 1."]
    assert rows["messages_live"] == 2


async def test_a_regenerated_reply_branches(world: World) -> None:
    """A history that ends with a stored user message asks for another reply to it; the message is not stored twice."""
    await world.say("One.", "s")
    await world.say("Two.", "s")
    response = await world.say([user("One."), assistant("Reply 1."), user("Two.")], "s")
    assert text(response) == "Reply 3."
    assert [m["content"] for m in world.model.prompt] == ["One.", "Reply 1.", "Two."]
    assert await world.messages("s") == stored("One.", "Reply 1.", "Two.", "Reply 3.")
    assert await world.messages("s", "branch=1") == stored("One.", "Reply 1.", "Two.", "Reply 2.")


async def test_an_old_branch_is_not_recalled(world: World) -> None:
    """What an edit took back is not brought up as a memory."""
    await world.say("The launch code is heliotrope.", "s", "chan")
    await world.say([user("The launch code is marigold."), assistant("Noted."), user("Good.")], "s", "chan")
    await world.say("What is the launch code?", "other", "chan")
    assert "marigold" in world.model.seen
    assert "heliotrope" not in world.model.seen


async def test_a_window_of_the_history_is_recognised(world: World) -> None:
    """A client that sends the last few messages and a new one adds only the new one."""
    for said in ("One.", "Two.", "Three."):
        await world.say(said, "s")
    await world.say([assistant("Reply 2."), user("Three."), assistant("Reply 3."), user("Four.")], "s")
    assert len(await world.messages("s")) == 8
    assert (await world.session("s"))["branches"] == 0
    assert len(world.model.prompt) == 7


async def test_a_history_begins_a_session(world: World) -> None:
    """A new session may begin with a conversation that was held elsewhere."""
    await world.say([user("One."), assistant("Uno."), user("Two.")], "s")
    assert await world.messages("s") == stored("One.", "Uno.", "Two.", "Reply 1.")


async def test_the_same_words_said_again_are_a_new_message(world: World) -> None:
    """A repeated newest message is not taken for a resent one."""
    await world.say("Again.", "s")
    await world.say("Again.", "s")
    assert await world.messages("s") == stored("Again.", "Reply 1.", "Again.", "Reply 2.")


async def test_system_text_holds_for_its_request_only(world: World) -> None:
    """Client system text is in that turn's prompt, is never stored, and is gone in the next turn."""
    await world.say([{"role": "system", "content": "Speak like a pirate."}, user("Hi.")], "s")
    assert world.model.prompt[0] == {"role": "system", "content": "Speak like a pirate."}
    await world.say("And now?", "s")
    assert "pirate" not in world.model.seen
    assert await world.messages("s") == stored("Hi.", "Reply 1.", "And now?", "Reply 2.")


async def test_the_developer_role_is_kept(light: World) -> None:
    """A developer message goes to the model as one."""
    await light.say([{"role": "developer", "content": "Be brief."}, user("Hi.")], "s")
    assert light.model.prompt[0] == {"role": "developer", "content": "Be brief."}
    assert [role for role, _ in await light.messages("s")] == ["user", "assistant"]


async def test_j18_the_system_prompt_of_a_session_is_in_every_prompt(world: World) -> None:
    """What was given at creation stands in each prompt, beside system text of the request, in forks and in session chat too."""
    created = await world.post("/api/sessions", {"id": "s", "system_prompt": "You are a careful gardener."})
    assert created.status_code == 201
    assert created.json()["session"]["has_system_prompt"] is True
    for said in ("One.", "Two."):
        await world.say(said, "s")
        assert world.model.prompt[0]["content"] == "You are a careful gardener."
    await world.say([{"role": "system", "content": "Speak French."}, user("Three.")], "s")
    head = "\n".join(m["content"] for m in world.model.prompt if m["role"] == "system")
    assert "careful gardener" in head
    assert "Speak French." in head
    await world.post(f"{path_of('s')}/chat", {"message": "Four.", "system_message": "Whisper.", "instructions": "Rhyme."})
    head = "\n".join(m["content"] for m in world.model.prompt if m["role"] == "system")
    assert all(words in head for words in ("careful gardener", "Whisper.", "Rhyme."))
    await world.post(f"{path_of('s')}/fork", {"id": "f"})
    await world.say("Five.", "f")
    assert "careful gardener" in world.model.prompt[0]["content"]
    assert "French" not in world.model.seen


async def test_j17_a_fork_and_its_parent_go_separate_ways(world: World) -> None:
    """A fork copies the messages; afterwards neither transcript changes with the other."""
    await world.say("One.", "parent")
    forked = await world.post(f"{path_of('parent')}/fork", {"id": "child", "title": "Sidetrack"})
    assert forked.status_code == 201
    row = forked.json()["session"]
    assert (row["id"], row["parent_session_id"], row["title"], row["message_count"]) == ("child", "parent", "Sidetrack", 2)
    await world.say("Only in the child.", "child")
    assert [m["content"] for m in world.model.prompt] == ["One.", "Reply 1.", "Only in the child."]
    await world.say("Only in the parent.", "parent")
    assert "child" not in world.model.seen
    assert await world.messages("parent") == stored("One.", "Reply 1.", "Only in the parent.", "Reply 3.")
    assert await world.messages("child") == stored("One.", "Reply 1.", "Only in the child.", "Reply 2.")
    assert sorted(await world.listed()) == ["child", "parent"]
    assert (await world.session("parent"))["end_reason"] is None


async def test_a_fork_without_a_key_learns_nothing_from_its_parent(world: World) -> None:
    """Without a key the fork is a scope of its own; it holds what the copied messages gave, and so does the parent."""
    await world.say("The launch code is heliotrope.", "parent")
    await world.post(f"{path_of('parent')}/fork", {"id": "child"})
    await world.say("The landing code is marigold.", "parent")
    await world.say("What are the launch code and the landing code?", "child")
    assert "heliotrope" in world.model.seen
    assert "marigold" not in world.model.seen
    assert (await world.client.delete(path_of("parent"))).status_code == 200
    assert len(await world.messages("child")) == 4
    assert (await world.session("child"))["parent_session_id"] is None
    await world.say("Still there?", "child")
    assert "heliotrope" in world.model.seen


async def test_a_fork_with_a_key_stays_under_it(world: World) -> None:
    """Under a key both sides share one memory; the key's current transcript remains the parent."""
    parent = (await world.say("Hello.", key="chan")).headers[ID]
    fork = (await world.post(f"{path_of(parent)}/fork", {})).json()["session"]
    assert fork["session_key"] == "chan"
    await world.say("The landing code is marigold.", fork["id"])
    await world.say("What is the landing code?", parent)
    assert "marigold" in world.model.seen
    assert (await world.say("Go on.", key="chan")).headers[ID] == parent
    error(await world.chat("Hi.", fork["id"], "other"), 409, "session_key_conflict")


async def test_a_forks_title_and_id_follow_the_rules(world: World) -> None:
    """A fork needs no body; it takes a free id and a short title, and refuses what it does not know."""
    await world.post("/api/sessions", {"id": "s", "title": "Plan"})
    path = f"{path_of('s')}/fork"
    assert (await world.client.post(path)).status_code == 201
    error(await world.post(path, {"id": "s"}), 409, "session_exists", "id")
    error(await world.post(path, {"title": "x" * 300}), 400, "invalid_title", "title")
    error(await world.post(path, {"id": "a\x00b"}), 400, param="id")
    error(await world.post(path, {"keep": True}), 400, "unsupported_parameter", "keep")
    error(await world.post(f"{path_of('nobody')}/fork", {}), 404, "session_not_found")
    assert len(await world.listed()) == 2
