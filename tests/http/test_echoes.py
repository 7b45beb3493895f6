"""Replies repeat what users say: what of it is over is marked or left out of prompts, and goes with a memory that is deleted."""

from __future__ import annotations

import re
from typing import Any

from tests.http.world import CHANNEL, RECEIPT, World, error

Json = dict[str, Any]
KEY = {CHANNEL: "k"}


async def tell(world: World, said: str, reply: str, session: str = "told") -> None:
    """A turn under the key `k` with this reply."""
    world.model.script.append(reply)
    await world.say(said, session, "k")


async def asked(world: World, question: str, session: str = "asked") -> list[str]:
    """The recalled lines that a question brings."""
    await world.say(question, session, "k")
    return [line for line in world.model.seen.splitlines() if line.startswith("- [")]


async def test_a_reply_with_a_value_that_was_taken_back(world: World) -> None:
    """What was to be forgotten is in no recalled line, in whatever words the assistant repeated it; what stands beside it is."""
    await tell(world, "My PIN is 4711.", "Noted: your PIN is 4711.")
    await tell(world, "My sister is called Ada.", "Nice name, Ada! And your PIN 4711 is safe with me.")
    await tell(world, "Please forget my PIN.", "Done, 4711 is forgotten.")
    lines = await asked(world, "What is my PIN?")
    assert not [line for line in lines if "4711" in line]
    assert any("Nice name, Ada!" in line for line in await asked(world, "What is my sister called?", "other"))


async def test_a_reply_with_a_value_that_has_a_successor(world: World) -> None:
    """A reply that repeats what is over says so like the statement itself, and comes with what holds."""
    await tell(world, "My doctor is Dr. Wu.", "Noted: your doctor is Dr. Wu. I wish you well.")
    await tell(world, "My doctor is now Dr. Silva.", "So Dr. Silva took over from Dr. Wu.")
    await tell(world, "My doctor is Dr. Ito now.", "Good luck with Dr. Ito!", "later")
    lines = await asked(world, "Who is my doctor?")
    (noted,) = [line for line in lines if "Noted:" in line]
    assert "Noted: your doctor is Dr. Wu. (superseded " in noted
    assert [line for line in lines if "Dr. Ito" in line and "current since" in line]
    for line in lines:
        if ("Wu" in line or "Silva" in line) and "took over" not in line:
            assert "(superseded" in line, line


async def test_a_value_that_holds_again(world: World) -> None:
    """An echo of what was over and is said again is as good as new."""
    await tell(world, "My doctor is Dr. Wu.", "Noted: your doctor is Dr. Wu.")
    await tell(world, "My doctor is now Dr. Silva.", "Ok.")
    await tell(world, "My doctor is Dr. Wu now.", "Ok.")
    (noted,) = [line for line in await asked(world, "Who is my doctor?") if "Noted:" in line]
    assert "superseded" not in noted
    await tell(world, "My PIN is 4711.", "Noted: your PIN is 4711.")
    await tell(world, "Forget my PIN.", "Ok.")
    await tell(world, "My PIN is 4711.", "Ok.")
    assert any("your PIN is 4711" in line for line in await asked(world, "What is my PIN?", "again"))


async def test_other_things_of_the_same_name(world: World) -> None:
    """A sentence that only shares a word with what is over is left as it is."""
    await tell(world, "My favourite colour is blue.", "Ok.")
    await tell(world, "My favourite colour is now green.", "Ok.")
    await tell(world, "The sky over the lake was wonderful.", "A blue sky is the best sky.")
    lines = await asked(world, "How was the sky over the lake?")
    assert any(line.endswith("A blue sky is the best sky.") for line in lines)


async def test_deleting_takes_the_echo_along(world: World) -> None:
    """The sentences of replies that repeat a deleted memory go with it, in other words too; the rest of the reply stays."""
    await tell(world, "My PIN is 4711.", "Noted, it is 4711. Keep it safe!")
    await tell(world, "My sister is called Ada.", "Nice name! Your PIN 4711 has nothing to do with it.")
    (memory,) = (await world.client.get("/v1/memory?text=4711", headers=KEY)).json()["data"]
    response = await world.client.delete(f"/v1/memory/{memory['id']}", headers=KEY)
    assert response.json()["counts"]["messages_changed"] == 3
    assert [(role, " ".join(said.split())) for role, said in await world.messages("told")] == [
        ("user", ""),
        ("assistant", "Keep it safe!"),
        ("user", "My sister is called Ada."),
        ("assistant", "Nice name!"),
    ]


