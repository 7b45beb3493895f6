"""What is read of a request's body before anything is known of it."""

from __future__ import annotations

import json
import time

import pytest

from mnemon.core import errors
from mnemon.edge import body


@pytest.mark.parametrize("said", ['say "x" ', "C:\\ ", 'a \\" b ', '\\\\"'])
def test_brackets_inside_texts_are_no_depth(said: str) -> None:
    """However a text is quoted and escaped, what stands in it does not count: pasted code may open as many brackets as it likes."""
    sent = {"messages": [{"role": "user", "content": said + '{"a": [' * 200 + said}]}
    assert body.parse(json.dumps(sent).encode()) == sent


def test_depth_outside_texts_counts() -> None:
    """Texts with escaped quotes hide no nesting."""
    with pytest.raises(errors.Invalid, match="levels deep"):
        body.parse(b'{"a\\"": "\\\\", "b": ' + b"[" * 200 + b"]" * 200 + b"}")


def test_a_text_without_an_end_is_read_once() -> None:
    """A torn body of megabytes is refused in the time that it takes to read it."""
    torn = b"{" * 100 + b"}" * 99 + b"[" * 50 + b'"' + b'\\\\\\"' * 500_000
    began = time.process_time()
    with pytest.raises(errors.Invalid):
        body.parse(torn)
    assert time.process_time() - began < 5
