"""Every sentence and dialogue of the wide corpora by itself: what is understood, and what is known to be missed."""

from __future__ import annotations

import pytest

from tests.unit.distil.corpus import Case, bystanders, heard, load, unmet, verdict

SENTENCES = [*load("wide.txt"), *load("blind.txt"), *load("third.txt")]
DIALOGUES = [*load("wide_pairs.txt"), *load("blind_pairs.txt"), *load("third_pairs.txt")]
AMONG = bystanders()


def named(case: Case) -> str:
    """The name of a case among the tests."""
    return " || ".join(case.messages)[:80]


@pytest.mark.parametrize("case", [c for c in SENTENCES if not c.missed], ids=named)
def test_a_sentence_is_understood(case: Case) -> None:
    """A sentence is kept with what is expected of it, or refused."""
    assert not unmet(case)


@pytest.mark.parametrize("case", [c for c in SENTENCES if c.missed], ids=named)
def test_a_sentence_that_is_not_understood_yet(case: Case) -> None:
    """What is not understood is missing or lacks something; nothing is kept that should not be."""
    assert unmet(case)
    assert case.expected[0] == "keep"


@pytest.mark.parametrize("case", [c for c in DIALOGUES if not c.missed], ids=named)
def test_a_dialogue_is_judged(case: Case) -> None:
    """The last message does to those before it what is expected, and nothing to any other."""
    assert verdict(case, AMONG)[0] in case.expected[0].split("|")


@pytest.mark.parametrize("case", [c for c in DIALOGUES if c.missed], ids=named)
def test_a_dialogue_that_is_not_understood_yet(case: Case) -> None:
    """Where a change is not understood both statements stand side by side; no wrong one is closed."""
    assert "keeps" not in case.expected[0]
    assert verdict(case, AMONG)[0] == "keeps"


@pytest.mark.parametrize("text", ["Ich wohne in Bremen.", "J'habite à Nantes.", "Vivo en Sevilla con mi hermana.", "Ho due gatti."])
def test_other_languages_are_read_without_harm(text: str) -> None:
    """A sentence of another language may be kept, whole, or be refused; it fills no slot of another's."""
    assert all(c.text == text and c.cue == "none" for c in heard(text).candidates)
