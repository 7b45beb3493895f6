"""What the ledger has to say about a question and the passages found for it, as far as it is not on the shelf already."""

from __future__ import annotations

from collections.abc import Sequence

from mnemon.core.records import REPEATED, Recalled
from mnemon.memory import echoes
from mnemon.memory.base import Query
from mnemon.memory.shelf import Around, Place, Shelf
from mnemon.memory.weave import Known, Wish, chain
from mnemon.store.base import Tx
from mnemon.store.memories import Call, Called, Link, Memories
from mnemon.store.passages import Passages

PINNED, INSTRUCTIONS = 8, 3
COMES_ALONG = ("pinned", "instruction")
FOUND, FOUND_OF_ALL = 12, 40
SHARED = 2
CLOSED = 100
DAY = 86_400.0


def lines(tx: Tx, *, query: Query, numbers: Sequence[int]) -> dict[int, Recalled]:
    """Passages by number, each with whether the ledger has anything to say of it: of what it states, or of what it repeats."""
    read = Passages(tx, query.tenant, query.scope).texts(numbers)
    found = {number: line for number, (line, _) in read.items()}
    memories = Memories(tx, query.tenant, query.scope)
    if query.memories and memories.any_closed():
        # The ledger knows what becomes of what is stated; only other sentences have to be compared with it.
        said = [sentence for line, spans in read.values() for sentence in echoes.unstated(line, spans)]
        echoing = {s.line.key for those in maybe_repeated(memories, said).values() for s in those}
        found |= {number: line._replace(told=REPEATED) for number, line in found.items() if line.key in echoing}
    return found


def gather(tx: Tx, *, query: Query, found: Sequence[Recalled], telling: Sequence[Recalled], wish: Wish, shelf: Shelf) -> Known:
    """What the ledger has to say about a question and the passages found for it, of which only the `telling` ones need a look.

    One step along every link, to the end of every closing, and whatever else the messages state that are to be shown.
    """
    memories = Memories(tx, query.tenant, query.scope)
    looked = dict.fromkeys((r.session_id, r.position) for r in telling)
    called = called_up(memories, shelf, list(looked), query=query, wish=wish)
    known = Known(called=called)
    while called:
        around(memories, shelf, {c.id for c in called if not c.plain}, known)
        beside = ({(e.session_id, e.position) for e in known.evidence.values()} | stating(found, known)) - looked.keys()
        looked |= dict.fromkeys(beside)
        called = said_at(memories, shelf, sorted(beside))
        known.called += called
    known.echoed = repeated(memories, shelf, telling, known)
    if known.echoed and (beside := ({(e.session_id, e.position) for e in known.evidence.values()} | stating(found, known)) - looked.keys()):
        known.called += said_at(memories, shelf, sorted(beside))
    if known.memories and query.lineage:
        known.sessions = frozenset(memories.sessions(query.lineage))
    return known


def called_up(memories: Memories, shelf: Shelf, places: Sequence[Place], *, query: Query, wish: Wish) -> list[Called]:
    """What these messages state, what comes along by itself, and what the question asks for."""
    if shelf.along is not None and not wish.wants:
        return [*said_at(memories, shelf, places, dated=wish.when), *shelf.along]
    call = Call(
        places=shelf.missing(places, dated=wish.when),
        slots=wish.slots,
        kind=wish.kind,
        terms=wish.terms,
        shared=SHARED,
        dated=wish.when,
        most=FOUND_OF_ALL if wish.every else FOUND,
        pinned=PINNED,
        instructions=INSTRUCTIONS,
        newest=FOUND_OF_ALL if wish.days is not None else FOUND if wish.oneself else 0,
        since=query.at - DAY * wish.days if wish.days else 0.0,
    )
    rest = look(memories, shelf, call)
    shelf.along = [c for c in rest if c.why in COMES_ALONG]
    return [*shelf.stated(places, dated=wish.when), *rest]


