"""What is known of a passage beside its words: whether it is a reply, who spoke, and whether something is stated in it.

A mark is a word that no text can contain, so marks are kept among a passage's words and need no place of their own. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from mnemon.memory import words

REPLY = "!reply"
STANDING = "!standing"
STATED = "!stated"
SPEAKER_SIGN = "@"

# Bridges of group chats, and transcripts, open a message with its speaker: "[18:02] Mary Ann: hello".
SPEAKER = re.compile(r"(?:\[[^\]\n]{1,60}\]\s*)?([^\W\d_][^\s:：]{0,30}(?: [^\W\d_][^\s:：]{0,30}){0,2})[:：]\s")
ORDER = re.compile(
    r"(?:^|[.!?\]:\n]\s)\s*(?:please,? |also,? |and |remember:? )*"
    r"(?:always|never|from now on|going forward|whenever i|every time i|each time i|when i ask|if i ask)\b",
    re.IGNORECASE,
)


def marks(text: str, *, role: str, first: bool, stated: bool) -> list[str]:
    """The marks of a passage; `first` says that the message begins with it, `stated` that the ledger has something of it."""
    if role != "user":
        return [REPLY]
    found = [STANDING] if ORDER.search(text) else []
    found += [STATED] if stated else []
    if first and (opening := SPEAKER.match(text)):
        found += speakers(words.words(opening[1]))
    return found


def speakers(names: Iterable[str]) -> list[str]:
    """The marks of those who are called by one of these words."""
    return [SPEAKER_SIGN + name for name in names]


def is_mark(word: str) -> bool:
    return word.startswith(("!", SPEAKER_SIGN))
