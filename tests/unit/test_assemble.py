"""The prompt: never over the budget, never without the client's own words, stable where caches need it."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mnemon.context import assemble, blocks, exchanges, recollection, tokens
from mnemon.context.assemble import REPLY_PRIMING, Material
from mnemon.context.tokens import Counter, Vocabulary, message_tokens, tools_tokens
from mnemon.core import errors
from mnemon.core.records import Json, Message, Prompt, Recalled, StateLine, StoredMessage

COUNTERS = ["estimate", "gpt-4o", "gpt-4", "bytes"]


@functools.cache
def counter(name: str = "estimate") -> Counter:
    """A counter, loaded; `bytes` is one that is not loaded yet."""
    if name == "bytes":
        return Counter(Vocabulary("cl100k_base", tokens.CL100K_PATTERN), exact=False)
    found = Counter.for_model(None if name == "estimate" else name)
    assert found.ready()
    return found


def user(content: Any) -> Json:
    """A user's message."""
    return {"role": "user", "content": content}


def said(position: int, body: Json | str, *, priced: Counter | None = None) -> StoredMessage:
    """A stored message; a text is the user's if its position is odd."""
    if isinstance(body, str):
        body = {"role": "user" if position % 2 else "assistant", "content": body}
    price = message_tokens(priced, body) if priced else None
    return StoredMessage(message=Message(body), position=position, at=position * 60.0, session_id="s", tokens=price)


def note(position: int, text: str, score: float = 1.0) -> StateLine:
    """A line of compressed state."""
    return StateLine(position=position, role="user", at=0.0, kind="fact", text=text, score=score)


def recalled(position: int, text: str, *, priced: Counter | None = None) -> Recalled:
    """A passage that was found, a whole message if it has a price."""
    price = message_tokens(priced, user(text)) if priced else None
    return Recalled(text=text, role="user", at=position * 60.0, session_id="s", position=position, score=1.0, tokens=price)


def made(
    material: Material, found: Sequence[Recalled] = (), *, budget: int = 4000, recall_tokens: int = 1000, by: str = "estimate"
) -> Prompt:
    """The prompt."""
    return assemble.Draft(material, counter=counter(by), budget=budget).prompt(found, recall_tokens=recall_tokens)


def cost(prompt: Prompt, params: Json | None, by: Counter) -> int:
    """What a prompt costs, counted as a whole and from scratch. An estimate must cover what its vocabulary really counts."""
    by = Counter(by.vocabulary, exact=True)
    return sum(message_tokens(by, m) for m in prompt.messages) + tools_tokens(by, params or {}) + REPLY_PRIMING


# -- the bound ------------------------------------------------------------------------------------------------------------

WORDS = st.sampled_from(
    ["the", "cache", "Rust", "\n", "\r\n", "  ", "12345", "你好", "é", "<mnemon-recall>", "</mnemon-state>", "{}", "👩‍👩‍👧", "x" * 40, "…"]
)
TEXT = st.one_of(st.lists(WORDS, max_size=40).map(" ".join), st.text(max_size=60), st.integers(1, 400).map(lambda n: "word " * n))
PART = st.one_of(
    TEXT.map(lambda t: {"type": "text", "text": t}),
    st.sampled_from(["low", "high"]).map(lambda d: {"type": "image_url", "image_url": {"url": "https://e.org/i", "detail": d}}),
)
CONTENT = st.one_of(TEXT, st.lists(PART, min_size=1, max_size=3))
SYSTEM = st.one_of(
    TEXT.map(lambda t: {"role": "system", "content": t}),
    TEXT.map(lambda t: {"role": "developer", "content": t}),
    TEXT.map(lambda t: {"role": "system", "content": [{"type": "text", "text": t}]}),
    TEXT.map(lambda t: {"role": "system", "content": t, "name": "n"}),
)
PARAMS = st.one_of(
    st.none(),
    st.just({"temperature": 1}),
    st.integers(1, 12).map(
        lambda n: {"tools": [{"type": "function", "function": {"name": f"tool{i}", "parameters": {}}} for i in range(n)]}
    ),
)


