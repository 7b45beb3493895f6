"""What recall keeps of a scope is never older than the scope."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mnemon.memory.builtin import Builtin
from mnemon.memory.fulltext import FullText
from mnemon.store.base import Driver
from tests.store.ledgers import Ledger, Mind, everything
from tests.store.steps import Store, Talk
from tests.store.test_promises import QUESTION, SENTENCES
from tests.tongue import TONGUE

SESSIONS = st.sampled_from(["a", "b"])
WHICH = st.integers(0, 9)
SAID = st.tuples(st.just("say"), SESSIONS, SENTENCES)
CHANGED = st.one_of(
    st.tuples(st.sampled_from(["withdraw", "close", "reopen", "pin", "unpin", "explain", "drop"]), WHICH, st.just("")),
    st.tuples(st.sampled_from(["edit", "delete"]), SESSIONS, st.just("")),
)
STEPS = st.lists(st.one_of(SAID, SAID, CHANGED), min_size=2, max_size=14)
SOME = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def change(talk: Talk, kind: str, which: int | str) -> None:
    """Something that a client, an owner or another server does to what is stored already."""
    here = [session for session in "ab" if talk.sessions.lineage_of(session)]
    if kind in ("edit", "delete"):
        if which in here:
            talk.branch(str(which), start=1) if kind == "edit" else talk.sessions.delete(str(which))
        return
    ledger = Ledger(talk, here[0]) if here else None
    rows = everything(ledger.memories) if ledger else []
    if not ledger or not rows:
        return
    one, other = rows[int(which) % len(rows)].id, rows[-1].id
    if kind in ("pin", "unpin"):
        ledger.memories.pin(one, pinned=kind == "pin")
    elif kind == "reopen":
        ledger.memories.reopen(one)
    elif kind == "withdraw":
        ledger.memories.close(one, by=None, rule="forget", at=9.0)
    elif kind == "drop":
        ledger.removals.drop([one])
    elif one != other and kind == "close":
        ledger.supersede(one, other) if rows[int(which) % len(rows)].state == "active" else None
    elif one != other:
        ledger.explain(one, other)


def forgetful(mind: Mind) -> Mind:
    """The same memory with the same index, but nothing that was read for recall before."""
    passages = FullText(mind.store.driver, embeddings=False)
    passages.engine = mind.builtin.passages.engine
    return replace(mind, builtin=Builtin(mind.store.driver, passages, TONGUE, timezone="UTC"))


@SOME
@given(steps=STEPS, question=QUESTION)
async def test_nothing_kept_is_stale(shared_driver: Driver, steps: list[tuple[str, int | str, str]], question: str) -> None:
    """Whatever was said and changed, the lines and all that is said about them are those that would be read anew."""
    mind = Mind(Store.new(shared_driver), Builtin(shared_driver, FullText(shared_driver, embeddings=False), TONGUE, timezone="UTC"))
    await mind.say("colour is red. a zebra came by", session="keep")
    for kind, which, text in steps:
        if kind == "say":
            await mind.say(text, session=str(which))
        else:
            await mind.store.write(lambda talk, kind=kind, which=which: change(talk, kind, which))  # type: ignore[misc]
        for asked in (question, "colour size zebra"):
            assert await mind.recall(asked, session="keep") == await forgetful(mind).recall(asked, session="keep"), (kind, which)


async def test_what_others_change_is_seen(store: Store) -> None:
    """A line that was shown as it was says what became of it as soon as the next turn begins, though another server closed it."""
    first, second = (Mind(store, Builtin(store.driver, FullText(store.driver), TONGUE, timezone="UTC")) for _ in range(2))
    await first.say("colour is red")
    assert [line.marks for line in await first.recall("red")] == [()]
    second.at = first.at
    await second.say("colour is blue")
    (line,) = [line for line in await first.recall("red") if "red" in line.text]
    assert "superseded" in line.marks[0][1]
