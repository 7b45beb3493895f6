"""Promises of the ledger that hold whatever is said, in whatever order."""

from __future__ import annotations

import re

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mnemon.context import assemble, blocks
from mnemon.context.tokens import Counter
from mnemon.memory.builtin import Builtin
from mnemon.store.base import Driver
from tests.store.ledgers import Mind
from tests.store.steps import Store
from tests.tongue import TONGUE

SLOTS, VALUES = ("colour", "size", "shape"), ("red", "blue", "green", "large", "round")
SENTENCES = st.one_of(
    st.tuples(st.sampled_from(SLOTS), st.sampled_from(["is", "is", "reverts to"]), st.sampled_from(VALUES)).map(" ".join),
    st.sampled_from(SLOTS).map(lambda slot: f"forget {slot}"),
    st.sampled_from(SLOTS).map(lambda slot: f"audit explains {slot}"),
    st.sampled_from(["obey quietly", "a zebra came by", "pets has cat", "pets has dog"]),
)
TALK = st.lists(st.tuples(st.sampled_from(["a", "b"]), st.lists(SENTENCES, min_size=1, max_size=3).map(". ".join)), min_size=1, max_size=12)
QUESTION = st.lists(st.sampled_from([*SLOTS, *VALUES, "zebra", "before", "all", "audit"]), min_size=1, max_size=4).map(" ".join)
STATED = re.compile(r"(colour|size|shape) (?:is|reverts to) (\w+)((?: \([^)]*\))*)")
COUNTER = Counter.for_model(None)
SOME = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

Talk = list[tuple[str, str]]


async def told(driver: Driver, talk: Talk, *, key: str = "k", beside: Talk = []) -> Mind:  # noqa: B006 - nobody changes it
    """A memory that heard all of this under one key, and other things under another in between."""
    mind = Mind(Store.new(driver), Builtin(driver, TONGUE, timezone="UTC"))
    for n in range(max(len(talk), len(beside))):
        for session, text, under in [(*t, key) for t in talk[n : n + 1]] + [(f"x-{s}", t, "other") for s, t in beside[n : n + 1]]:
            mind.at = float(n) * 86_400
            await mind.say(text, session=session, key=under)
    return mind


def holding(talk: Talk) -> dict[str, str | None]:
    """What holds in the end, by slot; None where it was taken back."""
    now: dict[str, str | None] = {}
    for sentence in [s for _, text in talk for s in text.split(". ")]:
        if fills := STATED.match(sentence):
            now[fills[1]] = fills[2]
        elif sentence.startswith("forget "):
            now[sentence.split()[1]] = None
    return now


@SOME
@given(talk=TALK, question=QUESTION, room=st.integers(30, 600))
async def test_nothing_superseded_stands_alone(shared_driver: Driver, talk: Talk, question: str, room: int) -> None:
    """Whatever was said, asked and cut for want of room: what is over is marked so and what holds is shown; the forgotten is not."""
    mind = await told(shared_driver, talk)
    found = await mind.recall(question, session=talk[0][0])
    shown, cost = assemble.fit_recall(found, counter=COUNTER, room=room)
    assert cost <= room
    text = "\n".join(blocks.recalled_line(line) for line in shown)
    now = holding(talk)
    for slot, value, marks in STATED.findall(text):
        if value == now[slot] and "superseded" not in marks:
            continue
        assert now[slot] is not None, "it was to be forgotten"
        assert "(superseded" in marks, text
        holds = [m for s, v, m in STATED.findall(text) if (s, v) == (slot, now[slot]) and "superseded" not in m]
        assert holds, text


@SOME
@given(talk=TALK, other=TALK, question=QUESTION)
async def test_no_scope_depends_on_another(shared_driver: Driver, talk: Talk, other: Talk, question: str) -> None:
    """What is recalled under a key is the same, word for word, whatever was said under another meanwhile; and the same every time."""
    alone, beside = await told(shared_driver, talk), await told(shared_driver, talk, beside=other)
    lines = [[(r.text, r.marks, r.why) for r in await mind.recall(question, session=talk[0][0])] for mind in (alone, beside)]
    assert lines[0] == lines[1]
    assert await alone.states(talk[0][0]) == await beside.states(talk[0][0])
