"""What is peculiar to Open WebUI: whole histories, and background requests for titles, tags and follow-ups."""

from __future__ import annotations

import re
from collections.abc import Sequence

from starlette.requests import Request

from mnemon.core.records import Message

TASK = "### Task:"
# The headings of its default prompts; one of them must stand beside the first where the setting does not say that Open WebUI is talking.
HEADINGS = re.compile(r"^(### (Guidelines|Output|Chat History|Examples?|Instructions):|<chat_history>)", re.MULTILINE)


def chat(request: Request) -> bool:
    """Whether the request belongs to one of its chats."""
    return bool(request.headers.get("x-openwebui-chat-id", "").strip())


def background(messages: Sequence[Message], *, known: bool) -> bool:
    """Whether this is one of its own errands: never part of a transcript or a memory."""
    text = next((m.text for m in reversed(messages) if m.role == "user"), "").lstrip()
    return text.startswith(TASK) and (known or HEADINGS.search(text) is not None)
