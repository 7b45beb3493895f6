"""Every way to fail: one shape, always JSON, nothing stored, and the server stays up."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from mnemon.core import clock as clocks
from mnemon.core import errors
from mnemon.edge import body as bodies
from mnemon.model import retry
from tests.http.world import ID, Json, World, error, frames, path_of, running, text

CHAT = "/v1/chat/completions"
POSTS = [CHAT, "/v1/context/preview", "/api/sessions", "/api/sessions/s/chat", "/api/sessions/s/chat/stream", "/api/sessions/s/fork"]


async def send(world: World, content: Any, path: str = CHAT, method: str = "POST") -> Any:
    """A body that is not made by a JSON encoder."""
    return await world.client.request(method, path, content=content, headers={"Content-Type": "application/json", ID: "s"})


@pytest.mark.parametrize("path", POSTS)
async def test_j24_a_body_must_be_a_json_object(light: World, path: str) -> None:
    """Other JSON, broken JSON, wrong encodings, NaN, too deep and cut-off bodies get 400 in the one shape."""
    wrong = [
        b"[]",
        b'"x"',
        b"1",
        b"null",
        b"true",
        b"{",
        b'{"a":',
        b"{'a': 1}",
        b'{"a": NaN}',
        b'{"a": Infinity}',
        b"\xff\xfe",
        b'{"a": "\xff"}',
    ]
    wrong += [b'{"a": 1} trailing', b"[" * 100_000, b'{"a":' * 100_000, b'{"messages": ' + b"[" * 200 + b"]" * 200 + b"}", b'{"a": "\x01"}']
    for body in wrong:
        error(await send(light, body, path), 400, "invalid_json")
    assert await light.listed() == []


@pytest.mark.parametrize("path", [CHAT, "/v1/context/preview", "/api/sessions/s/chat", "/api/sessions/s/chat/stream"])
async def test_an_empty_body_is_refused_where_one_is_needed(light: World, path: str) -> None:
    """No bytes, or only white space, is not a request."""
    for body in (b"", b"  \n"):
        error(await send(light, body, path), 400, "invalid_json")


def says(content: Any, role: str = "user", **rest: Any) -> list[Json]:
    """One message."""
    return [{"role": role, "content": content, **rest}]


@pytest.mark.parametrize(
    ("messages", "param"),
    [
        (None, "messages"),
        ([], "messages"),
        ("hi", "messages"),
        ({"role": "user"}, "messages"),
        (["hi"], "messages[0]"),
        ([["role", "user"]], "messages[0]"),
        ([{"content": "x"}], "messages[0].role"),
        (says("x", role="narrator"), "messages[0].role"),
        (says("x", role="function"), "messages[0].role"),
        ([*says("x"), {"role": "user"}], "messages[1].content"),
        (says(None), "messages[0].content"),
        (says(7), "messages[0].content"),
        (says({"text": "x"}), "messages[0].content"),
        (says(""), "messages[0].content"),
        (says(" \n"), "messages[0].content"),
        (says([]), "messages[0].content"),
        (says(["x"]), "messages[0].content[0]"),
        (says([{"type": "text"}]), "messages[0].content[0].text"),
        (says([{"type": "text", "text": 7}]), "messages[0].content[0].text"),
        (says([{"type": "input_audio", "input_audio": {}}]), "messages[0].content[0]"),
        (says([{"type": "file", "file": {}}]), "messages[0].content[0]"),
        (says([{"type": "image_url"}]), "messages[0].content[0].image_url.url"),
        (says([{"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}]), "messages[0].content[0].image_url.url"),
        (says([{"type": "image_url", "image_url": {"url": "data:text/html,x"}}]), "messages[0].content[0].image_url.url"),
        (says([{"type": "image_url", "image_url": {"url": "https://x"}}], role="system") + says("x"), "messages[0].content[0]"),
        (says("x", name=7), "messages[0].name"),
        (says("x", role="tool"), "messages[0].tool_call_id"),
        (says("x", role="tool", tool_call_id=""), "messages[0].tool_call_id"),
        (says(None, role="assistant") + says("x"), "messages[0].content"),
        (says(None, role="assistant", tool_calls="x") + says("x"), "messages[0].tool_calls"),
        (says(None, role="assistant", tool_calls=[{"id": "c"}]) + says("x"), "messages[0].tool_calls[0]"),
    ],
)
async def test_wrong_messages_are_refused_with_their_place(light: World, messages: Any, param: str) -> None:
    """What is wrong with a message is said with where it stands; nothing reaches the model or the store."""
    body = {"messages": messages} if messages is not None else {}
    for path in (CHAT, "/v1/context/preview"):
        error(await light.post(path, body, {ID: "s"}), 400, param=param)
    assert not light.model.requests
    assert await light.listed() == []


@pytest.mark.parametrize(
    "messages",
    [
        says("x") + says("y", role="assistant"),
        says("x", role="assistant"),
        says("x", role="system"),
        says("x", role="developer"),
        says("x") + says("y", role="assistant") + says("z", role="system"),
    ],
)
async def test_j26_a_turn_ends_with_a_user_or_a_tool(light: World, messages: list[Json]) -> None:
    """An assistant message last, or system text alone, is refused and never reinterpreted."""
    error(await light.chat(messages, "s"), 400, param="messages")
    assert not light.model.requests


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("model", [7, "", " ", "x" * 300, "a\x00b", ["m"]]),
        ("stream", ["yes", 1]),
        ("stream_options", ["x", []]),
        ("temperature", ["hot", -1, 3, True, []]),
        ("top_p", [2, "x"]),
        ("presence_penalty", [3]),
        ("frequency_penalty", [-3]),
        ("max_tokens", [0, -1, 1.5, "10", True]),
        ("max_completion_tokens", [0, "x"]),
        ("seed", ["x", 1.5]),
        ("logprobs", [1]),
        ("top_logprobs", [21, -1]),
        ("logit_bias", [[]]),
        ("metadata", ["x"]),
        ("user", [7, {}]),
        ("stop", [7, [7]]),
        ("tools", ["x", {}, ["x"], [{}], [{"type": "function"}], [{"type": "function", "function": {}}]]),
        ("tool_choice", ["maybe", 7, {}]),
        ("response_format", ["json", {}, {"type": "json_schema"}]),
        ("parallel_tool_calls", ["no"]),
    ],
)
async def test_wrong_types_are_refused_with_the_fields_name(light: World, field: str, values: list[Any]) -> None:
    """A known field of a wrong type or out of range gets 400 that names it."""
    for value in values:
        error(await light.chat("Hi.", "s", **{field: value}), 400, param=field)
    assert not light.model.requests
    assert await light.listed() == []


async def test_stream_options_go_with_streams(light: World) -> None:
    """`stream_options` without `stream` contradicts itself."""
    error(await light.chat("Hi.", "s", stream_options={"include_usage": True}), 400, param="stream_options")


async def test_j29_unknown_routes_and_methods_are_json(light: World) -> None:
    """404 and 405 have the one shape, and 405 names the methods that work."""
    for method, path in (
        ("GET", "/index.html"),
        ("GET", "/v1"),
        ("GET", "/v1/nowhere"),
        ("POST", "/api/sessions/s/nowhere"),
        ("GET", CHAT + "/"),
        ("PUT", "/x"),
    ):
        error(await light.client.request(method, path), 404, "route_not_found")
    for method, path in (("GET", CHAT), ("PUT", CHAT), ("DELETE", "/v1/models"), ("PUT", path_of("s")), ("GET", path_of("s") + "/fork")):
        response = await light.client.request(method, path)
        error(response, 405, "method_not_allowed")
        assert response.headers["allow"]


async def test_j25_a_body_over_ten_megabytes_is_refused(light: World) -> None:
    """11 MB get 413, with a length or in chunks, on every route that reads a body; just under ten do not."""

    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(11):
            yield b" " * 1_000_000

    for path in POSTS:
        error(await send(light, b" " * 11_000_000, path), 413, "body_too_large")
        error(await send(light, chunks(), path), 413, "body_too_large")
    inside = json.dumps({"messages": [{"role": "user", "content": "Hi."}], "metadata": {"x": "y" * 9_900_000}}).encode()
    assert (await send(light, inside)).status_code == 200


async def test_a_body_that_stops_coming_gets_408(light: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that falls silent in the middle of its body is told so in JSON."""
    monkeypatch.setattr(bodies, "SILENCE", 0.05)

    async def stops() -> AsyncIterator[bytes]:
        yield b'{"messages": '
        await asyncio.sleep(5)

    error(await send(light, stops()), 408, "request_timeout")


