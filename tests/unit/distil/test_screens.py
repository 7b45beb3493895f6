"""Screens: what is looked at before a pattern is tried never keeps the pattern from finding what it would find."""

from __future__ import annotations

import pytest

from mnemon.memory import words
from mnemon.memory.distil import borrowed, causes, refusals, sentences, turning, worth
from tests.unit.distil.corpus import HERE, heard, load

SAID = sorted({message for file in HERE.glob("*.txt") for case in load(file.name) for message in case.messages})
ASKING = (
    "what is it|which one do we take|who's that|how come|any tips for me|isn't it late|don't you think|can't we go|by the way how's that"
    "|okay, where are we|hello, could you see|btw what about us|may i|had we known|whose are they|please would you|anyway, when do we go"
).split("|")
BORROWED = (
    "Proofread this text: I live in Oslo.|Please translate into French: my name is Ada.|Spell-check the following\nI am a baker."
    "|Summarise:\nI own a farm.|Look over this letter: I moved.|Respond to this mail: I quit."
    "|Write a story where I am a pirate.|Tell me a tale set in Rome."
    "|Let's role-play: I am king.|Pretend that we live on Mars.|You're the doctor and I am the patient."
    "|You will be the judge and I'll be the thief.|Improvise a sitcom starring me."
).split("|")
DATED = ("We met on 3-May 2025 at the mill.", "The lease ends 2027-03-01.", "The mill was built in 1987.", "We paid the rent in Q2.")


@pytest.mark.parametrize("text", ASKING)
def test_every_beginning_of_a_question_is_known(text: str) -> None:
    """However a question begins, its first letters let it through."""
    assert refusals.QUESTION.match(text)
    assert refusals.asks(text)


@pytest.mark.parametrize("text", BORROWED)
def test_every_beginning_of_what_is_borrowed_is_known(text: str) -> None:
    """Orders, plays and stories are found by the words that are looked for first."""
    assert borrowed.stretches(text)


@pytest.mark.parametrize("text", DATED)
def test_times_within_other_words_are_found(text: str) -> None:
    """A time is found though no word of it stands by itself."""
    assert heard(text).candidates[0].happened


def test_no_sentence_of_ours_is_screened_out() -> None:
    """Of all sentences that the rules are tried with, none is kept from a pattern that would find something in it."""
    for text in SAID:
        low = text.lower()
        assert not borrowed.ORDERED.search(low) or not borrowed.WORK.isdisjoint(borrowed.LETTERS.findall(low)), text
        assert not borrowed.FICTION.search(low) or borrowed.plays(low), text
        for piece in sentences.pieces(text):
            said = low[piece.start : piece.end]
            assert not refusals.QUESTION.match(said) or refusals.asks(said), said
            assert not causes.LEADING.match(said) or said.startswith(causes.LEADS), said
            assert not worth.NO_MORE.search(said) or "no" in said or "can" in said, said
            lows = frozenset(words.WORD.findall(said))
            assert not turning.FIRM.search(said) or lows & turning.FIRM_HINTS or said.startswith(turning.CONCEDING), said
            assert not turning.OVER.search(said) or lows & turning.OVER_HINTS, said
            assert not turning.GONE.search(said) or lows & turning.GONE_HINTS, said
            assert not turning.ALL.search(said) or lows & turning.ALL_HINTS, said
            assert not turning.MATTER.search(said) or lows & turning.SOFT_HINTS, said
