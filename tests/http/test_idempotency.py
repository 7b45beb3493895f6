"""Trying again: `Idempotency-Key`, `Last-Event-ID`, and one turn at a time."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from mnemon.core import clock as clocks
from mnemon.core import errors
from mnemon.core.records import Idempotency, Identity, Message, TurnRequest
from mnemon.edge.chat import ChatWire
from tests.http.world import ID, RECEIPT, REPLAYED, Json, World, background, error, frames, path_of, running, text

AGAIN = {"Idempotency-Key": "try-1"}
BUSY = {"X-Mnemon-If-Busy": "reject"}


async def test_a_json_turn_is_replayed(world: World) -> None:
    """The same request with the same key gets the same body, byte for byte, without another model call or another message."""
    first = await world.say("Hi.", "s", "chan", headers=AGAIN)
    second = await world.say("Hi.", "s", "chan", headers=AGAIN)
    assert first.content == second.content
    assert REPLAYED not in first.headers
    assert second.headers[REPLAYED] == "true"
    names = [ID, RECEIPT, "X-Hermes-Session-Key", "content-type"]
    assert [first.headers[n] for n in names] == [second.headers[n] for n in names]
    assert len(world.model.requests) == 1
    assert len(await world.messages("s")) == 2


async def test_a_stream_is_replayed(world: World) -> None:
    """A replayed stream has all frames of the first, from number one on."""
    world.model.script.append("A longer reply of several words.")
    first = await world.stream("Hi.", "s", headers=AGAIN)
    second = await world.stream("Hi.", "s", headers=AGAIN)
    assert first.response.content == second.response.content
    assert second.response.headers[REPLAYED] == "true"
    assert REPLAYED not in first.response.headers
    assert [f.id for f in second.frames] == list(range(1, len(second.frames) + 1))
    assert len(world.model.requests) == 1


async def test_a_stream_is_resumed_at_every_frame(world: World) -> None:
    """`Last-Event-ID: N` gives exactly the frames after N, for every N; the turn is not run again."""
    world.model.script.append("One two three four five.")
    whole = await world.stream("Hi.", "s", headers=AGAIN)
    assert len(whole.frames) >= 8
    for number in range(len(whole.frames) + 1):
        response = await world.chat("Hi.", "s", headers={**AGAIN, "Last-Event-ID": str(number)}, stream=True)
        assert frames(response.content) == whole.frames[number:]
    assert len(world.model.requests) == 1


async def test_session_chat_is_replayed_and_resumed(world: World) -> None:
    """The session routes keep the same promise."""
    await world.post("/api/sessions", {"id": "s"})
    path, body = f"{path_of('s')}/chat", {"message": "Hi."}
    first, second = [await world.post(path, body, AGAIN) for _ in range(2)]
    assert first.content == second.content
    assert second.headers[REPLAYED] == "true"
    whole = await world.post(f"{path}/stream", body, AGAIN)
    events = frames(whole.content)
    for number in range(len(events) + 1):
        rest = await world.post(f"{path}/stream", body, {**AGAIN, "Last-Event-ID": str(number)})
        assert frames(rest.content) == events[number:]
    assert len(world.model.requests) == 2
    error(await world.post(path, {"message": "Other."}, AGAIN), 409, "idempotency_key_conflict")


async def test_j05_another_body_under_the_same_key_is_refused(world: World) -> None:
    """A key is bound to its body, `stream` and sampling fields included, and the first result stays intact."""
    first = await world.say("Hi.", "s", headers=AGAIN)
    for change in ({"stream": True}, {"temperature": 0.5}, {"model": "hermes"}, {"seed": 1}):
        error(await world.chat("Hi.", "s", headers=AGAIN, **change), 409, "idempotency_key_conflict", "Idempotency-Key")
    error(await world.chat("Other.", "s", headers=AGAIN), 409, "idempotency_key_conflict", "Idempotency-Key")
    assert (await world.say("Hi.", "s", headers=AGAIN)).content == first.content
    assert len(await world.messages("s")) == 2


async def test_j04_the_same_key_in_another_session_is_another_request(world: World) -> None:
    """Identity headers are part of what the key is bound to: each session gets its own answer and header."""
    named: list[dict[str, Any]] = [{"session": "one"}, {"session": "two"}, {"session": "one", "key": "k"}, {"key": "k2"}, {}]
    answers = [await world.say("Hi.", **names, headers=AGAIN) for names in named]
    assert [text(a) for a in answers] == [f"Reply {n}." for n in range(1, 6)]
    assert [a.headers.get(ID) for a in answers[:2]] == ["one", "two"]
    for names, answer in zip(named, answers, strict=True):
        assert (await world.say("Hi.", **names, headers=AGAIN)).content == answer.content
    user = await world.say("Hi.", "one", headers={**AGAIN, "X-Hermes-User-Id": "u"})
    assert text(user) == "Reply 6."


async def test_key_order_and_white_space_of_the_body_do_not_matter(light: World) -> None:
    """The same JSON in another order is the same body."""
    headers = {**AGAIN, "Content-Type": "application/json", ID: "s"}
    body = {"model": "mnemon", "messages": [{"role": "user", "content": "Hi."}]}
    first = await light.client.post("/v1/chat/completions", content=json.dumps(body), headers=headers)
    turned = json.dumps({name: body[name] for name in reversed(body)}, indent=2)
    second = await light.client.post("/v1/chat/completions", content=turned, headers=headers)
    assert first.content == second.content


async def test_a_stateless_turn_is_replayed_too(world: World) -> None:
    """Without a session the idempotency record is all that is kept."""
    first = await world.say("Hi.", headers=AGAIN)
    assert (await world.say("Hi.", headers=AGAIN)).content == first.content
    streamed = await world.stream("Hi.", headers={"Idempotency-Key": "try-2"})
    assert (await world.stream("Hi.", headers={"Idempotency-Key": "try-2"})).frames == streamed.frames
    assert len(world.model.requests) == 2
    assert await world.listed() == []


async def test_a_claim_is_given_back_though_it_was_just_being_written(world: World) -> None:
    """A turn whose client leaves while the database grants its claim does not leave the claim behind."""
    app = world.app.state.services
    request = TurnRequest(
        tenant="default",
        identity=Identity(),
        messages=(Message({"role": "user", "content": "Hi."}),),
        params={},
        model="mnemon",
        stream=False,
        idempotency=Idempotency(slot=b"slot", fingerprint=b"print", key="try"),
    )
    turn, _ = app.turns.start(request, ChatWire(model="mnemon", created=0, include_usage=False))
    await asyncio.sleep(0)  # by now it waits for the database
    turn.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn.task
    assert await app.driver.read(lambda tx: tx.one("idempotency_find", slot=b"slot")) is None


@pytest.mark.parametrize("streaming", [False, True])
async def test_j11_a_failed_turn_leaves_no_record(world: World, *, streaming: bool) -> None:
    """After a failure the same request runs again, and exactly one copy of the user's text reaches the model and the transcript."""
    await world.say("Before.", "s")
    for failure in (errors.ModelError("broken"), errors.ModelTimeout("late"), errors.ModelBusy("busy", retry_after=3)):
        world.model.script.append(failure)
        assert (await world.chat("Hi.", "s", headers=AGAIN, stream=streaming)).status_code >= 429
    if streaming:
        world.model.script.append(["Half a", errors.ModelError("broken off")])
        broken = await world.chat("Hi.", "s", headers=AGAIN, stream=True)
        assert frames(broken.content)[-1].data == "[DONE]"
    response = await world.chat("Hi.", "s", headers=AGAIN, stream=streaming)
    assert response.status_code == 200
    assert REPLAYED not in response.headers
    assert [m["content"] for m in world.model.prompt].count("Hi.") == 1
    assert [said for _, said in await world.messages("s")].count("Hi.") == 1
    assert (await world.chat("Hi.", "s", headers=AGAIN, stream=streaming)).headers[REPLAYED] == "true"