async def test_wrong_paths_and_queries(light: World) -> None:
    """Ids in the path follow the rules of the header, and numbers in a query are checked."""
    for path in ("/api/sessions/a%00b", "/api/sessions/a%0Ab/messages", "/api/sessions/" + "x" * 257, "/api/sessions/%FF"):
        error(await light.client.get(path), 400, "invalid_session_id")
    await light.say("Hi.", "s")
    for query in ("limit=0", "limit=x", "limit=99999", "offset=-1", "include_children=maybe", "session_key=" + "x" * 257, "limit=%00"):
        error(await light.client.get(f"/api/sessions?{query}"), 400, param=query.split("=")[0])
    for query in ("limit=0", "limit=1e3", "offset=x", "branch=-1", "branch=1", "order=newest"):
        error(await light.client.get(f"{path_of('s')}/messages?{query}"), 400, param=query.split("=")[0])
    for path in (path_of("nobody"), path_of("nobody") + "/messages"):
        error(await light.client.get(path), 404, "session_not_found")
    error(await light.client.delete(path_of("nobody")), 404, "session_not_found")
    error(await light.client.patch(path_of("nobody"), json={"title": "x"}), 404, "session_not_found")
    error(await light.client.get("/v1/receipts/rcpt_none"), 404, "receipt_not_found")
    error(await light.client.get("/v1/models/none"), 404, "model_not_found")


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"title": "x" * 300}, "title"),
        ({"title": 7}, "title"),
        ({"title": "a\nb"}, "title"),
        ({"id": 7}, "id"),
        ({"id": "x" * 257}, "id"),
        ({"id": "a\x1fb"}, "id"),
        ({"session_key": ["x"]}, "session_key"),
        ({"session_key": "x" * 257}, "session_key"),
        ({"system_prompt": 7}, "system_prompt"),
        ({"system_prompt": "a\x00b"}, "system_prompt"),
        ({"model": 7}, "model"),
        ({"source": 7}, "source"),
        ({"source": ""}, "source"),
        ({"unknown": 1}, "unknown"),
    ],
)
async def test_j24_wrong_fields_of_a_new_session(light: World, body: Json, param: str) -> None:
    """Creating a session refuses wrong and unknown fields with their name."""
    error(await light.post("/api/sessions", body), 400, param=param)
    assert await light.listed() == []


