"""The model that is there when no other is: it answers from the prompt by choosing statements, and makes none of its own.

It reads the prompt as the server assembled it (blocks `<mnemon-…>` of notes, then the conversation), ranks the statements in it
against the question and says the best of them back. It is deterministic and small, and says so; it knows nothing of the world, of
sessions, or of how the prompt came about.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import math
import re
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from mnemon.core import clock as time_source
from mnemon.core import errors, ids
from mnemon.core.records import text_of
from mnemon.model import lexicon
from mnemon.model.base import Json

NAME = "mnemon"
DESCRIPTION = (
    "Mnemon's built-in responder: small, extractive, offline and deterministic, not a language model. "
    "It remembers what it is told and answers questions by quoting it."
)
UNKNOWN = "I don't know that yet: nothing you've told me so far answers it."
REST_UNKNOWN = "I don't know the rest."
CLOSEST = "I don't know that exactly. The closest you've told me:"
SELF = "I'm Mnemon's built-in responder, small and extractive, not a language model: I remember what I'm told and answer by quoting it."
CANNOT = "I can't do that. " + SELF
WELCOME = "Hello! Tell me something to remember, or ask about what you've told me."
BLIND = "I can't look at images or files: I work with words only."

SURE, CLOSE = 0.5, 0.33  # how much of a question a statement must cover to be an answer, or at least worth showing
LONGEST, MOST = 600, 6  # characters of a statement, statements of a list

# ---------------------------------------------------------------- reading the prompt


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

    @property
    def said(self) -> str:
        """The statement as the model may say it to the user."""
        text = lexicon.bare(self.text[:LONGEST])
        return lexicon.exchanged(text) if self.role == "user" else text


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
        for i, text in enumerate(lexicon.sentences(self.text)):
            stems = lexicon.stems(text)
            if stems and _tells(text, self.role):
                points_at = before if before and lexicon.POINTING.search(text) else frozenset[str]()
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


_BLOCK = re.compile(r"<mnemon-([\w-]+)(?:\"[^\"]{0,500}\"|[^<>\"]){0,500}>")
_BLOCKS = 16  # of one message; more than the server ever puts there
_HEAD = re.compile(r"\[([^\]\n]*)\] ?")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_ROLES = ("user", "assistant", "tool", "system")
_LIVE = "9999"  # sorts after every date: what stands in the conversation itself is newer than any note
_DENIAL = re.compile(r"\bI (?:don['’]t|do not|can['’]t|cannot) |\byou've told me\b|^I'm (?:Mnemon|not)\b")
_COMMAND = re.compile(r"^(?:please )?(?:call (?!me\b)|invoke |say |repeat |reply |respond |answer |let me |let's )", re.IGNORECASE)
_TO_MODEL = re.compile(r"\b(?:you|your)\b", re.IGNORECASE)


def _tells(text: str, role: str) -> bool:
    unfit = {"assistant": _DENIAL, "system": _TO_MODEL}.get(role, _COMMAND)
    return not unfit.search(text) and not lexicon.is_question(text)


def read(messages: Sequence[Json]) -> Scene:
    """What a list of chat messages tells."""
    passages: dict[str, Passage] = {}
    spoken: list[str] = [""]
    pictures = False
    for i, message in enumerate(messages):
        role, content = str(message.get("role")), message.get("content")
        text, notes = _unwrapped(text_of(content))
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
        opening = _BLOCK.search(text) if "<mnemon-" in text else None
        block, closed, rest = text[opening.end() :].partition(f"</mnemon-{opening[1]}>") if opening else ("", "", "")
        if not (opening and closed):
            break
        notes += [_note(item, i) for i, item in enumerate(("\n" + block.strip("\n")).split("\n- ")) if item.strip()]
        text = text[: opening.start()] + rest.lstrip()
    return text, notes


def _note(item: str, index: int) -> Passage:
    """One line of a block, `[#12 2026-11-18 user] text`, with its indented continuations."""
    found = _HEAD.match(item)
    head = found[1].replace(",", " ").split() if found else []
    date = next((h for h in head if _DATE.match(h)), "")[:10]
    number = next((int(h[1:]) for h in head if h[0] == "#" and h[1:].isdigit()), index)
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
        found.insert(0, (str(name), text_of(message.get("content")).strip()))
    return found


# ---------------------------------------------------------------- ranking

_TRUST = {"user": 1.0, "memory": 0.95, "tool": 0.8, "system": 0.7, "assistant": 0.45}
_UNMARKED = {"why": 0.6, "when": 0.7, "count": 0.6, "who": 0.85, "where": 0.85}  # what an answer without a cause, date, … is worth


@dataclass(frozen=True, slots=True)
class Hit:
    """A statement, how much of the question it covers, and how well it answers."""

    statement: Statement
    coverage: float
    score: float


def rank(question: lexicon.Question, passages: list[Passage]) -> list[Hit]:
    """The statements that have anything to do with a question, best first; the newer of two equals first."""
    if not question.units:
        return []
    stems = {u.stem for u in question.units}
    topics = list(dict.fromkeys(t for u in question.units for t in u.topics))
    weights = [u.factor * _rarity(u.stem, passages) for u in question.units]
    hits = []
    for passage in passages:
        if stems.isdisjoint(passage.stems) and not any(t.strength(passage.stems, passage.text) for t in topics):
            continue
        for statement in passage.statements:
            covered = sum(w * _match(u, statement) for u, w in zip(question.units, weights, strict=True)) / sum(weights)
            if covered:
                covered *= 1.0 if _marked(question, statement) else _UNMARKED.get(question.kind, 1.0)
                hits.append(Hit(statement, covered, covered * _worth(question, statement)))
    return sorted(hits, key=lambda h: (round(h.score, 2), h.statement.order), reverse=True)


def _rarity(stem: str, passages: list[Passage]) -> float:
    """How much a word says among these passages; one that none of them has says less than a rare one."""
    count = sum(stem in p.stems for p in passages)
    return math.log((len(passages) + 10) / (1 + count)) * (1.0 if count else 0.75)


def _match(unit: lexicon.Unit, statement: Statement) -> float:
    if unit.stem in statement.stems:
        return 1.0
    best = 0.6 if unit.stem in statement.before else 0.0
    for topic in unit.topics:
        if topic is not lexicon.OWN_NAME or statement.role != "assistant":
            best = max(best, topic.strength(statement.stems, statement.text))
    return best


def _marked(question: lexicon.Question, statement: Statement) -> bool:
    if question.kind == "when" and statement.date:
        return True
    return question.kind != "" and bool(lexicon.MARKS[question.kind].search(statement.text))


def _worth(question: lexicon.Question, statement: Statement) -> float:
    worth = _TRUST.get(statement.role, 0.8)
    if lexicon.SUPPOSED.search(statement.text):
        worth *= 0.75
    if question.own and statement.role == "user" and lexicon.FIRST_PERSON.search(statement.text):
        worth *= 1.1
    return worth


def chosen(question: lexicon.Question, hits: list[Hit]) -> list[Statement]:
    """The statements to answer with, in order of time: the best, its equals, and what changed or added to it later."""
    if not hits or hits[0].coverage < (0.4 if question.many else SURE):
        return []
    best, picked, limit = hits[0], list[Statement](), MOST if question.many else 3
    for hit in hits:
        least = 0.6 if question.many else 0.85
        if hit.statement.order > best.statement.order and hit.statement.role == "user":
            least = 0.4 if lexicon.CHANGES.search(hit.statement.text) else 0.6
        if len(picked) < limit and hit.score >= least * best.score and not any(_repeats(hit.statement, p) for p in picked):
            picked.append(hit.statement)
    return sorted(picked, key=lambda s: s.order)


def _repeats(one: Statement, other: Statement) -> bool:
    """Whether a statement says what another already says, as the assistant's own echo of the user does."""
    mine, theirs = one.stems - lexicon.EMPTY, other.stems - lexicon.EMPTY
    return mine == theirs or (one.role != other.role and len(mine & theirs) >= 0.7 * min(len(mine), len(theirs)))


