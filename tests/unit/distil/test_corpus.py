"""The corpus: what is understood of sentences of many walks of life. The figures are those that were measured; they may only get better."""

from __future__ import annotations

from tests.unit.distil.corpus import Figures, measure_pairs, measure_sentences


def precision(figures: Figures) -> float:
    """The share of what was decided that was right."""
    return figures.decision.right / (figures.decision.right + figures.decision.wrong)


def test_nothing_is_kept_that_is_no_statement() -> None:
    """Of the sentences the rules were made with, none is kept that should not be, and nearly all is understood as expected."""
    figures = measure_sentences("sentences.txt")
    assert precision(figures) == 1, figures.misses
    assert figures.met >= 162, figures.misses


def test_unrelated_statements_never_retire_each_other() -> None:
    """Of the pairs the rules were made with, each closes what it should and nothing else, but for one that is missed."""
    figures = measure_pairs("pairs.txt")
    assert precision(figures) == 1, figures.misses
    assert figures.met >= 91, figures.misses


def test_sentences_that_the_rules_were_not_made_with() -> None:
    """The held-out sentences are understood nearly as well."""
    figures = measure_sentences("held_out.txt")
    assert precision(figures) == 1, figures.misses
    assert figures.met >= 73, figures.misses


def test_pairs_that_the_rules_were_not_made_with() -> None:
    """The held-out pairs are judged as well."""
    figures = measure_pairs("held_out_pairs.txt")
    assert precision(figures) == 1, figures.misses
    assert figures.met >= 34, figures.misses


def test_other_wordings_of_changes() -> None:
    """Changes told in further ways close what they should, mostly, and nothing else."""
    figures = measure_pairs("more_pairs.txt")
    assert precision(figures) == 1, figures.misses
    assert figures.met >= 41, figures.misses
