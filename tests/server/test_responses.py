"""Responses on real servers: the official client, streams that are cut, servers that die."""

from __future__ import annotations

import contextlib
import http.client
import json
import random
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.server.clients import ID, Stream, client, messages, until
from tests.servers import Server

Json = dict[str, Any]
Pair = tuple[Server, Server]

CUTS = 100
WORDS = " ".join(f"word{n}" for n in range(1, 13))
ENDS = ("response.completed", "response.incomplete", "response.failed")


class Posted(Stream):
    """The events of a response that is asked for on a connection of its own."""

    def __init__(self, server: Server, text: str, session: str, **fields: Any) -> None:
        self.connection: http.client.HTTPConnection = server.connect()
        headers = {"Authorization": f"Bearer {server.key}", ID: session, "Idempotency-Key": session}
        self.connection.request("POST", "/v1/responses", json.dumps({"input": text, "stream": True, **fields}), headers)
        self.response = self.connection.getresponse()
        assert self.response.status == 200, self.response.read()


class Resumed(Stream):
    """The events of a response behind one of them."""

    def __init__(self, server: Server, name: str, after: int | None = None) -> None:
        self.connection = server.connect()
        query = "?stream=true" if after is None else f"?stream=true&starting_after={after}"
        self.connection.request("GET", f"/v1/responses/{name}{query}", headers={"Authorization": f"Bearer {server.key}"})
        self.response = self.connection.getresponse()
        assert self.response.status == 200, self.response.read()


def shown(frames: list[bytes]) -> list[Json]:
    """What the events say."""
    return [json.loads(frame.split(b"data: ")[1]) for frame in frames]


def said(frames: list[bytes]) -> str:
    """The text that the events add up to."""
    return "".join(event["delta"] for event in shown(frames) if event["type"] == "response.output_text.delta")


def read(stream: Stream, size: int = 10**6) -> list[bytes]:
    """So many bytes; then the connection is broken. The whole frames among them."""
    raw = stream.response.read(size)
    stream.leave()
    return [piece for piece in raw.split(b"\n\n")[:-1] if not piece.startswith(b":")]


# -- the official client ----------------------------------------------------------------------------------------------------


async def test_j27_the_sdk_follows_a_response(server: Server) -> None:
    """Its helper reads a stream to the end, and takes one up that was left, with the same text."""
    async with client(server) as sdk:
        async with sdk.responses.stream(model="mnemon", input="[[words 12]]") as stream:
            text = "".join([event.delta async for event in stream if event.type == "response.output_text.delta"])
            final = await stream.get_final_response()
        assert text == final.output_text == WORDS
        begun = await sdk.responses.create(model="mnemon", input="[[words 12]] [[slow 0.5]]", background=True)
        assert begun.status in ("queued", "in_progress")
        seen = ""
        last = -1
        async for event in await sdk.responses.retrieve(begun.id, stream=True):
            seen += event.delta if event.type == "response.output_text.delta" else ""
            last = event.sequence_number
            if "word4" in seen:
                break
        async for event in await sdk.responses.retrieve(begun.id, stream=True, starting_after=last):
            seen += event.delta if event.type == "response.output_text.delta" else ""
        assert seen == WORDS
        assert (await sdk.responses.retrieve(begun.id)).output_text == WORDS


async def test_the_sdk_works_with_conversations(server: Server) -> None:
    """Items go in and come out through its own types."""
    async with client(server) as sdk:
        made = await sdk.conversations.create(
            items=[{"type": "message", "role": "user", "content": "My bike is green."}], metadata={"a": "b"}
        )
        await sdk.responses.create(model="mnemon", input="Hello.", conversation=made.id)
        await sdk.conversations.items.create(made.id, items=[{"type": "message", "role": "user", "content": "It is old."}])
        listed = [item async for item in sdk.conversations.items.list(made.id, order="asc", limit=1)]
        assert [item.role for item in listed] == ["user", "user", "assistant", "user"]
        assert (await sdk.conversations.items.retrieve(listed[0].id, conversation_id=made.id)).content[0].text == "My bike is green."
        assert (await sdk.conversations.update(made.id, metadata={"c": "d"})).metadata == {"c": "d"}
        assert (await sdk.conversations.delete(made.id)).deleted
        counted = await sdk.responses.input_tokens.count(model="mnemon", input="How many?")
        assert counted.input_tokens > 0


# -- cut ----------------------------------------------------------------------------------------------------------------------


def whole(one: Server, other: Server, number: int) -> str:
    """The text of a response whose stream was cut twice."""
    dice = random.Random(number)
    text, session = f"[[words 12]] [[slow {dice.choice((0, 0.2, 0.5))}]]", f"cut-{number}"
    background = dice.random() < 0.5
    frames = read(Posted(one, text, session, background=background), dice.randrange(1, 12_000))
    name = shown(frames)[0]["response"]["id"] if frames else None
    for size in (dice.randrange(1, 4000), 10**6):
        if name is None:  # the client has seen nothing: it asks again
            frames = read(Posted(other, text, session, background=background), size)
            name = shown(frames)[0]["response"]["id"] if frames else None
        elif shown(frames)[-1]["type"] not in ENDS:
            frames += read(Resumed(other, name, shown(frames)[-1]["sequence_number"]), size)
    assert [event["sequence_number"] for event in shown(frames)] == list(range(len(frames)))
    assert shown(frames)[-1]["type"] == "response.completed"
    return said(frames)


