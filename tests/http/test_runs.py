"""`/v1/runs`: turns that are started and not waited for."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mnemon.app import swept
from mnemon.core import clock as clocks
from mnemon.core import errors
from tests.http.world import CHANNEL, ID, REPLAYED, World, background, error, frames, running, until

Json = dict[str, Any]

COMMON = ("event", "run_id", "session_id", "timestamp")


async def start(world: World, said: Any, headers: Json | None = None, **rest: Any) -> str:
    """Start a run; its id."""
    answer = await world.post("/v1/runs", {"input": said, **rest}, headers)
    assert answer.status_code == 202, answer.text
    assert answer.json()["status"] == "started"
    found: str = answer.json()["run_id"]
    return found


async def ended(world: World, run_id: str) -> Json:
    """The run, once it is over."""

    async def over() -> bool:
        return (await world.get(f"/v1/runs/{run_id}"))["status"] not in ("queued", "running", "stopping")

    await until(over)
    return await world.get(f"/v1/runs/{run_id}")


async def run(world: World, said: Any, headers: Json | None = None, **rest: Any) -> Json:
    """Start a run and wait for it."""
    return await ended(world, await start(world, said, headers, **rest))


async def events(world: World, run_id: str, after: int | None = None, query: str = "") -> list[tuple[int | None, Json]]:
    """The events of a run to its end: number and content. `after` goes into the header."""
    headers = {"Last-Event-ID": str(after)} if after is not None else {}
    answer = await world.client.get(f"/v1/runs/{run_id}/events?{query}", headers=headers)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/event-stream")
    found = frames(answer.content)
    assert all(frame.event is None for frame in found)
    return [(frame.id, frame.json) for frame in found]


def names(found: list[tuple[int | None, Json]]) -> list[str]:
    """What happened."""
    return [event["event"] for _, event in found]


async def test_j35_a_run_is_followed_from_its_beginning(world: World) -> None:
    """Every event says run and session; the pieces add up to the output, and no reasoning is made up."""
    run_id = await start(world, "Hello.", session_id="s")
    found = await events(world, run_id)
    assert names(found) == ["run.started", "message.delta", "message.delta", "run.completed"]
    assert [number for number, _ in found] == [1, 2, 3, 4]
    assert {(e["run_id"], e["session_id"]) for _, e in found} == {(run_id, "s")}
    assert all(set(COMMON) <= set(e) for _, e in found)
    assert "".join(e["delta"] for _, e in found if e["event"] == "message.delta") == "Reply 1."
    end = found[-1][1]
    assert end["output"] == "Reply 1."
    assert end["usage"]["total_tokens"] == end["usage"]["input_tokens"] + end["usage"]["output_tokens"]
    assert end["hermes"]["session_id"] == "s"


async def test_reasoning_is_shown_when_the_model_reasons(world: World) -> None:
    """What it thinks aloud comes in pieces, and whole before it speaks."""
    world.model.script.append([{"reasoning_content": "Let me "}, {"reasoning_content": "see."}, "Done."])
    found = await events(world, await start(world, "Think."))
    assert names(found) == ["run.started", "reasoning.delta", "reasoning.delta", "reasoning.available", "message.delta", "run.completed"]
    assert found[3][1]["text"] == "Let me see."


async def test_a_run_as_a_resource(world: World) -> None:
    """It says what was asked for, how it stands and what came of it; the text is that of the transcript."""
    before = clocks.system()
    run_id = await start(world, "Hello.", {ID: "s", CHANNEL: "user:1"}, model="mnemon")
    seen = await ended(world, run_id)
    assert (seen["object"], seen["run_id"], seen["status"], seen["session_id"]) == ("hermes.run", run_id, "completed", "s")
    assert (seen["model"], seen["output"], seen["last_event"], seen["error"]) == ("mnemon", "Reply 1.", "run.completed", None)
    assert before <= seen["created_at"] <= seen["updated_at"]
    assert seen["usage"]["total_tokens"] > 0
    assert seen["hermes"]["session_key"] == "user:1"
    assert seen["receipt_id"] == seen["hermes"]["receipt_id"]
    assert (await world.get(f"/v1/receipts/{seen['receipt_id']}"))["session_id"] == "s"
    assert await world.messages("s") == [("user", "Hello."), ("assistant", "Reply 1.")]
    headers = (await world.client.get(f"/v1/runs/{run_id}")).headers
    assert (headers[ID], headers[CHANNEL]) == ("s", "user:1")


async def test_j19_a_run_sees_its_session(world: World) -> None:
    """By header or body, what was said in the session is in the prompt; and the next chat knows what the run said."""
    await world.say("My codeword is heron.", "s")
    await run(world, "What is it?", {ID: "s"})
    assert "heron" in world.model.seen
    await run(world, "And now?", session_id="s")
    assert "heron" in world.model.seen
    await world.say("So?", "s")
    assert "Reply 3." in world.model.seen


async def test_where_a_run_runs(world: World) -> None:
    """A key alone continues the key's transcript; with neither, it has a session of its own."""
    told = await run(world, "My cat is called Tom.", {CHANNEL: "user:1"})
    again = await run(world, "Go on.", session_key="user:1")
    assert again["session_id"] == told["session_id"]
    alone, other = await run(world, "One."), await run(world, "Two.")
    assert alone["session_id"] != other["session_id"]
    assert await world.messages(alone["session_id"]) == [("user", "One."), ("assistant", "Reply 3.")]


