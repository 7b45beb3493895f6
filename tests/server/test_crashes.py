"""Crashes and restarts: nothing half stored, nothing lost, no session blocked."""

from __future__ import annotations

import asyncio
import time

from tests.server.clients import Stream, asked, client, content, messages
from tests.servers import Answer, Server
from tests.upstream import Upstream

QUICKLY = 2.0


def test_kill_9_in_the_middle_of_a_turn_leaves_nothing_half_stored(stored: Server, upstream: Upstream) -> None:
    """After the restart the transcript ends before the broken turn, the retry is answered, and the session is free at once."""
    assert stored.chat("Before.", session="s").text == "ECHO:Before."
    stream = Stream(stored, "[[words 50]] [[unique]] [[slow 20]]", "s", Idempotency_Key="k")
    stream.until("word2")
    stored.kill()
    stream.leave()
    stored.restart()
    assert messages(stored, "s") == [("user", "Before."), ("assistant", "ECHO:Before.")]
    started = time.monotonic()
    assert stored.chat("After.", session="s").text == "ECHO:After."
    assert time.monotonic() - started < QUICKLY
    started = time.monotonic()
    again = Stream(stored, "[[words 50]] [[unique]] [[slow 20]]".replace("20", "0"), "s", Idempotency_Key="k")
    assert time.monotonic() - started < QUICKLY
    assert "Idempotency-Replayed" not in again.response.headers
    assert "word50 unique-" in content(again.until("[DONE]"))
    again.leave()
    assert [role for role, _ in messages(stored, "s")] == ["user", "assistant"] * 3
    assert [m["content"] for m in upstream.requests[-1]["messages"]].count("Before.") == 1


def test_kill_9_in_the_first_turn_leaves_no_session(stored: Server) -> None:
    """A session whose first turn broke does not exist, by id and by key, and begins like a new one."""
    for session, key in (("s", None), (None, "chan")):
        names = {"X_Hermes_Session_Key": key} if key else {}
        stream = Stream(stored, "[[words 50]] [[slow 20]]", session, **names)
        stream.until("word2")
        stored.kill()
        stream.leave()
        stored.restart()
        assert stored.call("GET", "/api/sessions").body["data"] == []
        started = time.monotonic()
        answer = stored.chat("Hello.", session=session, key=key)
        assert time.monotonic() - started < QUICKLY
        assert answer.text == "ECHO:Hello."
        stored.call("DELETE", f"/api/sessions/{answer.body['hermes']['session_id']}")


def test_a_restart_keeps_sessions_and_records(stored: Server, upstream: Upstream) -> None:
    """After a stop and a start the conversation goes on, and an old request is replayed word for word."""
    first = stored.chat("My name is Alex. [[unique]]", session="s", key="chan", Idempotency_Key="k")
    rotated = stored.chat("/new", key="chan").headers["x-hermes-session-id"]
    stored.restart()
    again = stored.chat("My name is Alex. [[unique]]", session="s", key="chan", Idempotency_Key="k")
    assert again.body == first.body
    assert again.headers["idempotency-replayed"] == "true"
    assert stored.chat("What is my name?", session="s").headers["x-hermes-session-key"] == "chan"
    assert "My name is Alex." in str(upstream.requests[-1]["messages"])
    assert stored.chat("Hi.", key="chan").headers["x-hermes-session-id"] == rotated


async def test_turns_under_load_survive_kill_9(stored: Server) -> None:
    """Whatever a client got an answer to is stored after a crash, once and in order; retries of the others add one copy each."""
    answered: dict[str, str] = {}

    async def talk(session: str) -> None:
        async with client(stored) as sdk:
            for number in range(1000):
                said = f"{session} {number} [[slow 0.05]]"
                reply = await sdk.chat.completions.create(**asked(said, session, headers={"Idempotency-Key": said.replace(" ", "")}))
                answered[said] = reply.choices[0].message.content

    talkers = [asyncio.create_task(talk(f"s{n}")) for n in range(4)]
    async with asyncio.timeout(20):
        while len(answered) < 12:  # noqa: ASYNC110 - as soon as it is busy
            await asyncio.sleep(0.01)
    await asyncio.to_thread(stored.kill)
    await asyncio.gather(*talkers, return_exceptions=True)
    await asyncio.to_thread(stored.restart)
    for number in range(4):
        transcript = messages(stored, f"s{number}")
        assert [role for role, _ in transcript] == ["user", "assistant"] * (len(transcript) // 2)
        pairs = [(said, reply) for (_, said), (_, reply) in zip(transcript[::2], transcript[1::2], strict=True)]
        mine = [(said, reply) for said, reply in answered.items() if said.startswith(f"s{number} ")]
        assert pairs[: len(mine)] == mine
        assert len(pairs) <= len(mine) + 1
        lost = f"s{number} {len(mine)} [[slow 0.05]]"
        retry: Answer = await asyncio.to_thread(stored.chat, lost, session=f"s{number}", Idempotency_Key=lost.replace(" ", ""))
        # The SDK sends the same fields as `chat` does, so this is the request that was lost.
        assert retry.text.startswith("ECHO:")
        assert [said for role, said in messages(stored, f"s{number}") if role == "user"].count(lost) == 1
