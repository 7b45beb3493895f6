"""Sessions and the keys they belong to: binding, current transcripts, `/new` and `/reset`, scopes of memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.http.world import CHANNEL, ID, World, error, path_of, running, text

FACT = "The launch code of the Saturn probe is heliotrope-42."
ASK = "What is the launch code of the Saturn probe?"


async def test_no_id_and_no_key_is_stateless(world: World) -> None:
    """A request without a name is answered from its own messages alone, and nothing of it is stored."""
    await world.say(FACT)
    response = await world.say(ASK)
    assert [m["content"] for m in world.model.prompt] == [ASK]
    assert ID not in response.headers
    assert "hermes" not in response.json()
    assert await world.listed() == []
    streamed = await world.stream(ASK)
    assert "hermes" not in streamed.end
    assert all(frame.id is None for frame in streamed.frames)


async def test_another_key_on_a_bound_session_is_refused(world: World) -> None:
    """A session belongs to the first key used with it; another one gets 409 and changes nothing."""
    await world.say("Hi.", "s", "alice")
    for streaming in (False, True):
        conflict = error(await world.chat("Hi.", "s", "bob", stream=streaming), 409, "session_key_conflict", CHANNEL)
        assert "alice" not in conflict["message"]
    chat = await world.post(f"{path_of('s')}/chat", {"message": "Hi."}, {CHANNEL: "bob"})
    error(chat, 409, "session_key_conflict", CHANNEL)
    assert len(await world.messages("s")) == 2
    assert len(world.model.requests) == 1


async def test_a_request_without_the_key_uses_the_bound_one(world: World) -> None:
    """The key of a bound session need not be sent again; it is named in header and body all the same."""
    await world.say("Hi.", "s", "alice")
    response = await world.say("Hi.", "s")
    assert response.headers[CHANNEL] == "alice"
    assert response.json()["hermes"]["session_key"] == "alice"
    streamed = await world.stream("Hi.", "s")
    assert streamed.response.headers[CHANNEL] == "alice"
    assert streamed.end["hermes"]["session_key"] == "alice"


async def test_a_session_without_a_key_binds_to_the_first_one_it_meets(world: World) -> None:
    """A session that began without a key may get one later; what it knows is then known under that key, and to no other."""
    await world.say(FACT, "s")
    await world.say("Now with a key.", "s", "alice")
    assert (await world.session("s"))["session_key"] == "alice"
    error(await world.chat("Hi.", "s", "bob"), 409, "session_key_conflict")
    await world.say(ASK, "elsewhere", "alice")
    assert "heliotrope-42" in world.model.seen
    await world.say(ASK, "third", "bob")
    assert "heliotrope-42" not in world.model.seen
    assert await world.listed("session_key=alice") == ["elsewhere", "s"]


async def test_a_session_about_to_bind_sees_the_memory_of_its_key(world: World) -> None:
    """The very turn that binds a session recalls from the key's scope."""
    await world.say(FACT, "one", "alice")
    await world.say("Something else.", "two")
    await world.say(ASK, "two", "alice")
    assert "heliotrope-42" in world.model.seen


async def test_sessions_without_a_key_know_nothing_of_each_other(world: World) -> None:
    """Without a key the lineage is the scope."""
    await world.say(FACT, "one")
    await world.say(ASK, "two")
    assert "heliotrope-42" not in world.model.seen


async def test_j06_keys_that_look_alike_share_nothing(world: World) -> None:
    """Every key is a scope of its own, however alike two of them look, and memory stays within it."""
    alike = ["a:b", "a-b", "a/b", "a b", "a_b", "A:B", "%C3%A4", "ö", "日本", "日木"]
    for number, key in enumerate(alike):
        await world.say(f"The launch code of the Saturn probe is heliotrope-{number}.", key=key)
    for number, key in enumerate(alike):
        await world.say(ASK, f"fresh {number}", key)
        found = [n for n in range(len(alike)) if f"heliotrope-{n}." in world.model.seen]
        assert found == [number], key
    assert len(await world.listed()) == 2 * len(alike)