async def test_names_in_header_and_body_agree(world: World) -> None:
    """The same twice is fine, a contradiction is refused, and so is a key that the session does not belong to."""
    assert (await run(world, "Hi.", {ID: "s", CHANNEL: "k"}, session_id="s", session_key="k"))["session_id"] == "s"
    error(await world.post("/v1/runs", {"input": "x", "session_id": "t"}, {ID: "s"}), 400, "invalid_session_id", "session_id")
    error(await world.post("/v1/runs", {"input": "x", "session_key": "t"}, {CHANNEL: "s"}), 400, "invalid_session_key", "session_key")
    error(await world.post("/v1/runs", {"input": "x", "session_id": "s", "session_key": "other"}), 409, "session_key_conflict")
    assert len(await world.messages("s")) == 2


async def test_conversation_history_stands_in_for_the_stored_one(world: World) -> None:
    """The prompt holds what was sent, instructions and all; only the new input is stored."""
    await world.say("Old words.", "s")
    history = [{"role": "user", "content": "Sent words."}, {"role": "assistant", "content": "Ok."}]
    await run(world, [{"role": "user", "content": "New words."}], session_id="s", instructions="Be brief.", conversation_history=history)
    said = [(m["role"], m["content"]) for m in world.model.prompt]
    assert ("user", "Sent words.") in said
    assert said[-1] == ("user", "New words.")
    assert "Be brief." in world.model.seen
    assert "Old words." not in world.model.seen
    assert [text for _, text in await world.messages("s")] == ["Old words.", "Reply 1.", "New words.", "Reply 2."]


async def test_input_as_items_and_parameters(world: World) -> None:
    """Messages in the shape of the Responses API are understood, images too; sampling parameters reach the model."""
    item = {"type": "message", "role": "user", "content": [
        {"type": "input_text", "text": "Look."}, {"type": "input_image", "image_url": "https://a.example/b.png", "detail": "low"},
    ]}  # fmt: skip
    seen = await run(world, [item], temperature=0.5, max_tokens=7)
    assert seen["status"] == "completed"
    assert world.model.prompt[-1]["content"] == [
        {"type": "text", "text": "Look."},
        {"type": "image_url", "image_url": {"url": "https://a.example/b.png", "detail": "low"}},
    ]
    assert (world.model.requests[-1]["temperature"], world.model.requests[-1]["max_tokens"]) == (0.5, 7)


