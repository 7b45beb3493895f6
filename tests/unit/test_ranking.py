"""The pure parts of ranking: fusion, neighbours, picking; and vectors in half bytes."""

from __future__ import annotations

import numpy as np
import pytest

from mnemon.memory import question, ranking, vectors
from mnemon.memory.embeddings import Encoder
from mnemon.memory.index import Index
from mnemon.memory.marks import REPLY, STANDING
from mnemon.store.passages import Entry

CHANCE = np.random.default_rng(7)


def units(count: int) -> vectors.Floats:
    """Random vectors of length 1."""
    found = CHANCE.standard_normal((count, vectors.DIMENSIONS)).astype(np.float32)
    return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True), dtype=np.float32)


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    """The weights as pip installed them."""
    return Encoder()


# -- vectors --------------------------------------------------------------------------------------------------------------


def test_half_bytes_keep_the_direction() -> None:
    """Packed and unpacked, a vector points the same way, in 128 bytes."""
    given = units(50)
    rows = vectors.packed(given)
    again = vectors.unpacked(rows)
    assert rows.shape == (50, 128)
    assert rows.dtype == np.uint8
    cosines = (given * again).sum(axis=1) / np.linalg.norm(again, axis=1)
    assert cosines.min() > 0.97


def test_likeness_is_the_cosine() -> None:
    """Comparing packed rows gives what comparing the unpacked ones gives, over several blocks too."""
    rows, asked = vectors.packed(units(vectors.BLOCK + 10)), units(1)[0]
    assert np.allclose(vectors.likeness(rows, asked), vectors.unpacked(rows) @ asked, atol=1e-5)


def test_equal_signs_mean_likeness() -> None:
    """A vector differs in no sign from itself, in all from its opposite."""
    given = units(1)
    known = vectors.signs(vectors.packed(np.concatenate([given, -given])))
    assert vectors.differing(known, known[0]).tolist() == [0, 128]


def test_meaning_without_common_words(encoder: Encoder) -> None:
    """Texts about the same are nearer to each other than texts about something else, in other languages too."""
    texts = ["The kitten sleeps on the sofa.", "A cat naps on the couch.", "Interest rates rose by two percent."]
    cat, nap, rates = map(encoder.vector, texts)
    assert cat @ nap > 2 * (cat @ rates)
    katze, chat = encoder.vector("Die Katze schläft auf dem Sofa."), encoder.vector("Les taux ont augmenté de deux pour cent.")
    assert cat @ katze > cat @ chat


def test_odd_texts_have_vectors(encoder: Encoder) -> None:
    """Nothing, blanks, endless words and exotic characters do no harm; what is said twice means the same."""
    for text in ("", " \n ", "x" * 5000, "\x00", "缓存" * 300, "👩‍👩‍👧", "\ud800"):
        vector = encoder.vector(text.encode("utf-8", "replace").decode())
        assert np.isfinite(vector).all()
    assert encoder.packed([]) == []
    assert encoder.packed(["a zebra", "a zebra"])[0] == encoder.packed(["a zebra"])[0]


# -- ranking --------------------------------------------------------------------------------------------------------------


def test_the_best_match_counts_one() -> None:
    """By words, the best passage is one above those that do not match, and the mean is nothing."""
    scores = ranking.by_words(np.array([1, 3]), np.array([4.0, 2.0], np.float32), 5)
    assert scores[1] - scores[0] == pytest.approx(1)
    assert scores[3] - scores[0] == pytest.approx(0.5)
    assert scores.mean() == pytest.approx(0, abs=1e-6)
    assert ranking.by_words(np.empty(0, np.int64), np.empty(0, np.float32), 3).tolist() == [0, 0, 0]


def test_a_few_passages_do_not_spread_by_much() -> None:
    """Meaning is measured in standard deviations, but small chance differences do not count as large ones."""
    alike = np.array([0.5, 0.51], np.float32)
    assert ranking.by_meaning(alike, alike).max() < 0.2
    spread = np.array([0.0, 0.4], np.float32)
    assert ranking.by_meaning(spread, spread).tolist() == pytest.approx([-1, 1])


def help_for(gap: int, *, lengths: int = 20, elsewhere: bool = False) -> float:
    """What a passage gains from a neighbour that stands so many characters away."""
    places = np.array([0, gap + (1 << 32 if elsewhere else 0)])
    scores = np.array([1, 0], np.float32)
    return float(ranking.helped(np.array([1]), scores, places=places, lengths=np.array([20, lengths]), reach=8)[0])


def test_near_passages_help_each_other() -> None:
    """The nearer the more, not at all from another conversation, and hardly where there is little to show."""
    assert 1 > help_for(50) > help_for(150) > help_for(600) > 0
    assert help_for(600) < 0.15
    assert help_for(50, elsewhere=True) == 0
    assert help_for(50, lengths=1) < 0.2 * help_for(50)


def test_help_at_the_ends_is_counted_once() -> None:
    """The first and the last passage get each neighbour's help once."""
    places, lengths = np.arange(4) * 100, np.full(4, 20)
    scores = np.ones(4, np.float32)
    found = ranking.helped(np.arange(4), scores, places=places, lengths=lengths, reach=8)
    assert found[0] == pytest.approx(found[3])
    assert found[0] == pytest.approx(1 + sum(np.exp(-n / 3) for n in (1, 2, 3)), rel=1e-4)


