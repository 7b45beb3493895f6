"""Deletion on demand: it says beforehand what will go, takes along what depends on it, and leaves no word behind."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from mnemon import app as composition
from tests.http.test_memory_routes import Json, call, listed, noted, texts
from tests.http.world import ID, RECEIPT, World, background, error, path_of, running

SECRET = "My passport number is XK-4471-PQ."
CAT = "My cat is called Miso."


async def forget(world: World, key: str | None = "k", /, **selector: Any) -> Json:
    """Delete; the receipt."""
    response = await call(world, "POST", "/delete", key, selector)
    assert response.status_code == 200, response.text
    found: Json = response.json()
    return found


async def everything(world: World) -> str:
    """All rows of all tables as one text, whatever the database."""
    driver = world.app.state.services.driver
    if hasattr(driver, "path"):
        with closing(sqlite3.connect(driver.path)) as file:
            names = [n for (n,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            return str([file.execute(f"SELECT * FROM {n}").fetchall() for n in names])
    with psycopg.connect(driver.url) as connection:
        names = [n for (n,) in connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()]
        return str([connection.execute(f"SELECT * FROM {n}").fetchall() for n in names])


def in_a_file(folder: Path, words: bytes) -> bool:
    """Whether words stand in the bytes of a database file."""
    return any(words in path.read_bytes() for path in folder.glob("mnemon.db*") if path.is_file())


async def test_a_preview_says_what_goes_and_changes_nothing(world: World) -> None:
    """The words that would go, the memories and messages; afterwards all is as before. The receipt has names and numbers, no words."""
    await world.say(f"{SECRET} {CAT}", "s", "k")
    before = await everything(world)
    (row,) = [m for m in await listed(world) if "passport" in m["text"]]
    preview = await forget(world, memory_id=row["id"], preview=True)
    assert (preview["deleted"], preview["counts"]["memories"], preview["counts"]["messages_changed"]) == (False, 1, 1)
    assert texts(preview["memories"]) == [row["text"]]
    assert preview["messages_changed"][0]["text_after"].strip(" .") == CAT.strip(".")
    assert await everything(world) == before
    receipt = await forget(world, memory_id=row["id"])
    assert (receipt["deleted"], receipt["memories"], receipt["counts"]) == (True, [row["id"]], preview["counts"])
    assert "XK-4471" not in str(receipt)
    assert "XK-4471" not in await everything(world)
    assert ["Miso" in t for t in texts(await listed(world))] == [True]
    assert "Miso" in (await world.messages("s"))[0][1]
    error(await call(world, "GET", f"/{row['id']}"), 404, "memory_not_found")


async def test_what_a_reply_repeated_goes_too(world: World) -> None:
    """Copies of the words in replies, under any session of the key, are blanked; what stands beside them stays, and is found."""
    world.model.script.extend([f"Noted: {SECRET} Anything about the harbour?", "Your passport number is XK-4471-PQ.\nMore?"])
    await world.say(SECRET, "s", "k", headers={"Idempotency-Key": "one"})
    await world.say("What is my passport number?", "t", "k")
    (row,) = await listed(world)
    await call(world, "DELETE", f"/{row['id']}")
    assert "XK-4471" not in await everything(world)
    await world.say("What is my passport number? What about the harbour?", "u", "k")
    assert "XK-4471" not in world.model.seen
    assert "harbour?" in world.model.seen
    error(await world.chat(SECRET, "s", "k", headers={"Idempotency-Key": "one"}), 409, "reply_deleted", "Idempotency-Key")


async def test_a_deleted_message_stays_as_an_empty_one(world: World) -> None:
    """Role and place are left; it is in no prompt, recall or preview; the old history sent again does not bring it back."""
    first = await world.say(SECRET, "s", "k")
    await world.say(CAT, "s", "k")
    receipt = await forget(world, session_id="s", position=1)
    assert (receipt["messages"], receipt["counts"]["memories"]) == ([{"session_id": "s", "position": 1, "role": "user"}], 1)
    data = (await world.get(f"{path_of('s')}/messages"))["data"]
    assert [(m["role"], m["content"], m["deleted"]) for m in data][:2] == [("user", "", True), ("assistant", "Reply 1.", False)]
    assert (await world.session("s"))["preview"] is None
    history = [{"role": "user", "content": SECRET}, {"role": "assistant", "content": "Reply 1."}, {"role": "user", "content": CAT}]
    again = [*history, {"role": "assistant", "content": "Reply 2."}, {"role": "user", "content": "What is my passport number?"}]
    await world.say(again, "s", "k")
    assert "XK-4471" not in world.model.seen
    assert [m["content"] for m in world.model.prompt][:2] == [CAT, "Reply 2."]
    assert len(await world.messages("s")) == 6
    assert "XK-4471" not in await everything(world)
    assert (await world.get(f"/v1/receipts/{first.headers[RECEIPT]}"))["memory"]["added"][0]["text"] is None


async def test_a_fact_with_other_evidence_stays(world: World) -> None:
    """Deleting one of two messages that say it leaves the fact with the other; deleting that too takes it."""
    await world.say(CAT, "s", "k")
    await world.say(CAT, "t", "k")
    (row,) = await listed(world)
    gone = await forget(world, session_id="s", position=1)
    assert (gone["memories"], gone["memories_kept"]) == ([], [row["id"]])
    one = (await call(world, "GET", f"/{row['id']}")).json()
    assert [e["session_id"] for e in one["evidence"]] == ["t"]
    assert (await forget(world, session_id="t"))["memories"] == [row["id"]]
    assert await listed(world) == []
    await world.get(path_of("t"), 404)


async def test_what_the_deleted_closed_is_open_again(world: World) -> None:
    """With the newer value gone, the older one holds."""
    old = await noted(world, "The staging port is 5432.")
    new = (await world.client.patch(f"/v1/memory/{old['id']}", json={"text": "The staging port is 5433."})).json()
    await call(world, "DELETE", f"/{new['id']}")
    assert [(m["id"], m["state"]) for m in await listed(world, "?state=all")] == [(old["id"], "active")]


async def test_deletion_by_time(tmp_path: Path, database_url: str) -> None:
    """What was said or noted in a stretch of time goes, on all sessions of the key; the rest stays."""
    now = [1_700_000_000.0]
    async with running(tmp_path, database_url, clock=lambda: now[0]) as world:
        for day, said in enumerate(("The code of gate A is 11.", "The code of gate B is 22.", "The code of gate C is 33.")):
            now[0] = 1_700_000_000.0 + day * 86400
            await world.say(said, f"s{day}", "k")
        await noted(world, "The code of gate D is 44.")
        receipt = await forget(world, **{"from": 1_700_000_000.0 + 3600, "to": 1_700_000_000.0 + 86400 + 3600})
        assert receipt["counts"]["messages"] == 2
        assert sorted(t[12:18] for t in texts(await listed(world))) == ["gate A", "gate C", "gate D"]
        await forget(world, **{"from": 1_700_000_000.0 + 2 * 86400})
        assert sorted(t[12:18] for t in texts(await listed(world))) == ["gate A"]


async def test_a_scope_is_erased_whole(world: World) -> None:
    """All sessions, messages and memories of a key go, of no other; the key can be used again and knows nothing."""
    await world.say(SECRET, "s", "k", headers={"Idempotency-Key": "one"})
    await world.say("Hello again.", "t", "k")
    await noted(world, "The vault is behind the mirror.")
    await world.say(CAT, "s2", "other")
    receipt = await forget(world, scope=True)
    assert (receipt["counts"]["sessions"], receipt["counts"]["memories"], sorted(receipt["sessions"])) == (2, 2, ["s", "t"])
    left = await everything(world)
    assert "XK-4471" not in left
    assert "mirror" not in left
    assert "Miso" in left
    await world.say("What is my passport number?", "s", "k")
    assert len(world.model.prompt) == 1
    assert (await forget(world, "never used", scope=True))["counts"]["memories"] == 0


async def test_compressed_states_lose_the_words(tmp_path: Path, database_url: str) -> None:
    """A note of the compressed state that points at a deleted message goes; the others stay."""
    async with running(tmp_path, database_url, context_budget=1500, recall_tokens=100) as world:
        await world.say(f"{SECRET} Please remember it.", "s", "k")
        await world.say("We decided to use Rust for the cache layer of the project.", "s", "k")
        for number in range(30):
            await world.say(f"Filler message number {number} about the weather over the northern sea, calm and grey.", "s", "k")
        before = (await world.preview("Anything?", "s", "k"))["messages"][0]["content"].splitlines()
        assert any("XK-4471" in line for line in before)
        await forget(world, session_id="s", position=1)
        assert "XK-4471" not in await everything(world)
        after = (await world.preview("Anything?", "s", "k"))["messages"][0]["content"].splitlines()
        assert after == [line for line in before if "XK-4471" not in line]
        assert len(after) > 2


async def test_a_tool_result_goes_with_its_call(world: World) -> None:
    """A call and its result never part, and what is left can still be sent to a model."""
    use = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"q": "XK-4471-PQ"}'}}
    world.model.script.append({"role": "assistant", "content": None, "tool_calls": [use]})
    await world.say("Look it up.", "s", "k")
    await world.say([{"role": "tool", "tool_call_id": "c1", "content": "XK-4471-PQ is valid."}], "s", "k")
    receipt = await forget(world, session_id="s", position=2)
    assert [m["position"] for m in receipt["messages"]] == [2, 3]
    assert "XK-4471" not in await everything(world)
    await world.say("And now?", "s", "k")
    assert [m["role"] for m in world.model.prompt] == ["user", "assistant", "user"]


async def test_a_transcript_in_memory_does_not_bring_it_back(world: World) -> None:
    """The next turn sees the deletion although the transcript was kept from the turn before."""
    await world.say(CAT, "s")
    await world.say("Go on.", "s")
    response = await call(world, "POST", "/delete", None, {"session_id": "s", "position": 1}, **{ID: "s"})
    assert response.status_code == 200
    await world.say("What is my cat called?", "s")
    assert "Miso" not in world.model.seen


async def test_deletions_of_what_is_not_there(world: World) -> None:
    """404 with what is missing; deleting twice is deleting nothing."""
    await world.say(CAT, "s", "k")
    await world.say(CAT, "foreign", "other")
    error(await call(world, "POST", "/delete", body={"memory_id": "never"}), 404, "memory_not_found")
    error(await call(world, "POST", "/delete", body={"session_id": "never"}), 404, "session_not_found")
    error(await call(world, "POST", "/delete", body={"session_id": "foreign"}), 404, "session_not_found")
    error(await call(world, "POST", "/delete", body={"session_id": "s", "position": 99}), 404, "message_not_found")
    await forget(world, session_id="s", position=1)
    assert (await forget(world, session_id="s", position=1))["counts"]["messages"] == 0


async def test_the_server_sweeps_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A while after a deletion the words are in no byte of the database's files, while turns go on."""
    monkeypatch.setattr(composition, "SCRUB_SECONDS", 0.05)
    async with running(tmp_path) as world:
        for number in range(20):
            await world.say(f"My locker {number} opens with the code ZZ-{number}-TOP-{number}.", "s", "k")
        await forget(world, session_id="s", position=1, to_position=39)
        async with asyncio.timeout(10):
            while in_a_file(tmp_path, b"-TOP-"):
                await world.say("Go on.", "t", "k")
                await asyncio.sleep(0.05)
        assert len(await world.messages("s")) == 40


