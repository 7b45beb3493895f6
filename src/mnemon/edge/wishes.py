"""What a request about memory asks for, read and checked: times, filters, notes, what is to be deleted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, get_args

import msgspec

from mnemon.core import clock, errors
from mnemon.core.records import Json
from mnemon.edge import body as bodies
from mnemon.edge import identity as identities
from mnemon.edge import schemas
from mnemon.memory import desk
from mnemon.memory.erasure import Selector
from mnemon.memory.notes import Note
from mnemon.memory.statements import Kind, Origin
from mnemon.store.memories import EVER, Filter, Link, Remembered

KINDS, ORIGINS = get_args(Kind), get_args(Origin)
STATES = ("active", "superseded", "retracted", "all")
LONGEST_NOTE = 4000
LONGEST_QUERY = 4000
SLOT = re.compile(r"[^/\x00]{1,128}/[^/\x00]{1,128}")
SELECTORS = "memory_id, session_id, session_id with position, from and to, or scope"


def only(given: Mapping[str, Any], *allowed: str) -> None:
    """Refuse a field that has no effect here: it may have been meant to choose. Raises `Invalid`."""
    for field in given:
        if field not in allowed:
            takes = ", ".join(allowed) or "none"
            raise schemas.wrong(field, f"is not a field of this request, which takes {takes}", code="unsupported_parameter")


def moment(value: Any, field: str) -> float:
    """An instant: seconds since 1970, or a date or time as ISO 8601 writes it (in UTC unless it says otherwise). Raises `Invalid`."""
    if isinstance(value, str) and re.fullmatch(r"-?\d{1,12}(\.\d{1,9})?", value):
        value = float(value)
    if isinstance(value, str):
        try:
            found = datetime.fromisoformat(value)
            return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            pass
    elif isinstance(value, int | float) and not isinstance(value, bool) and clock.shown(value):
        return float(value)
    raise schemas.wrong(field, "must be a time: seconds since 1970, or like 2026-03-01 or 2026-03-01T12:00:00Z")


def text(value: Any, field: str, *, most: int, code: str = "invalid_request") -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > most or "\x00" in value:
        raise schemas.wrong(field, f"must be a text of 1 to {most} characters without NUL", code=code)
    return value.strip()


def choice(value: Any, field: str, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise schemas.wrong(field, f"must be one of {', '.join(allowed)}")
    return str(value)


def wanted(query: Mapping[str, str]) -> Filter:
    """The filters of a listing. Without a state, what holds (or, with `as_of`, what held then)."""
    past = "as_of" in query
    state = choice(query.get("state", "active"), "state", STATES)
    if past and state not in ("active", "all"):
        raise schemas.wrong("state", "does not go with as_of: all that held then was active", code="unsupported_parameter")
    since = moment(query["from"], "from") if "from" in query else 0.0
    until = moment(query["to"], "to") if "to" in query else EVER
    if until <= since:
        raise schemas.wrong("to", "must be later than from")
    return Filter(
        kind=choice(query["kind"], "kind", KINDS) if "kind" in query else "",
        slot=slot_of(query),
        text=text(query["text"], "text", most=LONGEST_QUERY) if "text" in query else "",
        session_id=identities.checked(query.get("session", ""), code="invalid_session_id", param="session") or "",
        origin=choice(query["origin"], "origin", ORIGINS) if "origin" in query else "",
        state="" if past or state == "all" else state,
        since=since,
        until=until,
        as_of=moment(query["as_of"], "as_of") if past else None,
    )


def slot_of(query: Mapping[str, str]) -> str:
    """The slot that a query names, empty if it names none. Raises `Invalid` for what can be no slot."""
    slot = query.get("slot", "")
    if "slot" in query and "/" not in slot:
        raise schemas.wrong("slot", "must be like user/home city: whose, a slash, and what of it")
    return slot


def note(body: Json, *, old: Remembered | None = None) -> Note:
    """A memory as it is written by hand; `old` is the one it corrects. Raises `Invalid`."""
    only(body, "text", "kind", "slot", "pinned", "valid_from")
    if "text" not in body and old is None:
        raise schemas.wrong("text", "is missing: the memory in your words")
    slot = body.get("slot")
    if slot is not None and (not isinstance(slot, str) or not SLOT.fullmatch(slot)):
        raise schemas.wrong("slot", "must be like user/home city: whose, a slash, and what of it")
    pinned = body.get("pinned", old.pinned if old else False)
    if not isinstance(pinned, bool):
        raise schemas.wrong("pinned", "must be true or false")
    return Note(
        text=text(body["text"], "text", most=LONGEST_NOTE) if "text" in body or old is None else old.text,
        kind=choice(body["kind"], "kind", KINDS) if body.get("kind") is not None else "",
        slot=slot or "",
        pinned=pinned,
        valid_from=moment(body["valid_from"], "valid_from") if body.get("valid_from") is not None else None,
    )


def selector(body: Json) -> tuple[Selector, bool]:
    """What is to be deleted, and whether it is only asked about. Raises `Invalid`."""
    only(body, "memory_id", "session_id", "position", "to_position", "from", "to", "scope", "preview")
    preview = body.get("preview", False)
    if not isinstance(preview, bool):
        raise schemas.wrong("preview", "must be true or false")
    if body.get("scope") not in (None, True):
        raise schemas.wrong("scope", "must be true, or left out")
    ways = [("memory_id",), ("session_id", "position", "to_position"), ("from", "to"), ("scope",)]
    given = [way for way in ways if any(body.get(field) is not None for field in way)]
    if len(given) != 1:
        message = f"say what to delete in one way: {SELECTORS}"
        raise errors.Invalid(message, code="invalid_selector", param=given[1][0] if given else "memory_id")
    if given[0] == ("memory_id",):
        return Selector(memory=text(body["memory_id"], "memory_id", most=256)), preview
    if given[0] == ("scope",):
        return Selector(scope=True), preview
    if given[0] == ("from", "to"):
        return stretch(body), preview
    return messages(body), preview


def stretch(body: Json) -> Selector:
    since, until = (moment(body[f], f) if body.get(f) is not None else None for f in ("from", "to"))
    if since is not None and until is not None and until <= since:
        raise schemas.wrong("to", "must be later than from")
    return Selector(since=since, until=until)


def messages(body: Json) -> Selector:
    session_id = identities.from_body(body, "session_id")
    if session_id is None:
        raise schemas.wrong("session_id", "is missing: a position is one in a session", code="invalid_session_id")
    for field in ("position", "to_position"):
        if body.get(field) is not None and (problem := schemas.integer(1)(body[field])):
            raise schemas.wrong(field, problem)
    first, last = body.get("position") or 0, body.get("to_position") or 0
    if last and not 0 < first <= last:
        raise schemas.wrong("to_position", "goes with a position that is not behind it")
    return Selector(session_id=session_id, position=first, to_position=last)


async def lines(request: Any) -> tuple[list[Remembered], list[Link], Json]:
    """The memories of an export, a JSON object on each line; and something an idempotency key can be bound to. Raises `Invalid`."""
    raw = await bodies.read(request)
    rows, links = [], []
    for number, line in enumerate(raw.splitlines(), 1):
        if not line.strip():
            continue
        try:
            row, found = desk.read_back(bodies.parse(line))
        except (KeyError, TypeError, ValueError, msgspec.MsgspecError, errors.Invalid) as error:
            problem = error.message if isinstance(error, errors.Invalid) else str(error)
            message = f"line {number} is not a memory as an export writes it: {problem}"
            raise errors.Invalid(message, code="invalid_import", param=f"line {number}") from error
        rows.append(row)
        links += found
    if not rows:
        raise errors.Invalid("the body is empty; memories are expected, one JSON object on each line", code="invalid_import")
    return rows, links, {"lines": raw.decode("utf-8", "replace")}
