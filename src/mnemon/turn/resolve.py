"""The first step: which conversation is this, who may write to it, and what of the request is new.

All of it is one unit of work. It takes the session's lease and says that an idempotent request is being worked on; both are undone if the
turn fails, and neither outlives the process.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mnemon.context.exchanges import told
from mnemon.core import errors, ids
from mnemon.core.records import After, Lineage, Message, StateLine, StoredMessage, TurnRequest
from mnemon.store.base import Tx
from mnemon.store.idempotency import Record, Records
from mnemon.store.messages import Messages
from mnemon.store.sessions import Scope, Sessions, missing
from mnemon.turn import reconcile
from mnemon.turn.keeping import Keeper
from mnemon.turn.tails import Tails


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A scope to recall from, how many passages and memories it has, and whether they are all of this very conversation.

    `erasures` and `changes` say how often something was erased from it or changed in it.
    """

    scope: int
    size: int
    memories: int
    erasures: int = 0
    changes: int = 0
    only_this: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A turn that may go on: everything the prompt is made from, and what the commit must know."""

    request: TurnRequest
    session_id: str | None = None
    session_key: str | None = None
    lineage: Lineage | None = None
    lease: str | None = None
    token: str = ""
    scopes: tuple[Place, ...] = ()
    state: tuple[StateLine, ...] = ()
    compacted_to: int = 0
    history: Sequence[StoredMessage] = ()
    new: tuple[Message, ...] = ()
    chain: bytes = b""
    cut: int | None = None

    @property
    def next_position(self) -> int:
        return self.lineage.next_position if self.lineage else 1

    def undo(self, tx: Tx, *, owner: int) -> None:
        """Give back what `begin` took."""
        if self.lease is not None:
            tx.leases(self.request.tenant).give_up(self.lease, self.token)
        if self.request.idempotency:
            Records(tx, self.request.tenant).give_up(self.request.idempotency, owner=owner)

    @property
    def begins_anew(self) -> bool:
        """Whether the very first thing the user said was edited."""
        return self.cut is not None and not self.compacted_to and not any(m.role == "user" for m in self.history)


@dataclass(frozen=True, slots=True, kw_only=True)
class Busy:
    """Another turn of this conversation is running. `lease` is the conversation's own name."""

    lease: str


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Another process is at this very request."""


@dataclass(frozen=True, slots=True)
class Overtaken:
    """Others followed the turn that this one continues: it goes on in a branch."""


Found = Begun | Busy | Elsewhere | Overtaken | Record


def begin(tx: Tx, request: TurnRequest, *, keeper: Keeper | None = None, owner: int, token: str, tails: Tails, now: float) -> Found:
    """Find the session and become its one writer."""
    records, leases = Records(tx, request.tenant), tx.leases(request.tenant)
    if request.idempotency:
        known = records.find(request.idempotency, now=now)
        if isinstance(known, Record):
            return known
        if known is not None and known != owner:
            return Elsewhere()
        if known is not None:  # ours, but no turn of ours runs with it (that one would have been joined): it could not be given back
            records.give_up(request.idempotency, owner=owner)
        if request.resume_after:
            message = "the stream that Last-Event-ID names did not end and is gone; send the request without it to run the turn anew"
            raise errors.Conflict(message, code="stream_lost", param="Last-Event-ID")
    found = look_stateless(request) if request.stateless else behind_lease(tx, request, tails=tails, token=token)
    if isinstance(found, Busy):
        return found
    lease = found.lease
    if lease is not None and overtaken(request, found):
        leases.give_up(lease, token)
        return Overtaken()
    if request.idempotency and not records.begin(request.idempotency, owner=owner, now=now):
        if lease is not None:
            leases.give_up(lease, token)
        return Elsewhere()
    if keeper is not None and keeper.early:
        keeper.begun(tx, session_id=found.session_id, at=now)
    return found


def overtaken(request: TurnRequest, found: Begun) -> bool:
    """Whether the conversation is not any more where the turn that this one continues left it."""
    return request.after is not None and found.lineage is not None and left_behind(request.after, found.lineage)


def left_behind(after: After, lineage: Lineage) -> bool:
    return lineage.chain != after.chain


def behind_lease(tx: Tx, request: TurnRequest, *, tails: Tails, token: str) -> Begun | Busy:
    """The conversation with its lease taken: what the last holder wrote is seen.

    The name of the lease is first taken from memory, which saves a look at the database. Whether it was the right one is seen behind it.
    """
    leases, session_id = tx.leases(request.tenant), request.identity.session_id
    remembered = tails.root_of(request.tenant, session_id) if session_id else None
    lease = remembered or lease_name(Sessions(tx, request.tenant), request)
    if leases.take(lease, token):
        try:
            found = look(tx, request, tails=tails, token=token)
        except errors.MnemonError:  # where no transaction undoes it, the lease would stay with this living process
            leases.give_up(lease, token)
            raise
        if found.lease == lease:
            if session_id and found.lineage and not remembered:
                tails.keep_root(request.tenant, session_id, lease)
            return found
        leases.give_up(lease, token)  # the key got its first session meanwhile, or the id names another conversation by now
        lease = str(found.lease)
    if session_id and remembered:
        tails.forget(request.tenant, session_id)
        return behind_lease(tx, request, tails=tails, token=token)
    return Busy(lease=lease)


def lease_name(sessions: Sessions, request: TurnRequest) -> str:
    """The name under which the conversation's one writer is known: its root's, or its own to be."""
    identity = request.identity
    session_id = identity.session_id or sessions.current_of(str(identity.session_key))
    if session_id is None:
        return unnamed(request)
    return sessions.root_of(session_id) or session_id


def unnamed(request: TurnRequest) -> str:
    """What stands for the id of a key's transcript while that is not known. No id holds a control character."""
    return f"\x01{request.identity.session_key}"


