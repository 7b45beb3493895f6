"""`Idempotency-Key` and `Last-Event-ID`: how a client tries again."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import Any

import msgspec
from starlette.requests import Request

from mnemon.core import errors
from mnemon.core.records import Idempotency, Json
from mnemon.edge import identity
from mnemon.edge.services import Services
from mnemon.store.base import Tx
from mnemon.store.idempotency import Record, Records

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


async def once(app: Services, request: Request, body: dict[str, Any], work: Callable[[Tx], Json]) -> tuple[Json, bool]:
    """Do a piece of work that makes something, or give what it made the first time: (result, whether it is a replay)."""
    wanted, tenant, now = idempotency_of(request, body), request.state.tenant, app.clock()

    def unit(tx: Tx) -> tuple[Json, bool]:
        records = Records(tx, tenant)
        known = records.find(wanted, now=now) if wanted else None
        if isinstance(known, Record):
            return msgspec.json.decode(known.body), True
        if wanted and not records.begin(wanted, owner=app.driver.owner, now=now):
            known = records.find(wanted, now=now)  # another server was quicker; its transaction has ended by now
            if isinstance(known, Record):
                return msgspec.json.decode(known.body), True
        made = work(tx)
        if wanted:
            records.finish(wanted, Record(headers={}, body=msgspec.json.encode(made)), lineage=None, now=now)
        return made, False

    return await app.driver.write(unit)


def frame_number(request: Request) -> int:
    """The number of the last frame the client has seen; 0 if it has seen none. Raises `Invalid`."""
    text = request.headers.get("last-event-id", "").strip()
    if not text:
        return 0
    if not re.fullmatch(r"\d{1,9}", text):
        raise errors.Invalid("Last-Event-ID must be the number of a frame", code="invalid_last_event_id", param="Last-Event-ID")
    return int(text)


def last_event_id(request: Request) -> int:
    """The same, of a stream that is the answer to a POST. Raises `Invalid`."""
    number = frame_number(request)
    if request.headers.get("last-event-id", "").strip() and not request.headers.get("idempotency-key", "").strip():
        raise errors.Invalid(
            "Last-Event-ID resumes a stream only together with the Idempotency-Key it was started with",
            code="idempotency_key_required",
            param="Idempotency-Key",
        )
    return number
