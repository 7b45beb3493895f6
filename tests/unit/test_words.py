"""Words as the index knows them: the same for all the ways people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemon.memory.words import LONGEST, STOPWORDS, words


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("cache caches cached caching", "cache"),
        ("decision decisions", "decision"),
        ("libraries", "library"),
        ("CACHE Cache", "cache"),
        ("Café cafe\u0301 CAFE", "cafe"),
        ("Straße STRASSE", "strasse"),
        ("ＦＵＬＬ full", "full"),
        ("runs running run", "run"),
        ("classes class", "class"),
        ("ﬁle file files", "file"),
        ("한국어", "한국어"),
    ],
)
def test_forms_of_a_word_are_one(one: str, two: str) -> None:
    """Number, case, accents, endings and width do not hide a word."""
    assert set(words(one)) == set(words(two))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("user_id_42 is set", ("user_id_42", "set")),
        ("MNEMON_CONTEXT_BUDGET=16384", ("mnemon_context_budget", "16384")),
        ("CACHE-1234 v1.80", ("cach", "1234", "v1", "80")),
        ("what is it about?", ()),
        ("", ()),
        ("?!… \x00 \n\t", ()),
        ("naïve coöperation", ("naiv", "cooperation")),
        ("abc" * 30 + " short", ("short",)),
    ],
)
def test_what_a_text_is_found_by(text: str, found: tuple[str, ...]) -> None:
    """Identifiers stay whole, stopwords, signs and monsters are left out, the order is that of the text."""
    assert words(text) == found


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("缓存", "我们正在构建分布式缓存系统"),
        ("東京", "昨日は東京で会議がありました"),
        ("데이터베이스", "우리는 데이터베이스를 사용합니다"),
        ("Rust", "我们用Rust写缓存"),
        ("GPT4", "模型是GPT4吗"),
        ("缓存", "Rust缓存v2"),
        ("猫", "猫"),
    ],
)
def test_scripts_without_spaces(asked: str, said: str) -> None:
    """A word inside a sentence without spaces is found by itself, and so is a Latin one in the midst of it."""
    assert set(words(asked)) <= set(words(said))


def test_different_words_stay_different() -> None:
    """Neighbouring words and numbers are not mixed up."""
    different = ["port 8642", "port 8643", "Rust", "Rest", "user_id", "userid", "v1", "v10", "caches", "catches"]
    assert len({words(text) for text in different}) == len(different)


@given(st.text(max_size=300))
def test_any_text_has_plain_words(text: str) -> None:
    """Words are never empty, hold no blank, quote or control character, and are no longer than an index can bear."""
    for word in words(text):
        assert word
        assert all(c.isalnum() or c == "_" for c in word)
        assert len(word.encode()) <= 2046
        assert word not in STOPWORDS or len(word) <= 2


@given(st.text(max_size=200))
def test_case_does_not_matter(text: str) -> None:
    """A text in capitals is found by the same words, wherever its script knows capitals that fold back."""
    if text.upper().casefold() == text.casefold():
        assert words(text.upper()) == words(text)


def test_the_longest_word() -> None:
    """A word of the allowed length is kept, a longer one is not."""
    assert words("a1" * (LONGEST // 2) + " " + "b2" * LONGEST) == ("a1" * (LONGEST // 2),)


@pytest.mark.parametrize("length", [LONGEST, LONGEST + 1, 2 * LONGEST, 1000])
def test_a_long_sentence_without_blanks_is_no_monster(length: int) -> None:
    """Every pair of characters of a sentence of any length is indexed once."""
    sentence = "".join(chr(0x4E00 + n) for n in range(length))
    assert words(sentence) == tuple(sentence[n : n + 2] for n in range(length - 1))