def overview(passages: list[Passage]) -> list[Statement]:
    """What the user has told about themself, when that is all that is asked."""
    told = [s for p in passages if p.role in ("user", "memory") for s in p.statements if len(s.stems) > 3]

    def weight(statement: Statement) -> int:
        return bool(lexicon.FIRST_PERSON.search(statement.text)) + bool(re.search(r"\d|(?<=\w )[A-Z]", statement.text))

    return sorted(sorted(told, key=lambda s: (weight(s), s.order))[-MOST:], key=lambda s: s.order)


# ---------------------------------------------------------------- saying it


def _closed(text: str) -> str:
    """With a full stop, unless the last word is one that a full stop would change."""
    text = text.rstrip()
    return text + "." if text[-1:].isalnum() and not re.search(r"[/@]\S*$", text) else text


def _spoken(statement: Statement, question: lexicon.Question, picked: list[Statement]) -> str:
    text = _closed(statement.said)
    if not statement.before.isdisjoint(u.stem for u in question.units) and statement.previous not in {p.text for p in picked}:
        text = f"{_closed(replace(statement, text=statement.previous).said)} {text}"
    if question.kind == "when" and statement.date and not lexicon.MARKS["when"].search(statement.text):
        text += f" (Noted on {statement.date}.)"
    return text


