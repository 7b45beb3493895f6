"""The wire shape of a chat request: checked field by field, passed on as it came.

Fields we know are checked; fields we do not know go to the model untouched; a field that would change the meaning of the answer and that we
cannot honour is refused. Nothing is defaulted in silence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from mnemon.core import errors
from mnemon.core.records import Message

Json = dict[str, Any]
Check = Callable[[Any], str | None]

ROLES = ("system", "developer", "user", "assistant", "tool")
IMAGE_URL = re.compile(r"https?://|data:image/", re.IGNORECASE)
LONGEST_MODEL = 256


def wrong(param: str, problem: str, *, code: str = "invalid_request") -> errors.Invalid:
    return errors.Invalid(f"{param} {problem}", code=code, param=param)


# -- single fields: each check returns what is wrong, or None -----------------------------------------------------------


def number(low: float, high: float) -> Check:
    def check(value: Any) -> str | None:
        fits = isinstance(value, (int, float)) and not isinstance(value, bool) and low <= value <= high
        return None if fits else f"must be a number from {low:g} to {high:g}"

    return check


def integer(low: int, high: int = 2**53) -> Check:
    def check(value: Any) -> str | None:
        fits = isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
        return (
            None
            if fits
            else f"must be a whole number of at least {low}"
            if high == 2**53
            else f"must be a whole number from {low} to {high}"
        )

    return check


def of(kind: type, name: str) -> Check:
    def check(value: Any) -> str | None:
        return None if isinstance(value, kind) else f"must be {name}"

    return check


def stop(value: Any) -> str | None:
    many = value if isinstance(value, list) else [value]
    return None if all(isinstance(v, str) for v in many) else "must be a string or a list of strings"


def tool_choice(value: Any) -> str | None:
    if isinstance(value, str):
        return None if value in ("none", "auto", "required") else "must be none, auto, required or an object that names a tool"
    return (
        None
        if isinstance(value, dict) and isinstance(value.get("type"), str)
        else "must be none, auto, required or an object that names a tool"
    )


def response_format(value: Any) -> str | None:
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        return "must be an object with a type"
    if value["type"] == "json_schema" and not isinstance(value.get("json_schema"), dict):
        return "of type json_schema must hold an object json_schema"
    return None


def tools(value: Any) -> str | None:
    if not isinstance(value, list):
        return "must be a list"
    for index, tool in enumerate(value):
        if not isinstance(tool, dict) or not isinstance(tool.get("type"), str):
            return f"[{index}] must be an object with a type"
        if tool["type"] == "function":
            function = tool.get("function")
            if not isinstance(function, dict) or not isinstance(function.get("name"), str) or not function["name"]:
                return f"[{index}].function must be an object with a name"
            if not isinstance(function.get("parameters", {}), dict | None):
                return f"[{index}].function.parameters must be an object"
    return None


def name(value: Any) -> str | None:
    if not isinstance(value, str) or not value.strip():
        return "must be a string"
    return None if len(value) <= LONGEST_MODEL and value.isprintable() else f"must be at most {LONGEST_MODEL} printable characters"


FIELDS: dict[str, Check] = {
    "model": name,
    "stream": of(bool, "true or false"),
    "stream_options": of(dict, "an object"),
    "temperature": number(0, 2),
    "top_p": number(0, 1),
    "presence_penalty": number(-2, 2),
    "frequency_penalty": number(-2, 2),
    "max_tokens": integer(1),
    "max_completion_tokens": integer(1),
    "seed": integer(-(2**63), 2**63 - 1),
    "top_logprobs": integer(0, 20),
    "logprobs": of(bool, "true or false"),
    "parallel_tool_calls": of(bool, "true or false"),
    "store": of(bool, "true or false"),
    "logit_bias": of(dict, "an object"),
    "metadata": of(dict, "an object"),
    "user": of(str, "a string"),
    "reasoning_effort": of(str, "a string"),
    "stop": stop,
    "tools": tools,
    "tool_choice": tool_choice,
    "response_format": response_format,
}


def checked(body: Json, fields: Mapping[str, Check] = FIELDS) -> Json:
    """The body without its messages and without nulls, which mean "not given". Raises `Invalid`."""
    params = {}
    for field, value in body.items():
        if field == "messages" or (value is None and field in fields):
            continue
        check = fields.get(field)
        problem = check(value) if check else None
        if problem:
            raise wrong(field, problem)
        params[field] = value
    refuse_what_we_cannot_do(params)
    return params


def refuse_what_we_cannot_do(params: Json) -> None:
    if params.get("n", 1) not in (1, None) or isinstance(params.get("n"), bool):
        raise wrong("n", "must be 1: one reply is made for each request", code="unsupported_parameter")
    if params.get("modalities") not in (None, ["text"]) or params.get("audio") is not None:
        raise wrong("modalities", "other than text are not supported", code="unsupported_parameter")
    for old, new in (("functions", "tools"), ("function_call", "tool_choice")):
        if params.get(old) is not None:
            raise wrong(old, f"is the old form, which is not supported; use {new}", code="unsupported_parameter")
    options = params.get("stream_options")
    if options is not None and not params.get("stream"):
        raise wrong("stream_options", "goes with stream: true only")
    if options is not None and not isinstance(options.get("include_usage", False), bool | None):
        raise wrong("stream_options.include_usage", "must be true or false")


# -- messages -----------------------------------------------------------------------------------------------------------


def messages(value: Any) -> tuple[Message, ...]:
    """The messages of a request. Raises `Invalid` with the place of what is wrong."""
    if not isinstance(value, list) or not value:
        raise wrong("messages", "must be a list with at least one message")
    found = tuple(message(f"messages[{index}]", item) for index, item in enumerate(value))
    spoken = [m for m in found if m.spoken]
    if not spoken:
        raise wrong("messages", "holds no user message")
    if spoken[-1].role == "assistant" or found[-1].role == "assistant":
        raise wrong("messages", "must end with a user message or a tool result, not with one of the assistant")
    return found


def message(place: str, item: Any) -> Message:
    if not isinstance(item, dict):
        raise wrong(place, "must be an object with role and content")
    role = item.get("role")
    if role not in ROLES:
        raise wrong(f"{place}.role", f"must be one of {', '.join(ROLES)}")
    content = item.get("content")
    if role == "assistant":
        check_assistant(place, item, content)
    else:
        check_content(f"{place}.content", content, images=role == "user")
    if role == "tool" and (not isinstance(item.get("tool_call_id"), str) or not item["tool_call_id"]):
        raise wrong(f"{place}.tool_call_id", "must name the tool call that this result answers")
    if not isinstance(item.get("name", ""), str | None):
        raise wrong(f"{place}.name", "must be a string")
    return Message(item)


def check_content(place: str, content: Any, *, images: bool) -> None:
    if isinstance(content, str):
        if images and not content.strip():
            raise wrong(place, "is empty")
        return
    if not isinstance(content, list) or not content:
        raise wrong(place, "must be a text or a list of parts")
    for index, part in enumerate(content):
        check_part(f"{place}[{index}]", part, images=images)


def check_part(place: str, part: Any, *, images: bool, refusals: bool = False) -> None:
    if not isinstance(part, dict) or not isinstance(part.get("type"), str):
        raise wrong(place, "must be an object with a type")
    kind = part["type"]
    if kind == "text":
        if not isinstance(part.get("text"), str):
            raise wrong(f"{place}.text", "must be a string")
    elif kind == "image_url" and images:
        image = part.get("image_url")
        url = image.get("url") if isinstance(image, dict) else None
        if not isinstance(url, str) or not IMAGE_URL.match(url):
            raise wrong(f"{place}.image_url.url", "must be an http(s) or a data:image/ URL", code="invalid_image_url")
    elif not (kind == "refusal" and refusals and isinstance(part.get("refusal"), str)):
        raise wrong(place, f"of type {kind!r} is not supported here", code="unsupported_content_type")


def check_assistant(place: str, item: Json, content: Any) -> None:
    calls = item.get("tool_calls")
    if calls is not None:
        check_calls(f"{place}.tool_calls", calls)
    if content is None:
        if not calls and not item.get("refusal"):
            raise wrong(f"{place}.content", "is missing")
    elif isinstance(content, list):
        for index, part in enumerate(content):
            check_part(f"{place}.content[{index}]", part, images=False, refusals=True)
    elif not isinstance(content, str):
        raise wrong(f"{place}.content", "must be a text or a list of parts")


def check_calls(place: str, calls: Any) -> None:
    if not isinstance(calls, list):
        raise wrong(place, "must be a list")
    for index, call in enumerate(calls):
        function = call.get("function") if isinstance(call, dict) else None
        complete = (
            isinstance(call, dict)
            and isinstance(call.get("id"), str)
            and isinstance(function, dict)
            and isinstance(function.get("name"), str)
            and isinstance(function.get("arguments"), str)
        )
        if not complete:
            raise wrong(f"{place}[{index}]", "must be an object with id, and function with name and arguments")


# -- query parameters -----------------------------------------------------------------------------------------------------


def query_only(query: Mapping[str, str], *allowed: str) -> None:
    """Refuse a parameter that would have no effect: it may have been meant to choose. Raises `Invalid`."""
    for field in query:
        if field not in allowed:
            raise wrong(field, f"is not a parameter of this route, which takes {', '.join(allowed)}", code="unsupported_parameter")


def query_integer(query: Mapping[str, str], field: str, *, default: int, low: int, high: int) -> int:
    text = query.get(field)
    if text is None:
        return default
    if not re.fullmatch(r"\d{1,15}", text) or not low <= int(text) <= high:
        raise wrong(field, f"must be a whole number from {low} to {high}")
    return int(text)


def query_flag(query: Mapping[str, str], field: str) -> bool:
    text = query.get(field, "false").lower()
    if text not in ("true", "1", "false", "0"):
        raise wrong(field, "must be true or false")
    return text in ("true", "1")
