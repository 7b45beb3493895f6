"""Browsers and Open WebUI: CORS on everything, forwarded headers, background requests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mnemon.core import clock as clocks
from mnemon.core import errors
from tests.http.world import ID, Json, World, error, path_of, running, text

ORIGIN = "https://app.example"
OWN = ["X-Hermes-Session-Id", "X-Hermes-Session-Key", "X-Hermes-User-Id", "X-Hermes-Thread-Id", "X-Mnemon-Receipt", "Idempotency-Replayed"]


@pytest.fixture
async def open_world(tmp_path: Path) -> AsyncIterator[World]:
    """A server that one web origin may call."""
    async with running(tmp_path, cors_origins=(ORIGIN,)) as world:
        yield world


async def test_j31_a_preflight_allows_our_headers_and_patch(open_world: World) -> None:
    """Without a key, for every method of ours, with every header of ours."""
    asked = "authorization, content-type, idempotency-key, last-event-id, x-mnemon-if-busy, " + ", ".join(OWN[:4]).lower()
    for method in ("GET", "POST", "PATCH", "DELETE"):
        headers = {"Origin": ORIGIN, "Access-Control-Request-Method": method, "Access-Control-Request-Headers": asked}
        response = await open_world.of("").client.options(path_of("s"), headers=headers)
        assert response.status_code == 200, response.text
        assert response.headers["access-control-allow-origin"] == ORIGIN
        assert method in response.headers["access-control-allow-methods"]
        allowed = response.headers["access-control-allow-headers"].lower()
        assert all(name in allowed for name in asked.split(", "))


async def test_j31_every_answer_carries_cors_headers(open_world: World) -> None:
    """JSON, streams and errors of every kind can be read by the page, our own headers included."""
    headers = {"Origin": ORIGIN}
    open_world.model.script.extend(["Hi.", "Hi.", errors.ModelBusy("Later.", retry_after=3)])
    answers = [
        await open_world.chat("Hi.", "s", headers=headers),
        await open_world.chat("Hi.", "s", headers=headers, stream=True),
        await open_world.chat("Hi.", "s", headers=headers),
        await open_world.chat([], "s", headers=headers),
        await open_world.of("wrong").chat("Hi.", headers=headers),
        await open_world.client.get("/nowhere", headers=headers),
        await open_world.client.put(path_of("s"), headers=headers),
        await open_world.client.patch(path_of("s"), json={"title": "T"}, headers=headers),
        await open_world.client.post("/v1/chat/completions", content=b" " * 11_000_000, headers=headers),
        await open_world.client.get("/health", headers=headers),
    ]
    assert [a.status_code for a in answers] == [200, 200, 429, 400, 401, 404, 405, 200, 413, 200]
    for answer in answers:
        assert answer.headers["access-control-allow-origin"] == ORIGIN
        exposed = answer.headers["access-control-expose-headers"].lower()
        assert all(name.lower() in exposed for name in [*OWN, "Retry-After", "X-Request-Id"])


async def test_j31_a_failure_of_our_own_carries_cors_headers(tmp_path: Path) -> None:
    """A page can read a 500 as well."""
    broken = False

    def clock() -> float:
        if broken:
            raise RuntimeError
        return clocks.system()

    async with running(tmp_path, cors_origins=(ORIGIN,), clock=clock) as world:
        broken = True
        response = await world.post("/api/sessions", {}, {"Origin": ORIGIN})
        error(response, 500, "internal_error")
        assert response.headers.get("access-control-allow-origin") == ORIGIN


async def test_a_foreign_origin_gets_no_cors_headers(open_world: World) -> None:
    """Only the configured origins are let in."""
    response = await open_world.client.get("/v1/models", headers={"Origin": "https://evil.example"})
    assert "access-control-allow-origin" not in response.headers
    preflight = await open_world.client.options(
        "/v1/models", headers={"Origin": "https://evil.example", "Access-Control-Request-Method": "GET"}
    )
    assert preflight.status_code == 400


async def test_cors_is_off_by_default(light: World) -> None:
    """Without the setting no origin is allowed."""
    response = await light.client.get("/health", headers={"Origin": ORIGIN})
    assert "access-control-allow-origin" not in response.headers
    assert (await light.get("/v1/capabilities"))["features"]["cors"] is False


# -- Open WebUI -----------------------------------------------------------------------------------------------------------

FORWARDED = {"X-OpenWebUI-Chat-Id": "chat-7", "X-OpenWebUI-User-Id": "u-1", "X-OpenWebUI-User-Name": "Al%C3%A9x"}
TITLE = (
    "### Task:\nGenerate a concise, 3-5 word title with an emoji summarizing the chat history.\n### Guidelines:\n- Be brief.\n"
    "### Output:\nJSON format\n### Chat History:\n<chat_history>\nUSER: Hi.\n</chat_history>"
)


def user(said: str) -> Json:
    """A user's message."""
    return {"role": "user", "content": said}


