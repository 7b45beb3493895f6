"""What a question means to the ledger."""

from __future__ import annotations

import pytest

from mnemon.memory import language


@pytest.mark.parametrize(
    ("question", "slot"),
    [
        ("Which hobby did I start first?", "user/take up"),
        ("What books have I been through?", "user/read"),
        ("Which car do we have?", "user/own"),
        ("Who am I?", "user/name"),
        ("What do you know about me?", "user/employer"),
        ("What do I do for a living?", "user/employer"),
    ],
)
def test_a_question_that_names_a_kind_of_thing(question: str, slot: str) -> None:
    """It looks where one tells of such things: of a hobby by taking it up, of a book by reading it."""
    assert slot in language.wish(question).slots


def test_what_asks_nothing_looks_nowhere() -> None:
    """A statement about a hobby is no question for one."""
    assert language.wish("My hobby is fencing.").slots == ()


def test_the_slot_that_is_named_comes_first() -> None:
    """What a question names itself stands before what its kind suggests."""
    assert language.wish("What is my car?").slots[0] == "user/car"


@pytest.mark.parametrize(
    "question", ["Who am I?", "What do you know about us?", "What do I do?", "Where do we work?", "Do you remember me?", "What's my name?"]
)
def test_a_question_about_the_user_asks_for_whatever_was_stated(question: str) -> None:
    """Whoever asks who they are is answered with what there is."""
    wish = language.wish(question)
    assert wish.oneself
    assert "user/name" in wish.slots


@pytest.mark.parametrize("question", ["What do I do if it rains?", "Tell me about mammals.", "Who painted this?", "Where do they work?"])
def test_a_question_about_something_else_does_not(question: str) -> None:
    """Questions of other people and things bring what they name."""
    assert not language.wish(question).oneself