def _answer_one(question: lexicon.Question, passages: list[Passage]) -> str:
    hits = [] if question.open else rank(question, passages)
    picked = overview(passages) if question.open else chosen(question, hits)
    if not picked:
        asked = {u.stem for u in question.units if u.factor >= 1}
        close = next((h.statement for h in hits[:1] if h.coverage >= CLOSE and not asked.isdisjoint(h.statement.stems)), None)
        return f"{CLOSEST} {_spoken(close, question, [])}" if close else UNKNOWN
    said = list(dict.fromkeys(_spoken(s, question, picked) for s in picked))
    return "\n".join(f"- {s}" for s in said) if len(said) > 2 or (question.many and len(said) > 1) else " ".join(said)


def answer(questions: list[lexicon.Question], passages: list[Passage]) -> str:
    """The answers to the questions of the newest message, from everything else that is known."""
    said = list(dict.fromkeys(_answer_one(q, passages) for q in questions))
    known = [s for s in said if not s.startswith((UNKNOWN, CLOSEST))]
    if known and len(known) < len(said):
        known.append(REST_UNKNOWN)
    return ("\n" if any(s.startswith("- ") for s in known) else " ").join(known or said[:1])


_SAY = re.compile(
    r"^(?:please |just |now |only )*(?:say|echo|(?:reply|respond|answer) (?:with|only)|repeat after me)\b"
    r"(?: exactly| only| just| with| the words?| this| back)*\s*:?\s+(?!what\b|which\b|who\b|how\b|in\b|to\b)(.+)$",
    re.IGNORECASE | re.DOTALL,
)
_ABOUT_SELF = re.compile(
    r"\b(?:who|what) are you\b|\byour name\b|\bare you (?:an? )?(?:ai|bot|llm|robot|human|real|person|gpt|chatgpt|language model)\b"
    r"|\bwhat can you do\b|\b(?:which|what) (?:ai |language )?model\b.*\byou\b",
    re.IGNORECASE,
)
_TASK = re.compile(
    r"^(?:please |can you |could you |would you |will you )*(?:write|translate|draft|compose|generate|rewrite|calculate|compute|draw|code"
    r"|suggest|recommend|help)\b(?: me| us| to| this| the| a| an| some| that|:)",
    re.IGNORECASE,
)
_COURTESIES = {
    r"(?:hi|hello|hey|hiya|greetings|good (?:morning|afternoon|evening|day))(?: there| mnemon| again| all)?": WELCOME,
    r"(?:thanks|thank you|thx|cheers|many thanks)(?: a lot| so much| very much| again)?": "You're welcome.",
    r"bye|goodbye|good night|see you|see you later|talk soon": "Goodbye. I'll remember this conversation.",
    r"ok|okay|yes|no|sure|fine|right|great|cool|perfect|nice|good|yep|nope|alright|all right": "All right.",
    r"ping": "pong",
}


