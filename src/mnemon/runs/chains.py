"""Responses continue each other: what `previous_response_id` means for a turn."""

from __future__ import annotations

from dataclasses import replace

from mnemon.core import errors
from mnemon.core.records import After, TurnRequest
from mnemon.store.base import Tx
from mnemon.store.sessions import Sessions
from mnemon.store.works import Work, Works

PARAM = "previous_response_id"


def continued(tx: Tx, request: TurnRequest, previous: str) -> TurnRequest:
    """The request as one that goes on behind a response. Raises `NotFound`, `Conflict` and `Invalid`."""
    response = usable(tx, request.tenant, previous)
    session_id = str(response.session_id)
    named = request.identity.session_id
    if named is not None and not descends(Sessions(tx, request.tenant), session_id, named):
        message = f"the session {named!r} is not that of the response {previous!r}"
        raise errors.Invalid(message, code="invalid_session_id", param="session_id")
    after = After(position=response.last or 0, chain=response.chain)
    return replace(request, identity=replace(request.identity, session_id=session_id), after=after, appends=True)


def usable(tx: Tx, tenant: str, previous: str) -> Work:
    """The response to go on from."""
    response = Works(tx, tenant).find(previous, "response")
    if response is None:
        raise errors.NotFound(f"there is no response {previous!r}", code="response_not_found", param=PARAM)
    if not response.ended:
        raise errors.Conflict(f"the response {previous!r} is still being made", code="response_not_finished", param=PARAM)
    if response.lineage is None:
        message = f"the response {previous!r} is {response.status}: there is nothing to go on from"
        raise errors.Invalid(message, code="response_not_usable", param=PARAM)
    return response


def descends(sessions: Sessions, session_id: str, named: str) -> bool:
    """Whether a session is of the conversation that is named, or of a branch of it."""
    root, wanted = sessions.root_of(session_id), sessions.root_of(named)
    while root is not None and root != wanted:
        parent = sessions.get(root)["parent_id"]
        root = sessions.root_of(parent) if parent else None
    return root is not None