def look(tx: Tx, request: TurnRequest, *, tails: Tails, token: str = "") -> Begun:
    """Everything `begin` does but taking the lease: reads only. Raises `NotFound` and `Conflict`."""
    if request.stateless:
        return look_stateless(request)
    sessions = Sessions(tx, request.tenant)
    lineage, lease = locate(sessions, request)
    if lineage is None:
        return first_turn(sessions, request, lease=lease, token=token)
    return next_turn(tx, sessions, request, lineage=lineage, tails=tails, token=token)


def look_stateless(request: TurnRequest) -> Begun:
    check_tool_results((), request.spoken(), request)
    return Begun(request=request, new=request.spoken())


def locate(sessions: Sessions, request: TurnRequest) -> tuple[Lineage | None, str]:
    """The lineage, if it exists, and the name under which its one writer is known."""
    identity = request.identity
    session_id = identity.session_id
    if session_id is None and identity.session_key is not None:
        session_id = sessions.current_of(identity.session_key)
        if session_id is None:
            return None, unnamed(request)
    lineage = sessions.lineage_of(session_id) if session_id else None
    if lineage is None:
        if request.must_exist:
            raise missing(str(session_id))
        return None, str(session_id)
    key = identity.session_key
    if key is not None and lineage.session_key is not None and lineage.session_key != key:
        message = f"the session {session_id!r} belongs to another session key"
        raise errors.Conflict(message, code="session_key_conflict", param="X-Hermes-Session-Key")
    return lineage, lineage.root


def first_turn(sessions: Sessions, request: TurnRequest, *, lease: str, token: str) -> Begun:
    """A session that does not exist yet; it will be created by the commit."""
    identity = request.identity
    check_tool_results((), request.spoken(), request)
    scope = sessions.existing_scope(identity.session_key) if identity.session_key is not None else None
    return Begun(
        request=request,
        session_id=identity.session_id or ids.session(),
        session_key=identity.session_key,
        lease=lease,
        token=token,
        scopes=(place(scope),) if scope else (),
        new=request.spoken(),
    )


def next_turn(tx: Tx, sessions: Sessions, request: TurnRequest, *, lineage: Lineage, tails: Tails, token: str) -> Begun:
    messages = Messages(tx, request.tenant, lineage.id)
    found = difference(request, lineage, messages)
    upto, state = lineage.compacted_to, lineage.state
    end = request.after.position + 1 if request.after and left_behind(request.after, lineage) else found.cut
    if end is not None and end <= upto:
        upto, state = messages.compaction_before(end)
    history: Sequence[StoredMessage] | None
    if end is not None:
        history = told(messages.live(after=upto, before=end))
    elif (history := tails.get(lineage)) is None:
        history = told(messages.live(after=upto))
    check_tool_results(history, found.new, request)
    return Begun(
        request=request,
        session_id=lineage.tip,
        session_key=lineage.session_key or request.identity.session_key,
        lineage=lineage,
        lease=lineage.root,
        token=token,
        scopes=scopes_of(sessions, request, lineage),
        state=state,
        compacted_to=upto,
        history=history,
        new=found.new,
        chain=found.chain,
        cut=found.cut,
    )


def difference(request: TurnRequest, lineage: Lineage, messages: Messages) -> reconcile.Difference:
    """What of the request is new to this lineage. What follows an older turn will be so to a branch."""
    if request.silent or (request.after and left_behind(request.after, lineage)):
        return reconcile.Difference(new=request.spoken(), chain=lineage.chain)
    return reconcile.reconcile(
        request.spoken(), head=lineage.chain, stored=messages.digests, whole=request.whole_history, appends=request.appends
    )


def scopes_of(sessions: Sessions, request: TurnRequest, lineage: Lineage) -> tuple[Place, ...]:
    """Where to recall from: the lineage's scope, and the key's while the session is about to bind to it."""
    key = request.identity.session_key
    own = Place(
        scope=lineage.scope,
        size=lineage.scope_size,
        memories=lineage.scope_memories,
        erasures=lineage.scope_erasures,
        changes=lineage.scope_changes,
        only_this=not lineage.shared,
    )
    found = [own]
    if key is not None and lineage.session_key is None:
        scope = sessions.existing_scope(key)
        if scope:
            found.append(place(scope))
    return tuple(found)


def place(scope: Scope) -> Place:
    return Place(scope=scope.id, size=scope.passages, memories=scope.memories, erasures=scope.erasures, changes=scope.changes)


def check_tool_results(history: Sequence[StoredMessage], new: Sequence[Message], request: TurnRequest) -> None:
    """A tool's result must answer a call that waits for one. Raises `Invalid` with its place in the request."""
    if not any(m.role == "tool" for m in new):
        return
    waiting = waiting_calls(history)
    places = [index for index, message in enumerate(request.messages) if message.spoken][-len(new) :]
    for index, message in zip(places, new, strict=True):
        if message.role != "tool":
            waiting = {call.get("id") for call in message.calls}
        elif (call_id := message.body.get("tool_call_id")) in waiting:
            waiting.discard(call_id)
        else:
            problem = f"tool_call_id {call_id!r} answers no tool call that waits for a result"
            param = request.places[index] if request.places else f"messages[{index}].tool_call_id"
            raise errors.Invalid(problem, code="unknown_tool_call", param=param)


def waiting_calls(history: Sequence[StoredMessage]) -> set[str | None]:
    """The calls of the newest message of the assistant that have no result yet; none once something else was said."""
    answered: set[str | None] = set()
    for message in reversed(history):
        if message.role != "tool":
            return {call.get("id") for call in message.message.calls} - answered
        answered.add(message.message.body.get("tool_call_id"))
    return set()
