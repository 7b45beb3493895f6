"""Orders for a review: how far back they look."""

from __future__ import annotations

import pytest

from mnemon.memory.language import EVER, looks_back, wish


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("Review the engineering decisions you have stored in memory from the past week.", 7),
        ("Write the weekly report.", 7),
        ("Summarise what we did today.", 1),
        ("Give me a recap of the last 3 days.", 3),
        ("Identify decisions that were reversed.", EVER),
        ("Summarize everything we decided about the cache.", EVER),
        ("Prepare the monthly digest.", 31),
    ],
)
def test_an_order_for_a_review_says_how_far_back(text: str, days: int) -> None:
    """A review of a time looks over that time, one of what is remembered over all there is; both show what was before."""
    assert looks_back(text) == days
    assert wish(text).history


@pytest.mark.parametrize(
    "text", ["Review this function, please.", "I wrote a report.", "What did we decide last week?", "Last week was hard.", ""]
)
def test_anything_else_is_no_review(text: str) -> None:
    """A review of something else, a question and a statement call up what they name and nothing more."""
    assert looks_back(text) is None
