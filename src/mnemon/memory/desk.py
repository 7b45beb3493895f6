"""The ledger as its owner reads it: which scope, what is in it, how it came about. Reads only, but for a scope that is to be written to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, get_args

import msgspec

from mnemon.core import clock, errors
from mnemon.core.records import Identity, Json, Recalled
from mnemon.memory import echoes
from mnemon.memory.base import Memory, Query
from mnemon.memory.statements import Grain, Kind, Origin
from mnemon.store.base import Driver, Tx
from mnemon.store.memories import Evidence, Filter, Link, Memories, Remembered
from mnemon.store.sessions import Scope, Sessions, missing

ENDLESS = 2**40
TOPIC = 100

LARGEST = 2**31 - 1
CHOICES = {"kind": get_args(Kind), "origin": get_args(Origin), "state": ("active", "superseded", "retracted")}
SAME = (
    "id", "text", "kind", "slot", "subject", "attribute", "single", "negated", "origin", "rule", "version", "valid_from", "valid_to",
    "recorded_at", "closed_at", "closed_by", "closed_rule", "pinned", "state", "number",
)  # fmt: skip


def scope_of(tx: Tx, tenant: str, identity: Identity) -> Scope | None:
    """The scope that an identity names: the key's, else that of the session's conversation; None for a key that was never used.

    Raises `Invalid` if nothing is named, `NotFound` for a session that does not exist, `Conflict` for one of another key.
    """
    sessions = Sessions(tx, tenant)
    lineage = sessions.lineage_of(identity.session_id) if identity.session_id is not None else None
    if identity.session_key is not None:
        if lineage and lineage.session_key not in (None, identity.session_key):
            message = f"the session {identity.session_id!r} belongs to another session key"
            raise errors.Conflict(message, code="session_key_conflict", param="X-Hermes-Session-Key")
        return sessions.existing_scope(identity.session_key)
    if identity.session_id is None:
        message = "whose memory? Name it with the header X-Hermes-Session-Key, or X-Hermes-Session-Id for a session without a key"
        raise errors.Invalid(message, code="memory_scope_required", param="X-Hermes-Session-Key")
    if lineage is None:
        raise missing(identity.session_id)
    return Scope(lineage.scope, lineage.scope_size, lineage.scope_memories, lineage.scope_erasures, lineage.scope_changes)


def widened(tx: Tx, tenant: str, identity: Identity) -> str | None:
    """The key whose whole memory is meant where only a session of it is named; None if that is no more than was said."""
    if identity.session_key is not None or identity.session_id is None:
        return None
    lineage = Sessions(tx, tenant).lineage_of(identity.session_id)
    return lineage.session_key if lineage else None


def scope_to_write(tx: Tx, tenant: str, identity: Identity) -> int:
    """The same; the scope of a key that was never used is made."""
    found = scope_of(tx, tenant, identity)
    return found.id if found else Sessions(tx, tenant).scope(identity.session_key, "")[0]


def scope_of_memory(tx: Tx, tenant: str, identity: Identity, memory: str) -> int:
    """The scope that a memory is in, which is the named one if one is named. Raises `NotFound`."""
    row = tx.one("scope_of_memory", tenant=tenant, id=memory)
    if row is not None and not identity.stateless:
        named = scope_of(tx, tenant, identity)
        row = row if named and named.id == row["scope"] else None
    if row is None:
        raise errors.NotFound(f"there is no memory {memory!r}", code="memory_not_found", param="memory_id")
    return int(row["scope"])


def page(tx: Tx, tenant: str, scope: int | None, wanted: Filter, *, limit: int, after: str = "") -> list[Remembered]:
    """A page of the ledger, newest first; nothing for a scope that does not exist yet."""
    if scope is None:
        return []
    memories = Memories(tx, tenant, scope)
    if after and not memories.some([after]):
        raise errors.NotFound(f"there is no memory {after!r} to go on behind", code="memory_not_found", param="after")
    if wanted.session_id:
        lineage = Sessions(tx, tenant).lineage_of(wanted.session_id)
        if lineage is None or lineage.scope != scope:
            message = f"there is no session {wanted.session_id!r} in this memory"
            raise errors.NotFound(message, code="session_not_found", param="session")
    rows = memories.page(wanted, limit=limit, after=after)
    return rows if wanted.as_of is None else [as_it_was(m) for m in rows]


def as_it_was(memory: Remembered) -> Remembered:
    """A memory while it held: nothing had closed it yet."""
    return replace(memory, state="active", valid_to=None, closed_at=None, closed_by=None, closed_rule=None)


def one(tx: Tx, tenant: str, scope: int, memory: str) -> Json:
    """A memory with its evidence, what came before and after it in its place, and why."""
    memories = Memories(tx, tenant, scope)
    found = memories.get(memory)
    history = [m for m in memories.history(memory) if m.id != memory]
    links = memories.links([memory])
    around = {m.id: m for m in memories.some({side for link in links for side in (link.source, link.target)} | {m.id for m in history})}
    sides: dict[str, list[Json]] = {"superseded": [], "superseded_by": [], "causes": [], "effects": []}
    for link in links:
        forward = link.source == memory
        name = ("effects" if forward else "causes") if link.kind == "cause" else ("superseded" if forward else "superseded_by")
        other = around.get(link.target if forward else link.source)
        if other:
            sides[name].append({**brief(other), "link": link.kind, "rule": link.rule, "at": link.at})
    return {**shown(found, memories.evidence([memory]).get(memory, [])), **sides, "history": [brief(m) for m in history]}


def reversals(tx: Tx, tenant: str, scope: int | None, *, limit: int) -> list[Json]:
    """Positions that changed, newest first."""
    if scope is None:
        return []
    memories = Memories(tx, tenant, scope)
    links = memories.reversals(limit=limit)
    rows = {m.id: m for m in memories.some({side for link in links for side in (link.source, link.target)})}
    said = memories.evidence(rows)
    return [
        {
            "object": "memory.reversal",
            "at": link.at,
            "rule": link.rule,
            "now": shown(rows[link.source], said.get(link.source, [])),
            "before": shown(rows[link.target], said.get(link.target, [])),
        }
        for link in links
        if link.source in rows and link.target in rows
    ]


def causes(tx: Tx, tenant: str, scope: int, wanted: Iterable[str]) -> list[Json]:
    """For each memory the chain of its causes, the nearest first, and the reason that its own words give."""
    memories = Memories(tx, tenant, scope)
    found = []
    for memory in memories.some(dict.fromkeys(wanted)):
        links = memories.causes(memory.id)
        rows = {m.id: m for m in memories.some(link.source for link in links)}
        chain = [{**brief(rows[k.source]), "explains": k.target, "rule": k.rule} for k in links if k.source in rows]
        if chain or memory.details.cause:
            found.append({"object": "memory.why", "memory": brief(memory), "reason": memory.details.cause or None, "causes": chain})
    return found


def timeline(tx: Tx, tenant: str, scope: int | None, *, slot: str = "", topic: str = "", hits: Iterable[str] = ()) -> list[Json]:
    """Everything that ever filled a slot, or was stated about a topic, in the order in which it held or happened."""
    if scope is None:
        return []
    memories = Memories(tx, tenant, scope)
    if slot:
        rows = memories.timeline(slot)
    else:
        rows = list({m.id: m for found in of_topic(memories, topic, hits) for m in memories.history(found.id)}.values())
    rows.sort(key=lambda m: (m.happened[0] if m.happened else m.valid_from, m.recorded_at, m.id))
    said = memories.evidence(m.id for m in rows)
    return [shown(m, said.get(m.id, [])) for m in rows]


def of_topic(memories: Memories, topic: str, hits: Iterable[str]) -> list[Remembered]:
    """The memories with all telling words of a topic in their words or slot, or the topic as it is written."""
    written = memories.page(Filter(text=topic), limit=TOPIC)
    wanted = echoes.words_of(topic)
    near = {m.id: m for m in (*memories.some(dict.fromkeys(hits)), *memories.sharing(wanted, limit=TOPIC))}
    about = [m for m in near.values() if wanted and wanted <= echoes.words_of(f"{m.text} {m.subject} {m.attribute}")]
    return list({m.id: m for m in (*written, *about)}.values())


async def recalled(driver: Driver, memory: Memory, *, tenant: str, identity: Identity, text: str) -> tuple[Scope | None, list[Recalled]]:
    """What a turn that says `text` would be reminded of, from all of the scope."""
    scope = await driver.read(lambda tx: scope_of(tx, tenant, identity))
    if scope is None:
        return None, []
    query = Query(
        tenant=tenant, scope=scope.id, size=ENDLESS, memories=scope.memories, erasures=scope.erasures, changes=scope.changes,
        lineage=0, live=0, text=text, identity=identity,
    )  # fmt: skip
    return scope, await memory.recall(query)


def hit(found: Recalled, rows: dict[str, Remembered]) -> Json:
    """A search result: words that were said, or a memory that no message states."""
    return {
        "object": "memory.hit",
        "text": found.text,
        "score": round(found.score, 4),
        "why": found.why,
        "role": found.role,
        "at": found.at,
        "name": found.name or None,
        "notes": [words for _, words in found.marks],
        "memories": [brief(rows[i]) for i in found.memories if i in rows],
        "evidence": place_of(found) if found.session_id else None,
    }


def place_of(found: Recalled) -> Json:
    return {"session_id": found.session_id, "position": found.position, "start": found.start, "length": len(found.text)}


def hits(tx: Tx, tenant: str, scope: int, found: Sequence[Recalled]) -> list[Json]:
    rows = {m.id: m for m in Memories(tx, tenant, scope).some({i for line in found for i in line.memories})}
    return [hit(line, rows) for line in found]


# -- memories as data ---------------------------------------------------------------------------------------------------


def brief(memory: Remembered) -> Json:
    """A memory by its name, words and state."""
    names = ("id", "text", "kind", "slot", "state", "valid_from", "valid_to", "recorded_at")
    return {name: getattr(memory, name) for name in names}


def shown(memory: Remembered, evidence: Sequence[Evidence] | None = None) -> Json:
    """A memory with everything that is known of it."""
    happened = memory.happened
    found: Json = {
        "object": "memory",
        **{name: getattr(memory, name) for name in SAME},
        "values": list(memory.details.values),
        "cause": memory.details.cause or None,
        "effect": memory.details.effect or None,
        "happened": {"start": happened[0], "end": happened[1], "grain": happened[2]} if happened else None,
    }
    if evidence is not None:
        names = ("session_id", "position", "start", "length", "role", "at", "quote")
        found["evidence"] = [{name: getattr(e, name) for name in names} for e in evidence]
    return found


def exported(tx: Tx, tenant: str, scope: int, *, limit: int, after: str) -> tuple[list[Json], str]:
    """A page of an export, and the name to go on behind; empty when it was the last. What an import needs is all in it."""
    memories = Memories(tx, tenant, scope)
    rows = memories.page(Filter(), limit=limit, after=after)
    said = memories.evidence(m.id for m in rows)
    ids = {m.id for m in rows}
    links: dict[str, list[Json]] = {}
    for link in memories.links(ids):
        if link.source in ids:
            links.setdefault(link.source, []).append({"target": link.target, "kind": link.kind, "rule": link.rule, "at": link.at})
    lines = [{**shown(m, said.get(m.id, [])), "details": msgspec.to_builtins(m.details), "links": links.get(m.id, [])} for m in rows]
    return lines, rows[-1].id if len(rows) == limit else ""


def read_back(line: Json) -> tuple[Remembered, list[Link]]:
    """A line of an export as a row of the ledger. Raises `ValueError` with what is wrong."""
    happened = line.get("happened")
    columns: dict[str, Any] = {name: line[name] for name in SAME if name in line and name != "slot"}
    if not isinstance(columns.get("id"), str) or not isinstance(columns.get("text"), str) or not columns["text"].strip():
        raise ValueError("id and text must be texts")
    if any(isinstance(value, str) and "\x00" in value for value in columns.values()):
        raise ValueError("no text may hold a NUL character")
    for name, allowed in CHOICES.items():
        if name in columns and columns[name] not in allowed:
            raise ValueError(f"{name} must be one of {', '.join(allowed)}")
    if happened and happened["grain"] not in get_args(Grain):
        raise ValueError(f"the grain of happened must be one of {', '.join(get_args(Grain))}")
    if any(not 0 <= columns.get(name, 0) <= LARGEST for name in ("version", "number")):
        raise ValueError(f"version and number must be whole numbers from 0 to {LARGEST}")
    row = msgspec.convert(
        {
            "kind": "fact", "origin": "import", "rule": "import", "version": 0, "valid_from": 0.0, "recorded_at": 0.0, **columns,
            "details": line.get("details") or {},
            "happened": [happened["start"], happened["end"], happened["grain"]] if happened else None,
        },
        Remembered,
    )  # fmt: skip
    links = [msgspec.convert({**link, "source": row.id}, Link) for link in line.get("links") or ()]
    times = [row.valid_from, row.valid_to, row.recorded_at, row.closed_at, *(row.happened or ())[:2], *(link.at for link in links)]
    if not all(clock.shown(at) for at in times if at is not None):
        raise ValueError("a time must be in seconds since 1970, within the years 1 to 9999")
    return row, links
