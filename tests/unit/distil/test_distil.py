"""Distilling: what of a message becomes a candidate, where it stands, and what is refused by which rule."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemon.memory.distil import distil
from mnemon.memory.statements import Origin
from tests.unit.distil.corpus import SAID, heard

LOG = "\n".join(f"INFO  worker-{i} picked batch {i * 7}-{i} in 12.3 ms" for i in range(400))
FRAGMENTS = st.sampled_from(
    (
        "I we my our the a is are was not live in Berlin Oslo 5433 4.18.2 because since so and but no, sorry typo: forget that what if"
        " , . ! ? : ; “ ” ' ``` > # - instead of after all these days 14 March last month GraphQL 😀 \u200b 猫 مرحبا \n moved to from"
    ).split(" ")
)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("I see Dr. Osei on Monday. My gate is B4.", ["I see Dr. Osei on Monday.", "My gate is B4."]),
        ("We run version 4.18.2. The N+1 issue costs us 3.5 seconds.", ["We run version 4.18.2.", "The N+1 issue costs us 3.5 seconds."]),
        ("- my GP is Dr. Osei\n2) Rent is 900.", ["my GP is Dr. Osei", "Rent is 900."]),
        ("My PIN is 4921 and my bank is Triodos.", ["My PIN is 4921", "my bank is Triodos."]),
        ("I use Flask 2.3 here, how do I test it?", ["I use Flask 2.3 here"]),
    ],
)
def test_statements_are_word_for_word(text: str, kept: list[str]) -> None:
    """Sentences end where they end, and clauses that fill slots of their own are statements of their own."""
    assert [c.text for c in heard(text).candidates] == kept


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("```\nport = 5433\nI live in Oslo.\n```", "code"),
        ("> I live in Oslo", "quotation"),
        ("2026-01-02 10:00:00 I live in Oslo", "log"),
        ("Traceback (most recent call last):", "log"),
        ("Is the Latitude 7440 any good as a laptop?", "question"),
        ("Suppose the store were on MariaDB 10.11.", "hypothetical"),
        ('My boss wrote: "I live in Oslo and play the oboe there."', "quotation"),
        ("Ok cool.", "small_talk"),
        ("Draft a mail to Ann.", "request"),
    ],
)
def test_what_is_no_statement_is_refused_by_name(text: str, rule: str) -> None:
    """Code, logs, quotations, questions, suppositions, requests and small talk become no facts of the user's."""
    found = heard(text)
    assert not found.candidates
    assert rule in {r.rule for r in found.refusals}


@pytest.mark.parametrize("origin", ["assistant", "tool", "job"])
def test_only_users_tell_facts(origin: Origin) -> None:
    """What an assistant, a tool or a job says never becomes a fact of the user's."""
    found = distil("I live in Oslo.", origin=origin, said_at=SAID)
    assert not found.candidates
    assert [r.rule for r in found.refusals] == [f"said_by_{origin}"]


@pytest.mark.parametrize(
    "note",
    [
        "NOTE FROM THE OFFICE: the stand-in treasurer of the club answers on extension 4410.",
        "# reminder to self: Ida keeps the spare key of the boathouse",
        "By the way the safe combination is with Mrs. Adair.",
    ],
)
def test_a_note_between_log_lines_is_found(note: str) -> None:
    """A line of somebody's words in a long paste is a statement, the log lines are not."""
    found = heard(f"Here is the log:\n{LOG}\n{note}\n{LOG}")
    assert [c.text for c in found.candidates] == [note]


def test_a_pasted_document_is_not_the_users_word() -> None:
    """A long text in which nobody says I or we is a document."""
    found = heard("The treaty of Ghent was signed in 1814. It ended the war between Britain and America. " * 30)
    assert not found.candidates
    assert {r.rule for r in found.refusals} == {"pasted"}


def test_times_are_resolved_in_the_time_zone() -> None:
    """Yesterday is the day before the day it is where the user is."""
    late = datetime(2026, 6, 17, 23, 30, tzinfo=UTC).timestamp()
    found = distil("I sold the boat yesterday.", origin="user", said_at=late, timezone="Asia/Tokyo").candidates[0].happened
    assert found is not None
    assert datetime.fromtimestamp(found.start, UTC) == datetime(2026, 6, 16, 15, tzinfo=UTC)


def test_an_unknown_time_zone_is_utc() -> None:
    """A name that is no time zone does not keep a message from being distilled."""
    assert distil("I sold the boat yesterday.", origin="user", said_at=SAID, timezone="Mars/Olympus").candidates


@given(st.lists(FRAGMENTS, max_size=60).map(" ".join) | st.text(max_size=300))
@settings(max_examples=300, deadline=None)
def test_any_text_is_read(text: str) -> None:
    """Whatever is said: no error, the same answer twice, and every candidate and refusal quotes the message."""
    found = heard(text)
    assert found == heard(text)
    for part in (*found.candidates, *found.refusals):
        assert text[part.start : part.end] == part.text
    for c in found.candidates:
        assert c.cause in c.text
        assert c.effect in c.text


@pytest.mark.parametrize(
    "text",
    [
        "a" * 300_000,
        "because " * 40_000,
        "not " * 80_000,
        '"' * 300_000,
        "no, " * 80_000,
        "as the " * 50_000,
        "forget the " * 30_000,
        "x\n" * 100_000,
        "`" * 300_000,
        "> " * 100_000,
        "so, I " * 160 + ".",
        "the reason " * 90 + ":",
        "if would " * 110,
        "。" * 300_000,
        "\u200b" * 300_000,
    ],
)
def test_nasty_texts_take_no_longer_than_others(text: str) -> None:
    """No text makes a pattern run wild: a third of a megabyte takes seconds at worst, on a busy machine too."""
    begun = time.process_time()
    heard(text)
    assert time.process_time() - begun < 8
