"""How messages are cut into passages, and how a scope's index ranks them."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemon.core.records import Message
from mnemon.memory import marks
from mnemon.memory.builtin import Nothing
from mnemon.memory.engine import Engine
from mnemon.memory.fulltext import PASSAGE, FullText, pieces
from mnemon.memory.fulltext import plan as planned
from mnemon.memory.words import words
from mnemon.store.passages import Passage

WORDS_ALONE = Engine(embeddings=False)

LONG = st.lists(
    st.one_of(st.text(max_size=80), st.sampled_from(["word ", "x" * 700, "。", ". ", "\n\n", " " * 650, "你好" * 200, "\r\n", "? ! "])),
    max_size=25,
).map("".join)


def plan(text: str, role: str = "user") -> list[Passage]:
    """A message's passages, without vectors."""
    return planned(text, role=role, engine=WORDS_ALONE)


def spoken(passage: Passage) -> list[str]:
    """The words of a passage that stand in its text."""
    return [word for word in passage.words.split(" ") if not marks.is_mark(word)]


@settings(max_examples=300)
@given(LONG)
def test_pieces_cover_the_text_exactly(text: str) -> None:
    """Put together, the pieces are the text; none is empty or longer than a passage may be."""
    found = pieces(text)
    if found or text.strip():
        assert "".join(text[start:end] for start, end in found) == text
    assert all(0 < end - start <= PASSAGE for start, end in found)


@settings(max_examples=200)
@given(LONG)
def test_no_word_is_lost(text: str) -> None:
    """Every word of a message that stands between blanks and fits into half a passage is in the plan, where the passage says."""
    found = plan(text)
    kept = {word for passage in found for word in spoken(passage)}
    for token in text.split():
        if len(token) < PASSAGE // 2 and token.isalnum() and token.isascii():
            assert set(words(token)) <= kept
    for passage in found:
        assert list(words(text[passage.start : passage.start + passage.length])) == spoken(passage)
        assert spoken(passage)


def test_a_short_message_is_one_passage() -> None:
    """What fits into a passage is not cut, whatever its sentences."""
    text = "One. Two! Three?\nFour."
    assert pieces(text) == [(0, len(text))]


def test_long_messages_break_at_sentences() -> None:
    """Where there are sentences, no sentence is cut in two."""
    sentences = [f"This is sentence number {n} of a long report about the cache." for n in range(60)]
    text = " ".join(sentences)
    found = [text[start:end] for start, end in pieces(text)]
    assert len(found) > 3
    assert all(piece.rstrip().endswith(".") for piece in found)
    assert all(len(piece) > PASSAGE // 2 for piece in found[:-1]), "passages are filled"


def test_a_sentence_without_end_breaks_at_blanks() -> None:
    """Where there is no sentence, a cut falls between words; without blanks, anywhere."""
    text = "abcdefghi " * 200
    assert all(text[end - 1] == " " for _, end in pieces(text))
    assert [end - start for start, end in pieces("x" * 1500)] == [600, 600, 300]


@pytest.mark.parametrize("text", ["", "   \n", "?!", "the of and", " " * 2000, "\x00"])
def test_what_has_no_words_has_no_passage(text: str) -> None:
    """Blank or wordless messages leave nothing to find."""
    assert plan(text) == []


def test_what_was_said_and_found_out_is_remembered() -> None:
    """User's and assistant's messages and tool results are planned, one plan for each message; system text is not."""
    said = [Message({"role": role, "content": "the zebra"}) for role in ("user", "assistant", "system", "developer", "tool")]
    memory = FullText(None)  # type: ignore[arg-type]  # planning asks no driver
    assert [bool(p) for p in memory.prepare(said, [()] * len(said))] == [True, True, False, False, True]
    assert len(Nothing().prepare(said, at=1.0)) == len(said)


def test_passages_are_marked() -> None:
    """Replies, speakers and standing instructions are marked among the words; a speaker only where the message begins."""
    (order,) = plan("Always answer in French.")
    (reply,) = plan("Always answer in French.", "assistant")
    assert marks.STANDING in order.words.split(" ")
    assert reply.words.split(" ")[-1] == marks.REPLY
    assert marks.STANDING not in reply.words
    first, *rest = plan("[18:02] Mary Ann: " + "we met at the lake. " * 60)
    assert {"@mary", "@ann"} <= set(first.words.split(" "))
    assert rest
    assert not any("@" in passage.words for passage in rest)


def test_vectors_come_with_the_passages() -> None:
    """Once the encoder is loaded every passage has its vector; without embeddings none has."""
    engine = Engine(embeddings=True)
    assert [p.vector for p in planned("the zebra", role="user", engine=engine)] == [None], "nobody waits for it"
    engine.ready()
    assert [len(p.vector or b"") for p in planned("the zebra. " * 100, role="user", engine=engine)] == [128, 128]
    WORDS_ALONE.ready()
    assert [p.vector for p in plan("the zebra")] == [None]


def test_a_server_that_starts_loads_no_numbers() -> None:
    """Neither numpy nor the tokenizer is imported before memory is used."""
    code = "import sys, mnemon.app; print(sorted({'numpy', 'tokenizers', 'wordllama'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
