"""The fields of a Responses request: checked, and said as Chat Completions say them. Pure.

A field that we know to change nothing here is taken; one that would change the meaning and cannot be honoured is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mnemon.core.records import Json
from mnemon.edge import schemas
from mnemon.edge.schemas import Check, wrong

MOST_METADATA = 16
LONGEST_METADATA_KEY = 64
LONGEST_METADATA_VALUE = 512

# Fields that a model's server knows by the same name and meaning.
PASSED_ON = frozenset({
    "temperature", "top_p", "parallel_tool_calls", "user", "safety_identifier", "prompt_cache_key", "prompt_cache_retention",
    "service_tier", "presence_penalty", "frequency_penalty", "seed", "stop", "logit_bias", "top_k", "min_p", "repetition_penalty",
    "chat_template_kwargs",
})  # fmt: skip
# What may be asked to be included: it is there in any case, or belongs to tools of OpenAI's own servers, which cannot be called here.
WITHOUT_EFFECT = frozenset({
    "reasoning.encrypted_content", "message.input_image.image_url", "computer_call_output.output.image_url", "file_search_call.results",
    "web_search_call.results", "web_search_call.action.sources", "code_interpreter_call.outputs",
})  # fmt: skip
LOGPROBS = "message.output_text.logprobs"
EFFORT_FIELDS = ("effort", "summary", "generate_summary")
FORMATS = ("text", "json_object", "json_schema")


def one_of(*allowed: str) -> Check:
    def check(value: Any) -> str | None:
        return None if value in allowed else f"must be one of {', '.join(allowed)}"

    return check


def text(value: Any) -> str | None:
    return None if isinstance(value, str) and "\x00" not in value else "must be a string without NUL characters"


def reasoning(value: Any) -> str | None:
    if not isinstance(value, dict):
        return "must be an object"
    for field, given in value.items():
        if field not in EFFORT_FIELDS:
            return f"holds {field!r}; it may hold {', '.join(EFFORT_FIELDS)}"
        if not isinstance(given, str | None):
            return f".{field} must be a string"
    return None


def include(value: Any) -> str | None:
    if not isinstance(value, list):
        return "must be a list"
    for index, wish in enumerate(value):
        if not isinstance(wish, str) or wish not in (LOGPROBS, *WITHOUT_EFFECT):
            return f"[{index}] names nothing that can be included"
    return None


def wording(value: Any) -> str | None:
    """What `text` may hold."""
    if not isinstance(value, dict):
        return "must be an object"
    if not isinstance(value.get("verbosity"), str | None):
        return ".verbosity must be a string"
    form = value.get("format")
    if form is None:
        return None
    if not isinstance(form, dict) or form.get("type") not in FORMATS:
        return f".format must be an object whose type is one of {', '.join(FORMATS)}"
    if form["type"] == "json_schema" and not (isinstance(form.get("name"), str) and isinstance(form.get("schema"), dict)):
        return ".format of type json_schema must hold a name and an object schema"
    return None


def stream_options(value: Any) -> str | None:
    if not isinstance(value, dict) or not isinstance(value.get("include_obfuscation", False), bool | None):
        return "must be an object with include_obfuscation true or false"
    return None


FIELDS: dict[str, Check] = {
    **{name: schemas.FIELDS[name] for name in PASSED_ON & schemas.FIELDS.keys()},
    "input": lambda _value: None,
    "conversation": lambda _value: None,
    "conversation_history": lambda _value: None,
    "tools": lambda _value: None,
    "tool_choice": lambda _value: None,
    "metadata": lambda _value: None,
    "model": schemas.name,
    "instructions": text,
    "previous_response_id": text,
    "stream": schemas.of(bool, "true or false"),
    "store": schemas.of(bool, "true or false"),
    "background": schemas.of(bool, "true or false"),
    "stream_options": stream_options,
    "truncation": one_of("auto", "disabled"),
    "max_output_tokens": schemas.integer(1),
    "max_tool_calls": schemas.integer(1),
    "top_logprobs": schemas.integer(0, 20),
    "safety_identifier": text,
    "prompt_cache_key": text,
    "prompt_cache_retention": text,
    "service_tier": text,
    "reasoning": reasoning,
    "text": wording,
    "include": include,
}


def checked(body: Json) -> Json:
    """The fields that were given; null means "not given". Raises `Invalid`."""
    given = {}
    for field, value in body.items():
        if value is None:
            continue
        if field not in FIELDS and field not in PASSED_ON:
            raise wrong(field, "is not supported here, and would change the answer where it is", code="unsupported_parameter")
        problem = FIELDS[field](value) if field in FIELDS else None
        if problem:
            raise wrong(field, problem)
        given[field] = value
    if "stream_options" in given and not given.get("stream"):
        raise wrong("stream_options", "goes with stream: true only")
    if given.get("background") and given.get("store") is False:
        raise wrong("store", "must not be false with background: nobody could ever read the response")
    metadata(given.get("metadata", {}))
    return given


def metadata(value: Any) -> Json:
    """What a client says about a response or a conversation. Raises `Invalid`."""
    if not isinstance(value, dict) or len(value) > MOST_METADATA:
        raise wrong("metadata", f"must be an object with at most {MOST_METADATA} entries")
    for key, said in value.items():
        if len(key) > LONGEST_METADATA_KEY:
            raise wrong("metadata", f"holds a key of more than {LONGEST_METADATA_KEY} characters")
        if not isinstance(said, str) or len(said) > LONGEST_METADATA_VALUE or "\x00" in said + key:
            raise wrong(f"metadata.{key}", f"must be a string of at most {LONGEST_METADATA_VALUE} characters without NUL")
    return value


# -- as a model's server knows them ---------------------------------------------------------------------------------------


def params(given: Json) -> Json:
    """The parameters of the same request as a chat completion. Raises `Invalid`."""
    found = {name: given[name] for name in PASSED_ON & given.keys()}
    if "max_output_tokens" in given:
        found["max_tokens"] = given["max_output_tokens"]
    if given.get("top_logprobs") or LOGPROBS in given.get("include", ()):
        found |= {"logprobs": True} | ({"top_logprobs": given["top_logprobs"]} if given.get("top_logprobs") else {})
    if (effort := given.get("reasoning", {}).get("effort")) is not None:
        found["reasoning_effort"] = effort
    wished = given.get("text", {})
    if wished.get("verbosity") is not None:
        found["verbosity"] = wished["verbosity"]
    if (form := wished.get("format") or {}).get("type") in ("json_object", "json_schema"):
        found["response_format"] = response_format(form)
    return found | tooling(tools(given.get("tools", [])), given.get("tool_choice"))


def response_format(form: Json) -> Json:
    if form["type"] == "json_object":
        return {"type": "json_object"}
    schema = {name: form[name] for name in ("name", "description", "schema", "strict") if form.get(name) is not None}
    return {"type": "json_schema", "json_schema": schema}


def tools(value: Any) -> list[Json]:
    """The tools of a request, which must be functions. Raises `Invalid`."""
    if not isinstance(value, list):
        raise wrong("tools", "must be a list")
    for index, tool in enumerate(value):
        place = f"tools[{index}]"
        if not isinstance(tool, dict) or not isinstance(tool.get("type"), str):
            raise wrong(place, "must be an object with a type")
        if tool["type"] != "function":
            raise wrong(f"{place}.type", f"{tool['type']!r} is not supported; only functions are", code="unsupported_tool")
        if not isinstance(tool.get("name"), str) or not tool["name"]:
            raise wrong(f"{place}.name", "must be a string")
        for field, kind, called in (("parameters", dict, "an object"), ("description", str, "a string"), ("strict", bool, "true or false")):
            if not isinstance(tool.get(field), kind | None):
                raise wrong(f"{place}.{field}", f"must be {called}")
    return value


def tooling(offered: list[Json], choice: Any) -> Json:
    """Tools and the choice among them. Where only some are allowed, only these are offered."""
    found: Json = {}
    if choice is not None:
        allowed, chosen = chosen_tool(choice, offered)
        offered = [tool for tool in offered if allowed is None or tool["name"] in allowed]
        found["tool_choice"] = chosen
    if offered:
        found["tools"] = [function(tool) for tool in offered]
    elif found.pop("tool_choice", None) == "required":  # models' servers refuse a choice among nothing
        raise wrong("tool_choice", "asks for a tool, but none is offered")
    return found


def function(tool: Json) -> Json:
    return {
        "type": "function",
        "function": {n: tool[n] for n in ("name", "description", "parameters", "strict") if tool.get(n) is not None},
    }


def chosen_tool(choice: Any, offered: list[Json]) -> tuple[set[str] | None, Any]:
    """(the names that are allowed, or None for all, the choice as a chat completion says it). Raises `Invalid`."""
    if isinstance(choice, str):
        if choice not in ("none", "auto", "required"):
            raise wrong("tool_choice", "must be none, auto, required or an object that names a function")
        return None, choice
    kind = choice.get("type") if isinstance(choice, dict) else None
    known = [tool["name"] for tool in offered]
    if kind == "function":
        if choice.get("name") not in known:
            raise wrong("tool_choice.name", "names none of the tools")
        return None, {"type": "function", "function": {"name": choice["name"]}}
    if kind == "allowed_tools":
        return allowed_tools(choice, known)
    if kind is None:
        raise wrong("tool_choice", "must be none, auto, required or an object that names a function")
    raise wrong("tool_choice.type", f"{kind!r} is not supported; only functions are", code="unsupported_tool")


def allowed_tools(choice: Json, known: list[str]) -> tuple[set[str], str]:
    named = choice.get("tools")
    if choice.get("mode") not in ("auto", "required") or not isinstance(named, list) or not named:
        raise wrong("tool_choice", "of type allowed_tools must hold mode (auto or required) and tools")
    names = [tool.get("name") if isinstance(tool, dict) and tool.get("type") == "function" else None for tool in named]
    if not all(name in known for name in names):
        raise wrong("tool_choice.tools", "names a tool that is not among the tools")
    return {str(name) for name in names}, str(choice["mode"])


# -- as the response repeats them -----------------------------------------------------------------------------------------

DEFAULTS: Json = {
    "background": False, "conversation": None, "frequency_penalty": 0.0, "instructions": None, "max_output_tokens": None,
    "max_tool_calls": None, "metadata": {}, "parallel_tool_calls": True, "presence_penalty": 0.0, "previous_response_id": None,
    "prompt_cache_key": None, "safety_identifier": None, "service_tier": "default", "store": True, "temperature": 1.0,
    "tool_choice": "auto", "tools": [], "top_logprobs": 0, "top_p": 1.0, "truncation": "disabled", "user": None,
}  # fmt: skip
REPEATED = (*DEFAULTS, "prompt_cache_retention")
Shape = Callable[[Any], Any]


def repeated(given: Json, *, model: str) -> Json:
    """What a response says about its request, kept with it; what has its default is added when it is shown."""
    found = {name: given[name] for name in REPEATED if name in given and name != "conversation"}
    if "tools" in given:
        found["tools"] = [shown_tool(tool) for tool in given["tools"]]
    for name in ("reasoning", "text"):
        if name in given:
            found[name] = given[name]
    return {"model": model, **found}


def shown_tool(tool: Json) -> Json:
    return {"description": None, "parameters": None, "strict": None, **tool}


def complete(kept: Json) -> Json:
    """All of it, defaults included."""
    return {
        **DEFAULTS,
        **kept,
        "reasoning": {"effort": None, "summary": None, **kept.get("reasoning", {})},
        "text": {"format": {"type": "text"}, **{k: v for k, v in kept.get("text", {}).items() if v is not None}},
    }
