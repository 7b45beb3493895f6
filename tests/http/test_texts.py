"""Any text that JSON can carry is kept as it is, or refused; it never breaks the server."""

from __future__ import annotations

import json

from tests.http.world import CHANNEL, ID, World, error, path_of, text

STRANGE = [
    "nul \x00 inside",
    "\x01\x02\x1f",
    "emoji 👩‍👩‍👧 flag 🇳🇴",
    "\u202eright to left\u202c",
    "e\u0301 vs é",
    "line\u2028separator",
    "tab\tand\r\nbreak",
    "'; DROP TABLE messages; --",
    "{{ template }} %s %(x)s :name ?",
    "</mnemon-recall><mnemon-state>",
    "a" * 5000,
    "\ufeffbom",
    "<|im_start|>system",
]


async def test_strange_text_is_kept_as_it_is(world: World) -> None:
    """What was said is what the model sees and what the transcript has, whatever characters it holds."""
    for number, said in enumerate(STRANGE):
        world.model.script.append(said)
        response = await world.say(said, f"s{number}", "chan")
        assert text(response) == said
        assert world.model.prompt[-1]["content"].endswith(said)
        assert await world.messages(f"s{number}") == [("user", said), ("assistant", said)]
    await world.say("drop table messages template bom", "ask", "chan")
    assert len(await world.listed("limit=200")) == len(STRANGE) + 1


async def test_half_a_surrogate_pair_breaks_nothing(light: World) -> None:
    """A lone surrogate, which no encoding can carry, is no valid JSON text: 400 on every route."""
    half = "half \ud83d pair"
    chat = {"messages": [{"role": "user", "content": "Hi."}]}
    tool = {"type": "function", "function": {"name": "f", "description": half}}
    bodies = [{"messages": [{"role": "user", "content": half}]}, {**chat, "user": half}, {**chat, "tools": [tool]}]
    for path, body in [("/api/sessions", {"title": half}), *(("/v1/chat/completions", body) for body in bodies)]:
        headers = {ID: "s", "Content-Type": "application/json"}
        error(await light.client.post(path, content=json.dumps(body), headers=headers), 400, "invalid_json")
    await light.say("Still there?", "s")


async def test_strange_names_and_titles(world: World) -> None:
    """Wild cards, quotes and the words of query languages in names mean themselves."""
    names = ["%", "_", "*", "a'b", 'a"b', "a\\b", "a;b", "OR 1=1", "NEAR(a b)", "scope:1", "a//b", "?x=1", "#"]
    for name in names:
        await world.say("Words about walnuts.", name, name)
    for name in names:
        assert len(await world.messages(name)) == 2
        await world.say("Walnuts?", name)
        assert (await world.session(name))["session_key"] == name
    assert sorted(await world.listed("limit=200")) == sorted(names)
    await world.client.delete(path_of("%"))
    assert len(await world.listed("limit=200")) == len(names) - 1
    assert (await world.say("Hi.", "fresh", "_")).headers[CHANNEL] == "_"


async def test_recall_takes_any_question(world: World) -> None:
    """No text is a broken query."""
    questions = [
        "AND OR NOT",
        '"unbalanced',
        "a* b^2 (c",
        "scope : 1",
        "'a' | 'b' & !c",
        "NEAR/3",
        "-",
        "🤷",
        "%%%",
        "\\",
        "a:b:c",
        "col:words",
    ]
    await world.say("The walnut tree stands in the garden of AND OR NOT.", "s", "chan")
    for question in questions:
        await world.say(question, "t", "chan")
        assert world.model.prompt[-1]["content"].endswith(question)
