"""Reading the prompt: blocks `<mnemon-…>` of notes and the conversation around them become passages, and these statements.

It knows what the server puts into a prompt, and nothing of what is asked.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from mnemon.core import records
from mnemon.model.base import Json
from mnemon.model.builtin import lexicon, patterns, sentences

_BLOCK = patterns.lazy(r"<mnemon-([\w-]+)(?:\"[^\"]{0,500}\"|[^<>\"]){0,500}>")
_BLOCKS = 16  # of one message; more than the server ever puts there
_NEXT = patterns.lazy(r"\n(?=- |\d{4}-\d\d-\d\d(?:\n|$))")
_HEAD = patterns.lazy(r"\[([^\]\n]*)\] ?")
_DATE = patterns.lazy(r"\d{4}-\d\d-\d\d")
_NUMBER = patterns.lazy(r"#(\d+)[a-z]*")
_ROLES = ("user", "assistant", "tool", "system")
_LIVE = "9999"  # sorts after every date: what stands in the conversation itself is newer than any note
_DENIAL = patterns.lazy(r"\bI (?:don['’]t|do not|can['’]t|cannot) |\byou've told me\b|^I'm (?:Mnemon|not)\b")
_COMMAND = patterns.lazy(r"^(?:please )?(?:call (?!me\b)|invoke |say |repeat |reply |respond |answer |let me |let's )", re.IGNORECASE)
_TO_MODEL = patterns.lazy(r"\b(?:you|your)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence that may be an answer; `before` holds the stems that a pronoun in it may point back at."""

    text: str
    role: str
    date: str
    order: tuple[str, int, int]
    stems: frozenset[str]
    previous: str
    before: frozenset[str]


@dataclass(frozen=True)
class Passage:
    """Something said in the conversation, in one piece; `order` is its place in time."""

    text: str
    role: str
    date: str
    order: tuple[str, int]

    @cached_property
    def stems(self) -> frozenset[str]:
        return lexicon.stems(self.text)

    @cached_property
    def statements(self) -> list[Statement]:
        """Every sentence that tells something: no questions, no commands, no admissions of ignorance."""
        found: list[Statement] = []
        previous, before = "", frozenset[str]()
        for i, text in enumerate(sentences.cut(self.text)):
            stems = lexicon.stems(text)
            if stems and _tells(text, self.role):
                points_at = before if before and sentences.POINTING().search(text) else frozenset[str]()
                found.append(Statement(text, self.role, self.date, (*self.order, i), stems, previous, points_at))
            previous, before = text, stems
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A request, understood: what is known, what the user said last and before that, and tool results waiting for a word."""

    passages: list[Passage]
    words: str
    earlier: str
    pictures: bool
    results: list[tuple[str, str]]


def _tells(text: str, role: str) -> bool:
    unfit = {"assistant": _DENIAL, "system": _TO_MODEL}.get(role, _COMMAND)
    return not unfit().search(text) and not sentences.is_question(text)


def read(messages: Sequence[Json]) -> Scene:
    """What a list of chat messages tells."""
    passages: dict[str, Passage] = {}
    spoken: list[str] = [""]
    pictures = False
    for i, message in enumerate(messages):
        role, content = str(message.get("role")), message.get("content")
        text, notes = _unwrapped(records.text_of(content))
        for passage in [*notes, Passage(text, "system" if role == "developer" else role, "", (_LIVE, i))]:
            passages.setdefault(passage.text, passage)
        if role == "user":
            spoken.append(text.strip())
            pictures = isinstance(content, list) and any(p.get("type") != "text" for p in content)
    return Scene(
        passages=list(passages.values()),
        words=spoken[-1],
        earlier=spoken[-2] if len(spoken) > 2 else "",
        pictures=pictures,
        results=_results(messages),
    )


def _unwrapped(text: str) -> tuple[str, list[Passage]]:
    """A message's own text, and the notes of the blocks that stood in it."""
    notes: list[Passage] = []
    for _ in range(_BLOCKS):
        opening = _BLOCK().search(text) if "<mnemon-" in text else None
        block, closed, rest = text[opening.end() :].partition(f"</mnemon-{opening[1]}>") if opening else ("", "", "")
        if not (opening and closed):
            break
        notes += _notes(block)
        text = text[: opening.start()] + rest.lstrip()
    return text, notes


def _notes(block: str) -> list[Passage]:
    """The items of a block; a day by itself is the date of those below it."""
    found: list[Passage] = []
    day = ""
    for index, item in enumerate(_NEXT().split("\n" + block.strip("\n"))):
        if _DATE().fullmatch(item.strip()):
            day = item.strip()
        elif item.strip():
            found.append(_note(item.strip("\n").removeprefix("- "), index, day))
    return found


def _note(item: str, index: int, day: str) -> Passage:
    """One item of a block, `[#12 2026-11-18 user] text`, `[#12a user] text` or `[user] text`, with its indented continuations."""
    found = _HEAD().match(item)
    head = found[1].replace(",", " ").split() if found else []
    date = next((h for h in head if _DATE().match(h)), day)[:10]
    number = next((int(place[1]) for h in head if (place := _NUMBER().fullmatch(h))), index)
    role = next((h for h in head if h in _ROLES), "memory")
    return Passage(item[found.end() if found else 0 :].replace("\n  ", "\n").strip(), role, date, (date, number))


def _results(messages: Sequence[Json]) -> list[tuple[str, str]]:
    """The tool results at the very end, each with the name of its tool."""
    names = {c.get("id"): (c.get("function") or {}).get("name") for m in messages for c in m.get("tool_calls") or ()}
    found: list[tuple[str, str]] = []
    for message in reversed(messages):
        if message.get("role") != "tool":
            break
        name = names.get(message.get("tool_call_id")) or message.get("name") or "The tool"
        found.insert(0, (str(name), records.text_of(message.get("content")).strip()))
    return found
