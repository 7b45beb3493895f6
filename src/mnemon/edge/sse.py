"""Server-sent events, as bytes. Pure; knows nothing of turns."""

from __future__ import annotations

from typing import Any

import msgspec

DONE = b"data: [DONE]\n\n"


def data(value: Any) -> bytes:
    """An unnamed event. JSON has no raw line breaks, so one `data:` line is enough."""
    return b"data: %b\n\n" % msgspec.json.encode(value)


def event(name: str, value: Any) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name.encode(), msgspec.json.encode(value))