async def test_a_tool_loop_over_runs(world: World) -> None:
    """What the model wants called is in the run; a run with the result goes on."""
    call = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    world.model.script.append({"content": None, "tool_calls": [call]})
    tools = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]
    run_id = await start(world, "Look it up.", session_id="s", tools=tools)
    seen = await ended(world, run_id)
    assert (seen["status"], seen["finish_reason"], seen["output"]) == ("completed", "tool_calls", "")
    assert [c["id"] for c in seen["tool_calls"]] == ["call_1"]
    assert (await events(world, run_id))[-1][1]["tool_calls"] == seen["tool_calls"]
    wrong = [{"type": "function_call_output", "call_id": "call_2", "output": "42"}]
    error(await world.post("/v1/runs", {"input": wrong, "session_id": "s"}), 400, "unknown_tool_call", "input[0].call_id")
    again = await run(world, [{"role": "tool", "tool_call_id": "call_1", "content": "42"}], session_id="s", tools=tools)
    assert again["output"] == "Reply 2."
    assert world.model.prompt[-1]["content"] == "42"


async def test_a_history_with_a_tool_loop(world: World) -> None:
    """It is understood as chat completions takes it and as the Responses API has it."""
    function = {"name": "look", "arguments": "{}"}
    chat = [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": "c", "content": "A heron."},
    ]
    sent = [
        {"role": "user", "content": "Look."},
        {"type": "function_call", "call_id": "c", **function},
        {"type": "function_call_output", "call_id": "c", "output": "A heron."},
    ]
    for history in (chat, sent):
        await run(world, "What is it?", conversation_history=history)
        assert world.model.prompt[-4:] == [*chat, {"role": "user", "content": "What is it?"}]


async def test_a_run_follows_a_response(world: World) -> None:
    """It goes on where the response ended: at the tip, or on a branch if others followed."""
    first = (await world.post("/v1/responses", {"input": "My codeword is heron."})).json()
    then = await run(world, "What is it?", previous_response_id=first["id"])
    assert "heron" in world.model.seen
    assert then["session_id"] == first["hermes"]["session_id"]
    branch = await run(world, "And elsewhere?", previous_response_id=first["id"])
    assert "heron" in world.model.seen
    assert "What is it?" not in world.model.seen
    assert branch["session_id"] != then["session_id"]


async def test_j33_several_follow_and_any_number_resumes(world: World) -> None:
    """Two who follow a run see the same, and who comes later or again gets the rest in order, from every number, after its end too."""
    gate = asyncio.Event()
    world.model.script.append(["one two ", gate, "three four"])
    run_id = await start(world, "Count.")

    async def spoken() -> bool:
        return bool((await world.get(f"/v1/runs/{run_id}"))["last_event"] == "message.delta")

    await until(spoken)
    async with background(events(world, run_id)) as first, background(events(world, run_id, after=2)) as second:
        await asyncio.sleep(0.05)
        gate.set()
    whole = first.result()
    assert "".join(e.get("delta", "") for _, e in whole) == "one two three four"
    assert second.result() == whole[2:]
    for number in range(len(whole)):
        assert await events(world, run_id, after=number) == whole[number:]
        assert await events(world, run_id, query=f"after={number}") == whole[number:]


async def test_beyond_the_end_is_the_end(world: World) -> None:
    """Whoever has seen everything, or claims more, is told how it ended."""
    run_id = await start(world, "Hi.")
    whole = await events(world, run_id)
    for number in (len(whole), len(whole) + 1, 999_999):
        assert await events(world, run_id, after=number) == whole[-1:]
    path = f"/v1/runs/{run_id}/events"
    error(await world.client.get(path, headers={"Last-Event-ID": "x"}), 400, "invalid_last_event_id", "Last-Event-ID")
    error(await world.client.get(f"{path}?after=-1"), 400, "invalid_request", "after")
    error(await world.client.get(f"{path}?since=1"), 400, "unsupported_parameter", "since")


