"""Who and where: the identity headers on every route that reads them."""

from __future__ import annotations

import pytest

from mnemon.core import errors
from tests.http.world import CHANNEL, ID, World, error, path_of, text

WHERE = {
    "X-Hermes-User-Id": "user_id",
    "X-Hermes-User-Name": "user_name",
    "X-Hermes-Chat-Id": "chat_id",
    "X-Hermes-Chat-Name": "chat_name",
    "X-Hermes-Chat-Type": "chat_type",
    "X-Hermes-Thread-Id": "thread_id",
}


NAMES = ["repo:acme/backend", "u:42", "a b", "50%", "100%25", "%zz", "Ünïcode/…", "日本語:メモ", "😀", "a%2Fb", "support:x?y=z#1"]


async def test_j08_any_printable_text_is_a_session_id(world: World) -> None:
    """An id may hold colons, slashes, percent signs and any script, and is found again in every route under the same name."""
    for name in NAMES:
        first = await world.say("Remember me.", name)
        assert first.json()["hermes"]["session_id"] == name
        echo = first.headers[ID]
        assert echo.isascii()
        second = await world.say("And again.", headers={ID: echo})
        assert second.json()["hermes"]["session_id"] == name
        assert second.headers[ID] == echo
        assert len(await world.messages(name)) == 4
        assert (await world.session(name))["id"] == name
    assert await world.listed() == NAMES[::-1]


async def test_an_ascii_echo_is_literal(light: World) -> None:
    """An ASCII id comes back as it was sent, percent signs included."""
    for name in ("repo:acme/backend", "a%41", "100%25", "%zz"):
        assert (await light.say("Hi.", name)).headers[ID] == name


async def test_percent_encoding_of_ascii_names_another_session(light: World) -> None:
    """Only what decodes to more than ASCII is decoded: `a%2Fb` is not `a/b`."""
    await light.say("Hi.", "a/b")
    await light.say("Hi.", "a%2Fb")
    assert sorted(await light.listed()) == ["a%2Fb", "a/b"]


async def test_percent_encoding_that_is_no_utf8_is_literal(light: World) -> None:
    """What does not decode to valid UTF-8 stays as it is."""
    assert (await light.say("Hi.", "%ff%fe")).json()["hermes"]["session_id"] == "%ff%fe"


async def test_names_are_trimmed_and_may_be_256_characters_long(light: World) -> None:
    """Space around a name does not count, and 256 characters of any script are allowed."""
    for name in ("x" * 256, "ü" * 256, "  trimmed\t"):
        response = await light.say("Hi.", headers=dict.fromkeys([ID, CHANNEL, *WHERE], name.encode()))
        again = await light.say("Hi.", headers={header: response.headers[header] for header in [ID, CHANNEL, *WHERE]})
        assert again.json()["hermes"]["session_id"] == again.json()["hermes"]["session_key"] == name.strip()
        row = await light.session(name.strip())
        assert {row[field] for field in WHERE.values()} == {name.strip()}
        assert row["message_count"] == 4


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/context/preview", "/api/sessions/s/chat", "/api/sessions/s/chat/stream"])
async def test_a_wrong_name_is_refused(light: World, path: str) -> None:
    """Names that are too long or hold control characters get 400 with the header's name, and nothing is stored."""
    codes = {ID: "invalid_session_id", CHANNEL: "invalid_session_key"}
    body = {"message": "Hi."} if path.startswith("/api") else {"messages": [{"role": "user", "content": "Hi."}]}
    for header in (ID, CHANNEL, *WHERE):
        for value in (b"x" * 257, "ü".encode() * 257, b"a\x01b", b"a\x7fb", "a\u2028b".encode(), b"%C3%A4%00b", "a\x85b".encode()):
            error(await light.post(path, body, {header: value}), 400, codes.get(header, "invalid_identity_header"), header)
    assert not light.model.requests
    assert await light.listed() == []


async def test_an_empty_header_counts_as_absent(light: World) -> None:
    """An empty id or key makes no session: the request is stateless."""
    response = await light.say("Hi.", headers={ID: "  ", CHANNEL: "", "X-Hermes-User-Id": " "})
    assert ID not in response.headers
    assert "hermes" not in response.json()
    assert await light.listed() == []


