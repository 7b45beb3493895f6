"""Messages: every original in order, for ever, and every branch that an edit left behind."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mnemon.core.records import Json, Message, StoredMessage
from mnemon.store.base import Driver
from mnemon.store.messages import Messages, lines, lines_json, wire
from tests.store.steps import Store, Talk, assistant, note, opened, user


async def test_messages_come_back_as_they_were_sent(store: Store) -> None:
    """Every field of a message is kept, known to us or not, in any script, with any character JSON can carry."""
    bodies: list[Json] = [
        user("plain"),
        user([{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "https://e.org/i.png", "detail": "low"}}]),
        {**assistant(None, "call_1"), "reasoning_content": "hm", "x_vendor": {"deep": [1, 2.5, None, True]}},
        {"role": "tool", "tool_call_id": "call_1", "content": "42", "name": "look"},
        {"role": "assistant", "content": None, "refusal": "I would rather not"},
        user("nul \x00, tab \t, é e\u0301, 你好, 👩‍👩‍👧, \u2028, \U0010ffff, ' \" \\ % :name /* -- ; $1"),
        user("x" * 200_000),
    ]

    def work(talk: Talk) -> None:
        talk.begin("s")
        talk.say("s", *bodies)

    await store.write(work)
    assert [m.message.body for m in await store.read(lambda talk: talk.messages("s").live(after=0))] == bodies


async def test_a_stored_message_keeps_its_circumstances(store: Store) -> None:
    """Position, time, price, finish reason and session of a message are read back."""

    def work(talk: Talk) -> list[StoredMessage]:
        talk.begin("s")
        message = StoredMessage(
            message=Message(assistant("hi")), position=1, at=1234.56789, session_id="s", tokens=17, counted_by="x", finish_reason="length"
        )
        messages = talk.messages("s")
        messages.add([(message, b"d", b"c")])
        assert messages.digests() == [(1, b"d", b"c")]
        return messages.live(after=0)

    found = await store.write(work)
    assert [(m.position, m.at, m.session_id, m.tokens, m.counted_by, m.finish_reason) for m in found] == [
        (1, 1234.56789, "s", 17, "x", "length")
    ]


async def test_pages_are_complete_and_in_order(store: Store) -> None:
    """Paging forwards or backwards shows each message once, across compressions; behind the end there is nothing."""

    def work(talk: Talk) -> None:
        talk.begin("s")
        for number in range(6):
            talk.say("s", f"u{number}", assistant(f"a{number}"))
        talk.compress("s", "child", upto=8)
        talk.say("s", "u6")

    await store.write(work)
    every = [f"{who}{n}" for n in range(6) for who in "ua"] + ["u6"]

    async def page(offset: int, *, latest: bool) -> list[str]:
        found = await store.read(lambda talk: talk.messages("child").page(limit=4, offset=offset, latest=latest))
        return [m.text for m in found]

    assert [t for o in (0, 4, 8, 12, 16) for t in await page(o, latest=False)] == every
    assert [t for o in (0, 4, 8, 12, 16) for t in await page(o, latest=True)] == every[::-1]


async def test_the_live_tail_begins_behind_the_compressed_part(store: Store) -> None:
    """What is live is what follows a position, and nothing of an old branch."""

    def work(talk: Talk) -> list[list[str]]:
        talk.begin("s")
        talk.say("s", "one", "two", "three", "four")
        talk.branch("s", start=4)
        talk.say("s", "five")
        return [[m.text for m in talk.messages("s").live(after=after)] for after in (0, 2, 4, 5)]

    assert await store.write(work) == [["one", "two", "three", "five"], ["three", "five"], ["five"], []]


async def test_digests_are_those_of_the_active_path(store: Store) -> None:
    """The digests loaded for comparison are in order, chained, and know no branch."""

    def work(talk: Talk) -> Any:
        talk.begin("s")
        talk.say("s", "one", "two", "three")
        talk.branch("s", start=2)
        talk.say("s", "four")
        return talk.messages("s").digests(), talk.lineage("s").chain

    digests, head = await store.write(work)
    assert [position for position, _, _ in digests] == [1, 4]
    assert [digest for _, digest, _ in digests] == [Message(user(t)).digest() for t in ("one", "four")]
    assert digests[-1][2] == head


async def test_another_tenant_sees_no_message(store: Store) -> None:
    """The number of a lineage alone opens nothing: the tenant is part of every look-up."""

    def work(talk: Talk) -> int:
        talk.begin("s")
        talk.say("s", "mine", "mine too")
        talk.branch("s", start=2)
        return talk.lineage("s").id

    lineage = await store.write(work)

    def intrude(talk: Talk) -> Any:
        messages = Messages(talk.tx, talk.tenant, lineage)
        messages.archive(start=1, number=7, at=1.0)
        return messages.live(after=0), messages.page(limit=9, offset=0), messages.page(limit=9, offset=0, branch=1), messages.digests()

    assert await store.other().write(intrude) == ([], [], [], [])
    assert await store.read(lambda talk: talk.path("s")) == ["mine"]


async def test_states_are_kept_for_every_compression(store: Store) -> None:
    """The state before a position is the newest that knows nothing of it; a rewind forgets the later ones and falls back."""

    def work(talk: Talk) -> Any:
        talk.begin("s")
        for number in range(1, 7):
            talk.say("s", f"m{number}")
        for upto in (2, 4, 6):
            talk.compress("s", f"c{upto}", upto=upto)
        before = [talk.messages("s").compaction_before(p) for p in (1, 2, 3, 4, 5, 6, 7, 99)]
        talk.branch("s", start=4)
        after = talk.lineage("s")
        return before, (after.compacted_to, after.state, after.tip, after.branches), talk.messages("s").compaction_before(99)

    before, after, last = await store.write(work)
    states = {upto: (upto, (note(upto, f"state up to {upto}"),)) for upto in (2, 4, 6)}
    nothing: Any = (0, ())
    assert before == [nothing, nothing, states[2], states[2], states[4], states[4], states[6], states[6]]
    assert after == (2, states[2][1], "c6", 1)
    assert last == states[2]


async def test_a_compression_after_a_rewind_takes_its_place(store: Store) -> None:
    """After an edit the lineage may be compressed again at the same position, with the new state."""

    def work(talk: Talk) -> Any:
        talk.begin("s")
        talk.say("s", "one", "two")
        talk.compress("s", "c1", upto=2)
        talk.branch("s", start=1)
        talk.say("s", "three", "four")
        talk.compress("s", "c2", upto=4)
        return talk.lineage("s").compacted_to, talk.messages("s").compaction_before(4), talk.path("s"), talk.path("s", branch=1)

    assert await store.write(work) == (4, (0, ()), ["three", "four"], ["one", "two"])


def test_state_lines_survive_their_json() -> None:
    """Compressed state is read as it was written."""
    state = (note(1, 'a "quote", 你好, \x00'), note(2, ""))
    assert lines(lines_json(state)) == state
    assert lines(lines_json(())) == ()


def test_a_message_as_the_session_route_shows_it() -> None:
    """The listing of a session shows a message under Hermes' names."""
    body = {"role": "tool", "content": "42", "tool_call_id": "c", "name": "look"}
    shown = wire(StoredMessage(message=Message(body), position=3, at=9.0, session_id="s", tokens=5))
    named = {"id": 3, "session_id": "s", "role": "tool", "content": "42", "tool_call_id": "c", "tool_name": "look", "timestamp": 9.0}
    assert shown == {
        **named,
        "origin": None,
        "token_count": 5,
        "tool_calls": None,
        "finish_reason": None,
        "reasoning": None,
        "reasoning_content": None,
        "refusal": None,
        "deleted": False,
    }