FAILURES = [
    (errors.ModelDenied("No."), 502, "upstream_auth", "upstream_error"),
    (errors.ModelBusy("Later.", retry_after=17), 429, "upstream_rate_limited", "rate_limit_error"),
    (errors.ModelTimeout("Silence."), 504, "upstream_timeout", "upstream_error"),
    (errors.ModelError("Failed with status 500."), 502, "upstream_error", "upstream_error"),
    (errors.BadReply("Nonsense."), 502, "upstream_bad_reply", "upstream_error"),
    (retry.Rejected("Too many images.", status=400, code="too_many", param="messages"), 400, "too_many", "invalid_request_error"),
    (retry.Rejected("No such model.", status=404, code="model_not_found"), 404, "model_not_found", "invalid_request_error"),
    (retry.Rejected("Teapot.", status=418), 502, "upstream_rejected", "invalid_request_error"),
]


@pytest.mark.parametrize(("failure", "status", "code", "kind"), FAILURES, ids=[f"{type(f[0]).__name__}-{f[1]}" for f in FAILURES])
@pytest.mark.parametrize("streaming", [False, True])
async def test_j23_a_failure_of_the_model_keeps_its_meaning(
    light: World, failure: Exception, status: int, code: str, kind: str, *, streaming: bool
) -> None:
    """Before the first word the failure is the response's status, JSON and stream; nothing is stored, and the session is free."""
    light.model.script.extend([failure, failure])
    for session in ("s", None):
        response = await light.chat("Hi.", session, stream=streaming)
        found = error(response, status, code)
        assert found["message"] == str(failure)
        assert found["type"] == kind
        if status == 429:
            assert response.headers["retry-after"] == "17"
    assert await light.listed() == []
    await light.say("Again.", "s")


async def test_j23_session_chat_tells_the_failure_of_the_model(light: World) -> None:
    """The JSON route answers with its status; the event stream, which had begun, with an error event and an end."""
    await light.say("Hi.", "s")
    light.model.script.extend([errors.ModelBusy("Later.", retry_after=5)] * 2)
    response = await light.post(f"{path_of('s')}/chat", {"message": "x"})
    error(response, 429, "upstream_rate_limited")
    assert response.headers["retry-after"] == "5"
    streamed = await light.post(f"{path_of('s')}/chat/stream", {"message": "x"})
    if streamed.status_code == 200:
        events = frames(streamed.content)
        assert [e.event for e in events][-2:] == ["error", "done"]
        assert events[-2].json["error"]["code"] == "upstream_rate_limited"
    else:
        error(streamed, 429, "upstream_rate_limited")
    assert len(await light.messages("s")) == 2


@pytest.mark.parametrize("kept", ["s", None])
async def test_j23_a_stream_that_breaks_off_ends_with_an_error_frame(light: World, kept: str | None) -> None:
    """After the first word the failure is a chunk with `error` and `finish_reason: error`, then `[DONE]`; nothing is stored."""
    light.model.script.append(["Half an ", "ans", errors.ModelTimeout("Silence.")])
    streamed = await light.stream("Hi.", kept)
    assert streamed.text == "Half an ans"
    assert streamed.end["choices"][0]["finish_reason"] == "error"
    assert set(streamed.end["error"]) == {"message", "type", "param", "code"}
    assert streamed.end["error"]["code"] == "upstream_timeout"
    assert "hermes" not in streamed.end
    assert await light.listed() == []


async def test_a_failure_of_our_own_gives_a_number_and_no_text(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What should not happen gets 500 with a request id, which the log has too; the exception's text stays inside."""
    broken = False

    def clock() -> float:
        if broken:
            raise RuntimeError("secret of the house")
        return clocks.system()

    async with running(tmp_path, clock=clock) as world:
        broken = True
        response = await world.post("/api/sessions", {})
        found = error(response, 500, "internal_error")
        assert "secret" not in response.text
        assert response.headers["x-request-id"] in found["message"]
        assert response.headers["x-request-id"] in caplog.text
        broken = False
        world.model.script.append(RuntimeError("secret of the model"))
        response = await world.chat("Hi.", "s")
        assert "secret" not in response.text
        error(response, 500, "internal_error")
        assert text(await world.say("Hi.", "s")) == "Reply 2."