@pytest.mark.postgres
async def test_postgres_is_vacuumed(tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On PostgreSQL the dead rows are gone from the tables."""
    monkeypatch.setattr(composition, "SCRUB_SECONDS", 0.05)
    async with running(tmp_path, postgres_url) as world:
        await world.say(SECRET, "s", "k")
        await forget(world, session_id="s", position=1)
        waiting = "SELECT count(*) FROM sweeps"
        async with asyncio.timeout(10):
            while True:
                with psycopg.connect(postgres_url) as connection:
                    row = connection.execute(waiting).fetchone()
                if row and row[0] == 0:
                    break
                await asyncio.sleep(0.05)
        assert "XK-4471" not in await everything(world)


async def test_a_turn_under_way_does_not_bring_it_back(tmp_path: Path, database_url: str) -> None:
    """A turn that began before the deletion and compresses the conversation after it keeps no note of the deleted words."""
    async with running(tmp_path, database_url, context_budget=1500, recall_tokens=100) as world:

        async def fill(session: str, number: int) -> bool:
            reply = await world.say(f"Filler {number} about the weather over the northern sea, calm and grey as ever.", session, session)
            return bool(reply.json()["hermes"]["compressed"])

        for session in ("rehearsal", "s"):
            await world.say(f"{SECRET} Please remember it.", session, session)
        turns = 1
        while not await fill("rehearsal", turns):
            turns += 1
        for number in range(1, turns):
            await fill("s", number)
        world.model.gate.clear()
        world.model.asked.clear()
        async with background(fill("s", turns)) as last:
            await world.model.asked.wait()
            await forget(world, "s", session_id="s", position=1)
            world.model.gate.set()
        assert last.result()
        await forget(world, "rehearsal", scope=True)
        assert "XK-4471" not in await everything(world)


async def test_another_server_notices(tmp_path: Path, database_url: str) -> None:
    """What one server deletes, another that has it in memory, transcript and index, does not send or find any more."""
    async with running(tmp_path, database_url) as one, running(tmp_path, database_url) as two:
        await one.say(SECRET, "s", "k")
        await two.say("What is my passport number?", "s", "k")
        await two.say("What is my passport number?", "t", "k")
        assert "XK-4471" in two.model.seen
        await forget(one, session_id="s", position=1)
        for session in ("s", "t", "u"):
            await two.say("Tell me my passport number again.", session, "k")
            assert "XK-4471" not in two.model.seen
        for index in two.app.state.services.memory.passages.engine.indexes.indexes.values():
            assert not [word for word in index.postings if "4471" in word]
