"""Sessions and the lineages that compression strings them into.

A lineage is one conversation. It has a root session, whose name it bears, and a tip, the session that new turns belong to. Every session
of a lineage points at the lineage, so the tip is found from any of them in one look-up; a fork is a lineage of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mnemon.core import errors
from mnemon.core.records import Identity, Lineage
from mnemon.store.base import Row, Tx
from mnemon.store.messages import FAR, Messages, lines, lines_json
from mnemon.store.passages import Passages
from mnemon.store.removals import Removals
from mnemon.store.works import Works

AS_STORED = tuple(name for name in Lineage.__dataclass_fields__ if name not in ("state", "chain", "shared"))


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSession:
    """What is known of a session when it begins."""

    id: str
    source: str
    parent_id: str | None = None
    title: str | None = None
    model: str | None = None
    system_prompt: str | None = None
    session_key: str | None = None
    identity: Identity = field(default_factory=Identity)
    talks: bool = True
    """Whether somebody talks in it: what a job began is nobody's current transcript."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a turn adds to its session's counters."""

    messages: int = 0
    tool_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    reasoning_tokens: int = 0
    calls: int = 0
    model: str | None = None
    preview: str | None = None

    def columns(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


class Scope(NamedTuple):
    """A memory scope: how many passages and memories it was given, and how often something was erased from it or changed in it."""

    id: int
    passages: int
    memories: int
    erasures: int
    changes: int


class Sessions:
    """Sessions of one tenant."""

    def __init__(self, tx: Tx, tenant: str) -> None:
        self.tx = tx
        self.tenant = tenant

    def lineage_of(self, session_id: str) -> Lineage | None:
        """The lineage that any of its sessions belongs to."""
        row = self.tx.one("lineages_find", tenant=self.tenant, id=session_id)
        if row is None:
            return None
        known = {name: row[name] for name in AS_STORED}
        return Lineage(**known, chain=bytes(row["chain"]), state=lines(row["state"]), shared=bool(row["shared"]))

    def root_of(self, session_id: str) -> str | None:
        """The name of the lineage that a session belongs to."""
        row = self.tx.one("lineages_root", tenant=self.tenant, id=session_id)
        return str(row["root"]) if row else None

    def held(self, session_id: str) -> Lineage | None:
        """The lineage of a session, which no turn can change until this transaction ends."""
        lineage = self.lineage_of(session_id)
        if lineage is None:
            return None
        self.tx.one("lineages_hold", tenant=self.tenant, lineage=lineage.id)
        return self.lineage_of(session_id)

    def current_of(self, session_key: str) -> str | None:
        """Root of the transcript that a key without an id continues."""
        row = self.tx.one("channels_find", tenant=self.tenant, session_key=session_key)
        return str(row["root"]) if row else None

    def make_current(self, session_key: str, lineage: int) -> None:
        """What `/new` and `/reset` do: from now on the key alone continues this lineage."""
        self.tx.run("channels_set", tenant=self.tenant, session_key=session_key, lineage=lineage)

    def existing_scope(self, session_key: str) -> Scope | None:
        """The scope of a key that was used before."""
        row = self.tx.one("scopes_find", tenant=self.tenant, kind="key", name=session_key)
        return Scope(*(int(row[name]) for name in Scope._fields)) if row else None

    def scope(self, session_key: str | None, root: str) -> tuple[int, int]:
        """The memory scope, made if need be: the key's if there is one, else the lineage's own."""
        kind, name = ("key", session_key) if session_key is not None else ("lineage", root)
        row = self.tx.one("scopes_find", tenant=self.tenant, kind=kind, name=name)
        row = row or self.tx.one("scopes_add", tenant=self.tenant, kind=kind, name=name)
        return (int(row["id"]), int(row["passages"])) if row else (0, 0)

    def begin(self, new: NewSession, *, at: float) -> Lineage:
        """Create a session as the root of a lineage of its own. Raises `Conflict` if the id is taken."""
        if self.tx.one("sessions_get", tenant=self.tenant, id=new.id):
            raise taken(new.id)
        scope, size = self.scope(new.session_key, new.id)
        row = self.tx.one(
            "lineages_add",
            tenant=self.tenant,
            root=new.id,
            scope=scope,
            session_key=new.session_key,
            system_prompt=new.system_prompt,
            at=at,
        )
        if row is None:  # another server was quicker
            raise taken(new.id)
        lineage = int(row["id"])
        self._insert(new, lineage, at)
        if new.session_key is not None and new.talks:
            self.tx.run("channels_begin", tenant=self.tenant, session_key=new.session_key, lineage=lineage)
        return Lineage(
            id=lineage,
            root=new.id,
            tip=new.id,
            parent=new.parent_id,
            scope=scope,
            scope_size=size,
            session_key=new.session_key,
            system_prompt=new.system_prompt,
            next_position=1,
            compacted_to=0,
            chain=b"",
            branches=0,
        )

    def _insert(self, new: NewSession, lineage: int, at: float) -> None:
        self.tx.run(
            "sessions_add",
            tenant=self.tenant,
            id=new.id,
            lineage=lineage,
            parent_id=new.parent_id,
            source=new.source,
            title=new.title,
            model=new.model,
            at=at,
            **new.identity.where(),
        )

    def bind(self, lineage: Lineage, session_key: str) -> int:
        """Give a lineage that began without a key its key; its memories move into the key's scope. The new scope."""
        scope, _ = self.scope(session_key, lineage.root)
        where = {"tenant": self.tenant, "lineage": lineage.id}
        self.tx.run("lineages_bind", **where, session_key=session_key, scope=scope)
        # New numbers in the new scope: whoever indexes that scope sees them as what they are there, new.
        self.tx.run("passages_move", **where, scope=scope, base=self._reserved(lineage.id, scope))
        self.tx.run("passages_moved", **where, scope=scope)
        Removals(self.tx, self.tenant, lineage.scope).move(to=scope)
        self.tx.run("channels_begin", tenant=self.tenant, session_key=session_key, lineage=lineage.id)
        return scope

    def identify(self, session_id: str, identity: Identity) -> None:
        """Remember who and where; what a request leaves out stays as it was."""
        if any(identity.where().values()):
            self.tx.run("sessions_identify", tenant=self.tenant, id=session_id, **identity.where())

    def count(self, session_id: str, usage: Usage) -> None:
        self.tx.run("sessions_count", tenant=self.tenant, id=session_id, **usage.columns())

    def show_as(self, session_id: str, preview: str | None) -> None:
        """Change the words by which a session is recognised: those it began with were edited."""
        self.tx.run("sessions_preview", tenant=self.tenant, id=session_id, preview=preview)

    def end(self, session_id: str, reason: str, *, at: float) -> None:
        self.tx.run("sessions_end", tenant=self.tenant, id=session_id, end_reason=reason, at=at)

    def advance(self, lineage: int, *, next_position: int, chain: bytes, at: float) -> None:
        """Move the head of the active path. Raises `Conflict` if the conversation was deleted meanwhile."""
        if not self.tx.run("lineages_advance", tenant=self.tenant, lineage=lineage, next_position=next_position, chain=chain, at=at):
            raise errors.Conflict("the session was deleted while this turn was running", code="session_deleted")

    def continue_in(self, child: str, lineage: Lineage, *, upto: int, state: str, at: float) -> None:
        """Compression: the tip ends, a child continues it with `state` standing for the messages up to `upto`."""
        self.end(lineage.tip, "compression", at=at)
        self.tx.run("sessions_continue", tenant=self.tenant, id=child, parent_id=lineage.tip, at=at)
        self.tx.run("compactions_add", lineage=lineage.id, upto=upto, state=state, at=at)
        self.tx.run("lineages_compact", tenant=self.tenant, lineage=lineage.id, tip=child, upto=upto, state=state)

    def rewind(self, lineage: int, *, upto: int, state: str) -> None:
        """A branch began inside the compressed part: fall back to the state before it."""
        self.tx.run("compactions_drop_from", lineage=lineage, position=upto + 1)
        self.tx.run("lineages_rewind", tenant=self.tenant, lineage=lineage, upto=upto, state=state)

    def branched(self, lineage: int) -> None:
        self.tx.run("lineages_branch", tenant=self.tenant, lineage=lineage)

    def get(self, session_id: str) -> Row:
        """The row of exactly this session. Raises `NotFound`."""
        row = self.tx.one("sessions_get", tenant=self.tenant, id=session_id)
        if row is None:
            raise missing(session_id)
        return row

    def listing(self, *, limit: int, offset: int, source: str = "", session_key: str = "", children: bool = False) -> list[Row]:
        """Newest activity first; a compressed lineage is one row, its tip, unless `children` are asked for."""
        name = "sessions_list_with_children" if children else "sessions_list"
        return self.tx.all(name, tenant=self.tenant, limit=limit, offset=offset, source=source, session_key=session_key)

    def rename(self, session_id: str, title: str | None) -> None:
        self.tx.run("sessions_rename", tenant=self.tenant, id=session_id, title=title)

    def delete(self, session_id: str) -> None:
        """Delete the whole conversation that the session belongs to; forks of it survive. Raises `NotFound`."""
        lineage = self.lineage_of(session_id)
        if lineage is None:
            raise missing(session_id)
        Works(self.tx, self.tenant).delete_all(lineage.id)
        removals = Removals(self.tx, self.tenant, lineage.scope)
        removals.withdraw(removals.of_messages(lineage.id))
        self.tx.run("sessions_orphan", tenant=self.tenant, lineage=lineage.id)
        self.tx.run("lineages_drop", tenant=self.tenant, lineage=lineage.id)
        self.tx.run("scopes_drop", tenant=self.tenant, scope=lineage.scope)

    def fork(self, source: Lineage, new: NewSession, *, upto: int = FAR, preview: str | None = None, at: float) -> Lineage:
        """A new lineage with the messages copied, as far as `upto`. Without a key it is a scope of its own."""
        fork = self.begin(new, at=at)
        both = {"tenant": self.tenant, "lineage": source.id, "copy": fork.id, "upto": upto}
        self.tx.run("messages_copy", **both, session_id=new.id)
        self.tx.run("compactions_copy", lineage=source.id, copy=fork.id, upto=upto)
        self.tx.run("passages_copy", **both, scope=fork.scope, base=self._reserved(source.id, fork.scope, upto=upto))
        Removals(self.tx, self.tenant, source.scope).copy(source.id, fork.id, to=fork.scope, upto=upto)
        row = self.tx.one("messages_count", tenant=self.tenant, lineage=fork.id)
        self.count(new.id, Usage(messages=row["n"] if row else 0, preview=preview))
        messages = Messages(self.tx, self.tenant, source.id)
        whole = upto >= source.next_position - 1
        compacted_to, state = messages.compaction_before(min(upto, source.compacted_to) + 1)
        self.tx.run(
            "lineages_restore",
            tenant=self.tenant,
            lineage=fork.id,
            upto=compacted_to,
            state=lines_json(state),
            next_position=source.next_position if whole else upto + 1,
            chain=source.chain if whole else messages.chain_at(upto),
        )
        return fork

    def _reserved(self, lineage: int, scope: int, *, upto: int = FAR) -> int:
        """Numbers in `scope` for all passages of a lineage, as far as `upto`."""
        row = self.tx.one("passages_of_lineage", tenant=self.tenant, lineage=lineage, upto=upto)
        return Passages(self.tx, self.tenant, scope).reserve(int(row["n"]) if row else 0)


def taken(session_id: str) -> errors.Conflict:
    return errors.Conflict(f"there is a session {session_id!r} already", code="session_exists", param="id")


def missing(session_id: str) -> errors.NotFound:
    return errors.NotFound(f"there is no session {session_id!r}", code="session_not_found", param="session_id")