async def test_who_claims_to_have_seen_more_of_a_running_run_gets_its_end(world: World) -> None:
    """A number that is not there yet is waited for; if it never comes, the end is told."""
    gate = asyncio.Event()
    world.model.script.append(["one ", gate, "two"])
    run_id = await start(world, "Count.")
    async with background(events(world, run_id, after=999)) as far, background(events(world, run_id, after=3)) as near:
        await asyncio.sleep(0.05)
        gate.set()
    assert names(far.result()) == ["run.completed"]
    assert [number for number, _ in near.result()] == [4]


async def test_the_end_is_told_anew_when_the_log_is_gone(world: World) -> None:
    """A day later the frames are gone; the run still shows how it ended, with the text of the transcript."""
    run_id = await start(world, "Hi.", session_id="s")
    whole = await events(world, run_id)
    app = world.app.state.services
    await swept(app.driver, app.turns, clocks.system() + 86401, runs_kept=30 * 86400)
    (last,) = await events(world, run_id)
    assert last[0] == len(whole)
    same = ("event", "run_id", "session_id", "output", "usage", "hermes", "finish_reason")
    assert {name: last[1][name] for name in same} == {name: whole[-1][1][name] for name in same}


async def test_runs_are_kept_for_as_long_as_it_is_set(world: World) -> None:
    """After that there is no run; the transcript stays."""
    seen = await run(world, "Hi.", session_id="s")
    app = world.app.state.services
    await swept(app.driver, app.turns, seen["updated_at"] + 99, runs_kept=100)
    assert (await world.get(f"/v1/runs/{seen['run_id']}"))["output"] == "Reply 1."
    await swept(app.driver, app.turns, seen["updated_at"] + 101, runs_kept=100)
    error(await world.client.get(f"/v1/runs/{seen['run_id']}"), 404, "run_not_found")
    assert len(await world.messages("s")) == 2


async def test_deleted_words_are_gone_from_the_run(world: World) -> None:
    """Deleting the reply empties its output, and nothing that was streamed of it is replayed."""
    seen = await run(world, "Hi.", session_id="s")
    assert (await world.post("/v1/memory/delete", {"session_id": "s", "position": 2}, {ID: "s"})).status_code == 200
    assert (await world.get(f"/v1/runs/{seen['run_id']}"))["output"] == ""
    assert "Reply" not in str(await events(world, seen["run_id"]))


async def test_a_run_goes_with_its_conversation(world: World) -> None:
    """When the session is deleted, there is no run any more, nor a stream of it."""
    seen = await run(world, "Hi.", session_id="s")
    await world.client.delete("/api/sessions/s")
    error(await world.client.get(f"/v1/runs/{seen['run_id']}"), 404, "run_not_found")
    error(await world.client.get(f"/v1/runs/{seen['run_id']}/events"), 404, "run_not_found")


async def test_what_left_nothing_goes_with_its_session_too(world: World) -> None:
    """Words of a reply that was broken off, and what was said to the run, are gone when words of its session are deleted."""
    await world.say("Hello.", "s")
    gate = asyncio.Event()
    world.model.script.append(["secret ", gate])
    run_id = await start(world, "Tell.", session_id="s")

    async def spoken() -> bool:
        return bool((await world.get(f"/v1/runs/{run_id}"))["last_event"] == "message.delta")

    await until(spoken)
    await world.post(f"/v1/runs/{run_id}/steer", {"text": "No secrets."})
    await world.post(f"/v1/runs/{run_id}/stop")
    assert (await ended(world, run_id))["pending_steer"] == "No secrets."
    assert "secret " in str(await events(world, run_id))
    await world.post("/v1/memory/delete", {"session_id": "s", "position": 1}, {ID: "s"})
    assert (await world.get(f"/v1/runs/{run_id}"))["pending_steer"] is None
    assert "secret" not in str(await events(world, run_id)).lower()
    await world.client.delete("/api/sessions/s")
    error(await world.client.get(f"/v1/runs/{run_id}"), 404, "run_not_found")