def plain_reply(scene: Scene) -> str:
    """What to say when no tool is called for."""
    words = scene.words
    if scene.results:
        return " ".join(_told_result(name, result) for name, result in scene.results)
    if not words:
        return BLIND if scene.pictures else WELCOME
    if courtesy := next((c for p, c in _COURTESIES.items() if re.fullmatch(p, words.strip(" .!,?…"), re.IGNORECASE)), None):
        return courtesy
    if say := _SAY.match(words):
        return say[1].strip().strip("\"'“”`") or WELCOME
    questions, task = lexicon.questions(words, scene.earlier), bool(_TASK.match(words))
    if questions and _ABOUT_SELF.search(words[:1000]):
        return SELF
    said = answer(questions, scene.passages) if questions else UNKNOWN if task else _acknowledged(words)
    return CANNOT if task and said.startswith((UNKNOWN, CLOSEST)) else said


def _acknowledged(words: str) -> str:
    told = " ".join(lexicon.exchanged(lexicon.bare(words[:500])).split())
    if len(told) > 200:
        told = told[:200].rsplit(" ", 1)[0].rstrip(",;:") + " …"
    return f"Noted: {_closed(told)}"


def _told_result(name: str, result: str) -> str:
    """A tool's result as a sentence; a flat object is told field by field."""
    try:
        value = json.loads(result)
    except (ValueError, RecursionError):
        value = result
    if isinstance(value, dict) and value and not any(isinstance(v, (dict, list)) for v in value.values()):
        value = ", ".join(f"{k}: {v if isinstance(v, str) else json.dumps(v, ensure_ascii=False)}" for k, v in value.items())
    text = value if isinstance(value, str) else result
    return _closed(f"{name} returned: {text}") if text else f"{name} returned nothing."


# ---------------------------------------------------------------- tools and formats

_VERB = "(?:call|use|using|run|invoke|execute|trigger|try)"
_ANSWER_FIELDS = ("answer", "text", "content", "reply", "response", "message", "result", "summary", "output")
_NOT_TOLD = re.compile(r"(?:n['’]t|not|never|without) $|^(?:how|why|did|when|what)\b", re.IGNORECASE)
_FREE = re.compile(
    r"\"([^\"\n]*)\"|“([^”\n]*)”|(?:^|[\s(])'([^'\n]+)'|\b(?:for|in|about|of|on|at|from|named|called|to|with)\s+(?!\{|the tool)(.+?)"
    r"(?=\s+(?:and|for|in|with|on|at|please|using|then|to|from)\b|[?!,;)\n]|\.?\s*$|\.\s)",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"(?<![\w.-])-?\d+(?:\.\d+)?(?![\w-])")
_SAMPLES = {
    "date": "1970-01-01", "date-time": "1970-01-01T00:00:00Z", "time": "00:00:00Z", "email": "a@b.c", "uri": "http://localhost/",
    "uuid": "00000000-0000-0000-0000-000000000000", "ipv4": "127.0.0.1", "ipv6": "::", "hostname": "localhost", "duration": "PT0S",
}  # fmt: skip


