"""A memory stands on its evidence: what is deleted, edited, copied or moved takes its memories along, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from mnemon.store.removals import EDITED, NEWER
from mnemon.store.sessions import NewSession
from tests.store.ledgers import Ledger, everything, memory
from tests.store.steps import Store, Talk, unique


@pytest.fixture
def mem() -> str:
    """The beginning of names that no other test uses."""
    return unique("mem")


async def test_a_deleted_session_takes_its_memories(store: Store, mem: str) -> None:
    """What only it said is gone; what another said too stays with the rest of its evidence; what was added by hand stays."""
    a, b, hand = f"{mem}-a", f"{mem}-b", f"{mem}-hand"

    def fill(talk: Talk) -> None:
        for name in ("s", "t"):
            talk.begin(name, session_key="k")
        here, there = Ledger(talk, "s"), Ledger(talk, "t")
        here.say(memory(a), memory(b))
        (again,) = talk.say("t", f"This is {b}.")
        there.support(b, again)
        here.memories.add([memory(hand, version=0)])
        talk.sessions.delete("s")

    await store.write(fill)

    def check(talk: Talk) -> None:
        memories = Ledger(talk, "t").memories
        assert [m.id for m in everything(memories)] == [b, hand]
        assert [e.session_id for e in memories.evidence([b])[b]] == ["t"]

    await store.read(check)


async def test_a_session_without_a_key_takes_its_scope(store: Store, mem: str) -> None:
    """Nothing of a deleted scope is left, by hand or not."""

    def work(talk: Talk) -> int:
        talk.begin("s")
        ledger = Ledger(talk, "s")
        ledger.say(memory(mem, terms=("x",)))
        ledger.memories.add([memory(f"{mem}-hand", version=0)])
        talk.sessions.delete("s")
        return len(everything(ledger.memories))

    assert await store.write(work) == 0


async def test_what_was_closed_by_the_deleted_is_open_again(store: Store, mem: str) -> None:
    """A closing goes with what closed; in a chain, what comes next takes over."""
    a, b, c = (f"{mem}-{n}" for n in "abc")

    def chain(talk: Talk, session: str) -> Ledger:
        talk.begin(session)
        ledger = Ledger(talk, session)
        for n, name in enumerate((a, b, c)):
            ledger.say(memory(f"{name}-{session}", at=float(n)), at=float(n))
        ledger.supersede(f"{a}-{session}", f"{b}-{session}", at=1.0)
        ledger.supersede(f"{b}-{session}", f"{c}-{session}", at=2.0)
        return ledger

    def work(talk: Talk) -> None:
        middle = chain(talk, "m")
        middle.removals.drop([f"{b}-m"])
        assert middle.states() == {f"{a}-m": "superseded", f"{c}-m": "active"}
        assert middle.memories.get(f"{a}-m").closed_by == f"{c}-m"
        assert [(k.source, k.target) for k in middle.memories.links([f"{a}-m"])] == [(f"{c}-m", f"{a}-m")]
        last = chain(talk, "l")
        last.removals.withdraw(last.removals.of_messages(last.lineage, first=3))
        assert last.states() == {f"{a}-l": "superseded", f"{b}-l": "active"}
        both = chain(talk, "b")
        both.removals.withdraw(both.removals.of_messages(both.lineage, first=2))
        assert both.states() == {f"{a}-b": "active"}

    await store.write(work)


async def test_a_loss_is_seen_before(store: Store, mem: str) -> None:
    """What deleting a message or a stretch of time would take is said beforehand, and nothing is changed by asking."""
    a, b = f"{mem}-a", f"{mem}-b"

    def work(talk: Talk) -> None:
        talk.begin("s")
        ledger = Ledger(talk, "s")
        first = ledger.say(memory(a), memory(b), at=10.0)
        ledger.support(b, ledger.say(at=20.0), at=20.0)
        removals = ledger.removals
        loss = removals.of_messages(ledger.lineage, first=first, last=first)
        assert (set(loss.gone), set(loss.kept)) == ({a}, {b})
        assert removals.between(since=5.0, until=15.0) == loss
        assert removals.between(since=15.0, until=99.0).kept == (b,)
        assert removals.between(since=11.0, until=20.0).evidence == ()
        assert ledger.states() == {a: "active", b: "active"}
        removals.withdraw(loss)
        assert ledger.states() == {b: "active"}
        assert len(ledger.memories.evidence([b])[b]) == 1
        assert removals.clear() == 1
        assert ledger.states() == {}

    await store.write(work)


async def test_an_edit_takes_back_what_was_said(store: Store, mem: str) -> None:
    """What only the edited message said is withdrawn, what it closed holds again, and nothing of it is shown as evidence."""
    a, b, c = (f"{mem}-{n}" for n in "abc")

    def work(talk: Talk) -> None:
        talk.begin("s")
        ledger = Ledger(talk, "s")
        ledger.say(memory(a), memory(c))
        cut = ledger.say(memory(b))
        ledger.support(c, cut)
        ledger.supersede(a, b)
        talk.branch("s", start=cut)
        ledger.removals.edited_away(ledger.lineage, start=cut, at=9.0)
        assert ledger.states() == {a: "active", b: "retracted", c: "active"}
        assert ledger.memories.get(b).closed_rule == EDITED
        assert [e.position for e in ledger.memories.evidence([c])[c]] == [1]
        assert ledger.memories.evidence([b]) == {}

    await store.write(work)


async def test_a_fork_under_a_key_is_more_evidence(store: Store, mem: str) -> None:
    """The fork's messages say the same, so its memories outlive the original."""

    def work(talk: Talk) -> None:
        talk.begin("s", session_key="k")
        Ledger(talk, "s").say(memory(mem))
        talk.sessions.fork(talk.lineage("s"), NewSession(id="f", source="api", session_key="k"), at=2.0)
        assert len(Ledger(talk, "s").memories.evidence([mem])[mem]) == 2
        talk.sessions.delete("s")
        assert Ledger(talk, "f").states() == {mem: "active"}

    await store.write(work)


