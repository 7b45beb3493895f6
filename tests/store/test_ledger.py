"""What is said becomes memory in the turn that says it, and recall tells what became of it."""

from __future__ import annotations

import pytest

from mnemon.context import recollection
from mnemon.context.tokens import Counter
from mnemon.core.records import Message
from mnemon.memory.builtin import Builtin
from mnemon.memory.fulltext import FullText
from mnemon.store.memories import Filter, Memories
from mnemon.store.removals import Removals
from tests.store.ledgers import DAY, Mind, memory
from tests.store.steps import Store, Talk
from tests.tongue import TONGUE


@pytest.fixture
def mind(store: Store) -> Mind:
    """An empty memory."""
    return Mind(store, Builtin(store.driver, FullText(store.driver, embeddings=False), TONGUE, timezone="UTC"))


# -- learning -------------------------------------------------------------------------------------------------------------


async def test_what_a_turn_does_is_told(mind: Mind) -> None:
    """Added, merged, superseded, retracted, refused: each with its rule, and with where it stands but never with its text."""
    first = await mind.say("colour is red. what a day")
    (added,) = first["added"]
    assert added == {
        "id": added["id"],
        "kind": "fact",
        "rule": "new",
        "evidence": {"session_id": "s", "position": 1, "start": 0, "length": 13},
    }
    assert first["refused"] == [{"rule": "not_understood", "evidence": {"session_id": "s", "position": 1, "start": 15, "length": 10}}]
    assert first["refused_in_all"] == 1
    again = await mind.say("colour is red")
    assert [(m["id"], m["rule"]) for m in again["merged"]] == [(added["id"], "repeats")]
    second = await mind.say("colour is blue")
    (new,) = second["added"]
    assert second["superseded"] == [{"id": added["id"], "by": new["id"], "rule": "new", "reversal": False}]
    third = await mind.say("forget colour")
    assert third["retracted"] == [{"id": new["id"], "rule": "retraction"}]
    assert third["refused"][0]["rule"] == "retraction"
    assert await mind.states() == {"colour is red": "superseded", "colour is blue": "retracted"}


async def test_a_later_sentence_sees_the_earlier(mind: Mind) -> None:
    """Within one message the last word holds, and saying it twice makes one memory."""
    told = await mind.say("colour is red. colour is red. colour is blue")
    assert [len(told[name]) for name in ("added", "merged", "superseded")] == [2, 1, 1]
    assert await mind.states() == {"colour is red": "superseded", "colour is blue": "active"}


async def test_what_others_closed_is_not_compared(mind: Mind) -> None:
    """What another server closed or deleted since the last turn is not taken for open."""
    await mind.say("colour is red", "colour is red")

    def work(talk: Talk) -> None:
        memories = Memories(talk.tx, talk.tenant, talk.lineage("s").scope)
        memories.close(memories.page(Filter(), limit=1)[0].id, by=None, rule="elsewhere", at=2 * DAY)

    await mind.store.write(work)
    told = await mind.say("colour is red")
    assert (len(told["added"]), told["merged"], told["superseded"]) == (1, [], [])
    await mind.store.write(lambda talk: Removals(talk.tx, talk.tenant, talk.lineage("s").scope).clear())
    told = await mind.say("colour is red")
    assert (len(told["added"]), told["merged"]) == (1, [])


async def test_times_of_a_closing(mind: Mind) -> None:
    """A statement holds until the next one was said, and the ledger names what closed it and why."""
    await mind.say("colour is red", "colour reverts to blue")

    def work(talk: Talk) -> None:
        memories = Memories(talk.tx, talk.tenant, talk.lineage("s").scope)
        new, old = memories.page(Filter(), limit=9)
        assert (old.valid_from, old.valid_to, old.closed_at, old.closed_by, old.closed_rule) == (DAY, 2 * DAY, 2 * DAY, new.id, "new")
        assert (new.valid_from, new.version, new.origin, new.kind) == (2 * DAY, 7, "user", "decision")
        assert [(k.source, k.target, k.kind) for k in memories.links([old.id])] == [(new.id, old.id, "reverses")]

    await mind.store.read(work)


async def test_only_the_user_states(mind: Mind) -> None:
    """What a model or a tool says makes no memory, though it can be found; nor does what the server itself once put into a message."""
    said = [
        Message({"role": "assistant", "content": "colour is red"}),
        Message({"role": "tool", "content": "colour is red", "tool_call_id": "c"}),
        Message({"role": "user", "content": '<mnemon-recall note="x">colour is red</mnemon-recall>'}),
    ]
    plans = mind.builtin.prepare(said, at=1.0)
    assert [bool(p.passages) for p in plans] == [True, True, False]
    assert [p.distilled for p in plans] == [None, None, None]


async def test_many_refusals_are_counted(mind: Mind) -> None:
    """A receipt lists the first of them and says how many there were."""
    told = await mind.say(". ".join(["what a day"] * 50))
    assert (len(told["refused"]), told["refused_in_all"], told["added"]) == (20, 50, [])


# -- recalling ------------------------------------------------------------------------------------------------------------


async def test_nothing_is_added_where_nothing_is_known(mind: Mind) -> None:
    """Without memories in the scope, recall is what the passages are."""
    await mind.say("what a zebra")
    assert await mind.lines("zebra") == ["- [#1 1970-01-02 user] what a zebra"]