def test_a_stream_cut_at_any_byte_and_resumed_gives_the_same_text(server: Server) -> None:
    """A hundred times of a hundred."""
    with ThreadPoolExecutor(10) as pool:
        found = list(pool.map(lambda number: whole(server, server, number), range(CUTS)))
    assert found == [WORDS] * CUTS


@pytest.mark.postgres
def test_a_stream_cut_at_any_byte_and_resumed_on_another_server_gives_the_same_text(pair: Pair) -> None:
    """A hundred times of a hundred, from another process."""
    with ThreadPoolExecutor(10) as pool:
        found = list(pool.map(lambda number: whole(*pair, number), range(CUTS)))
    assert found == [WORDS] * CUTS


# -- from another server ------------------------------------------------------------------------------------------------------


@pytest.mark.postgres
def test_a_response_is_read_and_cancelled_on_another_server(pair: Pair) -> None:
    """It is in progress there, too, and ends soon after it is told to; its stream says so on both."""
    one, other = pair
    answer = one.call("POST", "/v1/responses", {"input": "[[words 100]] [[slow 30]]", "background": True}, X_Hermes_Session_Id="cancelled")
    name = answer.body["id"]
    assert other.call("GET", f"/v1/responses/{name}").body["status"] in ("queued", "in_progress")
    there = Resumed(other, name)
    assert there.until("word1")
    assert other.call("POST", f"/v1/responses/{name}/cancel").status == 200
    until(lambda: one.call("GET", f"/v1/responses/{name}").body["status"] == "cancelled", 5.0)
    last = shown(read(there))[-1]
    assert (last["type"], last["response"]["status"]) == ("response.failed", "cancelled")
    assert messages(other, "cancelled") == []


@pytest.mark.postgres
def test_a_chain_goes_on_and_branches_on_another_server(pair: Pair) -> None:
    """Whichever server is asked, the newest response is gone on from, and an older one branches."""
    one, other = pair
    first = one.call("POST", "/v1/responses", {"input": "First."}).body
    second = other.call("POST", "/v1/responses", {"input": "Second.", "previous_response_id": first["id"]}).body
    assert second["hermes"]["session_id"] == first["hermes"]["session_id"]
    branch = one.call("POST", "/v1/responses", {"input": "Third.", "previous_response_id": first["id"]}).body
    assert branch["hermes"]["session_id"] != first["hermes"]["session_id"]
    stored = messages(other, branch["hermes"]["session_id"])
    assert [content for role, content in stored if role == "user"] == ["First.", "Third."]


# -- killed -------------------------------------------------------------------------------------------------------------------


def test_a_response_in_flight_at_a_kill_has_failed(stored: Server) -> None:
    """It is never in progress for ever: what was seen of it can be read again, its end says so, and nothing of it is stored."""
    answer = stored.call("POST", "/v1/responses", {"input": "[[words 100]] [[slow 30]]", "background": True}, X_Hermes_Session_Id="killed")
    name = answer.body["id"]
    with contextlib.closing(Resumed(stored, name)) as watching:
        seen = [frame.rstrip() for frame in watching.until("word3")]
    time.sleep(0.5)  # the event log is written five times a second
    stored.kill()
    stored.restart()
    found = stored.call("GET", f"/v1/responses/{name}").body
    assert (found["status"], found["output"], found["error"]["code"]) == ("failed", [], "server_error")
    again = read(Resumed(stored, name))
    assert again[: len(seen)] == seen
    assert [event["sequence_number"] for event in shown(again)] == list(range(len(again)))
    assert shown(again)[-1] == {"type": "response.failed", "sequence_number": len(again) - 1, "response": found}
    assert read(Resumed(stored, name, 10**6)) == again[-1:]
    assert messages(stored, "killed") == []
    refused = stored.call("POST", "/v1/responses", {"input": "And?", "previous_response_id": name})
    assert (refused.status, refused.body["error"]["code"]) == (400, "response_not_usable")


def test_a_kill_in_the_middle_of_many_responses_loses_nothing(stored: Server) -> None:
    """Each turn is stored whole or not at all, and each client can read how its response ended."""

    def watch(number: int) -> list[bytes]:
        frames: list[bytes] = []
        with (
            contextlib.suppress(OSError, http.client.HTTPException),
            contextlib.closing(Posted(stored, f"[[words 20]] No {number}. [[slow {0.1 + 0.1 * number}]]", f"many-{number}")) as stream,
        ):
            frames.extend(stream.frames())
        return frames

    with ThreadPoolExecutor(24) as pool:
        watching = [pool.submit(watch, number) for number in range(24)]
        time.sleep(1.2)
        stored.kill()
        seen = [each.result() for each in watching]
    stored.restart()
    ended = 0
    for number, frames in enumerate(seen):
        kept = messages(stored, f"many-{number}")
        assert len(kept) in (0, 2)
        if not frames:
            continue
        found = stored.call("GET", f"/v1/responses/{shown(frames)[0]['response']['id']}").body
        assert found["status"] == ("completed" if kept else "failed")
        if shown(frames)[-1]["type"] == "response.completed":
            ended += 1
            assert found == shown(frames)[-1]["response"]
    assert 0 < ended < len(seen)
