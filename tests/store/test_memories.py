"""The ledger: nothing is overwritten, everything says where it comes from, and no scope sees another's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from mnemon.core import errors
from mnemon.core.records import Replaced
from mnemon.memory.stated import stated
from mnemon.store.memories import EVER, JUST_SAID, NEWEST, Call, Filter, Link, Memories, slot_of
from tests.store.ledgers import DAY, Ledger, everything, memory
from tests.store.steps import Store, Talk, unique


@pytest.fixture
def mem() -> str:
    """The beginning of names that no other test uses."""
    return unique("mem")


async def started(store: Store, session: str = "s", key: str | None = None) -> None:
    """A session."""
    await store.write(lambda talk: talk.begin(session, session_key=key))


async def test_a_memory_is_read_as_it_was_written(store: Store, mem: str) -> None:
    """Every field comes back, and the words of its evidence as they stand in the message."""
    await started(store)
    whole = memory(
        mem,
        "The port of billing is 5433.",
        subject="billing",
        attribute="port",
        single=True,
        negated=True,
        values=("5433",),
        terms=("port", "billing"),
        cue="correction",
        about="the port",
        cause="a clash",
        effect="it moved",
        happened=(1.0, 2.0, "month"),
        at=5.5,
    )

    def work(talk: Talk) -> None:
        ledger = Ledger(talk, "s")
        position = ledger.say(whole, at=5.5)
        assert ledger.memories.get(mem) == whole
        assert ledger.memories.get(mem).slot == "billing/port"
        (found,) = ledger.memories.evidence([mem])[mem]
        assert (found.session_id, found.position, found.role, found.quote, found.at) == ("s", position, "user", whole.text, 5.5)

    await store.write(work)


async def test_a_nul_can_be_remembered(store: Store, mem: str) -> None:
    """A text with a character that PostgreSQL does not keep is remembered all the same."""
    await started(store)
    await store.write(lambda talk: Ledger(talk, "s").say(memory(mem, "My name\x00 is Alex.", terms=("a\x00b",))))
    assert (await store.read(lambda talk: Ledger(talk, "s").memories.get(mem))).text == "My name  is Alex."


async def test_the_same_evidence_is_one(store: Store, mem: str) -> None:
    """A statement said twice is one memory with two pieces of evidence, however often they are written."""
    await started(store)

    def work(talk: Talk) -> int:
        ledger = Ledger(talk, "s")
        ledger.say(memory(mem))
        (again,) = talk.say("s", f"This is {mem}.", at=7.0)
        for _ in range(3):
            ledger.support(mem, again, at=7.0)
        return len(ledger.memories.evidence([mem])[mem])

    assert await store.write(work) == 2


async def test_closing_and_reopening(store: Store, mem: str) -> None:
    """What is closed says when, by what and why, is closed once, and can be opened again."""
    await started(store)
    old, new = f"{mem}-old", f"{mem}-new"

    def work(talk: Talk) -> None:
        ledger = Ledger(talk, "s")
        ledger.say(memory(old), memory(new, at=4.0))
        assert ledger.memories.close(old, by=new, rule="same_slot", at=5.0, until=4.0)
        assert not ledger.memories.close(old, by=None, rule="other", at=9.0)
        ledger.memories.link([Link(source=new, target=old, kind="supersedes", rule="same_slot", at=5.0)])
        found = ledger.memories.get(old)
        assert (found.state, found.valid_to, found.closed_at, found.closed_by, found.closed_rule) == (
            "superseded",
            4.0,
            5.0,
            new,
            "same_slot",
        )
        assert ledger.memories.reopen(old)
        assert not ledger.memories.reopen(old)
        assert ledger.memories.get(old) == memory(old)
        assert ledger.memories.links([old]) == []
        assert ledger.memories.close(old, by=None, rule="forget", at=6.0, until=0.5)
        withdrawn = ledger.memories.get(old)
        assert (withdrawn.state, withdrawn.closed_by, withdrawn.valid_to) == ("retracted", None, withdrawn.valid_from)

    await store.write(work)


async def test_pinning(store: Store, mem: str) -> None:
    """What is pinned is called up, newest first, until it is unpinned or closed."""
    await started(store)
    one, two = f"{mem}-1", f"{mem}-2"

    def work(talk: Talk) -> None:
        memories = Ledger(talk, "s").memories
        memories.add([memory(one), memory(two, at=2.0)])
        assert memories.pin(one, pinned=True)
        assert memories.pin(two, pinned=True)
        assert not memories.pin("mem_none", pinned=True)
        assert [m.id for m in memories.called(Call(pinned=9))] == [two, one]
        assert [m.id for m in memories.called(Call(pinned=1))] == [two]
        memories.pin(one, pinned=False)
        memories.close(two, by=None, rule="forget", at=3.0)
        assert memories.called(Call(pinned=9)) == []

    await store.write(work)


async def test_pages_and_filters(store: Store, mem: str) -> None:
    """A listing is newest first, without a gap between pages, and every filter does what its name says."""
    await started(store, "s", "k")
    await started(store, "t", "k")

    def fill(talk: Talk) -> None:
        here, there = Ledger(talk, "s"), Ledger(talk, "t")
        for n in range(5):
            here.say(memory(f"{mem}-{n}", f"Number {n} is 100% odd_", at=float(n + 1)))
        there.say(memory(f"{mem}-t", kind="preference", origin="import", subject="we", attribute="colour", at=9.0))
        here.supersede(f"{mem}-0", f"{mem}-4", at=5.0)

    await store.write(fill)

    def names(talk: Talk, limit: int = 99, after: str = "", **filters: object) -> list[str]:
        page = Ledger(talk, "s").memories.page(Filter(**filters), limit=limit, after=after and f"{mem}-{after}")  # type: ignore[arg-type]
        return [m.id.removeprefix(f"{mem}-") for m in page]

    def check(talk: Talk) -> None:
        assert names(talk) == ["t", "4", "3", "2", "1", "0"]
        assert names(talk, 2) + names(talk, 2, "4") + names(talk, 9, "2") == names(talk)
        assert names(talk, kind="preference") == names(talk, origin="import") == names(talk, slot="we/colour") == ["t"]
        assert names(talk, session_id="t") == ["t"]
        assert names(talk, state="superseded") == ["0"]
        assert names(talk, text="NUMBER 3") == ["3"]
        assert names(talk, text="100% odd_") == ["4", "3", "2", "1", "0"]
        assert names(talk, text="%") == ["4", "3", "2", "1", "0"]
        assert names(talk, text="1__") == []
        assert names(talk, since=2.0, until=4.0) == ["2", "1"]
        assert names(talk, as_of=3.5) == ["2", "1", "0"], "what held then"
        assert names(talk, as_of=5.0) == ["4", "3", "2", "1"]
        assert names(talk, until=EVER, kind="plan") == []

    await store.read(check)


async def test_slots(store: Store, mem: str) -> None:
    """All that filled a slot is found by its name, in the order in which it held; no slot is no name."""
    await started(store)
    a, b, other = f"{mem}-a", f"{mem}-b", f"{mem}-other"

    def work(talk: Talk) -> None:
        memories = Ledger(talk, "s").memories
        slot = {"subject": "we", "attribute": "host"}
        memories.add([memory(b, at=5.0, **slot), memory(a, at=4.0, **slot), memory(other)])
        assert [m.id for m in memories.timeline(slot_of("we", "host"))] == [a, b]
        assert [m.id for m in memories.in_slots(["we/host", "no/such"], limit=9)] == [b, a]
        assert memories.timeline("") == memories.in_slots([""], limit=9) == []
        assert slot_of("", "") == ""

    await store.write(work)


async def test_history_and_reversals(store: Store, mem: str) -> None:
    """From any memory of a chain, all of it is found; what reversed what is listed, newest first."""
    await started(store)
    names = [f"{mem}-{n}" for n in range(4)]

    def work(talk: Talk) -> None:
        ledger = Ledger(talk, "s")
        memories = ledger.memories
        memories.add([memory(name, at=float(n)) for n, name in enumerate(names)])
        ledger.supersede(names[0], names[1], at=1.0)
        ledger.supersede(names[1], names[2], kind="reverses", at=2.0)
        for name in names[:3]:
            assert [m.id for m in memories.history(name)] == names[:3]
        assert memories.closings([names[0], names[3]]) == {names[0]: names[1], names[1]: names[2]}
        assert [m.id for m in memories.history(names[3])] == names[3:]
        assert [(r.source, r.target) for r in memories.reversals(limit=9)] == [(names[2], names[1])]

    await store.write(work)


async def test_causes(store: Store, mem: str) -> None:
    """Why is answered by the chain of causes, the nearest first, even if it bites its own tail."""
    await started(store)
    a, b, c = (f"{mem}-{n}" for n in "abc")

    def work(talk: Talk) -> None:
        memories = Ledger(talk, "s").memories
        memories.add([memory(n) for n in (a, b, c)])
        ties = [(b, a), (c, b), (a, c)]
        memories.link(Link(source=s, target=t, kind="cause", rule="because", at=1.0) for s, t in ties)
        assert [(k.source, k.target) for k in memories.causes(a)][:3] == ties
        assert {(k.source, k.target) for k in memories.links([a])} == {(b, a), (a, c)}

    await store.write(work)


async def test_what_a_new_statement_may_be_about(store: Store, mem: str) -> None:
    """Memories of the same slot, of shared words, said just before in the same conversation, or newest of all; nothing else."""
    await started(store, "s", "k")
    await started(store, "t", "k")

    def work(talk: Talk) -> None:
        here, there = Ledger(talk, "s"), Ledger(talk, "t")
        there.say(memory(f"{mem}-slot", subject="we", attribute="host"))
        there.say(memory(f"{mem}-two", terms=("redis", "cache")))
        there.say(memory(f"{mem}-one", terms=("cache", "shop")))
        there.say(memory(f"{mem}-none", terms=("zebra",)))
        there.say(memory(f"{mem}-closed", subject="we", attribute="host"))
        there.memories.close(f"{mem}-closed", by=None, rule="forget", at=1.0)
        there.say(memory(f"{mem}-plan", kind="decision", at=0.5))
        for n in range(3):
            here.say(memory(f"{mem}-{n}", at=2.0 + n))

        names = {m.number: m.id.removeprefix(f"{mem}-") for m in everything(here.memories)}

        def near(slots: Sequence[str] = (), terms: Sequence[str] = (), **more: int) -> set[tuple[str, str]]:
            found = here.memories.near(slots=slots, terms=terms, **more)
            return {(why, names[number]) for why, numbers in found.items() for number in numbers}

        assert near(slots=["we/host"]) == {("we/host", "slot")}
        assert near(terms=["redis", "cache"]) == {("redis", "two"), ("cache", "two"), ("cache", "one")}
        assert near(lineage=here.lineage, recent=2) == {(JUST_SAID, "1"), (JUST_SAID, "2")}
        assert near(newest=1) == {(NEWEST, "2"), (NEWEST, "plan")}
        assert near(slots=[""]) == set()
        found = [m.id.removeprefix(f"{mem}-") for m in here.memories.sharing(["redis", "cache"], limit=9)]
        assert found == ["two", "one"]

    await store.write(work)


async def test_a_word_of_every_memory_tells_nothing(store: Store, mem: str) -> None:
    """What stands in hundreds of memories is no reason to compare them all."""
    await started(store)

    def work(talk: Talk) -> None:
        memories = Ledger(talk, "s").memories
        memories.add([memory(f"{mem}-{n}", terms=("use", f"rare{n}")) for n in range(100)])
        assert memories.near(slots=[], terms=["use", "rare7"]) == {"rare7": [memories.get(f"{mem}-7").number]}
        assert [m.id for m in memories.sharing(["use", "rare7"], limit=9)] == [f"{mem}-7"]

    await store.write(work)


async def test_no_word_finds_what_was_deleted(store: Store, mem: str) -> None:
    """The words of a deleted memory go with it, whether it, its scope's memories or the scope itself is deleted; those of others stay."""
    await started(store, "s", "k")
    await started(store, "alone")

    def work(talk: Talk) -> None:
        ledger, alone = Ledger(talk, "s"), Ledger(talk, "alone")
        ledger.say(memory(f"{mem}-1", terms=("redis", "cache")), memory(f"{mem}-2", terms=("cache",)))
        ledger.removals.drop([f"{mem}-1"])
        assert ledger.memories.near(slots=[], terms=["redis", "cache"]).keys() == {"cache"}
        ledger.removals.clear()
        assert ledger.memories.near(slots=[], terms=["redis", "cache"]) == {}
        alone.memories.add([memory(f"{mem}-3", terms=("redis",))])
        talk.tx.run("lineages_drop", tenant=talk.tenant, lineage=alone.lineage)
        talk.tx.run("scopes_drop", tenant=talk.tenant, scope=alone.memories.key["scope"])
        assert alone.memories.near(slots=[], terms=["redis"]) == {}

    await store.write(work)