# -- branches against a model ---------------------------------------------------------------------------------------------


class Model:
    """What branching means, said as simply as can be: every edit keeps a copy of the path it leaves."""

    def __init__(self) -> None:
        self.path: list[tuple[int, str]] = []
        self.left: list[list[str]] = []
        self.next = 1

    def say(self, text: str) -> None:
        """Append."""
        self.path.append((self.next, text))
        self.next += 1

    def edit(self, index: int) -> int:
        """Leave the path from an index on; the position it began at."""
        self.left.append([text for _, text in self.path])
        start = self.path[index][0]
        self.path = self.path[:index]
        return start


STEPS = st.lists(st.one_of(st.just("say"), st.integers(0, 30)), min_size=1, max_size=25)


def play(talk: Talk, moves: list[Any]) -> Model:
    """Carry out a series of messages and edits, in the store and in the model."""
    model = Model()
    talk.begin("s")
    for number, move in enumerate(moves):
        if move == "say" or not model.path:
            model.say(f"m{number}")
            talk.say("s", f"m{number}")
        else:
            talk.branch("s", start=model.edit(move % len(model.path)))
            model.say(f"m{number}")
            talk.say("s", f"m{number}")
    return model


def check(talk: Talk, model: Model) -> None:
    """The store shows the active path and every branch as the model has them, whole and by pages."""
    assert talk.path("s") == [text for _, text in model.path]
    for number, path in enumerate(model.left, 1):
        assert talk.path("s", branch=number) == path
        messages = talk.messages("s")
        assert [m.text for o in range(0, 40, 3) for m in messages.page(limit=3, offset=o, branch=number)] == path
    assert talk.lineage("s").branches == len(model.left)


def play_and_check(url: str, driver: Driver, loop: asyncio.AbstractEventLoop, moves: list[Any]) -> None:
    """One example, in a tenant of its own."""

    async def run() -> None:
        store = Store.new(driver)
        model = await store.write(lambda talk: play(talk, moves))
        await store.read(lambda talk: check(talk, model))

    loop.run_until_complete(run())


def test_old_branches_read_as_they_were(tmp_path: Path) -> None:
    """However a history was edited, and edited again inside edits, each path that was left reads exactly as it stood then."""
    url = f"sqlite:///{tmp_path}/mnemon.db"
    with asyncio.Runner() as runner:
        context = opened(url)
        driver = runner.run(context.__aenter__())

        @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
        @given(moves=STEPS)
        def example(moves: list[Any]) -> None:
            play_and_check(url, driver, runner.get_loop(), moves)

        try:
            example()
        finally:
            runner.run(context.__aexit__(None, None, None))


@pytest.mark.parametrize(
    "moves",
    [
        ["say", "say", "say", 1, "say", 1, "say", 0, "say", 2, 2, 1],
        ["say", 0, 0, 0, "say", "say", 2, 1, "say", 0],
        [*["say"] * 8, 6, 4, 2, 0, *["say"] * 5, 3, 4, 1],
    ],
)
async def test_nested_edits(store: Store, moves: list[Any]) -> None:
    """Edits inside edited histories leave every earlier path readable, on both databases."""
    model = await store.write(lambda talk: play(talk, moves))
    await store.read(lambda talk: check(talk, model))
