"""Turning phrases: what the user says to have turned round is marked as what holds now; what only sounds so is not."""

from __future__ import annotations

import pytest

from mnemon.memory.statements import CHANGE_OF_MIND
from tests.unit.distil.corpus import Case, bystanders, heard, load, marked, measure_turns

AMONG = bystanders()
DIALOGUES = [*load("turns.txt"), *load("turns_second.txt")]


def named(case: Case) -> str:
    """The name of a case among the tests."""
    return " || ".join(case.messages)[:80]


@pytest.mark.parametrize("case", [c for c in DIALOGUES if not c.missed], ids=named)
def test_a_change_of_mind_is_marked_and_nothing_else(case: Case) -> None:
    """The second message is marked as what holds now if it turns something round, and is not if it only sounds so."""
    assert marked(case, AMONG) == (case.expected[0] == "turns")


@pytest.mark.parametrize("case", [c for c in DIALOGUES if c.missed], ids=named)
def test_a_change_of_mind_that_is_not_understood_yet(case: Case) -> None:
    """What is missed is a change without a mark; nothing is marked that is none."""
    assert case.expected[0] == "turns"
    assert not marked(case, AMONG)


def test_hardly_anything_is_marked_that_is_no_change_of_mind() -> None:
    """Of what is marked at least nineteen in twenty are changes of mind."""
    decision = measure_turns("turns.txt").decision
    assert decision.right / (decision.right + decision.wrong) >= 0.95


@pytest.mark.parametrize(
    ("said", "about"),
    [
        ("You shouldn't keep my salary, please erase it.", "my salary"),
        ("You should not have my address; delete it.", "my address"),
        ("You shouldn't know what I said about Ivo, please wipe it.", "Ivo"),
        ("I shouldn't have told you about my debts, please delete that.", "my debts"),
        ("My salary was not meant for you.", "My salary"),
        ("The bit about my divorce wasn't meant for you, please erase it.", "my divorce"),
        ("My old PIN, please wipe it.", "My old PIN"),
        ("Don't remember my blood group please.", "my blood group"),
        ("That was not meant for you.", ""),
        ("Wipe it.", ""),
        ("Please don't remember that.", ""),
    ],
)
def test_what_should_not_be_known_is_taken_back(said: str, about: str) -> None:
    """Who says that something should not be known, and that it be wiped, takes it back."""
    (candidate,) = heard(said).candidates
    assert (candidate.rule, candidate.about) == ("retraction", about)


@pytest.mark.parametrize(
    "said",
    [
        "The gift was not meant for you but for Sam.",
        "My essay has a bad paragraph, please delete it.",
        "The last line of the poem, please delete it.",
        "You shouldn't have eggs in your fridge that long.",
        "Wipe the counter down and erase the whiteboard.",
        "The medicine was not intended for children.",
    ],
)
def test_work_and_advice_take_nothing_back(said: str) -> None:
    """What is to be deleted from a text, or was not meant for somebody else, is still known."""
    assert not any(c.rule == "retraction" for c in heard(said).candidates)


@pytest.mark.parametrize(
    "said", ["Okay, you win. We take the train.", "Scratch that. We take the train.", "We changed our minds. We take the train."]
)
def test_what_the_next_sentence_tells_is_turned_round(said: str) -> None:
    """A sentence that only announces a change of mind marks the one behind it."""
    assert heard(said).candidates[-1].rule == CHANGE_OF_MIND
