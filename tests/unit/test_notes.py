"""A compressed state made from statements: what holds, word for word; what is over only as part of a reversal, and marked."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from mnemon.context import blocks, compress
from mnemon.context.compress import STATE_SHARE, Compaction
from mnemon.context.notes import LONGEST_NOTE
from mnemon.context.tokens import message_tokens
from mnemon.core.records import Replaced, Stated, StateLine, StoredMessage
from tests.unit.test_compress import BUDGET, counter, said

DAY = 86_400.0


def stated(message: StoredMessage, text: str = "", **more: Any) -> Stated:
    """A statement of a message: all of it, or this part."""
    words = text or message.text
    given = {"memory": f"m{message.position}", "kind": "fact", "slot": "", "values": (), "holds": True, "since": message.at, **more}
    return Stated(position=message.position, start=message.text.index(words), length=len(words), **given)


def replaced(message: StoredMessage, *, reversal: bool = False) -> Replaced:
    """A statement that another took the place of."""
    place = {"position": message.position, "start": 0, "role": message.role, "at": message.at, "text": message.text}
    return Replaced(memory=f"m{message.position}", reversal=reversal, **place)  # type: ignore[arg-type]


def plan(live: list[StoredMessage], *found: Stated, state: tuple[StateLine, ...] = (), budget: int = BUDGET) -> Compaction:
    """The state when all of these messages leave."""
    return compress.plan([[message] for message in live], state, found, counter=counter(), budget=budget)


def shown(found: Compaction) -> list[str]:
    """The lines as the model sees them."""
    return blocks.state(found.state).splitlines()[1:-1]


# -- what holds -----------------------------------------------------------------------------------------------------------


def test_a_statement_is_a_line_of_its_own() -> None:
    """What is stated in a message stands in the state by itself, however many words are around it."""
    message = said(1, "well you know it is like this: my port is 8642, and so on, and so it went, and nobody minded")
    found = plan([message], stated(message, "my port is 8642"))
    assert shown(found) == ["- [#1 1970-01-01 user] my port is 8642"]


def test_statements_come_before_sentences() -> None:
    """Where room is short, the plainest statement stays before sentences full of names and numbers."""
    live = [said(1, "i like tea")]
    live += [said(n, f"The tickets ABC-{n} and DEF-{n} of Project Falcon are in Trondheim.") for n in range(3, 60, 2)]
    found = plan(live, stated(live[0]), budget=1000)
    assert "i like tea" in [line.text for line in found.state]
    assert 1 < len(found.state) < 20


def test_what_is_said_twice_is_one_line() -> None:
    """A memory with two pieces of evidence stands in the state once, where it was said last."""
    live = [said(1, "My name is Alex."), said(3, "my name's Alex!")]
    both = [stated(message, memory="m") for message in live]
    assert shown(plan(live, *both)) == ["- [#3 1970-01-01 user] my name's Alex!"]


def test_the_best_kinds_stay() -> None:
    """Where not all fit, instructions and decisions stay before facts, and facts before what merely happened."""
    live = [said(n, f"this is the statement with the number {n} of so many of them") for n in range(1, 161, 2)]
    kinds = ["event", "fact", "decision", "instruction"]
    found = plan(live, *(stated(message, kind=kinds[i % 4]) for i, message in enumerate(live)), budget=20_000)
    kept = [line.kind for line in found.state]
    assert 20 == kept.count("instruction") == kept.count("decision") > kept.count("fact") > kept.count("event")


def test_long_questions_do_not_drive_out_what_holds() -> None:
    """Open requests and events have a share of the state each, and no more."""
    live = [said(1, "my port is 8642"), *(said(n, f"Could you find out {n} things about {'this and that ' * 20}?") for n in (3, 5, 7, 9))]
    assert "- [#1 1970-01-01 user] my port is 8642" in shown(plan(live, stated(live[0], kind="fact"), budget=1500))
    many = [said(1, "my port is 8642"), *(said(n, f"on day {n} something happened at the river") for n in range(3, 300, 2))]
    found = plan(many, stated(many[0]), *(stated(m, kind="event") for m in many[1:]))
    events = [line for line in found.state if line.kind == "event"]
    assert 0 < sum(counter().count(blocks.state_line(line)) + 1 for line in events) <= BUDGET * STATE_SHARE / 4


def test_what_an_event_was_and_why() -> None:
    """A line says when an event happened, and which message it gives the reason of."""
    live = [said(1, "We left the old office."), said(3, "It was because of the damp.")]
    found = plan(live, stated(live[0], kind="event", happened="2026-03", memory="m1"), stated(live[1], explains=("m1", "gone")))
    assert shown(found) == [
        "- [#1 1970-01-01 user] We left the old office. (happened 2026-03)",
        "- [#3 1970-01-01 user] It was because of the damp. (reason for #1)",
    ]


# -- what is over ---------------------------------------------------------------------------------------------------------


def test_a_superseded_value_is_left_out() -> None:
    """Only the newer value is in the state; it says since when it holds, and which message it overrides."""
    live = [said(1, "My port is 8642."), said(2, "So 8642 it is, on the host PROD-7."), said(49, "My port is 9000.")]
    old = stated(live[0], holds=False, values=("8642",))
    new = stated(live[2], values=("9000",), replaced=(replaced(live[0]),))
    assert shown(plan(live, old, new)) == ["- [#49 1970-01-03 user] My port is 9000. (current since 1970-01-03; supersedes #1)"]


def test_a_reversal_shows_both_positions() -> None:
    """What was reversed stands before what reversed it, marked with the date and the message that did it."""
    live = [said(1, "We stay with the monolith."), said(49, "We split it up after all.")]
    new = stated(live[1], kind="event", replaced=(replaced(live[0], reversal=True),))
    found = plan(live, stated(live[0], holds=False), new)
    assert shown(found) == [
        "- [#1 1970-01-01 user] We stay with the monolith. (superseded 1970-01-03: see #49)",
        "- [#49 1970-01-03 user] We split it up after all. (current since 1970-01-03; reversal of #1)",
    ]
    again = compress.plan([[said(51, "Nice.")]], found.state, [stated(live[0], holds=False), new], counter=counter(), budget=BUDGET)
    assert shown(again) == shown(found), "and so it stays"
    assert found.without({"m49"}) == (), "if the new position falls, the old one does not stand alone"
    assert [line.position for line in found.without({"m1"})] == [49]


def test_what_another_conversation_said_is_not_pointed_at() -> None:
    """A position names a message of this conversation: what was replaced elsewhere is spoken of without one."""
    live = [said(1, "We split it up after all.")]
    found = plan(live, stated(live[0], replaced=(Replaced(memory="far", reversal=True), Replaced(memory="away", reversal=False))))
    assert shown(found) == ["- [#1 1970-01-01 user] We split it up after all. (current since 1970-01-01; a reversal)"]


def test_what_was_taken_back_appears_nowhere() -> None:
    """Neither the words nor any sentence with the value is kept, of the messages that leave and of the state before them."""
    live = [said(1, "My code is 4711. My dog is Rex."), said(2, "Your code 4711 is safe with me, Alex.")]
    first = plan(
        live, stated(live[0], "My code is 4711.", values=("4711",), memory="code"), stated(live[0], "My dog is Rex.", memory="dog")
    )
    assert "4711" in str(first.state)
    gone = stated(live[0], "My code is 4711.", values=("4711",), memory="code", holds=False)
    later = said(3, "The code 4711 was on the door of house 12.")
    second = plan([later], gone, stated(live[0], "My dog is Rex.", memory="dog"), state=first.state)
    assert shown(second) == ["- [#1 1970-01-01 user] My dog is Rex."]
    assert [line.text for line in first.without({"code"})] == ["My dog is Rex."], "also if it ends while the turn commits"


def test_a_value_that_still_holds_may_be_spoken_of() -> None:
    """A value that one statement lost and another has does not silence anybody."""
    live = [said(1, "The test port is 8642."), said(2, "Port 8642 is open on PROD-7."), said(3, "The main port is 8642.")]
    found = plan(live, stated(live[0], holds=False, values=("8642",)), stated(live[2], values=("8642",)))
    assert [line.position for line in found.state] == [2, 3]


# -- bounds ---------------------------------------------------------------------------------------------------------------

STATES = ("holds", "superseded", "reversed", "retracted", "none")


@settings(max_examples=60, deadline=None)
@given(fates=st.lists(st.sampled_from(STATES), min_size=2, max_size=40), seed=st.integers(0, 2**32), budget=st.integers(600, 4000))
def test_no_old_value_stands_unmarked(fates: list[str], seed: int, budget: int) -> None:
    """In two compressions after each other, what is over is not there or marked; bounded, in order, and equal input gives equal lines."""
    chance = random.Random(seed)
    live = [said(2 * i + 1, f"the value {i} is v{i}-{'x' * chance.randrange(90)}") for i in range(len(fates) + 1)]
    found = []
    last = live[-1]
    for message, fate in zip(live, fates, strict=False):
        if fate != "none":
            found.append(stated(message, holds=fate == "holds", values=(message.text.rpartition(" ")[2],)))
    reversals = [replaced(m, reversal=f == "reversed") for m, f in zip(live, fates, strict=False) if f in ("reversed", "superseded")]
    found.append(stated(last, replaced=tuple(reversals[-4:])))
    middle = len(live) // 2
    at_first = [s for s in found if s.position <= live[middle].position]
    state = plan(live[: middle + 1], *(at_first), budget=budget).state
    result = plan(live[middle + 1 :] or [said(99, "Fine.")], *found, state=state, budget=budget)
    over = {m.text for m, f in zip(live, fates, strict=False) if f in ("superseded", "reversed", "retracted")}
    assert all(line.mark.startswith("(superseded") for line in result.state if line.text in over)
    taken_back = {m.text for m, f in zip(live, fates, strict=False) if f == "retracted"}
    assert not taken_back & {line.text for line in result.state}
    assert all(len(line.text) <= LONGEST_NOTE for line in result.state)
    assert [line.position for line in result.state] == sorted(line.position for line in result.state)
    if result.state:
        assert message_tokens(counter(), {"role": "system", "content": blocks.state(result.state)}) <= int(budget * STATE_SHARE)
    assert result == plan(live[middle + 1 :] or [said(99, "Fine.")], *found, state=state, budget=budget)