@st.composite
def exchange(draw: st.DrawFn) -> list[Json]:
    """A user's message and what answers it, with or without tools."""
    found: list[Json] = [user(draw(CONTENT))]
    for number in range(draw(st.integers(0, 2))):
        call = {"id": f"c{number}", "type": "function", "function": {"name": "look", "arguments": json.dumps({"q": draw(TEXT)})}}
        found += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": draw(TEXT)},
        ]
    return [*found, {"role": "assistant", "content": draw(TEXT), "reasoning_content": draw(TEXT)}]


@st.composite
def materials(draw: st.DrawFn) -> tuple[Material, list[Recalled], str, int, int]:
    """(anything a prompt may be made from, what was recalled, counter, budget, allowance for recall)."""
    by = draw(st.sampled_from(COUNTERS))
    budget = draw(st.integers(512, 6000)) * (4 if by == "bytes" else 1)
    priced = counter(by) if draw(st.booleans()) else None
    bodies = [body for group in draw(st.lists(exchange(), max_size=6)) for body in group]
    history = [said(n, body, priced=priced) for n, body in enumerate(bodies, 1)]
    new: list[Json] = [user(draw(CONTENT))]
    if draw(st.booleans()) and history:
        history.pop()  # the reply is made anew, or the tool's result is only coming now
        late = history[-1].role == "tool" and draw(st.booleans())
        new = [history.pop().message.body] if late else []
    state = [note(n, draw(TEXT), draw(st.floats(0, 3))) for n in range(draw(st.integers(0, 8)))]
    found = [recalled(n, draw(TEXT), priced=priced if draw(st.booleans()) else None) for n in range(draw(st.integers(0, 8)))]
    material = Material(
        system_prompt=draw(st.one_of(st.none(), TEXT)),
        system=[Message(b) for b in draw(st.lists(SYSTEM, max_size=3))],
        state=state,
        history=history,
        new=[Message(b) for b in new],
        params=draw(PARAMS),
    )
    return material, found, by, budget, draw(st.integers(0, budget))


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(materials())
def test_never_over_the_budget(case: tuple[Material, list[Recalled], str, int, int]) -> None:
    """Whatever it is made from, a prompt counted as a whole stays within the budget, and holds all that the client itself sent."""
    material, found, by, budget, recall_tokens = case
    try:
        prompt = made(material, found, budget=budget, recall_tokens=recall_tokens, by=by)
    except errors.Invalid:
        own = [*(m.body for m in material.system), *(m.body for m in material.new)]
        kept = [m.message.body for m in material.history] if exchanges.continues(material.new) else []
        most = sum(message_tokens(counter(by), m) for m in [*own, *kept]) + tools_tokens(counter(by), material.params or {})
        assert most + message_tokens(counter(by), user(material.system_prompt or "")) + REPLY_PRIMING > budget
        return
    assert cost(prompt, material.params, counter(by)) <= prompt.tokens <= budget
    check_own_words(material, prompt)
    check_exchanges(prompt)
    check_account(material, found, prompt)


def check_own_words(material: Material, prompt: Prompt) -> None:
    """The newest messages close the prompt as they were sent, but for the recall block in front of the newest user message."""
    tail = prompt.messages[len(prompt.messages) - len(material.new) :]
    for sent, shown in zip((m.body for m in material.new), tail, strict=True):
        if isinstance(sent["content"], str):
            assert shown["content"].endswith(sent["content"])
        else:
            assert shown["content"][-len(sent["content"]) :] == sent["content"]
        assert {k: v for k, v in shown.items() if k != "content"} == {k: v for k, v in sent.items() if k != "content"}
    everything = json.dumps(prompt.messages)
    for system in material.system:
        assert json.dumps(system.body["content"]).strip('"[]{}') in everything


def check_exchanges(prompt: Prompt) -> None:
    """No tool result without its call before it."""
    called: set[str] = set()
    for message in prompt.messages:
        called.update(c["id"] for c in message.get("tool_calls") or ())
        if message["role"] == "tool":
            assert message["tool_call_id"] in called


