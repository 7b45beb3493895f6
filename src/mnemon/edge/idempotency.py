"""`Idempotency-Key` and `Last-Event-ID`: how a client tries again."""

from __future__ import annotations

import hashlib
import re
from typing import Any

import msgspec
from starlette.requests import Request

from mnemon.core import errors
from mnemon.core.records import Idempotency
from mnemon.edge import identity

VISIBLE = re.compile(r"[\x21-\x7e]{1,255}")


def idempotency_of(request: Request, body: dict[str, Any]) -> Idempotency | None:
    """What the key is bound to: tenant, route and identity headers find it, the body must be the same. Raises `Invalid`."""
    key = request.headers.get("idempotency-key", "").strip()
    if not key:
        return None
    if not VISIBLE.fullmatch(key):
        raise errors.Invalid(
            "Idempotency-Key must be 1 to 255 visible ASCII characters",
            code="invalid_idempotency_key",
            param="Idempotency-Key",
        )
    bound = [request.state.tenant, request.method, request.scope["path"], identity.as_sent(request), key]
    slot = hashlib.sha256(msgspec.json.encode(bound)).digest()
    fingerprint = hashlib.sha256(msgspec.json.encode(body, order="deterministic")).digest()
    return Idempotency(slot=slot, fingerprint=fingerprint, key=key)


def last_event_id(request: Request) -> int:
    """The number of the last frame the client has seen; 0 if it has seen none. Raises `Invalid`."""
    text = request.headers.get("last-event-id", "").strip()
    if not text:
        return 0
    if not re.fullmatch(r"\d{1,9}", text):
        raise errors.Invalid("Last-Event-ID must be the number of a frame", code="invalid_last_event_id", param="Last-Event-ID")
    if not request.headers.get("idempotency-key", "").strip():
        raise errors.Invalid(
            "Last-Event-ID resumes a stream only together with the Idempotency-Key it was started with",
            code="idempotency_key_required",
            param="Idempotency-Key",
        )
    return int(text)
