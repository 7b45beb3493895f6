"""What recall keeps of a scope is never older than the scope."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mnemon.memory.builtin import Builtin
from mnemon.memory.fulltext import FullText
from mnemon.store.base import Driver
from mnemon.store.memories import Remembered
from tests.store.ledgers import Ledger, Mind, everything, memory
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


async def test_what_is_said_again_in_an_older_conversation_was_said_there_first(store: Store) -> None:
    """What comes along is shown where it was said first, also when that was said last, behind a look at the later place."""
    few = FullText(store.driver, embeddings=False, recall_tokens=24)  # so that passages are not found for being statements
    mind = Mind(store, Builtin(store.driver, few, TONGUE, timezone="UTC"))

    def pin(talk: Talk) -> None:
        (row,) = everything(Ledger(talk, "newer").memories)
        Ledger(talk, "newer").memories.pin(row.id, pinned=True)

    async def places() -> list[str]:
        return [line.session_id for line in await mind.recall("zebra", session="older") if line.text == "colour is red"]

    await mind.say("a zebra came by", "it grazed " * 200, session="older")
    await mind.say("colour is red", session="newer")
    await store.write(pin)
    await mind.say("size is one", "shape is two", session="third")
    assert await places() == ["newer"]
    await mind.say("colour is red", session="older")
    await mind.say("depth is three", "age is four", session="third")
    assert await places() == ["older"]


async def test_what_is_over_when_it_is_added_is_a_change(store: Store) -> None:
    """A line that was read before may repeat it; what holds says nothing of lines that were read."""

    def changes(talk: Talk, *added: Remembered) -> int:
        ledger = Ledger(talk, "s")
        ledger.memories.add(added)
        return talk.lineage("s").scope_changes

    await store.write(lambda talk: talk.begin("s", session_key="k"))
    before = await store.write(changes)
    assert await store.write(lambda talk: changes(talk, memory("mem_a"))) == before
    assert await store.write(lambda talk: changes(talk, memory("mem_b", state="superseded"))) > before