@dataclass(slots=True, kw_only=True)
class Source:
    """Where the values of a JSON object come from: words that may name them, free pieces in order, and an answer."""

    words: str
    root: Json
    free: list[str] = field(default_factory=list)
    numbers: list[str] = field(default_factory=list)
    answer: str | None = None

    def named(self, name: str) -> str | None:
        """The value that the words give for a name: `city=Oslo`, `city: "Oslo"`, `city is Oslo`."""
        if not name:
            return None
        spelled = r"[\s_-]?".join(map(re.escape, re.split(r"[_\-\s]+", name)))
        value = r"(?:\"([^\"]*)\"|'([^']*)'|([^\s,;)]+))"
        found = re.search(rf"(?i)\b{spelled}\b[\"']?(?:\s*[=:]\s*|\s+(?:is|as|to|of)\s+){value}", self.words)
        return next((g.rstrip(".") for g in found.groups() if g is not None), None) if found else None

    def mentioned(self, options: list[Any]) -> Iterator[Any]:
        """Those of some values that stand in the words."""
        low = self.words.casefold()
        return (v for v in options if str(v).casefold() in low and re.search(rf"(?<!\w){re.escape(str(v).casefold())}(?!\w)", low))


def filled(schema: Json, source: Source) -> Any:
    """The smallest value that fits a JSON schema, with what the source has to say put in its place."""
    try:
        return _fill(schema, source)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as wrong:
        raise errors.ModelRejected("the built-in model cannot read a JSON schema in `tools` or `response_format`") from wrong


def _fill(schema: Any, source: Source, name: str = "", depth: int = 0) -> Any:
    schema = _resolved(schema, source.root)
    if "const" in schema:
        return schema["const"]
    if options := schema.get("enum"):
        return next(source.mentioned(options), schema.get("default", options[0]))
    kind = schema.get("type") or ("object" if "properties" in schema else "string")
    if isinstance(kind, list):
        kind = "null" if "null" in kind and source.named(name) is None else next((k for k in kind if k != "null"), "null")
    if kind == "object":
        return _object(schema, source, depth) if depth < 12 else {}
    if kind == "array":
        count = schema.get("minItems") or int(bool(source.free) and source.answer is None)
        return [_fill(schema.get("items"), source, "", depth + 1) for _ in range(min(count, 100))] if depth < 12 else []
    if kind in ("integer", "number"):
        return _number(schema, source, name)
    if kind == "boolean":
        return (source.named(name) or str(schema.get("default"))).casefold() in ("true", "yes", "on", "1")
    return _string(schema, source, name) if kind == "string" else None


def _resolved(schema: Any, root: Json) -> Json:
    """A schema with references followed and alternatives narrowed to the first."""
    for _ in range(16):
        if not isinstance(schema, dict):
            break
        options = schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf")
        if "$ref" in schema:
            found: Any = root
            for step in str(schema["$ref"]).lstrip("#/").split("/"):
                found = found.get(step) if step and isinstance(found, dict) else found
            schema = found
        elif options:
            schema = {**{k: v for k, v in schema.items() if k not in ("anyOf", "oneOf", "allOf")}, **options[0]}
        else:
            return schema
    return {}


def _object(schema: Json, source: Source, depth: int) -> Json:
    properties, required = schema.get("properties") or {}, schema.get("required") or []
    strings = [k for k, v in properties.items() if _resolved(v, source.root).get("type") == "string"]
    if not required and source.free:
        required = strings[:1]
    target = next((f for f in _ANSWER_FIELDS if f in strings), strings[0] if len(strings) == 1 and not depth else None)
    made: Json = {}
    for key in dict.fromkeys([*properties, *required]):
        if source.answer is not None and key == target and source.named(key) is None:
            made[key] = _fitted(source.answer, _resolved(properties[key], source.root))
        elif key in required or source.named(key) is not None or any(source.mentioned(properties[key].get("enum") or [])):
            made[key] = _fill(properties.get(key), source, key, depth + 1)
    return made


def _fitted(text: str, schema: Json) -> str:
    return text.ljust(min(schema.get("minLength") or 0, 1000), "-")[: schema.get("maxLength")]


def _string(schema: Json, source: Source, name: str) -> str:
    sample = _SAMPLES.get(str(schema.get("format")))
    value = source.named(name)
    if value is None:
        value = source.free.pop(0) if source.free and not sample else str(schema.get("default", sample or ""))
    return _fitted(value, schema)