async def test_what_a_question_calls_up(store: Store, mem: str) -> None:
    """What the messages found for it state, what fills the slots it asks for, standing orders, and what shares its words."""
    await started(store)

    def work(talk: Talk) -> None:
        ledger = Ledger(talk, "s")
        first = ledger.say(memory(f"{mem}-1"), memory(f"{mem}-2"))
        ledger.say(
            memory(f"{mem}-order", kind="instruction"),
            memory(f"{mem}-like", kind="preference"),
            memory(f"{mem}-plan", kind="plan", at=2.0),
            memory(f"{mem}-plan2", kind="plan", at=3.0),
            memory(f"{mem}-slot", subject="we", attribute="host"),
            memory(f"{mem}-words", terms=("redis", "cache", "price")),
            memory(f"{mem}-word", terms=("redis",)),
        )
        ledger.memories.close(f"{mem}-2", by=None, rule="forget", at=2.0)

        def called(**more: Any) -> list[tuple[str, str]]:
            return [(c.why, c.id.removeprefix(f"{mem}-")) for c in ledger.memories.called(Call(**more))]

        (one, two) = sorted(ledger.memories.called(Call(places=[("s", first)])), key=lambda c: c.id)
        assert (one.id, one.session_id, one.position, one.start, one.length, bool(one.plain)) == (
            f"{mem}-1",
            "s",
            first,
            0,
            len(f"This is {mem}-1."),
            True,
        )
        assert (two.id, two.start, bool(two.plain)) == (f"{mem}-2", len(f"This is {mem}-1. "), False)
        assert called(places=[("s", 99), ("none", first)]) == []
        assert called(instructions=9) == [("instruction", "order")]
        assert called(kind="plan", most=9) == [("kind", "plan2"), ("kind", "plan")]
        assert called(slots=["we/host", ""], most=9) == [("slot", "slot")]
        assert called(terms=["redis", "cache"], most=9) == [("terms", "words")]
        assert called(terms=["redis", "cache"], most=9, shared=1) == [("terms", "words"), ("terms", "word")]
        assert called(kind="plan", most=1) == [("kind", "plan2")]

    await store.write(work)


