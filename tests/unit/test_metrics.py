"""Metrics: what Prometheus reads is complete, exact and well formed."""

from __future__ import annotations

import re

import pytest

from mnemon.core.metrics import GAUGES, HELP, Metrics

LINE = re.compile(r'(?P<name>[a-z_]+)(?:\{(?P<labels>(?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)+)\})? (?P<value>-?[0-9.e+-]+)')


def samples(text: str) -> dict[str, float]:
    """Each line that is no comment, as the format wants it."""
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            match = LINE.fullmatch(line)
            assert match, line
            found[line.rpartition(" ")[0]] = float(match["value"])
    return found


def test_every_number_is_explained() -> None:
    """Each metric has its help and its type, before anything was counted too, and the text ends with a line break."""
    text = Metrics().text()
    for name, explanation in HELP.items():
        assert f"# HELP {name} {explanation}\n# TYPE {name} {'gauge' if name in GAUGES else 'counter'}\n" in text
    assert text.endswith("\n")
    assert samples(text) == {}


def test_counts_add_up_by_label() -> None:
    """Each combination of labels is a series of its own."""
    metrics = Metrics()
    for status in ("200", "200", "404"):
        metrics.add("mnemon_requests_total", route="/v1/models", status=status)
    metrics.add("mnemon_turns_running", 2)
    metrics.add("mnemon_turns_running", -1)
    assert samples(metrics.text()) == {
        'mnemon_requests_total{route="/v1/models",status="200"}': 2,
        'mnemon_requests_total{route="/v1/models",status="404"}': 1,
        "mnemon_turns_running": 1,
    }


@pytest.mark.parametrize("value", [1_234_567, 16_777_217, 2**53, 0.1 + 0.2, 123456.789])
def test_large_numbers_lose_nothing(value: float) -> None:
    """A counter that has grown large still shows every single step."""
    metrics = Metrics()
    metrics.add("mnemon_prompt_tokens_total", value)
    assert samples(metrics.text()) == {"mnemon_prompt_tokens_total": value}


def test_a_label_cannot_break_the_format() -> None:
    """Quotes, backslashes and line breaks in a label are escaped."""
    metrics = Metrics()
    metrics.add("mnemon_requests_total", route='/a"b\\c\nd', status="404")
    assert list(samples(metrics.text())) == ['mnemon_requests_total{route="/a\\"b\\\\c\\nd",status="404"}']


def test_an_unknown_metric_is_a_mistake() -> None:
    """Nothing is counted that has no explanation."""
    with pytest.raises(KeyError):
        Metrics().add("mnemon_typo_total")