async def test_a_key_without_an_id_continues_its_current_transcript(world: World) -> None:
    """The first turn by key alone begins a session, the next ones continue it, and its id is told."""
    first = await world.say("My name is Alex.", key="chan:1")
    made = first.headers[ID]
    assert made == first.json()["hermes"]["session_id"]
    second = await world.say("And I like tea.", key="chan:1")
    assert second.headers[ID] == made
    assert [m["content"] for m in world.model.prompt] == ["My name is Alex.", "Reply 1.", "And I like tea."]
    assert (await world.say("By id.", made)).headers[CHANNEL] == "chan:1"
    assert await world.listed("session_key=chan%3A1") == [made]


async def test_a_key_alone_continues_the_first_session_bound_to_it(world: World) -> None:
    """Other sessions under the key do not take its current transcript away; deleting it lets a new one begin."""
    await world.say("First.", "one", "chan")
    await world.say("Second.", "two", "chan")
    assert (await world.say("Go on.", key="chan")).headers[ID] == "one"
    await world.client.delete(path_of("one"))
    fresh = (await world.say("Go on.", key="chan")).headers[ID]
    assert fresh not in ("one", "two")


@pytest.mark.parametrize("command", ["/new", "/reset", "  /new \n"])
@pytest.mark.parametrize("streaming", [False, True])
async def test_j09_new_and_reset_rotate_the_transcript(light: World, command: str, *, streaming: bool) -> None:
    """A new transcript under the same key without a model call: old one untouched, new id announced, memory kept."""
    await light.say(FACT, "old", "chan")
    if streaming:
        streamed = await light.stream(command, "old", "chan")
        hermes, said, header = streamed.end["hermes"], streamed.text, streamed.response.headers[ID]
    else:
        response = await light.say(command, "old", "chan")
        hermes, said, header = response.json()["hermes"], text(response), response.headers[ID]
    new = hermes["session_id"]
    assert new == header
    assert new != "old"
    assert hermes["session_key"] == "chan"
    assert said
    assert len(light.model.requests) == 1
    assert await light.messages("old") == [("user", FACT), ("assistant", "Reply 1.")]
    assert await light.messages(new) == []
    assert (await light.session("old"))["end_reason"] is None
    after = await light.say(ASK, key="chan")
    assert after.headers[ID] == new
    assert "heliotrope-42" in light.model.seen
    assert [m["role"] for m in light.model.prompt] == ["user"]
    await light.say("The old one goes on.", "old")
    assert len(await light.messages("old")) == 4


async def test_j09_new_by_key_alone(world: World) -> None:
    """`/new` with a key and no id rotates that key's current transcript, again and again."""
    first = (await world.say(FACT, key="chan")).headers[ID]
    second = (await world.say("/new", key="chan")).headers[ID]
    assert (await world.say("Hello.", key="chan")).headers[ID] == second
    third = (await world.say("/reset", key="chan")).headers[ID]
    assert len({first, second, third}) == 3
    await world.say(ASK, key="chan")
    assert "heliotrope-42" in world.model.seen
    assert await world.listed("session_key=chan") == [third, second, first]


async def test_new_without_a_key_starts_with_nothing_and_says_so(world: World) -> None:
    """With an id alone the new session knows nothing of the old one, and the confirmation tells."""
    await world.say(FACT, "old")
    response = await world.say("/new", "old")
    new = response.headers[ID]
    assert response.json()["hermes"] | {"receipt_id": None} == {
        "session_id": new,
        "parent_session_id": None,
        "session_key": None,
        "compressed": False,
        "receipt_id": None,
    }
    assert "nothing" in text(response).lower()
    await world.say(ASK, new)
    assert "heliotrope-42" not in world.model.seen
    assert len(await world.messages("old")) == 2
    keyed = text(await world.say("/new", "s", "chan"))
    assert "nothing" not in keyed.lower()