def check_account(material: Material, found: list[Recalled], prompt: Prompt) -> None:
    """Every token and every message is accounted for, and what was left out is told."""
    assert sum(b.tokens for b in prompt.blocks) + REPLY_PRIMING == prompt.tokens
    parts = {b.name: b for b in prompt.blocks}
    left = {part["block"]: part for part in prompt.left_out}
    assert parts["history"].messages + left.get("history", {}).get("messages", 0) == len(material.history)
    assert parts["state"].detail["lines"] + left.get("state", {}).get("lines", 0) == len(material.state)
    assert parts["recall"].detail["passages"] + left.get("recall", {}).get("passages", 0) == len(found)
    assert len(prompt.recalled) == parts["recall"].detail["passages"]


@pytest.mark.parametrize("by", COUNTERS)
def test_one_token_decides(by: str) -> None:
    """A request that just fits is sent, one token less of budget refuses it: the bound is exact."""
    material = Material(system=[Message({"role": "system", "content": "Be brief."})], new=[Message(user("hello " * 200))])
    needed = made(material, budget=10**6, by=by).tokens
    assert made(material, budget=needed, by=by).tokens == needed
    with pytest.raises(errors.Invalid):
        made(material, budget=needed - 1, by=by)


def test_what_does_not_fit_is_told_with_numbers() -> None:
    """The refusal names what is needed, what there is, and the setting."""
    with pytest.raises(errors.Invalid) as caught:
        made(Material(new=[Message(user("word " * 3000))]), budget=1000)
    error = caught.value
    needed = 3750  # a quarter of the characters is too much already: nothing is counted
    assert (error.code, error.param) == ("context_length_exceeded", "messages")
    assert f"needs {needed} tokens" in error.message
    assert "budget is 1000 (MNEMON_CONTEXT_BUDGET)" in error.message


@pytest.mark.parametrize("what", ["system", "system_prompt", "tools", "image"])
def test_every_own_part_counts(what: str) -> None:
    """System text, a session's own prompt, tools and images of the request count like its messages."""
    tool = {"type": "function", "function": {"name": "f", "description": "word " * 3000}}
    material = {
        "system": Material(system=[Message({"role": "developer", "content": "word " * 3000})], new=[Message(user("hi"))]),
        "system_prompt": Material(system_prompt="word " * 3000, new=[Message(user("hi"))]),
        "tools": Material(params={"tools": [tool]}, new=[Message(user("hi"))]),
        "image": Material(new=[Message(user([{"type": "image_url", "image_url": {"url": "https://e/i"}}]))]),
    }[what]
    with pytest.raises(errors.Invalid):
        made(material, budget=1000)
    assert made(material, budget=10_000).tokens > 1000


# -- what stays and what goes ---------------------------------------------------------------------------------------------


def test_the_newest_history_stays() -> None:
    """When the budget is full whole exchanges are left out, the oldest first, without a gap, and the account says which."""
    history = [said(n, f"{n} " + "word " * 60, priced=counter()) for n in range(1, 41)]
    prompt = made(Material(history=history, new=[Message(user("and now?"))]), budget=1500)
    shown = [int(m["content"].split()[0]) for m in prompt.messages[:-1]]
    assert shown == list(range(shown[0], 41))
    assert shown[0] % 2 == 1, "an exchange begins with the user's message"
    assert prompt.left_out == (
        {
            "block": "history",
            "messages": shown[0] - 1,
            "tokens": sum(m.tokens or 0 for m in history[: shown[0] - 1]),
            "from_position": 1,
            "to_position": shown[0] - 1,
            "reason": "the budget is full",
        },
    )
    assert prompt.blocks[3].detail == {"from_position": shown[0], "to_position": 40}


