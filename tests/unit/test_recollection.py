"""How recalled passages are written into a prompt, and that their price covers what is written."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemon.context import blocks, recollection
from mnemon.context.tokens import Counter
from mnemon.core.records import Recalled

DAY = 86400.0
COUNTER = Counter.for_model(None)
EXACT = Counter.for_model("gpt-4o")


@pytest.fixture(scope="module", autouse=True)
def _vocabularies() -> None:
    COUNTER.ready()
    EXACT.ready()


def passage(text: str, *, at: float = 0.0, position: int = 1, role: str = "user", start: int = 0, session: str = "s") -> Recalled:
    """A passage of a message."""
    return Recalled(text=text, role=role, at=at, session_id=session, position=position, score=1.0, start=start)


def lines(*shown: Recalled) -> list[str]:
    """What is written between the fences."""
    return recollection.block(shown).splitlines()[1:-1]


def test_passages_stand_under_their_day() -> None:
    """A day is written once, above all that was said on it; each passage says who spoke."""
    shown = [passage("Hello."), passage("Hi!", position=2, role="assistant"), passage("Again.", at=DAY, position=3)]
    assert lines(*shown) == ["1970-01-01", "- [user] Hello.", "- [assistant] Hi!", "1970-01-02", "- [user] Again."]


def test_a_stamp_is_written_once() -> None:
    """What messages open with in brackets is left out while it is the same as before, whatever stands between; nothing else is."""
    shown = [
        passage("[8 May] Ann: I went."),
        passage("Noted.", position=2, role="assistant"),
        passage("[8 May] Bob: Me too.", position=3),
        passage("[9 May] Ann: Home again.", position=4),
        passage("[x]", position=5),
    ]
    assert lines(*shown)[1:] == [
        "- [user] [8 May] Ann: I went.",
        "- [assistant] Noted.",
        "- [user] Bob: Me too.",
        "- [user] [9 May] Ann: Home again.",
        "- [user] [x]",
    ]


def test_pieces_that_follow_each_other_are_one_item() -> None:
    """Two adjacent pieces of one message are one item; a piece of another place or message is one of its own."""
    first, second = passage("One."), passage("Two.", start=5)
    assert lines(first, second)[1:] == ["- [user] One.", "  Two."]
    assert lines(first, passage("Far.", start=50))[1:] == ["- [user] One.", "- [user] Far."]
    assert lines(first, passage("Else.", start=5, position=2))[1:] == ["- [user] One.", "- [user] Else."]


TEXTS = st.lists(
    st.sampled_from(["[8 May] ", "[9 May, 18:02] ", "Ann: ", "word ", "2026 ", "\n", "<b>", "缓存", "é", "x" * 30]), max_size=12
).map("".join)
PASSAGES = st.lists(st.tuples(TEXTS, st.integers(0, 3), st.sampled_from(["user", "assistant", "tool"])), max_size=12)


@settings(max_examples=200, deadline=None)
@given(PASSAGES, st.integers(0, 400))
def test_the_price_covers_what_is_written(told: list[tuple[str, int, str]], room: int) -> None:
    """What is shown costs no more than was reckoned, and that is within the room, in the order in which it was said."""
    found = [passage(text, at=day * DAY, position=n, role=role) for n, (text, day, role) in enumerate(told) if text.strip()]
    for counter in (COUNTER, EXACT):
        shown, price = recollection.fit(found, counter=counter, room=room)
        assert price <= room
        assert shown == recollection.in_order(shown)
        if shown:
            assert counter.count(recollection.block(shown)) <= price


def test_headings_that_come_back_are_paid_for() -> None:
    """Where stamps take turns each is written again, and fewer passages fit."""
    texts = [f"[stamp number {n % 2} of this conversation] word" for n in range(8)]
    found = [passage(text, at=float(n), position=n) for n, text in enumerate(texts)]
    room = 100
    shown, price = recollection.fit(found, counter=COUNTER, room=room)
    assert shown
    assert price <= room
    assert COUNTER.count(recollection.block(shown)) <= price


def test_the_best_are_kept() -> None:
    """What does not fit is passed over for what does, best first."""
    found = [passage("best " * 10, position=3), passage("long " * 500, position=2), passage("short", position=1)]
    shown, _ = recollection.fit(found, counter=COUNTER, room=120)
    assert [r.position for r in shown] == [1, 3]
    assert recollection.fit(found, counter=COUNTER, room=10) == ([], 0)
    assert blocks.recall([]) == f"{blocks.RECALL}\n{blocks.RECALL_END}"