async def test_new_with_neither_id_nor_key_is_an_ordinary_message(light: World) -> None:
    """A stateless `/new` goes to the model like any other text."""
    response = await light.say("/new")
    assert text(response) == "Reply 1."
    assert light.model.prompt == [{"role": "user", "content": "/new"}]


async def test_a_command_is_the_whole_message_only(light: World) -> None:
    """Text around the word, another case or another word is ordinary text."""
    for said in ("/new please", "/NEW", "say /new", "/news", "//new"):
        assert (await light.say(said, "s")).headers[ID] == "s"
    assert len(light.model.requests) == 5


async def test_a_command_with_an_image_is_an_ordinary_message(light: World) -> None:
    """`/new` is a command as a text part, too, but not beside a picture."""
    words, picture = {"type": "text", "text": "/new"}, {"type": "image_url", "image_url": {"url": "https://a.example/cat.png"}}
    shown = await light.say([{"role": "user", "content": [words, picture]}], "s", "chan")
    assert (shown.headers[ID], text(shown)) == ("s", "Reply 1.")
    assert (await light.say([{"role": "user", "content": [words]}], "s")).headers[ID] != "s"
    assert len(light.model.requests) == 1


async def test_new_is_idempotent(world: World) -> None:
    """The same `/new` with the same Idempotency-Key names the same new session."""
    await world.say("Hi.", "s", "chan")
    again = {"Idempotency-Key": "n1"}
    first = await world.say("/new", "s", "chan", headers=again)
    second = await world.say("/new", "s", "chan", headers=again)
    assert first.headers[ID] == second.headers[ID]
    assert second.headers["Idempotency-Replayed"] == "true"
    assert "Idempotency-Replayed" not in first.headers
    assert len(await world.listed()) == 2


async def test_new_in_the_session_routes(world: World) -> None:
    """Session chat takes the command as well, JSON and stream."""
    await world.say("Hi.", "s", "chan")
    whole = await world.post(f"{path_of('s')}/chat", {"message": "/new"})
    assert whole.json()["session_id"] == whole.headers[ID] != "s"
    streamed = await world.post(f"{path_of('s')}/chat/stream", {"message": "/reset"})
    assert streamed.status_code == 200
    assert streamed.headers[ID] not in ("s", whole.headers[ID])
    assert len(world.model.requests) == 1


async def test_memory_none_recalls_nothing(tmp_path: Path) -> None:
    """With `MNEMON_MEMORY_PROVIDER=none` another session of the key knows nothing, the transcript itself stays."""
    async with running(tmp_path, memory_provider="none") as world:
        await world.say(FACT, "one", "chan")
        await world.say(ASK, "two", "chan")
        assert "heliotrope" not in world.model.seen
        await world.say(ASK, "one")
        assert "heliotrope-42" in world.model.seen


async def test_only_new_and_reset_move_the_current_transcript(world: World) -> None:
    """A key alone goes on where the last command sent it, whatever session of it is named, bound or forked meanwhile."""
    await world.say("First.", "one", "chan")
    await world.say("By id.", "two", "chan")
    await world.say("Before it had a key.", "bound")
    await world.say("Bound now.", "bound", "chan")
    fork = (await world.post(f"{path_of('two')}/fork", {}, {CHANNEL: "chan"})).json()["session"]["id"]
    await world.say("In the fork.", fork, "chan")
    assert (await world.say("Go on.", key="chan")).headers[ID] == "one"
    new = (await world.say("/new", "two", "chan")).headers[ID]
    assert new not in ("one", "two", "bound", fork)
    for session in ("one", "two", "bound", fork):
        await world.say("Hello again.", session, "chan")
        await world.say("And without the key.", session)
    assert (await world.say("Go on.", key="chan")).headers[ID] == new
    assert (await world.say("/reset", "one")).headers[ID] not in ("one", new)
    assert (await world.say("Go on.", key="chan")).headers[ID] not in ("one", new)


