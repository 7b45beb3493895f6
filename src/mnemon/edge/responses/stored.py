"""Responses and items of conversations, looked up by their names."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from mnemon.core import errors
from mnemon.core.clock import Clock
from mnemon.core.records import Json, StoredMessage
from mnemon.edge.responses import items, objects
from mnemon.edge.responses.wire import ResponseWire
from mnemon.runs.following import Numbered
from mnemon.runs.service import Seen, with_messages
from mnemon.store.base import Tx
from mnemon.store.conversations import Conversation
from mnemon.store.messages import FAR, Messages
from mnemon.store.sessions import Sessions
from mnemon.store.works import Work, Works

NAMED = re.compile(r"(?:msg|rs|fc|fco)_([0-9a-f]{32})p([0-9a-f]{1,12})n([0-9a-f]{1,6})")
ENDS = re.compile(rb"response\.(?:completed|incomplete|failed)\n")
MOST = 256  # messages that are read at once


def response(tx: Tx, tenant: str, name: str) -> Seen:
    """A response by its name, and the messages of its turn. Raises `NotFound`."""
    return with_messages(tx, tenant, Works(tx, tenant).get(name, "response"))


def retold(tx: Tx, work: Work, logged: Numbered, *, tenant: str, clock: Clock) -> Numbered:
    """What the event log has of a response that has ended, with its end made anew if that is missing; or all of it, if there is nothing.

    A part comes in one piece then, so no event has a higher number than it had: nobody who saw some of them gets words twice.
    """
    if logged and ENDS.match(logged[-1][1].partition(b"event: ")[2]):
        return logged
    seen = with_messages(tx, tenant, work)
    frames = ResponseWire(work.id, {}, system=[], clock=clock).retell(
        work.body, status=work.status, output=shown(seen)["output"], told=logged[-1][0] if logged else 0
    )
    number = logged[-1][0] + 1 if logged else 1
    count = max(number + len(frames) - 1, work.body.get("events") or 0)
    numbers = [*range(number, number + len(frames) - 1), count]
    return [*logged, *((n, b"id: %d\n%b" % (n, frame)) for n, frame in zip(numbers, frames, strict=True))]


def shown(seen: Seen) -> Json:
    """A response as clients see it."""
    return objects.stored_response(seen.work, seen.said)


# -- items of a conversation ----------------------------------------------------------------------------------------------


def item_name(prefix: str, root: str, position: int, index: int) -> str:
    """The name of an item: it says where in the conversation it is, so none is stored."""
    seal = hashlib.blake2b(f"{root}\x00{position}\x00{index}".encode(), digest_size=16).hexdigest()
    return f"{prefix}_{seal}p{position:x}n{index:x}"


def place_in(root: str, item: str) -> tuple[int, int] | None:
    """(position, index) of an item's name, if it is one of this conversation."""
    found = NAMED.fullmatch(item)
    if not found:
        return None
    position, index = int(found[2], 16), int(found[3], 16)
    return (position, index) if item_name(item.partition("_")[0], root, position, index) == item else None


def items_at(root: str, message: StoredMessage) -> list[Json]:
    """The items that a message is; none if it was deleted."""
    if message.erased:
        return []
    return objects.items_of(message.message, lambda prefix, index: item_name(prefix, root, message.position, index))


def item(tx: Tx, tenant: str, conversation: Conversation, name: str) -> tuple[int, Json]:
    """(position, item) of a conversation's item. Raises `NotFound`."""
    place = place_in(conversation.root, name)
    for message in Messages(tx, tenant, conversation.lineage).between(place[0], place[0]) if place else ():
        for found in items_at(conversation.root, message):
            if found["id"] == name:
                return message.position, found
    raise errors.NotFound(f"there is no item {name!r} in this conversation", code="item_not_found", param="item_id")


def page(tx: Tx, tenant: str, conversation: Conversation, *, limit: int, backwards: bool, after: str | None) -> tuple[list[Json], bool]:
    """(items, whether there are more) of a conversation, behind one of them. Raises `Invalid`."""
    start = (FAR if backwards else 0, -1)
    if after is not None:
        place = place_in(conversation.root, after)
        if place is None:
            raise errors.Invalid(f"after names no item of this conversation: {after!r}", code="invalid_request", param="after")
        start = place
    messages = Messages(tx, tenant, conversation.lineage)
    found: list[Json] = []
    position = start[0]
    while len(found) <= limit:
        rows = messages.following(position, limit=min(limit + 2, MOST), backwards=backwards)
        for row in rows:
            listed = items_at(conversation.root, row)
            if row.position == start[0]:
                listed = listed[: start[1]] if backwards else listed[start[1] + 1 :]
            found += reversed(listed) if backwards else listed
        if len(rows) < min(limit + 2, MOST):
            break
        position = rows[-1].position + (-1 if backwards else 1)
    return found[:limit], len(found) > limit


# -- items that a request refers to ---------------------------------------------------------------------------------------


def referred(tx: Tx, tenant: str, references: Sequence[tuple[str, str]], conversation: str | None) -> dict[str, Json]:
    """The items that are only named: those of responses, and of the conversation that the request is about. Raises `NotFound`."""
    found: dict[str, Json] = {}
    root = Sessions(tx, tenant).lineage_of(conversation) if conversation else None
    for param, name in references:
        place = items.place_of(name)
        known = Works(tx, tenant).find(place[0], "response") if place else None
        if place and known:
            seen = with_messages(tx, tenant, known)
            listed = objects.input_items(seen.work, seen.said) if place[1] else shown(seen)["output"]
            found |= {item["id"]: item for item in listed if item["id"] == name}
        elif root and (spot := place_in(root.root, name)):
            for message in Messages(tx, tenant, root.id).between(spot[0], spot[0]):
                found |= {item["id"]: item for item in items_at(root.root, message) if item["id"] == name}
        if name not in found:
            raise errors.NotFound(f"{param} names no item that is stored: {name!r}", code="item_not_found", param=param)
    return found
