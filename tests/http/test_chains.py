"""Responses go on: chains, branches, conversations, sessions."""

from __future__ import annotations

from pathlib import Path

from mnemon.core import errors
from tests.http.responding import CALLED, TOOL, ask, ended, made, streamed, words
from tests.http.world import CHANNEL, ID, RECEIPT, World, error, running, text

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
    loose = await made(world, "Which colour?", conversation_history=history, store=False)
    assert ("hermes" in loose, len(world.model.prompt)) == (False, 4)
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
    aside = await ended(world, (await made(world, "/new", {CHANNEL: "chan"}, background=True))["id"])
    assert (aside["status"], words(aside)[:7]) == ("completed", "Started")
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


async def test_a_chat_sees_what_a_response_said(world: World) -> None:
    """One transcript, whichever way it is continued."""
    await made(world, "My bike is green.", {ID: "s"})
    assert text(await world.say("Which?", "s")) == "Reply 2."
    assert [m["content"] for m in world.model.prompt] == ["My bike is green.", "Reply 1.", "Which?"]