async def test_two_different_values_of_one_header_are_refused(light: World) -> None:
    """A header that is given twice may not contradict itself."""
    messages = [{"role": "user", "content": "Hi."}]
    response = await light.client.post("/v1/chat/completions", json={"messages": messages}, headers=[(ID, "a"), (ID, "b")])
    error(response, 400, "invalid_session_id", ID)


async def test_identity_is_stored_and_echoed(world: World) -> None:
    """Who and where are echoed on JSON and on streams, kept on the session, and what a later request leaves out stays."""
    headers = {name: f"{field} ä".encode() for name, field in WHERE.items()}
    response = await world.say("Hi.", "s", headers=headers)
    streamed = await world.stream("Hi.", "s", headers=headers)
    for name, field in WHERE.items():
        assert response.headers[name] == f"{field} %C3%A4"
        assert streamed.response.headers[name] == f"{field} %C3%A4"
    await world.say("Hi.", "s", headers={"X-Hermes-User-Name": "Alex"})
    row = await world.session("s")
    assert {field: row[field] for field in WHERE.values()} == {field: f"{field} ä" for field in WHERE.values()} | {"user_name": "Alex"}


async def test_the_user_field_stands_in_for_the_user_id(world: World) -> None:
    """The body's `user` is the user's id where the header does not say it; the header wins; both go on to the model."""
    first = await world.say("Hi.", "s", user="from-body")
    assert first.headers["X-Hermes-User-Id"] == "from-body"
    assert (await world.session("s"))["user_id"] == "from-body"
    await world.say("Hi.", "s", user="from-body", headers={"X-Hermes-User-Id": "from-header"})
    assert (await world.session("s"))["user_id"] == "from-header"
    assert world.model.requests[-1]["user"] == "from-body"
    error(await world.chat("Hi.", "s", user="x" * 257), 400, "invalid_identity_header", "user")
    error(await world.chat("Hi.", "s", user=7), 400, param="user")


async def test_session_chat_reads_and_echoes_identity(world: World) -> None:
    """The routes under a session take the same headers; the path names the session."""
    await world.say("Hi.", "s ä")
    headers = {"X-Hermes-User-Id": "u", CHANNEL: "chan:1", "X-Hermes-Thread-Id": "t"}
    for end in ("chat", "chat/stream"):
        response = await world.post(f"{path_of('s ä')}/{end}", {"message": "Hello."}, headers)
        assert response.status_code == 200
        assert response.headers[ID] == "s %C3%A4"
        assert {name: response.headers[name] for name in headers} == headers
    row = await world.session("s ä")
    assert (row["user_id"], row["thread_id"], row["session_key"]) == ("u", "t", "chan:1")


async def test_errors_echo_identity_too(light: World) -> None:
    """Every JSON response echoes who and where, refusals and failures of the model included."""
    headers = {ID: "s ä".encode(), CHANNEL: "chan", "X-Hermes-User-Id": "u"}
    light.model.script.append(errors.ModelError("Broken."))
    for said, status in (("Hi.", 502), ([], 400)):
        response = await light.chat(said, headers=headers)
        error(response, status)
        assert [response.headers[name] for name in headers] == ["s %C3%A4", "chan", "u"]
    await light.say("Hi.", headers=headers)
    conflict = await light.chat("Hi.", headers={**headers, CHANNEL: "other"})
    error(conflict, 409, "session_key_conflict")
    assert conflict.headers[CHANNEL] == "other"


async def test_headers_are_looked_at_only_behind_a_credential(light: World) -> None:
    """Without a valid key a wrong header is not even noticed: 401 comes first."""
    response = await light.of("wrong").chat("Hi.", headers={ID: b"a\x01"})
    error(response, 401, "invalid_api_key")


async def test_preview_echoes_identity(world: World) -> None:
    """A preview names the session it would run in."""
    await world.say("Hi.", "s", "chan")
    response = await world.post("/v1/context/preview", {"messages": [{"role": "user", "content": "?"}]}, {ID: "s", "X-Hermes-Chat-Id": "c"})
    assert response.headers[ID] == "s"
    assert response.headers["X-Hermes-Chat-Id"] == "c"


async def test_what_was_said_is_in_the_next_prompt(world: World) -> None:
    """A client sends only its newest message and the model sees the conversation."""
    first = await world.say("My name is Alex.", "s")
    assert text(first) == "Reply 1."
    await world.say("What is my name?", "s")
    assert [m["content"] for m in world.model.prompt] == ["My name is Alex.", "Reply 1.", "What is my name?"]