async def test_j34_status_and_result_survive_a_restart(world: World, tmp_path: Any, database_url: str) -> None:
    """Another process on the same data shows the run and all its events."""
    seen = await run(world, "Hi.", session_id="s")
    whole = await events(world, seen["run_id"])
    if "sqlite" in database_url:
        app = world.app.state.services
        await app.turns.close(1)
        await app.driver.close()
    async with running(tmp_path / "other", database_url) as other:
        assert await other.get(f"/v1/runs/{seen['run_id']}") == seen
        assert await events(other, seen["run_id"]) == whole


async def test_j37_stop(world: World) -> None:
    """A run that is stopped is cancelled, stores nothing and says so; one that has ended stays as it is."""
    world.model.script.append(["one ", asyncio.Event()])
    run_id = await start(world, "Go on for ever.", session_id="s")

    async def runs() -> bool:
        return bool((await world.get(f"/v1/runs/{run_id}"))["last_event"] == "message.delta")

    await until(runs)
    answer = await world.post(f"/v1/runs/{run_id}/stop")
    assert (answer.status_code, answer.json()) == (200, {"run_id": run_id, "status": "stopping"})
    seen = await ended(world, run_id)
    assert (seen["status"], seen["last_event"], seen["output"], seen["error"]) == ("cancelled", "run.cancelled", None, None)
    assert names(await events(world, run_id)) == ["run.started", "message.delta", "run.cancelled"]
    assert (await world.client.get("/api/sessions/s")).status_code == 404
    assert (await world.post(f"/v1/runs/{run_id}/stop", {})).json()["status"] == "cancelled"
    done = await run(world, "Short.", session_id="s")
    assert (await world.post(f"/v1/runs/{done['run_id']}/stop")).json() == {"run_id": done["run_id"], "status": "completed"}


async def test_a_run_that_waits_for_its_session_is_queued_and_can_be_stopped(world: World) -> None:
    """It runs when the session is free; stopped before, it never reaches the model."""
    world.model.gate.clear()
    first = await start(world, "First.", session_id="s")
    await world.model.asked.wait()
    second, third = await start(world, "Second.", session_id="s"), await start(world, "Third.", session_id="s")
    assert (await world.get(f"/v1/runs/{second}"))["status"] == "queued"
    await world.post(f"/v1/runs/{second}/stop")
    assert (await ended(world, second))["status"] == "cancelled"
    world.model.gate.set()
    assert (await ended(world, first))["status"] == (await ended(world, third))["status"] == "completed"
    assert [text for _, text in await world.messages("s")] == ["First.", "Reply 1.", "Third.", "Reply 2."]


async def test_a_failed_run_says_why(world: World) -> None:
    """The model's failure is the run's, before its first word and after, with nothing stored and nothing made up."""
    world.model.script += [errors.ModelBusy("slow down"), ["one ", errors.ModelError("broken")]]
    for expected, pieces in (("upstream_rate_limited", 0), ("upstream_error", 1)):
        run_id = await start(world, "Hi.", session_id="s")
        seen = await ended(world, run_id)
        assert (seen["status"], seen["error"]["code"], seen["output"]) == ("failed", expected, None)
        found = await events(world, run_id)
        assert names(found) == ["run.started", *["message.delta"] * pieces, "run.failed"]
        assert found[-1][1]["error"] == seen["error"]
    assert (await world.client.get("/api/sessions/s")).status_code == 404


async def test_a_run_too_large_for_the_budget_fails(world: World) -> None:
    """It is known when its prompt is made, and then says the numbers."""
    seen = await run(world, "word " * 30_000)
    assert (seen["status"], seen["error"]["code"]) == ("failed", "context_length_exceeded")