async def test_the_superseded_comes_with_its_successor(mind: Mind) -> None:
    """The old line says since when and where to look; the new one since when it holds; both or none are shown."""
    await mind.say("colour is red", "the weather", "colour is blue")
    old = "- [#1a 1970-01-02 user] colour is red (superseded 1970-01-04: see #3a)"
    new = "- [#3a 1970-01-04 user] colour is blue (current since 1970-01-04; supersedes #1a)"
    assert await mind.lines("red") == [old, new]
    cost = recollection.fit(await mind.recall("red"), counter=Counter.for_model(None), room=4000)[1]
    assert await mind.lines("red", room=cost - 1) == [new]
    assert await mind.lines("red", room=40) == []


async def test_a_chain_ends_at_what_holds_now(mind: Mind) -> None:
    """However often it changed, what is over points to the current value; what lies between comes when history is asked for."""
    await mind.say("colour is red", "colour is blue", "colour is green")
    lines = await mind.lines("red")
    assert lines[0] == "- [#1a 1970-01-02 user] colour is red (superseded 1970-01-03: see #3a)"
    assert lines[-1].startswith("- [#3a 1970-01-04 user] colour is green (current since 1970-01-04")
    assert [line.split("] ")[1].split(" (")[0] for line in await mind.lines("colour before")] == [
        "colour is red",
        "colour is blue",
        "colour is green",
    ]


async def test_a_reversal_brings_what_it_reversed(mind: Mind) -> None:
    """Asked for the new position, the old one comes along, and the new one is called a reversal of it."""
    await mind.say("style is micro", "style reverts to mono")
    assert await mind.lines("mono") == [
        "- [#1a 1970-01-02 user] style is micro (superseded 1970-01-03: see #2a)",
        "- [#2a 1970-01-03 user] style reverts to mono (current since 1970-01-03; reversal of #1a)",
    ]


async def test_what_was_taken_back_is_left_out(mind: Mind) -> None:
    """The rest of its message is still shown; a message that said nothing else is not."""
    await mind.say("zebra first. colour is red. zebra last", "colour is blue", "forget colour")
    assert await mind.lines("zebra colour red blue") == [
        "- [#1 1970-01-02 user] zebra first.",
        "- [#1 1970-01-02 user] . zebra last",
        "- [#3 1970-01-04 user] forget colour",
    ]


async def test_a_reason_stands_beside_its_effect(mind: Mind) -> None:
    """Whichever of the two is found, both are shown, the reason right behind what it explains."""
    await mind.say("launch is march", "the weather", "audit explains launch")
    pair = ["- [#1a 1970-01-02 user] launch is march", "- [#3a 1970-01-04 user] audit explains launch (reason for #1a)"]
    assert await mind.lines("march") == pair
    assert await mind.lines("audit") == pair
    await mind.say("unrelated launching")
    assert (await mind.lines("march weather"))[:2] == pair, "between them in time, but not between them"


async def test_standing_orders_come_along(mind: Mind) -> None:
    """An instruction is there whatever is asked, newest first, within a few hundred characters."""
    await mind.say("obey quietly", "the zebra")
    assert await mind.lines("zebra") == ["- [#1 1970-01-02 user] obey quietly", "- [#2 1970-01-03 user] the zebra"]
    await mind.say(*(f"obey order{n}{'x' * 180}" for n in range(9)))
    lines = await mind.lines("zebra")
    assert {"order6", "order7", "order8"} <= {line.split("obey ")[1][:6] for line in lines if "obey " in line}


async def test_all_values_of_a_slot(mind: Mind) -> None:
    """Asked for all, everything that fills the slot comes, though no passage was found for it."""
    await mind.say(*(f"pets has animal{n}" for n in range(30)))
    found = await mind.recall("all pets")
    assert {line.text for line in found} == {f"pets has animal{n}" for n in range(30)}


async def test_added_by_hand(mind: Mind) -> None:
    """What was added through the API is recalled like the rest, with its date, though no message says it."""
    await mind.say("colour is red")
    note = memory(f"mem-{mind.store.tenant}", "size is large", version=0, subject="size", attribute="value", at=DAY)

    def work(talk: Talk) -> None:
        Memories(talk.tx, talk.tenant, talk.lineage("s").scope).add([note])

    await mind.store.write(work)
    assert await mind.lines("size") == ["- [1970-01-02 user] size is large"]
    (line,) = await mind.recall("size")
    assert (line.memories, line.why) == ((note.id,), "slot")


async def test_the_live_transcript_is_not_repeated(mind: Mind) -> None:
    """What stands in the prompt is not recalled, but what took the place of an older line is named there."""
    await mind.say("colour is red", session="a")
    await mind.say("colour is blue", "obey quietly", session="s")
    assert not [line for line in await mind.lines("quietly", inside=True) if "obey" in line]
    assert await mind.lines("red", inside=True) == [
        "- [#1a 1970-01-02 user] colour is red (superseded 1970-01-03: see #1)",
        "- [#1 1970-01-03 user] colour is blue (current since 1970-01-03; supersedes #1a)",
    ]


async def test_another_key_learns_nothing(mind: Mind) -> None:
    """The same words under another key neither close nor merge nor show."""
    await mind.say("colour is red", session="a", key="one")
    told = await mind.say("colour is blue. forget colour", session="b", key="two")
    assert told["superseded"] == []
    assert len(told["retracted"]) == 1
    assert await mind.states("a") == {"colour is red": "active"}
    assert await mind.lines("colour", session="a") == ["- [#1 1970-01-02 user] colour is red"]
