"""Responses take their time: in the background, cancelled, failed, tried again, left."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from mnemon.core import errors
from mnemon.store.frames import Frames
from tests.http.responding import AGAIN, SDK, ask, checked, ended, made, streamed, words
from tests.http.world import ID, REPLAYED, World, background, error, frames, until

# -- in the background ----------------------------------------------------------------------------------------------------------


async def test_in_the_background(world: World) -> None:
    """It is known at once, and completed later; then it reads like any other and can be gone on from."""
    world.model.gate.clear()
    response = await ask(world, "Hello.", {ID: "s"}, background=True)
    begun = response.json()
    SDK.validate_python(begun)
    assert begun["status"] in ("queued", "in_progress")
    assert begun["background"] is True
    assert response.headers[ID] == "s"
    assert (await world.get(f"/v1/responses/{begun['id']}"))["status"] in ("queued", "in_progress")
    world.model.gate.set()
    whole = await ended(world, begun["id"])
    assert (whole["status"], words(whole), whole["hermes"]["session_id"]) == ("completed", "Reply 1.", "s")
    await made(world, "And?", previous_response_id=begun["id"])
    assert len(world.model.prompt) == 3


async def test_a_response_is_cancelled(world: World) -> None:
    """Its turn leaves nothing, its stream ends, and cancelling what has ended changes nothing."""
    world.model.gate.clear()
    name = (await made(world, "Hello.", {ID: "s"}, background=True))["id"]
    async with background(world.client.get(f"/v1/responses/{name}?stream=true")) as watching:
        await world.model.asked.wait()
        cancelled = (await world.post(f"/v1/responses/{name}/cancel")).json()
        SDK.validate_python(cancelled)
        assert (cancelled["status"], cancelled["output"]) == ("cancelled", [])
    last = checked(watching.result().content)[-1]
    assert (last.event, last.json["response"]["status"]) == ("response.failed", "cancelled")
    world.model.gate.set()
    assert (await world.post(f"/v1/responses/{name}/cancel")).json() == cancelled
    assert await world.get(f"/v1/responses/{name}") == cancelled
    error(await world.client.get("/api/sessions/s/messages"), 404, "session_not_found")
    done = await made(world, "Hello.")
    assert (await world.post(f"/v1/responses/{done['id']}/cancel")).json() == done


async def test_a_background_response_that_fails_says_so(world: World) -> None:
    """The error is kept with it, and never a made-up answer; what fails before it begins does so, too."""
    world.model.script.append(errors.ModelBusy("slow down", retry_after=3))
    name = (await made(world, "Hello.", background=True))["id"]
    failed = await ended(world, name)
    SDK.validate_python(failed)
    assert (failed["status"], failed["output"], failed["error"]["code"]) == ("failed", [], "rate_limit_exceeded")
    early = (await made(world, [{"type": "function_call_output", "call_id": "c", "output": "x"}], background=True))["id"]
    failed = await ended(world, early)
    assert (failed["error"]["code"], failed["error"]["param"]) == ("invalid_prompt", "input[0].call_id")


async def test_a_background_stream_can_be_left_and_taken_up(world: World) -> None:
    """Its events are the same from the POST and from a GET, whole or behind a number."""
    world.model.script.append("One two three.")
    whole = await streamed(world, "Hello.", background=True)
    name = whole[-1].json["response"]["id"]
    assert whole[-1].event == "response.completed"
    for number in range(len(whole)):
        rest = await world.client.get(f"/v1/responses/{name}?stream=true&starting_after={number}")
        assert checked(rest.content) == (whole[number + 1 :] or whole[-1:])
    assert checked((await world.client.get(f"/v1/responses/{name}?stream=true")).content) == whole


# -- failures -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("failure", "status", "code", "shown"),
    [
        (errors.ModelDenied("no"), 502, "upstream_auth", "server_error"),
        (errors.ModelBusy("no", retry_after=7), 429, "upstream_rate_limited", "rate_limit_exceeded"),
        (errors.ModelError("no"), 502, "upstream_error", "server_error"),
        (errors.ModelTimeout("no"), 504, "upstream_timeout", "server_error"),
    ],
)
async def test_j23_a_failed_model_is_a_failed_response(light: World, failure: Exception, status: int, code: str, shown: str) -> None:
    """JSON gets the error of its kind; a stream ends with `response.failed`, and the response stays failed. Nothing is stored."""
    light.model.script += [failure, failure]
    plain = await ask(light, "Hello.", {ID: "s"})
    error(plain, status, code)
    assert plain.headers.get("Retry-After") == ("7" if status == 429 else None)
    found = await streamed(light, "Hello.", {ID: "s"})
    last = found[-1].json["response"]
    assert (found[-1].event, last["status"], last["error"]["code"], last["output"]) == ("response.failed", "failed", shown, [])
    SDK.validate_python(await light.get(f"/v1/responses/{last['id']}"))
    assert await light.get(f"/v1/responses/{last['id']}") == last
    assert await light.listed() == []


async def test_a_response_is_run_once(world: World) -> None:
    """The same `Idempotency-Key` gets the same response, as JSON, as a stream and in the background; another body is refused."""
    first, second = [await ask(world, "Hello.", AGAIN) for _ in range(2)]
    assert first.content == second.content
    assert second.headers[REPLAYED] == "true"
    error(await ask(world, "Other.", AGAIN), 409, "idempotency_key_conflict", "Idempotency-Key")
    one, two = [await ask(world, "Hello.", {"Idempotency-Key": "try-2"}, stream=True) for _ in range(2)]
    assert one.content == two.content
    rest = await ask(world, "Hello.", {"Idempotency-Key": "try-2", "Last-Event-ID": "4"}, stream=True)
    assert frames(rest.content) == frames(one.content)[4:]
    three, four = [await ask(world, "Hello.", {"Idempotency-Key": "try-3"}, background=True) for _ in range(2)]
    assert three.json()["id"] == four.json()["id"]
    assert four.headers[REPLAYED] == "true"
    await ended(world, three.json()["id"])
    assert len(world.model.requests) == 3


async def test_a_busy_session_is_refused_if_asked(world: World) -> None:
    """`X-Mnemon-If-Busy: reject` holds here, too."""
    world.model.gate.clear()
    async with background(ask(world, "Hello.", {ID: "s"})):
        await world.model.asked.wait()
        for fields in ({}, {"stream": True}, {"background": True}):
            error(await ask(world, "Hi.", {ID: "s", "X-Mnemon-If-Busy": "reject"}, **fields), 409, "session_busy")
        world.model.gate.set()


@pytest.fixture
async def slow(world: World) -> AsyncIterator[World]:
    """A model that waits after each word."""
    world.model.delay = 0.01
    yield world
    world.model.delay = 0.0


async def test_a_stream_is_finished_though_its_client_left(slow: World) -> None:
    """The response is completed and can be read."""
    slow.model.script.append("A longer reply of several words.")
    task = asyncio.create_task(ask(slow, "Hello.", {ID: "s"}, stream=True))
    await slow.model.asked.wait()
    task.cancel()

    async def stored() -> bool:
        return (await slow.client.get("/api/sessions/s/messages")).status_code == 200

    await until(stored)
    assert (await slow.messages("s"))[-1] == ("assistant", "A longer reply of several words.")


async def test_what_the_event_log_lost_is_told_anew(world: World) -> None:
    """A response whose events are gone has them again: each part in one piece, the end with the number it had."""
    world.model.script.append("One two three.")
    whole = await streamed(world, "Hello.")
    last = whole[-1].json
    name = last["response"]["id"]
    services = world.app.state.services
    await services.driver.write(lambda tx: Frames(tx, "default").drop(name))
    again = checked((await world.client.get(f"/v1/responses/{name}?stream=true")).content)
    assert again[-1].json == last
    assert again[-1].id == whole[-1].id
    assert [f.json["delta"] for f in again if f.event == "response.output_text.delta"] == ["One two three."]
    half = checked((await world.client.get(f"/v1/responses/{name}?stream=true&starting_after=5")).content)
    assert all(f.event != "response.output_text.delta" for f in half)
    assert half[-1].json == last
    plain = await made(world, "Hello.")
    told = checked((await world.client.get(f"/v1/responses/{plain['id']}?stream=true")).content)
    assert told[-1].json["response"] == plain


async def test_where_to_go_on_is_checked(light: World) -> None:
    """A number that is none, or one without a stream, is refused."""
    name = (await made(light, "Hello."))["id"]
    path = f"/v1/responses/{name}"
    error(await light.client.get(path + "?stream=true&starting_after=x"), 400, "invalid_request", "starting_after")
    error(await light.client.get(path + "?starting_after=1"), 400, "invalid_request", "starting_after")
    error(await light.client.get(path + "?stream=true", headers={"Last-Event-ID": "x"}), 400, "invalid_last_event_id", "Last-Event-ID")
    error(await light.client.get(path + "?anything=1"), 400, "unsupported_parameter", "anything")
    beyond = await light.client.get(path + "?stream=true&starting_after=999")
    assert [f.event for f in frames(beyond.content)] == ["response.completed"]