def test_nothing_is_left_out_without_need() -> None:
    """Where everything fits, everything is there in its order, and nothing is reported as left out."""
    history = [said(n, f"text {n}") for n in range(1, 9)]
    material = Material(
        system_prompt="P",
        system=[Message({"role": "system", "content": "S"})],
        state=[note(1, "N")],
        history=history,
        new=[Message(user("?"))],
    )
    prompt = made(material)
    assert prompt.messages == [
        {"role": "system", "content": f"P\n\nS\n\n{blocks.state((note(1, 'N'),))}"},
        *(m.message.body for m in history),
        user("?"),
    ]
    assert prompt.left_out == ()


def test_a_result_keeps_its_exchange() -> None:
    """When a tool result is new, the exchange with its call is in the prompt, however full it is; if both do not fit, it is refused."""
    call = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
    }
    history = [said(1, "old " * 200), said(2, "older reply"), said(3, "question " * 100), said(4, call)]
    new = [Message({"role": "tool", "tool_call_id": "c", "content": "result " * 50})]
    prompt = made(Material(history=history, new=new), budget=512)
    assert [m["role"] for m in prompt.messages] == ["user", "assistant", "tool"]
    with pytest.raises(errors.Invalid):
        made(Material(history=history, new=new), budget=200)


def test_a_regenerated_reply_keeps_its_question() -> None:
    """When nothing is new, the last exchange is what is answered again."""
    history = [said(1, "first"), said(2, "reply"), said(3, "question")]
    assert made(Material(history=history)).messages[-1] == user("question")


def test_the_weakest_notes_go_first() -> None:
    """When the state does not fit, the notes of the lowest score are dropped, the order of the others stays, and the drop is told."""
    notes = [note(n, f"note {n} " + "word " * 30, score=float(n % 5)) for n in range(20)]
    prompt = made(Material(state=notes, new=[Message(user("?"))]), budget=600)
    lines = [line for line in prompt.messages[0]["content"].splitlines() if line.startswith("- [#")]
    kept = [int(line.split("#")[1].split()[0]) for line in lines]
    dropped = sorted(set(range(20)) - set(kept))
    assert kept == sorted(kept)
    assert kept
    assert dropped
    assert max(n % 5 for n in dropped) <= min(n % 5 for n in kept)
    assert prompt.left_out == ({"block": "state", "lines": len(dropped), "reason": "the budget is full"},)


# -- recall ---------------------------------------------------------------------------------------------------------------


def test_recall_stands_in_the_newest_user_message() -> None:
    """Recalled passages come in front of the newest user message's own words, in the order in which they were said."""
    found = [recalled(9, "best"), recalled(2, "early")]
    prompt = made(Material(history=[said(1, "before"), said(2, "reply")], new=[Message(user("question"))]), found)
    block = recollection.block([found[1], found[0]])
    assert prompt.messages[0] == user("before")
    assert prompt.messages[-1] == user(f"{block}\n\nquestion")
    assert [r.position for r in prompt.recalled] == [2, 9]


def test_recall_beside_images() -> None:
    """A message of parts gets the passages as a text part of its own, its other parts and fields untouched."""
    parts = [{"type": "text", "text": "what is this?"}, {"type": "image_url", "image_url": {"url": "https://e/i", "detail": "low"}}]
    body = {**user(parts), "name": "Alex"}
    prompt = made(Material(new=[Message(body)]), [recalled(1, "a cat")])
    first, *rest = prompt.messages[0]["content"]
    assert rest == parts
    assert first["type"] == "text"
    assert "a cat" in first["text"]
    assert prompt.messages[0]["name"] == "Alex"
    assert body["content"] == parts, "what is stored is not touched"


def test_recall_while_tools_work() -> None:
    """While a tool's result is the newest message, the passages stay with the user's question before it."""
    call = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
    }
    result = {"role": "tool", "tool_call_id": "c", "content": "42"}
    prompt = made(Material(history=[said(1, "question"), said(2, call)], new=[Message(result)]), [recalled(9, "fact")])
    assert prompt.messages[0]["content"].endswith("\n\nquestion")
    assert "fact" in prompt.messages[0]["content"]
    assert prompt.messages[1:] == [call, result]


