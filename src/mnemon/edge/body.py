"""A request's body: bounded in size, time and depth, and a JSON object."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import msgspec
from starlette.requests import Request

from mnemon.core import errors

LARGEST = 10 * 1000 * 1000
SILENCE = 30.0
DEEPEST = 128
BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*+"?|([\[\]{}])', re.DOTALL)  # a string, though its end may be missing; or a bracket

Json = dict[str, Any]


async def read(request: Request) -> bytes:
    """All bytes. Raises `Invalid` if there are too many, or if they stop coming."""
    length = request.headers.get("content-length")
    if length is not None and length.isdigit() and int(length) > LARGEST:
        raise too_large()
    pieces = []
    total = 0
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(SILENCE) as timer:
            while True:
                message = await request.receive()
                if message["type"] == "http.disconnect":
                    raise errors.Invalid("the client left before its request was complete", code="request_timeout")
                piece = message.get("body", b"")
                total += len(piece)
                if total > LARGEST:
                    raise too_large()
                pieces.append(piece)
                if not message.get("more_body"):
                    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
                timer.reschedule(loop.time() + SILENCE)
    except TimeoutError:
        message_text = f"the rest of the body did not come within {SILENCE:g} seconds"
        raise errors.Invalid(message_text, code="request_timeout") from None


def too_large() -> errors.Invalid:
    return errors.Invalid(f"the body is larger than {LARGEST} bytes", code="body_too_large")


async def read_object(request: Request, *, may_be_empty: bool = False) -> Json:
    """The JSON object in the body. Raises `Invalid` with what is wrong with it."""
    raw = await read(request)
    if not raw.strip():
        if may_be_empty:
            return {}
        raise errors.Invalid("the body is empty; a JSON object is expected", code="invalid_json")
    return parse(raw)


def parse(raw: bytes) -> Json:
    try:
        if raw.count(b"[") + raw.count(b"{") > DEEPEST:
            check_depth(raw)
        value = msgspec.json.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        message = f"the body is not valid JSON: {str(error).removesuffix(' - at `$[...]`')}"
        raise errors.Invalid(message, code="invalid_json") from error
    except RecursionError:
        raise too_deep() from None
    if not isinstance(value, dict):
        message = "the body must be a JSON object"
        raise errors.Invalid(message, code="invalid_json")
    return value


def check_depth(raw: bytes) -> None:
    """Refuse nesting that no honest request has, before a recursive parser meets it. Brackets inside strings do not count."""
    depth = 0
    for found in BRACKETS.finditer(raw):
        opened = found[1]
        if opened is None:
            continue
        depth += 1 if opened in b"[{" else -1
        if depth > DEEPEST:
            raise too_deep()


def too_deep() -> errors.Invalid:
    return errors.Invalid(f"the body is nested more than {DEEPEST} levels deep", code="invalid_json")
