"""The headers that name a conversation and who takes part in it: read, checked, echoed."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, unquote_to_bytes

from starlette.requests import Request

from mnemon.core import errors
from mnemon.core.records import IDENTITY_FIELDS, Effective, Identity

LONGEST = 256

SESSION_ID = "X-Hermes-Session-Id"
SESSION_KEY = "X-Hermes-Session-Key"
HEADERS = {
    "session_id": SESSION_ID,
    "session_key": SESSION_KEY,
    "user_id": "X-Hermes-User-Id",
    "user_name": "X-Hermes-User-Name",
    "chat_id": "X-Hermes-Chat-Id",
    "chat_name": "X-Hermes-Chat-Name",
    "chat_type": "X-Hermes-Chat-Type",
    "thread_id": "X-Hermes-Thread-Id",
}
OPEN_WEBUI = {
    "session_id": "X-OpenWebUI-Chat-Id",
    "user_id": "X-OpenWebUI-User-Id",
    "user_name": "X-OpenWebUI-User-Name",
    "chat_id": "X-OpenWebUI-Chat-Id",
}
CODES = {"session_id": "invalid_session_id", "session_key": "invalid_session_key"}
RECEIPT = "X-Mnemon-Receipt"
REPLAYED = "Idempotency-Replayed"

WIRE_NAMES = {name.lower().encode(): (field, name) for field, name in HEADERS.items()}
OPEN_WEBUI_NAMES = {name.lower().encode() for name in OPEN_WEBUI.values()}
PRINTABLE_ASCII = "".join(map(chr, range(0x20, 0x7F)))


def read(request: Request, *, open_webui: bool = False, user: str | None = None) -> Identity:
    """The identity a request comes with. Raises `Invalid` with the header's name."""
    found: dict[str, str] = {}
    forwarded: dict[bytes, bytes] = {}
    for name, value in request.scope["headers"]:
        known = WIRE_NAMES.get(name)
        if known:
            field, header = known
            text = checked(decoded(value), code=CODES.get(field, "invalid_identity_header"), param=header)
            if text is not None and found.setdefault(field, text) != text:
                message = f"{header} is given twice with different values"
                raise errors.Invalid(message, code=CODES.get(field, "invalid_identity_header"), param=header)
        elif open_webui and name in OPEN_WEBUI_NAMES:
            forwarded[name] = value
    if forwarded:
        for field, header in OPEN_WEBUI.items():
            value = forwarded.get(header.lower().encode(), b"")
            forward = checked(decoded(value), code=CODES.get(field, "invalid_identity_header"), param=header)
            if forward is not None:
                found.setdefault(field, forward)
    if user is not None and "user_id" not in found:
        fallback = checked(user, code="invalid_identity_header", param="user")
        if fallback is not None:
            found["user_id"] = fallback
    return Identity(**found)


def decoded(value: bytes) -> str:
    """A header's text: UTF-8, or percent-encoded UTF-8 if that gives anything beyond ASCII."""
    if value.isascii():
        if b"%" in value:
            plain = unquote_to_bytes(value)
            if not plain.isascii():
                try:
                    return plain.decode()
                except UnicodeDecodeError:
                    pass
        return value.decode("ascii")
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def checked(text: str, *, code: str, param: str) -> str | None:
    """A name as it is used: trimmed; None if nothing is left. Raises `Invalid`."""
    text = text.strip(" \t\r\n")
    if not text:
        return None
    if len(text) > LONGEST:
        message = f"{param} is {len(text)} characters long, at most {LONGEST} are allowed"
        raise errors.Invalid(message, code=code, param=param)
    if not (text.isascii() and text.isprintable()) and any(unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") for c in text):
        message = f"{param} holds a control character"
        raise errors.Invalid(message, code=code, param=param)
    return text


def encoded(text: str) -> str:
    """A value for a response header: as it is if ASCII, else percent-encoded, so that it names the same thing when sent back."""
    return text if text.isascii() else quote(text, safe=PRINTABLE_ASCII.replace("%", ""))


def echo(identity: Identity, effective: Effective | None = None, *, replayed: bool = False) -> dict[str, str]:
    """The identity headers of a response, with the session that was really used."""
    values: dict[str, str | None] = {field: getattr(identity, field) for field in ("session_id", "session_key", *IDENTITY_FIELDS)}
    if effective:
        values["session_id"] = effective.session_id or values["session_id"]
        values["session_key"] = effective.session_key or values["session_key"]
    headers = {HEADERS[field]: encoded(value) for field, value in values.items() if value is not None}
    if effective and effective.receipt_id:
        headers[RECEIPT] = effective.receipt_id
    if replayed:
        headers[REPLAYED] = "true"
    return headers


def as_sent(request: Request) -> bytes:
    """The identity headers byte for byte: part of what an idempotency key is bound to."""
    wanted = WIRE_NAMES.keys() | OPEN_WEBUI_NAMES
    return b"\n".join(sorted(name + b":" + value.strip() for name, value in request.scope["headers"] if name in wanted))


def from_body(body: Mapping[str, Any], field: str) -> str | None:
    """A session id or key given in a body, under the same rules as the header."""
    value = body.get(field)
    if value is None:
        return None
    code = CODES.get(field, CODES.get({"id": "session_id"}.get(field, ""), "invalid_request"))
    if not isinstance(value, str):
        message = f"{field} must be a string"
        raise errors.Invalid(message, code=code, param=field)
    return checked(value, code=code, param=field)