def _number(schema: Json, source: Source, name: str) -> float:
    text = source.named(name) or ""
    if not _NUMBER.fullmatch(text):
        text = source.numbers.pop(0) if source.numbers else ""
    above = schema.get("exclusiveMinimum")
    low = schema.get("minimum", 0 if above is None else above + 1)
    value = float(text or schema.get("default", min(max(low, 0), schema.get("maximum", math.inf))))
    return int(value) if schema.get("type") != "number" or value.is_integer() else value


def calls_for(request: Json, scene: Scene) -> list[Json]:
    """The tool calls that the request forces or the user's words ask for by name."""
    tools = [t.get("function") or {} for t in request.get("tools") or ()]
    functions, choice = {str(f["name"]): f for f in tools if f.get("name")}, request.get("tool_choice")
    if not functions or choice == "none" or scene.results:
        return []
    mentions = sorted(_mentions(scene.words, functions))
    forced = (choice.get("function") or {}).get("name") if isinstance(choice, dict) else None
    if forced in functions:
        mentions = [m for m in mentions if m[2] == forced][:1] or [(0, 0, forced)]
    elif choice == "required" and not mentions:
        mentions = [(0, 0, _likeliest(scene.words, functions))]
    if request.get("parallel_tool_calls") is False:
        mentions = mentions[:1]
    ends = [m[0] for m in [*mentions, (len(scene.words), 0, "")]][1:]
    return [_call(functions[name], scene.words[start:end]) for (_, start, name), end in zip(mentions, ends, strict=True)]


def _mentions(words: str, functions: dict[str, Json]) -> Iterator[tuple[int, int, str]]:
    """Where the words tell to use which tool: start and end of the mention, and the tool's name."""
    flat = " ".join(re.split(r"[\W_]+", words.casefold()))
    for name in functions:
        parts = [p for p in re.split(r"[\W_]+", name) if p]
        if " ".join(parts).casefold() in flat:
            spelled = r"(?<!\w)" + r"[\W_]?".join(parts) + r"(?!\w)"
            for found in re.finditer(rf"(?i)\b{_VERB}\b(?:(?!\b{_VERB}\b)[^.?!\n]){{0,40}}?{spelled}|{spelled}(?=\()", words):
                if not _NOT_TOLD.search(re.split(r"[.?!\n]\s*", words[: found.start()])[-1]):
                    yield found.start(), found.end(), name


def _likeliest(words: str, functions: dict[str, Json]) -> str:
    stems = lexicon.stems(words)
    return max(functions, key=lambda n: len(stems & lexicon.stems(f"{n.replace('_', ' ')} {functions[n].get('description') or ''}")))


def _call(function: Json, words: str) -> Json:
    schema = function.get("parameters") or {}
    given = _json_in(words)
    if given is None:
        free = [next(g for g in m.groups() if g is not None).strip(" \"'“”") for m in _FREE.finditer(words)]
        given = filled({"type": "object", **schema}, Source(words=words, root=schema, free=free, numbers=_NUMBER.findall(words)))
    arguments = {"name": function["name"], "arguments": json.dumps(given, ensure_ascii=False)}
    return {"id": "call_" + ids.completion().removeprefix("chatcmpl-"), "type": "function", "function": arguments}


def _json_in(words: str) -> Json | None:
    """The first JSON object that stands in the words, begun by one of their first braces."""
    for brace in itertools.islice(re.finditer(r"\{", words), 20):
        with contextlib.suppress(ValueError, RecursionError):
            found: Json = json.JSONDecoder().raw_decode(words, brace.start())[0]
            return found
    return None


def formatted(text: str, wanted: Any) -> str:
    """A reply in the form that `response_format` asks for."""
    kind = wanted.get("type") if isinstance(wanted, dict) else None
    if kind == "json_object":
        return json.dumps({"answer": text}, ensure_ascii=False)
    if kind == "json_schema":
        schema = (wanted.get("json_schema") or {}).get("schema") or {}
        source = Source(words=text, root=schema, numbers=_NUMBER.findall(text), answer=text)
        return json.dumps(filled(schema, source), ensure_ascii=False)
    return text


