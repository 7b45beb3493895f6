"""What a client sees of streams and failures on a real socket, through the official SDK."""

from __future__ import annotations

import json
import time
from pathlib import Path

import openai
import pytest

from tests import servers
from tests.server.clients import ID, Stream, asked, client, content, gathered, messages, runs, until
from tests.servers import Server
from tests.upstream import Upstream


async def test_words_arrive_while_the_model_writes(server: Server) -> None:
    """The first word is there long before the last, and the SDK's loop works on every frame."""
    async with client(server) as sdk:
        times, chunks = [], []
        async for chunk in await sdk.chat.completions.create(**asked("[[words 8]] [[slow 1.2]]", "words", stream=True)):
            chunks.append(chunk)
            times.append(time.monotonic())
    assert "".join(c.choices[0].delta.content or "" for c in chunks) == " ".join(f"word{n}" for n in range(1, 9))
    assert times[-1] - times[0] >= 0.6
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert chunks[-1].hermes["session_id"] == "words"
    assert chunks[-1].usage.completion_tokens == 8


async def test_the_sdk_reads_replies_headers_and_models(server: Server, upstream: Upstream) -> None:
    """Whole replies, raw headers, usage in streams and the list of models come through the official client."""
    async with client(server) as sdk:
        raw = await sdk.chat.completions.with_raw_response.create(**asked("[[say Hello.]]", "sdk"))
        assert raw.headers[ID] == "sdk"
        assert raw.parse().choices[0].message.content == "Hello."
        options = {"include_usage": True}
        chunks = [c async for c in await sdk.chat.completions.create(**asked("[[words 3]]", "sdk", stream=True, stream_options=options))]
        assert chunks[-1].usage.completion_tokens == 3
        assert chunks[-1].choices == []
        assert [m.id async for m in sdk.models.list()] == ["mnemon", "scripted-1"]
        assert (await sdk.models.retrieve("hermes")).id == "hermes"
    assert all(server.key not in str(headers) for headers in upstream.headers)


async def test_the_sdk_survives_a_tool_turn(server: Server) -> None:
    """A call is streamed, its result alone continues the turn, and the stored order is right."""
    tools = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}]
    async with client(server) as sdk:
        call, arguments = None, ""
        async for chunk in await sdk.chat.completions.create(
            **asked('[[call weather {"city": "Bergen"}]]', "tools", stream=True, tools=tools)
        ):
            delta = chunk.choices[0].delta
            for piece in delta.tool_calls or ():
                call, arguments = piece.id or call, arguments + (piece.function.arguments or "")
        assert arguments == '{"city": "Bergen"}'
        reply = await sdk.chat.completions.create(
            **{**asked("", "tools", tools=tools), "messages": [{"role": "tool", "tool_call_id": call, "content": "rain"}]}
        )
    assert reply.choices[0].message.content == "TOOL:rain"
    assert [role for role, _ in messages(server, "tools")] == ["user", "assistant", "tool", "assistant"]


async def test_j23_failures_of_the_upstream_reach_the_sdk_as_its_own_errors(server: Server) -> None:
    """401 becomes 502, 429 stays, 400 stays, a passing 500 is tried again; nothing of a failed turn is stored."""
    async with client(server) as sdk:
        for directive, expected, code in (
            ("fail 401", openai.InternalServerError, "upstream_auth"),
            ("fail 403", openai.InternalServerError, "upstream_auth"),
            ("fail 429", openai.RateLimitError, "upstream_rate_limited"),
            ("fail 400", openai.BadRequestError, "upstream_rejected"),
        ):
            for streaming in (False, True):
                with pytest.raises(expected) as caught:
                    await sdk.chat.completions.create(**asked(f"[[{directive}]]", "failures", stream=streaming))
                assert caught.value.code == code
        assert messages(server, "failures") == []
        reply = await sdk.chat.completions.create(**asked("[[fail 500 1]] [[say Better now.]]", "failures"))
        assert reply.choices[0].message.content == "Better now."
        with pytest.raises(openai.APIError):
            async for _ in await sdk.chat.completions.create(**asked("[[words 9]] [[cut 3]]", "failures", stream=True)):
                pass
    assert len(messages(server, "failures")) == 2


def test_a_silent_upstream_gets_504(tmp_path: Path, upstream: Upstream) -> None:
    """After the silence that the setting allows the turn fails, and the session is free again."""
    with servers.running(data_dir=tmp_path, upstream=upstream, env={"MNEMON_UPSTREAM_TIMEOUT": "0.3"}) as server:
        answer = server.chat("[[hang]]", session="s")
        assert (answer.status, answer.body["error"]["code"]) == (504, "upstream_timeout")
        assert server.chat("Hi.", session="s").text == "ECHO:Hi."