async def test_a_fork_without_a_key_has_memories_of_its_own(store: Store, mem: str) -> None:
    """It holds what the copied messages gave, links and all, and neither side learns from the other afterwards."""
    a, b, edited = f"{mem}-a", f"{mem}-b", f"{mem}-edited"

    def work(talk: Talk) -> None:
        talk.begin("s")
        here = Ledger(talk, "s")
        here.say(memory(a, "Old.", terms=("old",)))
        here.say(memory(b, "New."))
        here.supersede(a, b, kind="reverses")
        cut = here.say(memory(edited, "Gone."))
        talk.branch("s", start=cut)
        talk.sessions.fork(talk.lineage("s"), NewSession(id="f", source="api"), at=3.0)
        there = Ledger(talk, "f")
        old, new = sorted(everything(there.memories), key=lambda m: m.text, reverse=True)
        assert (old.text, old.state, old.closed_by, new.text) == ("Old.", "superseded", new.id, "New.")
        assert {old.id, new.id}.isdisjoint({a, b})
        assert [(k.source, k.target) for k in there.memories.reversals(limit=9)] == [(new.id, old.id)]
        assert [e.quote for e in there.memories.evidence([old.id])[old.id]] == ["Old."]
        assert [m.id for m in there.memories.sharing(["old"], limit=9)] == [old.id]
        there.memories.reopen(old.id)
        assert here.memories.get(a).state == "superseded"
        assert talk.lineage("f").scope != talk.lineage("s").scope

    await store.write(work)


async def test_binding_moves_memories_to_the_key(store: Store, mem: str) -> None:
    """They are the key's from then on, by every look-up; of two values of a single-valued slot the newer holds."""
    slot: dict[str, Any] = {"subject": "we", "attribute": "port", "single": True}
    old, new, same = f"{mem}-old", f"{mem}-new", f"{mem}-same"

    def work(talk: Talk) -> None:
        talk.begin("k1", session_key="k")
        talk.begin("s")
        Ledger(talk, "k1").say(memory(old, at=1.0, values=("5432",), **slot))
        Ledger(talk, "s").say(memory(new, at=2.0, values=("5433",), terms=("port",), **slot))
        Ledger(talk, "s").say(memory(same, at=2.0))
        before = Ledger(talk, "s").memories
        talk.sessions.bind(talk.lineage("s"), "k")
        after = Ledger(talk, "k1").memories
        assert everything(before) == []
        assert {m.id: (m.state, m.closed_by, m.closed_rule) for m in everything(after)} == {
            old: ("superseded", new, NEWER),
            new: ("active", None, None),
            same: ("active", None, None),
        }
        assert [m.id for m in after.sharing(["port"], limit=9)] == [new]
        assert [k.source for k in after.links([old])] == [new]

    await store.write(work)