async def test_a_refused_request_leaves_no_record(light: World) -> None:
    """A 400 does not use the key up."""
    error(await light.chat([], "s", headers=AGAIN), 400)
    error(await light.chat([{"role": "tool", "tool_call_id": "x", "content": "y"}], "s", headers=AGAIN), 400)
    assert REPLAYED not in (await light.say("Hi.", "s", headers=AGAIN)).headers


@pytest.mark.parametrize("streaming", [False, True])
async def test_a_retry_joins_the_turn_that_still_runs(world: World, *, streaming: bool) -> None:
    """While the turn runs the same request waits for the same answer; only the one that joined says that it was replayed."""
    world.model.gate.clear()
    async with background(world.chat("Hi.", "s", headers=AGAIN, stream=streaming)) as first:
        await world.model.asked.wait()
        async with background(world.chat("Hi.", "s", headers=AGAIN, stream=streaming)) as second:
            await asyncio.sleep(0.02)
            error(await world.chat("Other.", "s", headers=AGAIN, stream=streaming), 409, "idempotency_key_conflict")
            world.model.gate.set()
    assert first.result().content == second.result().content
    assert second.result().headers[REPLAYED] == "true"
    assert REPLAYED not in first.result().headers
    assert len(world.model.requests) == 1


async def test_last_event_id_needs_the_key_it_began_with(light: World) -> None:
    """Resuming without a key, or at something that is no number, is refused."""
    for path, body in (
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi."}], "stream": True}),
        ("/api/sessions/s/chat/stream", {"message": "Hi."}),
    ):
        error(await light.post(path, body, {"Last-Event-ID": "3", ID: "s"}), 400, "idempotency_key_required", "Idempotency-Key")
        for wrong in ("x", "-1", "1.5", "9" * 20):
            error(await light.post(path, body, {**AGAIN, "Last-Event-ID": wrong}), 400, "invalid_last_event_id", "Last-Event-ID")
    assert not light.model.requests