# ---------------------------------------------------------------- the port

_PIECE = re.compile(r"\s*\S+\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What will be answered, before it is put on the wire."""

    text: str
    calls: list[Json]
    finish: str
    usage: Json


def reply_to(request: Json) -> Reply:
    """The reply to a request: a pure function of it, but for the ids of tool calls."""
    messages = request.get("messages") or []
    scene = read(messages)
    calls = calls_for(request, scene)
    text, finish = ("", "tool_calls") if calls else _cut(formatted(plain_reply(scene), request.get("response_format")), request)
    prompt = sum(len(text_of(m.get("content")).split()) for m in messages) * 4 // 3 + 4 * len(messages)
    completion = len(_PIECE.findall(text)) + sum(len(_PIECE.findall(c["function"]["arguments"])) + 1 for c in calls)
    usage = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    return Reply(text=text, calls=calls, finish=finish, usage=usage)


def _cut(text: str, request: Json) -> tuple[str, str]:
    """The text up to a stop sequence and within the allowed number of words, and why it ends there."""
    stops = request.get("stop") or []
    for stop in [stops] if isinstance(stops, str) else stops:
        text = text.split(stop, 1)[0] if stop else text
    limit = request.get("max_completion_tokens") or request.get("max_tokens")
    pieces = _PIECE.findall(text)
    if isinstance(limit, int) and 0 < limit < len(pieces):
        return "".join(pieces[:limit]).rstrip(), "length"
    return text, "stop"


def _deltas(reply: Reply) -> Iterator[Json]:
    """What a stream adds, piece by piece."""
    yield {"role": "assistant", "content": None if reply.calls else ""}
    for piece in _PIECE.findall(reply.text):
        yield {"content": piece}
    for i, call in enumerate(reply.calls):
        yield {"tool_calls": [{"index": i, **call, "function": {**call["function"], "arguments": ""}}]}
        for piece in _PIECE.findall(call["function"]["arguments"]):
            yield {"tool_calls": [{"index": i, "function": {"arguments": piece}}]}


class BuiltinModel:
    """Answers without any upstream; the module's first lines say what it is and is not."""

    def __init__(self, clock: time_source.Clock = time_source.system) -> None:
        self._clock = clock
        self._born = int(clock())

    async def complete(self, request: Json) -> Json:
        """One whole `chat.completion` object."""
        reply = reply_to(request)
        message: Json = {"role": "assistant", "content": reply.text, "refusal": None}
        if reply.calls:
            message |= {"content": None, "tool_calls": reply.calls}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reply.finish}
        return self._envelope(request, "chat.completion") | {"choices": [choice], "usage": reply.usage}

    async def stream(self, request: Json) -> AsyncGenerator[Json]:
        """The same answer word by word."""
        reply = reply_to(request)
        with_usage = bool((request.get("stream_options") or {}).get("include_usage"))
        base = self._envelope(request, "chat.completion.chunk") | ({"usage": None} if with_usage else {})
        for delta in _deltas(reply):
            yield base | {"choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}]}
            await asyncio.sleep(0)
        yield base | {"choices": [{"index": 0, "delta": {}, "logprobs": None, "finish_reason": reply.finish}]}
        if with_usage:
            yield base | {"choices": [], "usage": reply.usage}

    async def models(self) -> list[Json]:
        """The one model there is."""
        return [{"id": NAME, "object": "model", "created": self._born, "owned_by": "mnemon", "description": DESCRIPTION}]

    async def close(self) -> None:
        """Nothing is held open."""

    def _envelope(self, request: Json, kind: str) -> Json:
        return {"id": ids.completion(), "object": kind, "created": int(self._clock()), "model": request.get("model") or NAME}
