"""Promises of the ledger that hold whatever is said, in whatever order."""

from __future__ import annotations

import re

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mnemon.context import recollection
from mnemon.context.tokens import Counter
from mnemon.memory.builtin import Builtin
from mnemon.memory.fulltext import FullText
from mnemon.store.base import Driver
from tests.store.ledgers import Mind, written
from tests.store.steps import Store
from tests.tongue import TONGUE

SLOTS, VALUES = ("colour", "size"), ("red", "blue", "green", "large")
FILLING = st.tuples(st.sampled_from(SLOTS), st.sampled_from(["is", "is", "reverts to"]), st.sampled_from(VALUES)).map(" ".join)
OTHERS = [*(f"{verb} {slot}" for verb in ("forget", "audit explains") for slot in SLOTS), "obey quietly", "a zebra came by", "pets has cat"]
SENTENCES = st.integers(0, 3).flatmap(lambda n: FILLING if n else st.sampled_from(OTHERS))  # mostly fillings: they are what changes
TALK = st.lists(st.tuples(st.sampled_from(["a", "b"]), st.lists(SENTENCES, min_size=1, max_size=3).map(". ".join)), min_size=1, max_size=12)
QUESTION = st.lists(st.sampled_from([*VALUES, *VALUES, *SLOTS, "zebra", "before", "all", "audit"]), min_size=1, max_size=3).map(" ".join)
STATED = re.compile(r"(colour|size) (?:is|reverts to) (\w+)((?: \([^)]*\))*)")
COUNTER = Counter.for_model(None)
SOME = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

Talk = list[tuple[str, str]]


async def told(
    driver: Driver,
    talk: Talk,
    *,
    key: str = "k",
    beside: Talk = [],  # noqa: B006 - nobody changes it
    echoing: bool = False,
) -> Mind:
    """A memory that heard all of this under one key, and other things under another in between; `echoing` replies repeat what was said."""
    mind = Mind(Store.new(driver), Builtin(driver, FullText(driver, embeddings=False), TONGUE, timezone="UTC"))
    for n in range(max(len(talk), len(beside))):
        for session, text, under in [(*t, key) for t in talk[n : n + 1]] + [(f"x-{s}", t, "other") for s, t in beside[n : n + 1]]:
            mind.at = float(n) * 86_400
            await mind.say(text, session=session, key=under, reply="\n".join(f"So {s}" for s in text.split(". ")) if echoing else "")
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
@given(talk=TALK, question=QUESTION, echoing=st.booleans())
async def test_nothing_superseded_stands_alone(shared_driver: Driver, talk: Talk, question: str, *, echoing: bool) -> None:
    """Whatever was said, repeated in replies, asked and cut for want of room: what is over is marked so and what holds is shown.

    What was to be forgotten is not.
    """
    mind = await told(shared_driver, talk, echoing=echoing)
    found = await mind.recall(question, session=talk[0][0])
    now = holding(talk)
    for room in range(100, 1500, 50):
        shown, cost = recollection.fit(found, counter=COUNTER, room=room)
        assert cost <= room
        text = "\n".join(written(line) for line in shown)
        said = STATED.findall(text)
        for slot, value, marks in said:
            if value == now[slot] and "superseded" not in marks:
                continue
            assert now[slot] is not None, "it was to be forgotten"
            assert "(superseded" in marks, text
            assert [m for s, v, m in said if (s, v) == (slot, now[slot]) and "superseded" not in m], text


@SOME
@given(talk=TALK, other=TALK, question=QUESTION)
async def test_no_scope_depends_on_another(shared_driver: Driver, talk: Talk, other: Talk, question: str) -> None:
    """What is recalled under a key is the same, word for word, whatever was said under another meanwhile; and the same every time."""
    alone, beside = await told(shared_driver, talk), await told(shared_driver, talk, beside=other)
    lines = [[(r.text, r.marks, r.why) for r in await mind.recall(question, session=talk[0][0])] for mind in (alone, beside)]
    assert lines[0] == lines[1]
    assert await alone.states(talk[0][0]) == await beside.states(talk[0][0])