def test_a_client_that_leaves_a_session_loses_nothing(stored: Server, upstream: Upstream) -> None:
    """The turn is completed and committed without it, and a retry with the same key gets the whole answer."""
    before = len(upstream.requests)
    said = "[[words 10]] [[unique]] [[slow 0.6]]"
    stream = Stream(stored, said, "s", Idempotency_Key="k")
    stream.until("word2")
    stream.leave()
    until(lambda: len(messages(stored, "s")) == 2)
    again = Stream(stored, said, "s", Idempotency_Key="k")
    assert again.response.headers["Idempotency-Replayed"] == "true"
    frames = again.until("[DONE]")
    assert content(frames) == messages(stored, "s")[1][1]
    assert "word10 unique-" in content(frames)
    again.leave()
    assert len(upstream.requests) == before + 1
    assert said not in str(upstream.left)


def test_a_client_that_comes_back_early_joins_the_running_turn(server: Server, upstream: Upstream) -> None:
    """With `Last-Event-ID` it gets the rest of the stream as it is made, and not a second turn."""
    said = "[[words 12]] [[slow 1]]"
    stream = Stream(server, said, "back", Idempotency_Key="k")
    seen = stream.until("word3")
    stream.leave()
    rest = Stream(server, said, "back", Idempotency_Key="k", Last_Event_ID=str(len(seen)))
    frames = rest.until("[DONE]")
    rest.leave()
    assert content(seen + frames) == " ".join(f"word{n}" for n in range(1, 13))
    assert [int(f.split(b"\n")[0].removeprefix(b"id: ")) for f in seen + frames] == list(range(1, len(seen) + len(frames) + 1))
    assert len(runs(upstream, said)) == 1


def test_a_client_that_leaves_a_json_turn_loses_nothing(server: Server, upstream: Upstream) -> None:
    """The same holds for a reply that is not streamed."""
    connection = server.connect()
    said = "[[slow 0.4]] [[say Done.]]"
    body = json.dumps({"messages": [{"role": "user", "content": said}]})
    headers = {"Authorization": f"Bearer {server.key}", ID: "left"}
    connection.request("POST", "/v1/chat/completions", body, headers)
    until(lambda: runs(upstream, said))
    connection.close()
    until(lambda: messages(server, "left") == [("user", said), ("assistant", "Done.")])


@pytest.mark.parametrize("streaming", [True, False])
def test_a_stateless_request_is_cancelled_upstream(server: Server, upstream: Upstream, *, streaming: bool) -> None:
    """Nobody waits for the reply, so the model need not finish it."""
    said = f"[[words 200]] [[slow 3{int(streaming)}]]"
    if streaming:
        stream = Stream(server, said)
        stream.until("word1")
        stream.leave()
    else:
        connection = server.connect()
        body = json.dumps({"messages": [{"role": "user", "content": said}]})
        connection.request("POST", "/v1/chat/completions", body, {"Authorization": f"Bearer {server.key}"})
        until(lambda: runs(upstream, said))
        connection.close()
    assert until(lambda: said in str(upstream.left)) < 3


async def test_j10_twenty_parallel_turns_of_a_session_run_in_order(stored: Server, upstream: Upstream) -> None:
    """Each turn sees all before it, and the transcript is user, assistant, twenty times."""
    async with client(stored) as sdk:
        replies = await gathered(*(sdk.chat.completions.create(**asked(f"Number {n}.", "s")) for n in range(20)))
    assert [r.choices[0].message.content for r in replies] == [f"ECHO:Number {n}." for n in range(20)]
    transcript = messages(stored, "s")
    assert [role for role, _ in transcript] == ["user", "assistant"] * 20
    assert sorted(said for _, said in transcript[::2]) == sorted(f"Number {n}." for n in range(20))
    asked_for = [r for r in upstream.requests if r["messages"][-1]["content"].startswith("Number ")][-20:]
    for number, request in enumerate(asked_for):
        assert [(m["role"], m["content"]) for m in request["messages"]] == transcript[: 2 * number + 1]


def test_the_first_request_may_bring_many_tools(tmp_path: Path, upstream: Upstream) -> None:
    """Before the tokenizer is loaded nothing is refused that fits once it is counted: here 40 KB of tools."""
    description = "Looks up the weather of the place that the user has asked for, and says how sure it is. " * 10
    tools = [{"type": "function", "function": {"name": f"tool_{n}", "description": description}} for n in range(45)]
    body = {"messages": [{"role": "user", "content": "Hi."}], "tools": tools}
    with servers.running(data_dir=tmp_path, upstream=upstream) as server:
        answer = server.call("POST", "/v1/chat/completions", body, X_Hermes_Session_Id="s")
        assert answer.text == "ECHO:Hi."
        assert upstream.requests[-1]["tools"] == tools