def said_at(memories: Memories, shelf: Shelf, places: Sequence[Place], *, dated: bool = False) -> list[Called]:
    """What these messages state."""
    if missing := shelf.missing(places, dated=dated):
        look(memories, shelf, Call(places=missing, dated=dated))
    return shelf.stated(places, dated=dated)


def look(memories: Memories, shelf: Shelf, call: Call) -> list[Called]:
    """Ask the ledger: what messages state gets on the shelf, the rest is the answer."""
    found = memories.called(call)
    shelf.places.update({(place, call.dated): [] for place in call.places})
    for each in found:
        if each.why == "words":
            shelf.places[(each.session_id, each.position), call.dated].append(each)
    return [each for each in found if each.why != "words"]


def stating(found: Sequence[Recalled], known: Known) -> set[tuple[str, int]]:
    """The messages of those lines that state what there is something to say about."""
    return {(r.session_id, r.position) for r in found if not known.memories.keys().isdisjoint(r.memories)}


def repeated(memories: Memories, shelf: Shelf, found: Sequence[Recalled], known: Known) -> dict[str, list[echoes.Sentence]]:
    """The sentences that may repeat what does not hold any more, by memory; with all that there is to know of those."""
    echoed = maybe_repeated(memories, echoes.sentences_of([line for line in found if line.told == REPEATED]))
    if not echoed:
        return {}
    around(memories, shelf, set(echoed), known)
    slots = {known.memories[name].slot for name in echoed if name in known.memories}
    filled = {(m.slot, value) for m in memories.in_slots(slots - {""}, limit=CLOSED) if m.state == "active" for value in m.details.values}
    return {
        name: those
        for name, those in echoed.items()
        if (row := known.memories.get(name)) and not any((row.slot, value) in filled for value in row.details.values)
    }


def maybe_repeated(memories: Memories, said: Sequence[echoes.Sentence]) -> dict[str, list[echoes.Sentence]]:
    """Those sentences that may repeat what does not hold any more, by memory, as far as their words tell."""
    if not said:
        return {}
    by_word, closed = echoes.by_word(said), memories.closed_with(echoes.terms_of(said), limit=CLOSED)
    return {row.id: those for row in closed if (those := echoes.candidates(row, by_word))}


def around(memories: Memories, shelf: Shelf, wanted: set[str], known: Known) -> None:
    """Add the rows of these, of what they are linked with and of what closed any of them, each with its first evidence."""
    telling = wanted - known.memories.keys()
    if new := telling - shelf.around.keys():
        shelf.around.update(surroundings(memories, new))
    for memory in telling:
        found = shelf.around[memory]
        known.links += found.links
        known.closings |= found.closings
        known.memories |= found.memories
        known.evidence |= found.evidence


def surroundings(memories: Memories, wanted: set[str]) -> dict[str, Around]:
    """What is around each of these memories, read together."""
    links: dict[str, list[Link]] = {memory: [] for memory in wanted}
    for link in memories.links(wanted):
        for side in {link.source, link.target} & wanted:
            links[side].append(link)
    sides = {memory: {memory, *(side for link in own for side in (link.source, link.target))} for memory, own in links.items()}
    closings = memories.closings(set().union(*sides.values()))
    chains = {side: chain(side, closings) for those in sides.values() for side in those}
    rows = {m.id: m for m in memories.some({i for passed in chains.values() for i in telling_of(passed)})}
    evidence = memories.first_evidence(rows)
    return {
        memory: Around(
            links=links[memory],
            closings={old: closings[old] for side in those for old in chains[side] if old in closings},
            memories={i: rows[i] for side in those for i in telling_of(chains[side]) if i in rows},
            evidence={i: evidence[i] for side in those for i in telling_of(chains[side]) if i in evidence},
        )
        for memory, those in sides.items()
    }


def telling_of(passed: Sequence[str]) -> set[str]:
    """Of a line of closings: where it begins, what closed that, and what holds now."""
    return {*passed[:2], passed[-1]}
