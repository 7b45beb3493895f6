"""What messages state, as the ledger knows it now: the material of a compressed state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mnemon.core.records import Replaced, Stated
from mnemon.memory.weave import period
from mnemon.store.base import Tx
from mnemon.store.memories import Evidence, Link, Memories, Remembered


def stated(tx: Tx, *, tenant: str, scope: int, lineage: int, positions: Sequence[int]) -> list[Stated]:
    """The statements of these messages of a lineage, each with what it took the place of and what it is the reason for."""
    memories = Memories(tx, tenant, scope)
    found = memories.said_at(lineage, positions)
    if not found:
        return []
    links: dict[str, list[Link]] = {}
    for link in memories.links({m.id for m, _ in found}):
        for side in {link.source, link.target}:
            links.setdefault(side, []).append(link)
    ids = {link.target for own in links.values() for link in own if link.kind != "cause"}
    evidence = {i: e for i, e in memories.first_evidence(ids).items() if e.lineage == lineage} if ids else {}
    return [one(memory, place, links.get(memory.id, ()), evidence) for memory, place in found]


def one(memory: Remembered, place: Evidence, links: Sequence[Link], evidence: Mapping[str, Evidence]) -> Stated:
    causes = [link for link in links if link.kind == "cause"]
    closed = [link for link in links if link.kind != "cause" and link.source == memory.id]
    return Stated(
        memory=memory.id,
        position=place.position,
        start=place.start,
        length=place.length,
        kind=memory.kind,
        slot=memory.slot,
        values=memory.details.values,
        holds=memory.state == "active",
        since=memory.valid_from,
        happened=period(*memory.happened) if memory.happened and memory.kind == "event" else "",
        replaced=tuple(replaced(link, evidence.get(link.target)) for link in closed),
        explains=tuple(link.target for link in causes if link.source == memory.id),
        reasoned=bool(causes or memory.details.cause),
    )


def replaced(link: Link, evidence: Evidence | None) -> Replaced:
    """What a link closed; its words only where they stand in the same conversation, for a position names a message of no other."""
    reversal = link.kind == "reverses"
    if evidence is None:
        return Replaced(memory=link.target, reversal=reversal)
    text = evidence.quote.strip()
    return Replaced(
        memory=link.target,
        reversal=reversal,
        position=evidence.position,
        start=evidence.start,
        role=evidence.role,
        at=evidence.at,
        text=text,
    )
