"""Records: when two messages are the same, and what a record says of itself."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemon.core.records import (
    IDENTITY_FIELDS,
    Block,
    Effective,
    Identity,
    Json,
    Message,
    Prompt,
    Recalled,
    StoredMessage,
    TurnRequest,
    chained,
    text_of,
)


def call(name: str = "look", arguments: str = "{}", call_id: str = "c1") -> Json:
    """A tool call."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def image(url: str) -> Json:
    """An image part."""
    return {"type": "image_url", "image_url": {"url": url}}


SAME: list[tuple[Json, Json]] = [
    ({"role": "user", "content": "hello  world\n"}, {"role": "user", "content": " hello world"}),
    ({"role": "assistant", "content": "a", "reasoning_content": "because"}, {"role": "assistant", "content": "a"}),
    ({"role": "assistant", "content": None, "tool_calls": [call()]}, {"role": "assistant", "content": "", "tool_calls": [call()]}),
    ({"role": "assistant", "content": "a", "tool_calls": None, "refusal": None}, {"role": "assistant", "content": "a", "tool_calls": []}),
    ({"role": "user", "content": [{"type": "text", "text": "hi"}]}, {"role": "user", "content": "hi"}),
    ({"role": "user", "content": "hi", "name": "Alex"}, {"role": "user", "content": "hi"}),
    ({"role": "tool", "tool_call_id": "c1", "content": "42", "name": "look"}, {"role": "tool", "tool_call_id": "c1", "content": "42"}),
]

DIFFERENT: list[tuple[Json, Json]] = [
    ({"role": "user", "content": "a"}, {"role": "assistant", "content": "a"}),
    ({"role": "user", "content": "a"}, {"role": "user", "content": "A"}),
    ({"role": "user", "content": "a b"}, {"role": "user", "content": "ab"}),
    ({"role": "user", "content": [image("https://e/1")]}, {"role": "user", "content": [image("https://e/2")]}),
    ({"role": "user", "content": [image("https://e/1")]}, {"role": "user", "content": ""}),
    ({"role": "assistant", "content": None, "tool_calls": [call()]}, {"role": "assistant", "content": None}),
    (
        {"role": "assistant", "content": None, "tool_calls": [call(arguments='{"a":1}')]},
        {"role": "assistant", "content": None, "tool_calls": [call(arguments='{"a":2}')]},
    ),
    ({"role": "assistant", "tool_calls": [call(call_id="x")]}, {"role": "assistant", "tool_calls": [call(call_id="y")]}),
    ({"role": "assistant", "tool_calls": [call("one")]}, {"role": "assistant", "tool_calls": [call("two")]}),
    ({"role": "tool", "tool_call_id": "c1", "content": "42"}, {"role": "tool", "tool_call_id": "c2", "content": "42"}),
]


@pytest.mark.parametrize(("one", "two"), SAME)
def test_what_a_client_changes_without_meaning_it(one: Json, two: Json) -> None:
    """Trimmed blanks, dropped reasoning, null for "" and the like make no other message."""
    assert Message(one).digest() == Message(two).digest()


@pytest.mark.parametrize(("one", "two"), DIFFERENT)
def test_what_makes_another_message(one: Json, two: Json) -> None:
    """Role, words, images, calls and what a result answers tell messages apart."""
    assert Message(one).digest() != Message(two).digest()


@given(st.text(), st.text())
def test_words_decide(one: str, two: str) -> None:
    """Two texts are the same exactly if they are the same but for white space; half a surrogate pair is digested too."""
    same = one.split() == two.split()
    assert (Message({"role": "user", "content": one}).digest() == Message({"role": "user", "content": two}).digest()) is same
    assert len(Message({"role": "user", "content": one + "\ud800"}).digest()) == 16


@given(st.lists(st.text(max_size=3), max_size=6), st.lists(st.text(max_size=3), max_size=6))
def test_a_chain_stands_for_its_history(one: list[str], two: list[str]) -> None:
    """Two histories have the same chain exactly if they hold the same messages in the same order."""

    def chain(texts: list[str]) -> bytes:
        found = b""
        for text in texts:
            found = chained(found, Message({"role": "user", "content": text}).digest())
        return found

    same = [t.split() for t in one] == [t.split() for t in two]
    assert (chain(one) == chain(two)) is same


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("plain", "plain"),
        (None, ""),
        ([], ""),
        ([{"type": "text", "text": "a"}, image("https://e/1"), {"type": "text", "text": "b"}], "a\nb"),
        ([{"type": "refusal", "refusal": "no"}], "no"),
        ([{"type": "text", "text": None}], ""),
        ({"odd": 1}, ""),
    ],
)
def test_the_words_of_a_content(content: Any, text: str) -> None:
    """Text and refusals are words, images and nonsense are none."""
    assert text_of(content) == text
    assert Message({"role": "user", "content": content}).text == text