async def test_j37_steer(world: World) -> None:
    """A running run takes a text in and says so; no tool here can hand it on, so it comes back with the end and in the status."""
    gate = asyncio.Event()
    world.model.script.append(["one ", gate, "two"])
    run_id = await start(world, "Count.")

    async def runs() -> bool:
        return bool((await world.get(f"/v1/runs/{run_id}"))["status"] == "running")

    await until(runs)
    for field, text in (("input", "Faster."), ("message", "Slower.\u2028"), ("text", "Stop there.")):
        answer = await world.post(f"/v1/runs/{run_id}/steer", {field: text}, {"Idempotency-Key": field})
        assert (answer.status_code, answer.json()) == (200, {"object": "hermes.run.steer", "run_id": run_id, "accepted": True})
    assert (await world.post(f"/v1/runs/{run_id}/steer", {"text": "Stop there."}, {"Idempotency-Key": "text"})).headers[REPLAYED] == "true"
    gate.set()
    seen, found = await ended(world, run_id), await events(world, run_id)
    assert [e["text"] for _, e in found if e["event"] == "run.steered"] == ["Faster.", "Slower.\u2028", "Stop there."]
    assert seen["pending_steer"] == found[-1][1]["pending_steer"] == "Faster.\nSlower.\u2028\nStop there."
    error(await world.post(f"/v1/runs/{run_id}/steer", {"text": "Late."}), 409, "run_not_accepting_steer")


@pytest.mark.parametrize("body", [{}, {"input": ""}, {"input": 5}, {"text": "a", "input": "b"}, {"other": "a"}, {"text": "a\x00"}])
async def test_bad_steers_are_refused(light: World, body: Json) -> None:
    """One text, under one of three names."""
    error(await light.post("/v1/runs/run_x/steer", body), 400, "invalid_steer_input")


async def test_approval_is_never_asked_for(light: World) -> None:
    """There is nothing to approve; a choice that is none is refused as such."""
    run_id = (await run(light, "Hi."))["run_id"]
    error(await light.post(f"/v1/runs/{run_id}/approval", {"choice": "once"}), 409, "approval_not_active")
    error(await light.post(f"/v1/runs/{run_id}/approval", {"choice": "perhaps"}), 400, "invalid_approval_choice", "choice")


async def test_unknown_and_foreign_runs_are_not_there(two: tuple[World, World]) -> None:
    """Every route says 404 alike, also of another tenant's run and of the run_id of a session's chat."""
    world, other = two
    run_id = (await run(world, "Hi.", session_id="s"))["run_id"]
    chat = frames((await world.post("/api/sessions/s/chat/stream", {"message": "Hi."})).content)[0].json["run_id"]
    for who, name in ((world, "run_never"), (other, run_id), (world, chat)):
        for path in (f"/v1/runs/{name}", f"/v1/runs/{name}/events"):
            error(await who.client.get(path), 404, "run_not_found")
        for path, body in (("stop", None), ("steer", {"text": "x"}), ("approval", {"choice": "once"})):
            error(await who.post(f"/v1/runs/{name}/{path}", body), 404, "run_not_found")


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "input"),
        ({"input": ""}, "input"),
        ({"input": 5}, "input"),
        ({"input": []}, "input"),
        ({"input": ["s"]}, "input[0]"),
        ({"input": [{"role": "user"}]}, "input[0].content"),
        ({"input": [{"role": "wizard", "content": "x"}]}, "input[0].role"),
        ({"input": [{"role": "assistant", "content": "x"}]}, "input"),
        ({"input": [{"type": "item_reference", "id": "x"}]}, "input[0]"),
        ({"input": "x", "session_id": 5}, "session_id"),
        ({"input": "x", "session_id": "x" * 400}, "session_id"),
        ({"input": "x", "session_id": "a\nb"}, "session_id"),
        ({"input": "x", "session_key": ["k"]}, "session_key"),
        ({"input": "x", "instructions": 5}, "instructions"),
        ({"input": "x", "conversation_history": "x"}, "conversation_history"),
        ({"input": "x", "conversation_history": ["x"]}, "conversation_history[0]"),
        ({"input": "x", "previous_response_id": 5}, "previous_response_id"),
        ({"input": "x", "previous_response_id": "resp_\x00"}, "previous_response_id"),
        ({"input": "x", "temperature": "hot"}, "temperature"),
        ({"input": "x", "stream": True}, "stream"),
        ({"input": "x", "store": False}, "store"),
        ({"input": "x", "provider": "y"}, "provider"),
    ],
)
async def test_j24_j36_bad_runs_are_refused(light: World, body: Json, param: str) -> None:
    """400 that names the field; no run, no session and no model call comes of it."""
    error(await light.post("/v1/runs", body), 400, None, param)
    assert await light.listed() == []
    assert not light.model.requests