async def test_no_scope_sees_anothers(store: Store, mem: str) -> None:
    """Neither another key nor another tenant reads or changes a memory, by any way of looking for it."""
    await started(store, "s", "a:b")
    await started(store, "t", "a-b")
    slot = {"subject": "we", "attribute": "host"}
    secret = memory(mem, "The secret.", terms=("secret",), pinned=True, **slot)
    await store.write(lambda talk: Ledger(talk, "s").say(secret))
    await store.write(lambda talk: Ledger(talk, "s").memories.add([memory(f"{mem}-2")]))
    await store.write(lambda talk: Ledger(talk, "s").supersede(mem, f"{mem}-2", kind="reverses"))
    home = await store.read(lambda talk: talk.lineage("s"))
    scope, lineage = home.scope, home.id

    all_of_it = Call(places=[("s", 1)], slots=["we/host"], kind="fact", terms=["secret"], shared=1, most=9, pinned=9, instructions=9)

    def breaches(memories: Memories) -> list[object]:
        ids = [mem, f"{mem}-2"]
        return [
            *everything(memories),
            *memories.evidence(ids),
            *memories.timeline("we/host"),
            *memories.history(mem),
            *memories.closings(ids),
            *memories.first_evidence(ids),
            *memories.reversals(limit=9),
            *memories.links(ids),
            *memories.causes(mem),
            *memories.some(ids),
            *memories.said_at(lineage, [1]),
            *memories.in_slots(["we/host"], limit=9),
            *memories.sharing(["secret"], limit=9),
            *memories.called(all_of_it),
            *memories.near(slots=["we/host"], terms=["secret"], newest=9),
            *([] if not memories.close(f"{mem}-2", by=None, rule="x", at=1.0) else [1]),
            *([] if not memories.reopen(mem) else [1]),
            *([] if not memories.pin(mem, pinned=False) else [1]),
        ]

    other = store.other()
    assert await store.write(lambda talk: breaches(Ledger(talk, "t").memories)) == []
    assert await other.write(lambda talk: breaches(Memories(talk.tx, talk.tenant, scope))) == []
    for wrong in (store.read(lambda t: Ledger(t, "t").memories.get(mem)), other.read(lambda t: Memories(t.tx, t.tenant, scope).get(mem))):
        with pytest.raises(errors.NotFound) as caught:
            await wrong
        assert caught.value.code == "memory_not_found"
    kept = await store.read(lambda talk: Ledger(talk, "s").memories.get(mem))
    assert kept == replace(secret, state="superseded", valid_to=2.0, closed_at=2.0, closed_by=f"{mem}-2", closed_rule="same_slot")