def test_a_message_without_calls() -> None:
    """A message whose tool calls are missing or null has none."""
    assert Message({"role": "assistant", "content": "a"}).calls == []
    assert Message({"role": "assistant", "content": "a", "tool_calls": None}).calls == []


def test_who_and_where_leave_out_the_names() -> None:
    """The fields of who and where are those of the headers, without session and key."""
    who = Identity(session_id="s", session_key="k", **dict.fromkeys(IDENTITY_FIELDS, "x"))
    assert who.where() == dict.fromkeys(IDENTITY_FIELDS, "x")
    assert set(IDENTITY_FIELDS) == set(Identity.__dataclass_fields__) - {"session_id", "session_key"}


@pytest.mark.parametrize(
    ("identity", "stateless"),
    [(Identity(), True), (Identity(user_id="1", chat_id="2"), True), (Identity(session_id="s"), False), (Identity(session_key="k"), False)],
)
def test_stateless_is_neither_id_nor_key(identity: Identity, *, stateless: bool) -> None:
    """Only a session id or a key makes a conversation; a background request is none whatever it names."""
    request = TurnRequest(tenant="t", identity=identity, messages=(), params={}, model="m", stream=False)
    assert (identity.stateless, request.stateless) == (stateless, stateless)
    assert dataclasses.replace(request, background=True).stateless


def test_system_text_is_not_spoken() -> None:
    """System and developer text hold for the request; the rest belongs into the transcript, in order."""
    roles = ["system", "user", "developer", "assistant", "tool", "user"]
    messages = tuple(Message({"role": r, "content": str(n)}) for n, r in enumerate(roles))
    request = TurnRequest(tenant="t", identity=Identity(), messages=messages, params={}, model="m", stream=False)
    assert [m.text for m in request.system()] == ["0", "2"]
    assert [m.text for m in request.spoken()] == ["1", "3", "4", "5"]


def test_the_hermes_object_is_complete() -> None:
    """Every reply says the same five things of its session, null where there is nothing to say."""
    assert Effective().as_json() == {
        "session_id": None,
        "parent_session_id": None,
        "session_key": None,
        "compressed": False,
        "receipt_id": None,
    }
    assert Effective(**Effective(session_id="s", compressed=True).as_json()) == Effective(session_id="s", compressed=True)


def test_an_account_names_its_evidence() -> None:
    """The account of a prompt gives each recalled passage with score and source, and all blocks with their details."""
    found = Recalled(text="t", role="user", at=1.0, session_id="s", position=3, score=0.123456)
    prompt = Prompt(
        messages=[],
        tokens=5,
        budget=10,
        blocks=(Block(name="state", tokens=2, detail={"lines": 1}),),
        recalled=(found,),
        left_out=({"block": "history"},),
    )
    account = prompt.account(texts=True)
    assert (account["tokens"], account["budget"], account["left_out"]) == (5, 10, [{"block": "history"}])
    assert account["blocks"] == [{"name": "state", "tokens": 2, "messages": 0, "lines": 1}]
    recalled = account["recalled"][0]
    assert (recalled["text"], recalled["role"], recalled["score"]) == ("t", "user", 0.1235)
    assert recalled["evidence"] == {"session_id": "s", "position": 3, "start": 0, "length": 1}
    assert "text" not in prompt.account()["recalled"][0]


def test_a_jobs_words_are_shown_as_a_jobs() -> None:
    """Whose words a message holds does not follow from its role alone."""
    asked, told = (
        StoredMessage(message=Message({"role": role, "content": "x"}), position=1, at=1.0, session_id="s", origin=origin)
        for role, origin in (("user", "job"), ("assistant", "job"))
    )
    assert (asked.speaker, told.speaker) == ("job", "job reply")
    assert dataclasses.replace(asked, origin="").speaker == "user"
