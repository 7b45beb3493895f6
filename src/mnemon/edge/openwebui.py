"""What is peculiar to Open WebUI: whole histories, and background requests for titles, tags and follow-ups."""

from __future__ import annotations

import re
from collections.abc import Sequence

from starlette.requests import Request

from mnemon.core.records import Message

TASK = "### Task:"
# Its default prompts also quote the chat; elsewhere a heading alone may be anybody's.
HISTORY = re.compile(r"^(### Chat History:|<chat_history>)", re.MULTILINE)


def chat(request: Request) -> bool:
    """Whether the request belongs to one of its chats."""
    return bool(request.headers.get("x-openwebui-chat-id", "").strip())


def talking(request: Request) -> bool:
    """Whether Open WebUI sent this at all: it forwards who is asking with every request."""
    return any(name.startswith(b"x-openwebui-") for name, _ in request.scope["headers"])


def background(messages: Sequence[Message], *, known: bool) -> bool:
    """Whether this is one of its own errands: never part of a transcript or a memory."""
    text = next((m.text for m in reversed(messages) if m.role == "user"), "").lstrip()
    return text.startswith(TASK) and (known or HISTORY.search(text) is not None)
