"""Tools and formats: the calls that are forced or asked for by name, and values that fit a JSON schema.

It knows nothing of what is remembered: words, schemas and an answer come in.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from mnemon.core import errors, ids
from mnemon.model.base import Json
from mnemon.model.builtin import lexicon, patterns, reading

_VERB = "(?:call|use|using|run|invoke|execute|trigger|try)"
_ANSWER_FIELDS = ("answer", "text", "content", "reply", "response", "message", "result", "summary", "output")
_NOT_TOLD = patterns.lazy(r"(?:n['’]t|not|never|without) $|^(?:how|why|did|when|what)\b", re.IGNORECASE)
_FREE = patterns.lazy(
    r"\"([^\"\n]*)\"|“([^”\n]*)”|(?:^|[\s(])'([^'\n]+)'|\b(?:for|in|about|of|on|at|from|named|called|to|with)\s+(?!\{|the tool)(.+?)"
    r"(?=\s+(?:and|for|in|with|on|at|please|using|then|to|from)\b|[?!,;)\n]|\.?\s*$|\.\s)",
    re.IGNORECASE,
)
_NUMBER = patterns.lazy(r"(?<![\w.-])-?\d+(?:\.\d+)?(?![\w-])")
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
    if not _NUMBER().fullmatch(text):
        text = source.numbers.pop(0) if source.numbers else ""
    above = schema.get("exclusiveMinimum")
    low = schema.get("minimum", 0 if above is None else above + 1)
    value = float(text or schema.get("default", min(max(low, 0), schema.get("maximum", math.inf))))
    return int(value) if schema.get("type") != "number" or value.is_integer() else value


def calls_for(request: Json, scene: reading.Scene) -> list[Json]:
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
                if not _NOT_TOLD().search(re.split(r"[.?!\n]\s*", words[: found.start()])[-1]):
                    yield found.start(), found.end(), name


def _likeliest(words: str, functions: dict[str, Json]) -> str:
    stems = lexicon.stems(words)
    return max(functions, key=lambda n: len(stems & lexicon.stems(f"{n.replace('_', ' ')} {functions[n].get('description') or ''}")))


def _call(function: Json, words: str) -> Json:
    schema = function.get("parameters") or {}
    given = _json_in(words)
    if given is None:
        free = [next(g for g in m.groups() if g is not None).strip(" \"'“”") for m in _FREE().finditer(words)]
        given = filled({"type": "object", **schema}, Source(words=words, root=schema, free=free, numbers=_NUMBER().findall(words)))
    arguments = {"name": function["name"], "arguments": json.dumps(given, ensure_ascii=False)}
    return {"id": ids.call(), "type": "function", "function": arguments}


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
        source = Source(words=text, root=schema, numbers=_NUMBER().findall(text), answer=text)
        return json.dumps(filled(schema, source), ensure_ascii=False)
    return text
