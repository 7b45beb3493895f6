"""What the clients say: requests of one new message of about 500 characters, of varied words, the same ones in every run."""

import json
import random

KEY = "bench-key-0123456789abcdef"
MODEL = "gpt-4o-mini"
"""A model whose tokenizer is known, so that a server which counts tokens counts them for real."""

_NOUNS = """
account answer archive balance batch branch bridge budget buffer cache calendar camera cargo channel charter circuit cluster coffee
column commit compiler contract copper counter courier crystal customer cycle daemon deadline delivery deploy design device diagram
disk district document drawer engine estimate event export fabric factory feature filter firmware folder forest garden gateway graph
handler harbor header history horizon host index invoice island journal kernel kettle label ladder lantern latency ledger lease library
license market meadow memory meeting merge metric mirror module monitor mountain network notebook number office operator orchard order
outage packet painter panel parser partner passport patch pattern pipeline planet pocket policy printer process project protocol prototype
quarter query queue radio railway record region release replica report request review rhythm river router sample schedule schema script
sensor server session shard shelf signal sketch socket spindle station storage stream studio summary supplier switch system table target
tenant thread ticket timber token tower traffic tunnel turbine update valley vector vendor version village volume wagon warehouse
weather window winter worker workshop yard
"""
_ACTS = "moved checked replaced found lost opened closed measured renamed shipped planned repaired compared delayed"
_WORDS = _NOUNS.split()
_VERBS = _ACTS.split()


def message(number: int) -> str:
    """The message of this number, always the same one."""
    chance = random.Random(number)
    text = f"Note {number}:"
    while len(text) < 480:
        text += f" {_sentence(chance)}"
    return text


def sentence(number: int) -> str:
    """The sentence of this number, always the same one."""
    return _sentence(random.Random(number))


def _sentence(chance: random.Random) -> str:
    first, second, third, fourth = chance.sample(_WORDS, 4)
    detail = chance.choice((f"at {chance.randrange(1, 24)}:{chance.randrange(10, 60)}", f"for {chance.randrange(10, 9000)} euros", "again"))
    return f"We {chance.choice(_VERBS)} the {first} {second} near the {third} {detail}, because of {fourth}-{chance.randrange(100, 999)}."


def chat(number: int, session: str, *, key: str | None = None, stream: bool = False) -> bytes:
    """A whole HTTP request: the newest message only, in the session named by the header, and under a key if there is one."""
    fields: dict[str, object] = {"model": MODEL, "messages": [{"role": "user", "content": message(number)}]}
    if stream:
        fields |= {"stream": True, "stream_options": {"include_usage": True}}
    return _post("/v1/chat/completions", fields, {"X-Hermes-Session-Id": session} | ({"X-Hermes-Session-Key": key} if key else {}))


def response(number: int, session: str) -> bytes:
    """The same message as a streamed response."""
    fields: dict[str, object] = {"model": MODEL, "input": message(number), "stream": True}
    return _post("/v1/responses", fields, {"X-Hermes-Session-Id": session})


def _post(path: str, fields: dict[str, object], names: dict[str, str]) -> bytes:
    body = json.dumps(fields, separators=(",", ":")).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nAuthorization: Bearer {KEY}\r\n" + "".join(
        f"{name}: {value}\r\n" for name, value in names.items()
    )
    head += f"Content-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def get(path: str) -> bytes:
    """A whole GET request."""
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