@pytest.mark.parametrize("key", ["x" * 256, "a b", "ä".encode(), b"a\x01"])
async def test_a_wrong_idempotency_key_is_refused(light: World, key: str | bytes) -> None:
    """A key is 1 to 255 visible ASCII characters."""
    error(await light.chat("Hi.", headers={"Idempotency-Key": key}), 400, "invalid_idempotency_key", "Idempotency-Key")
    await light.say("Hi.", headers={"Idempotency-Key": "x" * 255})


async def test_records_are_kept_for_a_day(tmp_path: Path, database_url: str) -> None:
    """After 23 hours a request is replayed, after 25 it runs again."""
    now = clocks.system()
    async with running(tmp_path, database_url, clock=lambda: now) as world:
        await world.say("Hi.", "s", headers=AGAIN)
        now += 23 * 3600
        assert REPLAYED in (await world.say("Hi.", "s", headers=AGAIN)).headers
        now += 2 * 3600
        assert text(await world.say("Hi.", "s", headers=AGAIN)) == "Reply 2."


async def test_records_survive_a_restart(tmp_path: Path, database_url: str) -> None:
    """Another process on the same database replays what the first one answered."""
    async with running(tmp_path, database_url) as world:
        first = await world.stream("Hi.", "s", headers=AGAIN)
    async with running(tmp_path, database_url) as world:
        second = await world.stream("Hi.", "s", headers=AGAIN)
        assert second.response.content == first.response.content
        assert not world.model.requests
        assert len(await world.messages("s")) == 2


@pytest.mark.parametrize("path", ["/api/sessions", "/api/sessions/s/fork"])
async def test_creating_and_forking_take_the_key_too(world: World, path: str) -> None:
    """`Idempotency-Key` works on every POST that does work: a retry makes no second session."""
    await world.say("Hi.", "s")
    first, second = [await world.post(path, {"title": "T"}, AGAIN) for _ in range(2)]
    assert first.status_code == second.status_code == 201
    assert first.json() == second.json()
    assert second.headers[REPLAYED] == "true"
    error(await world.post(path, {"title": "Other"}, AGAIN), 409, "idempotency_key_conflict")
    assert len(await world.listed()) == 2


