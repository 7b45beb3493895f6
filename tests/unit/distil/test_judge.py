"""Judging: what a new statement does to those that are known."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemon.memory import words
from mnemon.memory.distil import judge, matching
from mnemon.memory.statements import Origin, Statement
from tests.unit.distil.corpus import DAY, SAID, heard, load, statement

EVERYTHING = [m for name in ("sentences.txt", "pairs.txt") for case in load(name) for m in case.messages]


def known(*texts: str, at: float = SAID - DAY) -> list[Statement]:
    """Statements as the ledger would hold them."""
    found = [c for text in texts for c in heard(text, at).candidates]
    return [statement(f"s{i}", c, at) for i, c in enumerate(found)]


def test_a_weaker_origin_closes_nothing_of_a_stronger() -> None:
    """What was imported does not close what the user said."""
    new = heard("I live in Bodø.").candidates[0]
    assert judge(new, said_at=SAID, origin="import", known=known("I live in Tromsø.")).closes == ()
    assert judge(new, said_at=SAID, origin="user", known=known("I live in Tromsø.")).closes == ("s0",)


@pytest.mark.parametrize("origin", ["assistant", "tool", "job"])
def test_others_than_users_are_refused(origin: Origin) -> None:
    """A candidate that no user said is refused, whatever it says."""
    assert judge(heard("I live in Bodø.").candidates[0], said_at=SAID, origin=origin, known=[]).outcome == "refused"


def test_an_older_word_closes_no_newer() -> None:
    """A statement that was said before does not close one that was said after."""
    assert (
        judge(heard("I live in Bodø.").candidates[0], said_at=SAID - 2 * DAY, origin="user", known=known("I live in Tromsø.")).closes == ()
    )


def test_closed_statements_are_left_alone() -> None:
    """What is closed is not closed again."""
    closed = [replace(s, valid_to=SAID) for s in known("I live in Tromsø.")]
    assert judge(heard("I live in Bodø.").candidates[0], said_at=SAID, origin="user", known=closed).closes == ()


def test_only_what_is_named_is_taken_back() -> None:
    """Of a sentence with two facts, the one that is to be forgotten goes and the other stays."""
    held = known("My PIN is 4921 and my home branch is Ghent.")
    found = judge(heard("Please forget my PIN.").candidates[0], said_at=SAID, origin="user", known=held)
    assert [s.candidate.text for s in held if s.id in found.retracts] == ["My PIN is 4921"]
    assert found.outcome == "refused"


def test_forget_that_means_what_was_said_last() -> None:
    """It takes back the newest statement if that was said just now, and else nothing."""
    new = heard("Forget that.").candidates[0]
    assert judge(new, said_at=SAID, origin="user", known=known("My PIN is 4921.", at=SAID - 60)).retracts == ("s0",)
    assert judge(new, said_at=SAID, origin="user", known=known("My PIN is 4921.")).retracts == ()


def test_two_that_fit_alike_are_both_left_open() -> None:
    """A reversal that may mean either of two statements closes neither."""
    held = known("We're committed to the red barn.", "We're committed to the blue barn.")
    assert judge(heard("We sold the barn after all.").candidates[0], said_at=SAID, origin="user", known=held).closes == ()


@given(st.lists(st.sampled_from(EVERYTHING), min_size=1, max_size=12), st.sampled_from(EVERYTHING))
@settings(max_examples=200, deadline=None)
def test_what_shares_nothing_is_never_closed(told: list[str], new: str) -> None:
    """A statement is closed only by one that shares a word or its slot with it."""
    held = known(*told)
    by_id = {s.id: s.candidate for s in held}
    for candidate in heard(new).candidates:
        verdict = judge(candidate, said_at=SAID, origin="user", known=held)
        assert verdict == judge(candidate, said_at=SAID, origin="user", known=held)
        said = words.words(candidate.text)
        for old in (by_id[i] for i in verdict.closes):
            slot = old.subject and (old.subject, old.attribute) == (candidate.subject, candidate.attribute)
            assert slot or any(matching.has(w, matching.bag(words.words(old.text))) for w in said)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("My wife is Eva.", "My wife is a doctor."),
        ("The talk is on Monday.", "The talk is at 10:00."),
        ("Tom is 42.", "Tom is 185 cm."),
        ("The house is 120 m2.", "The house is 30 years old."),
    ],
)
def test_another_property_closes_nothing(old: str, new: str) -> None:
    """A name and a trade, a day and an hour, years and centimetres stand beside each other."""
    assert judge(heard(new).candidates[0], said_at=SAID, origin="user", known=known(old)).closes == ()


def test_what_was_meant_corrects_what_was_just_said() -> None:
    """A correction that names nothing is about the last value of its kind, as long as that was said just now."""
    meant = heard("No, I meant 5433.").candidates[0]
    just_said = known("My sister is called Ada.", "The server listens on port 5432.", at=SAID - 60)
    assert judge(meant, said_at=SAID, origin="user", known=just_said).closes == ("s1",)
    assert judge(meant, said_at=SAID, origin="user", known=known("The server listens on port 5432.")).closes == ()


def test_why_it_ended_is_no_reason_for_what_was() -> None:
    """An end that is told with its reason ends the statement, and does not explain it."""
    ended = heard("I no longer take ibuprofen because it hurt my stomach.").candidates[0]
    verdict = judge(ended, said_at=SAID, origin="user", known=known("I take ibuprofen."))
    assert (verdict.closes, verdict.explains) == (("s0",), ())