def test_what_fits() -> None:
    """As many of the first as fit, one at least."""
    assert ranking.fitting(np.array([5, 5, 5]), 12) == 2
    assert ranking.fitting(np.array([50]), 12) == 1


# -- an index -------------------------------------------------------------------------------------------------------------


def index_of(*texts: str, marks: str = "", vector: bytes | None = None) -> Index:
    """Passages of as many conversations, so that none is another's neighbour."""
    index = Index()
    for number, text in enumerate(texts, 1):
        words = " ".join([*question.read(text).words, *marks.split()])
        index.add(Entry(number=number, words=words, lineage=number, position=1, length=len(text), vector=vector))
    return index


def found(index: Index, text: str, vector: vectors.Floats | None = None) -> list[int]:
    """The numbers that a question finds, best first."""
    return list(index.search(question.read(text), vector=vector, lineage=0, live=0, room=1000))


def add(index: Index, text: str, *, lineage: int, position: int, marks: str = "") -> int:
    """One more passage; its number."""
    words = " ".join([*question.read(text).words, *marks.split()])
    index.add(Entry(number=index.last + 1, words=words, lineage=lineage, position=position, length=len(text), vector=None))
    return index.last


def test_the_user_s_words_weigh_more() -> None:
    """Of two equal passages the user's comes before the reply, though the reply is newer."""
    index = index_of("the weather", "the river")
    said = add(index, "a zebra in the garden", lineage=8, position=1)
    replied = add(index, "a zebra in the garden", lineage=9, position=1, marks=REPLY)
    assert found(index, "zebra")[:2] == [said, replied]


def test_a_named_speaker_comes_first() -> None:
    """Where a question names one of those who speak in a scope, what they said comes before what was said to them."""
    index = Index()
    for number in range(6):
        for name, other in (("ann", "bob"), ("bob", "ann")):
            add(index, f"{name}: {other}, the zebra ran", lineage=len(index.lineages), position=number, marks=f"@{name}")
    speakers = [index.postings["@ann"], index.postings["@bob"]]
    assert all(len(p) == 6 for p in speakers)
    first = found(index, "what did Ann say of the zebra?")[:6]
    assert sorted(first) == [number + 1 for number in speakers[0]]


def test_standing_instructions_come_along() -> None:
    """An instruction that is to hold always comes before other passages that match as well."""
    index = index_of("the weather", "the river", "the mountain", "the sea")
    order = add(index, "always show version numbers of libraries", lineage=7, position=1, marks=STANDING)
    add(index, "we show version numbers of libraries", lineage=8, position=1)
    assert found(index, "which libraries?")[0] == order


def test_neighbours_come_along() -> None:
    """The answer that stands beside the question's words is found though it shares none of them."""
    index = index_of(*(f"filler about subject {n}" for n in range(30)))
    asked = add(index, "where did you spend the holidays with the zebra last summer", lineage=99, position=1)
    answered = add(index, "mostly near the coast of northern Portugal, in a small village by the sea", lineage=99, position=2)
    assert found(index, "holidays zebra summer")[:2] == [asked, answered]


def test_nothing_is_found_for_nothing(encoder: Encoder) -> None:
    """Where neither a word nor the meaning speaks for any passage, nothing is shown."""
    texts = [f"the committee met on day {n}" for n in range(20)]
    index = Index()
    for number, (text, vector) in enumerate(zip(texts, encoder.packed(texts), strict=True), 1):
        index.add(Entry(number=number, words=" ".join(question.read(text).words), lineage=number, position=1, length=30, vector=vector))
    assert found(index, "quagga", encoder.vector("quagga")) == []
    assert found(Index(), "quagga") == []


@pytest.mark.parametrize("fillers", [30, 5000])
def test_found_by_meaning_alone(encoder: Encoder, fillers: int) -> None:
    """A passage that shares no word with the question is found by what it means, in a small scope and in a large one."""
    texts = [f"minutes of meeting {n}: the budget of department {n % 7} was moved" for n in range(fillers)]
    texts.insert(fillers // 2, "My kitten sleeps on the sofa all day long.")
    index = Index()
    for number, (text, vector) in enumerate(zip(texts, encoder.packed(texts), strict=True), 1):
        index.add(Entry(number=number, words=" ".join(question.read(text).words), lineage=number, position=1, length=50, vector=vector))
    asked = "Where does the cat like to nap?"
    assert found(index, asked, encoder.vector(asked))[0] == fillers // 2 + 1


def test_vectors_that_come_later(encoder: Encoder) -> None:
    """A passage without a vector is known as such, newest first, until it gets one, which is then yet to be stored."""
    index = index_of("weather", "river", "tall zebra")
    assert index.without_vector(2) == [3, 2]
    index.embed({3: encoder.packed(["tall zebra"])[0]})
    assert index.without_vector(9) == [2, 1]
    assert list(index.unsaved) == [3]
    assert found(index, "zebra", encoder.vector("zebra"))[0] == 3