async def test_a_receipt_names_what_an_echo_is_of(world: World) -> None:
    """The note and the memory that a marked reply repeats stand in the receipt."""
    await tell(world, "My doctor is Dr. Wu.", "Noted: your doctor is Dr. Wu.")
    await tell(world, "My doctor is now Dr. Silva.", "Ok.")
    response = await world.say("Who is my doctor?", "asked", "k")
    receipt = await world.get("/v1/receipts/" + response.headers[RECEIPT])
    (noted,) = [line for line in receipt["prompt"]["recalled"] if (line["text"] or "").startswith("Noted")]
    old = (await world.client.get("/v1/memory?state=superseded", headers=KEY)).json()["data"]
    assert noted["memories"] == [old[0]["id"]]
    assert noted["notes"][0].startswith("(superseded ")


async def test_a_session_of_a_key_is_not_its_whole_memory(world: World) -> None:
    """Where only a session is named, nothing that reaches beyond it is deleted: the key must be named for that."""
    await world.say("My cat is called Miso.", "one", "k")
    await world.say("My dog is called Rex.", "two", "k")
    await world.say("My boat is called Pequod.", "mine")
    for wide in ({"scope": True}, {"from": 0}):
        for more in ({}, {"preview": True}):
            response = await world.post("/v1/memory/delete", {**wide, **more}, {"X-Hermes-Session-Id": "one"})
            error(response, 400, "memory_scope_required", CHANNEL)
    assert len((await world.client.get("/v1/memory", headers=KEY)).json()["data"]) == 2
    assert (await world.post("/v1/memory/delete", {"scope": True}, {"X-Hermes-Session-Id": "mine"})).status_code == 200
    assert (await world.post("/v1/memory/delete", {"session_id": "one"}, {"X-Hermes-Session-Id": "one"})).status_code == 200
    assert [m["text"] for m in (await world.client.get("/v1/memory", headers=KEY)).json()["data"]] == ["My dog is called Rex."]


async def test_lines_of_many_sessions_have_names_of_their_own(world: World) -> None:
    """What a line calls `#1a` is one line, whatever the sessions of the key count; the conversation itself has bare numbers."""
    await tell(world, "My doctor is Dr. Wu.", "Ok.", "one")
    await tell(world, "My doctor is Dr. Silva now.", "Ok.", "two")
    await tell(world, "My doctor is Dr. Ito now.", "Ok.", "three")
    lines = await asked(world, "Who is my doctor?")
    named = {name: line for line in lines if (name := line.removeprefix("- [").split()[0]).startswith("#")}
    assert len(named) == 3
    for line in named.values():
        for pointer in re.findall(r"(?:see|supersedes) (#\w+)", line):
            assert pointer in named, line
    assert [line for line in lines if f"see {next(n for n, text in named.items() if 'Ito' in text)}" in line]
    await tell(world, "My dentist is Dr. Berg.", "Ok.", "asked")
    receipt = await world.get("/v1/receipts/" + (await world.say("And who is my doctor now?", "four", "k")).headers[RECEIPT])
    names = {line["name"]: line["evidence"]["session_id"] for line in receipt["prompt"]["recalled"] if line["name"]}
    assert len(set(names.values())) == 3


async def test_notes_have_names_of_their_own(world: World) -> None:
    """Two corrections by hand on one day are told apart."""
    for text, better in (("My doctor is Dr. Wu.", "My doctor is Dr. Ito."), ("My dentist is Dr. Wu.", "My dentist is Dr. Berg.")):
        await tell(world, text, "Ok.")
        (memory,) = (await world.client.get("/v1/memory", params={"text": text}, headers=KEY)).json()["data"]
        await world.client.patch(f"/v1/memory/{memory['id']}", json={"text": better}, headers=KEY)
    lines = await asked(world, "Who are my doctor and my dentist?")
    for text, better in (("My doctor is Dr. Wu.", "My doctor is Dr. Ito."), ("My dentist is Dr. Wu.", "My dentist is Dr. Berg.")):
        (old,) = [line for line in lines if text in line]
        (new,) = [line for line in lines if better in line]
        (pointer,) = re.findall(r"see (note \d)", old)
        assert new.startswith(f"- [{pointer} user]")