@pytest.fixture
async def webui(tmp_path: Path, database_url: str) -> AsyncIterator[World]:
    """A server that takes Open WebUI's forwarded headers."""
    async with running(tmp_path, database_url, openwebui_headers=True) as world:
        yield world


async def test_forwarded_headers_fill_the_identity(webui: World) -> None:
    """Chat, user id and user name come from Open WebUI; headers of our own win over them."""
    response = await webui.say("Hi.", headers=FORWARDED)
    assert response.headers[ID] == "chat-7"
    row = await webui.session("chat-7")
    assert (row["user_id"], row["user_name"], row["chat_id"]) == ("u-1", "Aléx", "chat-7")
    own = await webui.say("Hi.", "mine", headers={**FORWARDED, "X-Hermes-User-Id": "boss"})
    assert own.headers[ID] == "mine"
    assert (await webui.session("mine"))["user_id"] == "boss"
    error(await webui.chat("Hi.", headers={"X-OpenWebUI-Chat-Id": "x" * 300}), 400, "invalid_session_id", "X-OpenWebUI-Chat-Id")


async def test_forwarded_headers_are_ignored_by_default(light: World) -> None:
    """Without the setting they name no session."""
    response = await light.say("Hi.", headers=FORWARDED)
    assert ID not in response.headers
    assert await light.listed() == []


async def test_open_webui_sends_whole_histories(webui: World) -> None:
    """Its histories are recognised, also when the first reply is made anew and the history is one message."""
    await webui.say("Hi.", headers=FORWARDED)
    await webui.say("Hi.", headers=FORWARDED)
    assert await webui.messages("chat-7") == [("user", "Hi."), ("assistant", "Reply 2.")]
    assert await webui.messages("chat-7", "branch=1") == [("user", "Hi."), ("assistant", "Reply 1.")]
    await webui.say([user("Hi."), {"role": "assistant", "content": "Reply 2."}, user("More.")], headers=FORWARDED)
    assert len(await webui.messages("chat-7")) == 4


@pytest.mark.parametrize("streaming", [False, True])
async def test_background_requests_never_enter_a_transcript(webui: World, *, streaming: bool) -> None:
    """Titles, tags and follow-ups are answered, see nothing of the session, and leave nothing in transcript or memory."""
    await webui.say("Hi.", headers=FORWARDED)
    for task in (TITLE, "### Task:\nSuggest 3-5 relevant follow-up questions.", "### Task:\nGenerate 1-3 broad tags."):
        response = await webui.chat(task, headers=FORWARDED, stream=streaming)
        assert response.status_code == 200
        assert [m["content"] for m in webui.model.prompt] == [task]
    assert len(await webui.messages("chat-7")) == 2
    assert (await webui.session("chat-7"))["api_call_count"] == 1
    await webui.say([user("Hi."), {"role": "assistant", "content": "Reply 1."}, user("Go on.")], headers=FORWARDED)
    assert "### Task" not in webui.model.seen


async def test_background_requests_are_known_without_the_setting(light: World) -> None:
    """With the default prompts' headings they are recognised in any session; an ordinary message that begins alike is not one."""
    await light.say("Hi.", "s")
    await light.say(TITLE, "s")
    assert len(await light.messages("s")) == 2
    await light.say("### Task:\nWater the plants.", "s")
    assert len(await light.messages("s")) == 4
    assert text(await light.say("/new", "s")) != ""