def test_recall_keeps_to_its_allowance() -> None:
    """Passages fill their allowance, best first, and a smaller one behind one that does not fit is still taken; the rest is told."""
    found = [recalled(1, "a " * 100), recalled(2, "b " * 900), recalled(3, "c " * 10), recalled(4, "d " * 900)]
    prompt = made(Material(new=[Message(user("?"))]), found, budget=4000, recall_tokens=300)
    assert [r.position for r in prompt.recalled] == [1, 3]
    block = {b.name: b for b in prompt.blocks}["recall"]
    assert 0 < block.tokens <= 300
    best = [line.account() for line in (found[1], found[3])]
    assert prompt.left_out == ({"block": "recall", "passages": 2, "reason": "the allowance is full", "best": best},)


def test_no_allowance_no_recall() -> None:
    """Without an allowance nothing is recalled, and not even an empty block is paid for."""
    prompt = made(Material(new=[Message(user("?"))]), [recalled(1, "fact")], recall_tokens=0)
    assert prompt.messages == [user("?")]
    assert {b.name: b.tokens for b in prompt.blocks}["recall"] == 0


# -- stability ------------------------------------------------------------------------------------------------------------


def test_the_prefix_stays_while_the_history_grows() -> None:
    """From turn to turn everything before the newest message is byte-identical, whatever is recalled."""
    state = [note(n, f"note {n}") for n in range(5)]
    system = [Message({"role": "system", "content": "Be brief."}), Message({"role": "developer", "content": "Really."})]
    history: list[StoredMessage] = []
    before = ""
    for turn in range(12):
        new = Message(user(f"question {turn}"))
        found = [recalled(turn, f"passage {turn}")] if turn % 2 else []
        prompt = made(Material(system_prompt="P", system=system, state=state, history=history, new=[new]), found, budget=20_000)
        prefix = json.dumps(prompt.messages[:-1])[:-1]
        assert prefix.startswith(before)
        before = prefix
        history = [*history, said(2 * turn + 1, new.body), said(2 * turn + 2, f"answer {turn}")]


def test_system_texts_are_one_message() -> None:
    """Neighbouring plain system texts are merged, in order: many chat templates allow no second one."""
    texts = [Message({"role": "system", "content": t}) for t in ("one", "two")]
    assert made(Material(system=texts, new=[Message(user("?"))])).messages[0] == {"role": "system", "content": "one\n\ntwo"}


@pytest.mark.parametrize(
    "odd",
    [
        {"role": "developer", "content": "two"},
        {"role": "system", "content": "two", "name": "n"},
        {"role": "system", "content": [{"type": "text", "text": "two"}]},
    ],
)
def test_other_system_texts_stay_apart(odd: Json) -> None:
    """A developer message, a named one, or one of parts is sent as it came, in its place."""
    system: list[Json] = [{"role": "system", "content": "one"}, odd, {"role": "system", "content": "three"}]
    prompt = made(Material(system=[Message(b) for b in system], new=[Message(user("?"))]))
    assert prompt.messages[:-1] == system


# -- before the tokenizer is there ------------------------------------------------------------------------------------------


def test_the_rough_bound_is_a_bound() -> None:
    """The bound that decides whether counting must wait for the tokenizer covers everything a prompt is made of, tools and calls too."""
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "x" * 5000}}
    pieces = [
        Material(system_prompt="é" * 3000),
        Material(system=[Message({"role": "system", "content": "x" * 5000})]),
        Material(state=[note(1, "x" * 5000)]),
        Material(history=[said(1, "x" * 5000)]),
        Material(history=[said(1, {"role": "assistant", "content": None, "tool_calls": [call]})]),
        Material(history=[said(1, {"role": "assistant", "content": "", "reasoning_content": "x" * 5000})]),
        Material(new=[Message(user("x" * 5000))]),
        Material(new=[Message({"role": "tool", "tool_call_id": "c", "content": "x" * 5000})]),
        Material(params={"tools": [{"type": "function", "function": {"name": "f", "description": "x" * 5000}}]}),
        Material(params={"response_format": {"type": "json_schema", "json_schema": {"x": "x" * 5000}}}),
    ]
    for material in pieces:
        assert assemble.roughly(material) >= 5000, material