async def test_an_unknown_response_cannot_be_followed(world: World) -> None:
    """404, and nothing is written."""
    body = {"input": "x", "previous_response_id": "resp_never"}
    error(await world.post("/v1/runs", body), 404, "response_not_found", "previous_response_id")


async def test_the_same_key_starts_one_run(world: World) -> None:
    """The replay names the first run, other words are a conflict, another session another run."""
    key = {"Idempotency-Key": "k", ID: "s"}
    first = await world.post("/v1/runs", {"input": "Hi."}, key)
    again = await world.post("/v1/runs", {"input": "Hi."}, key)
    assert (again.status_code, again.headers[REPLAYED]) == (202, "true")
    assert again.json() == {**first.json(), "replayed": True}
    assert REPLAYED not in first.headers
    error(await world.post("/v1/runs", {"input": "Ho."}, key), 409, "idempotency_key_conflict")
    other = await world.post("/v1/runs", {"input": "Hi."}, {**key, ID: "t"})
    assert other.json()["run_id"] != first.json()["run_id"]
    await ended(world, first.json()["run_id"])
    assert len(await world.messages("s")) == 2


async def test_a_busy_session_refuses_a_run_that_will_not_wait(world: World) -> None:
    """409, no run is left, and the same key may try again."""
    world.model.gate.clear()
    headers = {ID: "s", "X-Mnemon-If-Busy": "reject", "Idempotency-Key": "k"}
    first = await start(world, "First.", session_id="s")
    await world.model.asked.wait()
    error(await world.post("/v1/runs", {"input": "Second."}, headers), 409, "session_busy")
    world.model.gate.set()
    await ended(world, first)
    assert (await run(world, "Second.", headers))["output"] == "Reply 2."


async def test_a_new_conversation_by_run(world: World) -> None:
    """`/new` rotates the session without a model call; the run shows the confirmation and the new id."""
    old = await run(world, "Hi.", {CHANNEL: "k"})
    run_id = await start(world, "/new", {CHANNEL: "k"})
    seen, found = await ended(world, run_id), await events(world, run_id)
    assert seen["session_id"] not in (None, old["session_id"])
    assert seen["output"].startswith("Started a new conversation.")
    assert found[-1][1]["output"] == seen["output"] == "".join(e.get("delta", "") for _, e in found)
    assert len(world.model.requests) == 1


async def test_a_stream_begins_before_anything_happens(world: World) -> None:
    """Who follows a queued run gets its failure as an event, not as a status."""
    world.model.gate.clear()
    await start(world, "First.", session_id="s")
    await world.model.asked.wait()
    waiting = await start(world, "word " * 30_000, session_id="s")
    async with background(events(world, waiting)) as follower:
        await asyncio.sleep(0.05)
        world.model.gate.set()
    assert names(follower.result()) == ["run.failed"]


async def test_who_leaves_a_stream_stops_nothing(world: World) -> None:
    """A run goes on though nobody follows it any more."""
    gate = asyncio.Event()
    world.model.script.append(["one ", gate, "two"])
    run_id = await start(world, "Count.")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(events(world, run_id), 0.1)
    gate.set()
    assert (await ended(world, run_id))["output"] == "one two"


async def test_a_place_of_the_key_is_held_to_the_end_of_the_run(world: World) -> None:
    """A key with one place has none left while its run runs."""
    narrow = await world.key("narrow", "the-narrow-key-of-a-tenant", concurrency=1)
    world.model.gate.clear()
    answer = await narrow.post("/v1/runs", {"input": "Hi."})
    assert answer.status_code == 202
    error(await narrow.client.get("/v1/models"), 429, "rate_limit_exceeded")
    world.model.gate.set()

    async def free() -> bool:
        return (await narrow.client.get("/v1/models")).status_code == 200

    await until(free)
