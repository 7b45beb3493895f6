"""A turn that continues an earlier one, though others followed that: it goes on in a fork, which sees only what came before.

The fork is made before the turn begins, so that the turn is like any other; if the turn leaves nothing, the fork goes with it.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial

from mnemon.core import errors, ids
from mnemon.core.records import After, Identity, TurnRequest
from mnemon.store.base import Tx
from mnemon.store.messages import Messages
from mnemon.store.sessions import NewSession, Sessions, missing
from mnemon.turn.parts import Parts


@contextlib.asynccontextmanager
async def branch(parts: Parts, request: TurnRequest) -> AsyncIterator[TurnRequest]:
    """The request as it is to be carried out in the fork."""
    assert request.after  # noqa: S101 - only such a turn is ever overtaken
    session_id = await parts.driver.write(partial(fork, request=request, after=request.after, at=parts.clock()))
    identity = replace(request.identity, session_id=session_id)
    try:
        yield replace(request, identity=identity, after=None)
    except BaseException:
        with contextlib.suppress(errors.StoreError):  # then it stays, as the copy that it is
            await parts.driver.write(partial(take_back, request=request, session_id=session_id, after=request.after))
        raise


def fork(tx: Tx, *, request: TurnRequest, after: After, at: float) -> str:
    """Copy the conversation as it was; the name of the copy. Raises `Conflict` if it never comes by there any more."""
    sessions = Sessions(tx, request.tenant)
    named = str(request.identity.session_id)
    source = sessions.held(named)
    if source is None:
        raise missing(named)
    if Messages(tx, request.tenant, source.id).chain_at(after.position) != after.chain:
        message = "what this turn is to follow was edited since, and stands on an old branch"
        raise errors.Conflict(message, code="edited_away", param="previous_response_id")
    row, first = sessions.get(source.tip), sessions.get(source.root)
    new = NewSession(
        id=ids.session(),
        source=row["source"],
        parent_id=named,
        title=row["title"],
        model=row["model"],
        system_prompt=source.system_prompt,
        session_key=source.session_key,
        identity=Identity(**request.identity.where()),
    )
    sessions.fork(source, new, upto=after.position, preview=first["preview"], at=at)
    return new.id


def take_back(tx: Tx, *, request: TurnRequest, session_id: str, after: After) -> None:
    """The turn left nothing, and so its fork is nothing but a copy."""
    sessions = Sessions(tx, request.tenant)
    lineage = sessions.lineage_of(session_id)
    if lineage is not None and lineage.chain == after.chain:
        sessions.delete(session_id)