async def test_binding_settles_what_both_memories_say(world: World) -> None:
    """The memories of a session that gets a key are the key's from then on, notes included; a newer value closes an older one."""
    await world.say("My doctor is Dr. Wu.", "a", "chan")
    await world.say("My doctor is Dr. Silva.", "free")
    await world.post("/v1/memory", {"text": "Answer in British English.", "kind": "instruction"}, {ID: "free"})
    await world.say("Hello.", "free", "chan")
    rows = (await world.client.get("/v1/memory?state=all", headers={CHANNEL: "chan"})).json()["data"]
    assert {m["text"]: m["state"] for m in rows} == {
        "My doctor is Dr. Wu.": "superseded",
        "My doctor is Dr. Silva.": "active",
        "Answer in British English.": "active",
    }
    same = (await world.client.get("/v1/memory?state=all", headers={ID: "free"})).json()["data"]
    assert [m["id"] for m in same] == [m["id"] for m in rows]
    error(await world.client.get("/v1/memory", headers={ID: "free", CHANNEL: "other"}), 409, "session_key_conflict", CHANNEL)


async def test_a_fork_under_a_key(world: World) -> None:
    """Another key than the session's is refused; a session without one gives its fork the key, and keeps to itself."""
    await world.say("My doctor is Dr. Wu.", "mine", "chan")
    error(await world.post(f"{path_of('mine')}/fork", {"id": "stolen"}, {CHANNEL: "other"}), 409, "session_key_conflict", CHANNEL)
    assert "stolen" not in await world.listed()
    assert (await world.post(f"{path_of('mine')}/fork", {"id": "copy"}, {CHANNEL: "chan"})).status_code == 201
    await world.say("My doctor is Dr. Silva.", "free")
    made = await world.post(f"{path_of('free')}/fork", {"id": "keyed"}, {CHANNEL: "chan"})
    assert made.json()["session"]["session_key"] == "chan"
    assert (await world.session("free"))["session_key"] is None
    rows = (await world.client.get("/v1/memory?state=all", headers={CHANNEL: "chan"})).json()["data"]
    assert {m["text"]: m["state"] for m in rows} == {"My doctor is Dr. Wu.": "superseded", "My doctor is Dr. Silva.": "active"}
    await world.say("My doctor is Dr. Ito.", "keyed")
    assert [m["text"] for m in (await world.client.get("/v1/memory", headers={ID: "free"})).json()["data"]] == ["My doctor is Dr. Silva."]


async def test_a_fork_without_a_key_is_a_memory_of_its_own(world: World) -> None:
    """It holds what the copied messages gave, with evidence in the fork; neither side learns from the other afterwards."""
    await world.say("My boat is called Pequod.", "parent")
    await world.post(f"{path_of('parent')}/fork", {"id": "child"})

    async def known(session: str) -> list[tuple[str, str]]:
        rows = (await world.client.get("/v1/memory?state=all", headers={ID: session})).json()["data"]
        return [(m["text"], m["state"]) for m in rows]

    assert await known("child") == await known("parent") == [("My boat is called Pequod.", "active")]
    (copy,) = (await world.client.get("/v1/memory", headers={ID: "child"})).json()["data"]
    evidence = (await world.client.get(f"/v1/memory/{copy['id']}")).json()["evidence"]
    assert [(e["session_id"], e["quote"]) for e in evidence] == [("child", "My boat is called Pequod.")]
    await world.say("My boat is now called Rachel.", "parent")
    await world.say("My cat is called Miso.", "child")
    assert await known("parent") == [("My boat is now called Rachel.", "active"), ("My boat is called Pequod.", "superseded")]
    assert await known("child") == [("My cat is called Miso.", "active"), ("My boat is called Pequod.", "active")]