async def test_j10_parallel_turns_run_one_after_the_other(world: World) -> None:
    """Four turns at once on one session: each sees the previous ones, stored in order user, assistant, four times."""
    await world.listed()  # the keys are loaded, so that no request overtakes another before its turn begins
    await asyncio.gather(*(world.say(f"Number {n}.", "s") for n in range(4)))
    stored = await world.messages("s")
    assert [role for role, _ in stored] == ["user", "assistant"] * 4
    assert [said for _, said in stored] == [said for n in range(4) for said in (f"Number {n}.", f"Reply {n + 1}.")]
    for number, request in enumerate(world.model.requests):
        assert [(m["role"], m["content"]) for m in request["messages"]] == stored[: 2 * number + 1]


async def test_parallel_turns_by_different_names_do_not_mix(tmp_path: Path, database_url: str) -> None:
    """Key alone, root id and tip id are one session: their turns are serialised as well."""
    async with running(tmp_path, database_url, context_budget=512, recall_tokens=64) as world:
        tip = "root"
        for number in range(10):
            tip = (await world.say(f"Number {number} " + "stone " * 60, "root", "chan")).headers[ID]
        assert tip != "root"
        names: list[Json] = [{"session": "root"}, {"session": tip}, {"key": "chan"}, {"session": "root", "key": "chan"}] * 2
        answers = await asyncio.gather(*(world.say(f"Parallel {n}.", **name) for n, name in enumerate(names)))
        assert len({text(a) for a in answers}) == 8
        stored = await world.messages("root")
        assert [role for role, _ in stored] == ["user", "assistant"] * 18
        replies = dict(zip([s for _, s in stored[20::2]], [s for _, s in stored[21::2]], strict=True))
        assert replies == {f"Parallel {n}.": text(a) for n, a in enumerate(answers)}


async def test_different_sessions_do_not_wait_for_each_other(world: World) -> None:
    """A turn that takes long holds up its own session only."""
    done = asyncio.Event()
    world.model.script.append([done, "At last."])
    async with background(world.say("Slow.", "slow")) as slow:
        await world.model.asked.wait()
        await asyncio.wait_for(world.say("Quick.", "quick"), 5)
        await asyncio.wait_for(world.preview("?", "slow"), 5)
        assert await world.messages("quick") == [("user", "Quick."), ("assistant", "Reply 2.")]
        done.set()
    assert text(slow.result()) == "At last."


async def test_a_busy_session_refuses_on_request(world: World) -> None:
    """`X-Mnemon-If-Busy: reject` gets 409 at once while a turn runs, and works like any other request otherwise."""
    await world.say("Before.", "s", headers=BUSY)
    world.model.gate.clear()
    world.model.asked.clear()
    async with background(world.say("Slow.", "s")):
        await world.model.asked.wait()
        for streaming in (False, True):
            error(await world.chat("Now!", "s", headers=BUSY, stream=streaming), 409, "session_busy")
        error(await world.post(f"{path_of('s')}/chat", {"message": "Now!"}, BUSY), 409, "session_busy")
        error(await world.chat("Now!", "s", headers={**BUSY, **AGAIN}), 409, "session_busy")
        world.model.gate.set()
    assert REPLAYED not in (await world.say("Now!", "s", headers={**BUSY, **AGAIN})).headers
    assert len(await world.messages("s")) == 6
    error(await world.chat("Hi.", "s", headers={"X-Mnemon-If-Busy": "maybe"}), 400, param="X-Mnemon-If-Busy")


async def test_a_failed_turn_frees_its_session_and_those_who_wait(world: World) -> None:
    """Turns behind a failed one run; nothing of the failed one is seen by them."""
    world.model.gate.clear()
    world.model.script.append(errors.ModelError("broken"))
    async with background(world.chat("Breaks.", "s")) as first:
        await world.model.asked.wait()
        async with background(world.chat("Waits.", "s")) as second:
            await asyncio.sleep(0.02)
            world.model.gate.set()
    assert (first.result().status_code, second.result().status_code) == (502, 200)
    assert await world.messages("s") == [("user", "Waits."), ("assistant", "Reply 2.")]