async def test_what_messages_state(store: Store, mem: str) -> None:
    """Statements are found by their messages, in any state, with what they closed and explain; words only of the same conversation."""
    for session in ("s", "t"):
        await started(store, session, "k")

    def work(talk: Talk) -> None:
        here, there = Ledger(talk, "s"), Ledger(talk, "t")
        elsewhere = there.say(memory(f"{mem}-far"))
        first = here.say(memory(f"{mem}-old", values=("red",)), memory(f"{mem}-gone"))
        second = here.say(memory(f"{mem}-new", kind="event", happened=(0.0, DAY, "day"), at=2.0), at=2.0)
        third = here.say(memory(f"{mem}-why", cause="rain"), at=3.0)
        here.supersede(f"{mem}-old", f"{mem}-new", kind="reverses")
        here.supersede(f"{mem}-far", f"{mem}-new")
        here.memories.close(f"{mem}-gone", by=None, rule="retraction", at=2.0)
        here.memories.link([Link(source=f"{mem}-why", target=f"{mem}-new", kind="cause", rule="explains", at=3.0)])
        scope = talk.lineage("s").scope
        look = partial(stated, talk.tx, tenant=talk.tenant, scope=scope, lineage=here.lineage)
        old, gone, new, why = look(positions=[third, second, first])
        assert [(s.memory, s.position, s.holds) for s in (old, gone, new, why)] == [
            (f"{mem}-old", first, False),
            (f"{mem}-gone", first, False),
            (f"{mem}-new", second, True),
            (f"{mem}-why", third, True),
        ]
        assert (old.start, old.length, old.values) == (0, len(f"This is {mem}-old."), ("red",))
        assert gone.start == old.length + 1
        assert (new.since, new.happened) == (2.0, "1970-01-01")
        reversal = Replaced(memory=f"{mem}-old", reversal=True, position=first, start=0, role="user", at=1.0, text=f"This is {mem}-old.")
        assert set(new.replaced) == {reversal, Replaced(memory=f"{mem}-far", reversal=False)}
        assert (why.explains, why.reasoned, new.reasoned, old.reasoned) == ((f"{mem}-new",), True, True, False)
        assert [s.memory for s in look(positions=[second])] == [f"{mem}-new"]
        assert look(positions=[]) == []
        assert stated(talk.tx, tenant="other", scope=scope, lineage=here.lineage, positions=[first]) == []
        assert stated(talk.tx, tenant=talk.tenant, scope=scope + 1, lineage=here.lineage, positions=[first]) == []
        (far,) = stated(talk.tx, tenant=talk.tenant, scope=scope, lineage=there.lineage, positions=[elsewhere])
        assert far.memory == f"{mem}-far"

    await store.write(work)
