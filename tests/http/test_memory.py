"""Memory from end to end: what a user said once reaches the prompt of a later session, with what became of it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from mnemon.core.records import Json
from tests.http import world as worlds
from tests.http.world import World

DAY = 86_400.0
HEADING = re.compile(r"\d{4}-\d\d-\d\d")
MAY = 1_777_593_600.0  # 2026-05-01


class Calendar:
    """A clock that moves a day with every turn that is told."""

    def __init__(self) -> None:
        self.now = MAY

    def __call__(self) -> float:
        return self.now


class Friend:
    """Somebody who tells things in one session and asks for them in fresh ones."""

    def __init__(self, world: World, calendar: Calendar) -> None:
        self.world = world
        self.calendar = calendar
        self.asked = 0

    async def tell(self, *texts: str, session: str = "told", key: str = "k") -> Json:
        """One turn for each; what the last did to memory."""
        for text in texts:
            self.calendar.now += DAY
            response = await self.world.say(text, session, key)
        receipt = await self.world.get("/v1/receipts/" + response.json()["hermes"]["receipt_id"])
        found: Json = receipt["memory"]
        return found

    async def ask(self, text: str, key: str = "k", **more: Any) -> list[str]:
        """The recalled lines that a question in a session of its own brings into the prompt."""
        self.asked += 1
        self.calendar.now += 60
        await self.world.say(text, f"asked-{self.asked}", key, **more)
        lines, day = [], ""
        for line in self.world.model.seen.splitlines():
            day = line if HEADING.fullmatch(line) else day
            lines += [f"{day} {line}"] if line.startswith("- [") else []
        return lines


@pytest.fixture
async def friend(tmp_path: Path, database_url: str) -> AsyncIterator[Friend]:
    """A server on either database, and somebody to talk to it."""
    calendar = Calendar()
    async with worlds.running(tmp_path, database_url, clock=calendar) as world:
        yield Friend(world, calendar)


# -- the four examples ------------------------------------------------------------------------------------------------------


async def test_a_fact_is_kept_word_for_word(friend: Friend) -> None:
    """What is used where is in the prompt of another session, as it was said."""
    told = await friend.tell("We use PostgreSQL 15 on RDS with read replicas in us-east-1")
    assert [m["text"] for m in told["added"]] == ["We use PostgreSQL 15 on RDS with read replicas in us-east-1"]
    assert await friend.ask("Which PostgreSQL version do we use?") == [
        "2026-05-02 - [user] We use PostgreSQL 15 on RDS with read replicas in us-east-1"
    ]


async def test_a_cause_stands_with_its_effect(friend: Friend) -> None:
    """Asked why something went, the reason is there, on the line of what it is the reason of."""
    await friend.tell("Removed Redis because cache invalidation bugs caused stale product prices")
    assert await friend.ask("Why did Redis go?") == [
        "2026-05-02 - [user] Removed Redis because cache invalidation bugs caused stale product prices"
    ]


async def test_a_cause_told_later_is_linked(friend: Friend) -> None:
    """The reason that is given days later stands right behind what it explains, and says so."""
    await friend.tell("We moved the launch to March.", "Lovely weather today.", "The reason we moved the launch was a failed audit.")
    assert await friend.ask("Why did the launch move?") == [
        "2026-05-02 - [#1a user] We moved the launch to March.",
        "2026-05-04 - [#5a user] The reason we moved the launch was a failed audit. (reason for #1a)",
    ]


async def test_a_sequence_comes_with_its_reason(friend: Friend) -> None:
    """What was tried and given up is one memory: order and reason together, and nothing else is closed by it."""
    told = await friend.tell(
        "We use PostgreSQL 15 on RDS with read replicas in us-east-1", "Tried GraphQL in Q1, reverted in Q2 due to N+1 issues"
    )
    assert told["superseded"] == []
    (line,) = [line for line in await friend.ask("What happened with GraphQL?") if "GraphQL" in line]
    assert "Tried GraphQL in Q1, reverted in Q2 due to N+1 issues" in line
    assert "superseded" not in line


async def test_a_reversal_is_flagged_with_its_date(friend: Friend) -> None:
    """Asked about decisions, both positions are there, the old one marked, the new one as what holds since when."""
    await friend.tell("We're committed to microservices", "Lovely weather today.")
    told = await friend.tell("Merged all services back into a monolith")
    assert [(change["rule"], change["reversal"]) for change in told["superseded"]] == [("reversal", True)]
    assert await friend.ask("What architecture decisions did we make?") == [
        "2026-05-02 - [#1a user] We're committed to microservices (superseded 2026-05-04: see #5a)",
        "2026-05-04 - [#5a user] Merged all services back into a monolith (current since 2026-05-04; reversal of #1a)",
    ]


# -- what becomes of it -----------------------------------------------------------------------------------------------------


async def test_a_change_of_mind_is_marked_though_it_does_not_say_of_what(friend: Friend) -> None:
    """A statement that turns something round is marked as current also where it shares no word with what it turns round."""
    await friend.tell("We're going to sue Corvane.", "No lawsuit after all: they offered 9,480 and we took it.")
    lines = await friend.ask("Do we sue Corvane, and what about the lawsuit?")
    assert any("No lawsuit" in line and "(current since 2026-05-03; a change of mind)" in line for line in lines)
    assert any("sue Corvane" in line and "superseded" not in line for line in lines)


async def test_a_phrase_that_turns_a_position_round_is_marked_only_beside_one(friend: Friend) -> None:
    """Since Monday we do so: by itself that turns nothing round; beside what was done otherwise it is marked, and stands behind it."""
    await friend.tell("We heat the greenhouse with wood only.", "Since Monday we heat the greenhouse with a heat pump.")
    lines = [line for line in await friend.ask("How do we heat the greenhouse?") if "greenhouse" in line]
    assert ["wood" in line for line in lines] == [True, False]
    assert "current since" in lines[1]
    await friend.tell("Since Monday we weed the tulips with Odile.")
    assert not any("current" in line for line in await friend.ask("Who weeds the tulips with us?") if "tulips" in line)


async def test_who_somebody_is_is_known_from_how_they_introduced_themselves(friend: Friend) -> None:
    """Asked about himself, the user finds his introduction and, where little was stated, everything, though no word of it is asked for."""
    await friend.tell("Fadil here: I give oboe lessons in Ulm.", "We keep quails behind the shed.")
    for question in ("Who am I?", "What do you know about us?", "What do I do?", "Where do I work?"):
        lines = await friend.ask(question)
        assert any("Fadil" in line for line in lines), question
        assert any("quails" in line for line in lines), question


async def test_what_was_reversed_and_then_changed_again_says_both(friend: Friend) -> None:
    """Of three positions the middle one says which it turned round, and which holds now."""
    await friend.tell("We're keeping the orchard.", "We gave the orchard a thought and sell it after all.")
    told = await friend.tell("On second thought, we're keeping the orchard.")
    assert told["superseded"]
    lines = await friend.ask("What about the orchard?")
    (middle,) = [line for line in lines if "after all" in line]
    assert "(superseded" in middle
    assert "; reversal of #1a)" in middle


async def test_a_letter_to_be_proofread_is_found_and_not_remembered(friend: Friend) -> None:
    """What a user gives to be worked on is no fact of theirs, and can still be found by its words."""
    told = await friend.tell("Please proofread this: Dear Ms. Kovac, I live at 14 Elm Row and my tenancy began in May.")
    assert not told["added"]
    assert "worked_on" in [refused["rule"] for refused in told["refused"]]
    assert any("14 Elm Row" in line for line in await friend.ask("What did I write about Elm Row?"))


async def test_what_is_asked_by_its_kind(friend: Friend) -> None:
    """A question that says "hobby" or "who am I" finds what was told without that word."""
    await friend.tell(
        "I'm Gwen Nilsen, a midwife from Nantes.", "In March I took up bouldering.", *(f"Ticket {n} is closed." for n in range(20))
    )
    assert any("bouldering" in line for line in await friend.ask("Which hobby did I start this year?"))
    assert any("Gwen Nilsen" in line for line in await friend.ask("Who am I?"))


async def test_a_new_value_of_a_slot(friend: Friend) -> None:
    """The newer value holds; the older one never comes without it."""
    await friend.tell("My doctor is Dr. Wu.", "My doctor is now Dr. Silva.")
    assert await friend.ask("Who is my doctor?") == [
        "2026-05-02 - [#1a user] My doctor is Dr. Wu. (superseded 2026-05-03: see #3a)",
        "2026-05-03 - [#3a user] My doctor is now Dr. Silva. (current since 2026-05-03; supersedes #1a)",
    ]


async def test_what_is_to_be_forgotten(friend: Friend) -> None:
    """A value that was taken back is in no prompt, and what was said beside it is."""
    told = await friend.tell("My access code is 4711. My sister is called Ada.", "Please forget my access code.")
    assert len(told["retracted"]) == 1
    assert not any("4711" in line for line in await friend.ask("What is my access code?"))
    assert "2026-05-02 - [user] My sister is called Ada." in await friend.ask("What is my sister called?")


async def test_all_of_many(friend: Friend) -> None:
    """Asked for all, every value is there."""
    await friend.tell("I am allergic to peanuts.", "Lovely weather today.", "I am also allergic to shellfish.")
    lines = "\n".join(await friend.ask("List all my allergies."))
    assert "peanuts" in lines
    assert "shellfish" in lines


async def test_the_same_message_again_is_no_second_memory(friend: Friend) -> None:
    """A history that is sent again is recognised, and adds neither memory nor evidence; saying it anew adds evidence only."""
    await friend.tell("My doctor is Dr. Wu.")
    history = [{"role": "user", "content": "My doctor is Dr. Wu."}, {"role": "assistant", "content": "Reply 1."}]
    response = await friend.world.say([*history, {"role": "user", "content": "Thanks!"}], "told", "k")
    receipt = await friend.world.get("/v1/receipts/" + response.json()["hermes"]["receipt_id"])
    assert (receipt["memory"]["added"], receipt["memory"]["merged"]) == ([], [])
    again = await friend.tell("My doctor is Dr. Wu.", session="other")
    assert (again["added"], len(again["merged"])) == ([], 1)


async def test_an_edited_message_is_unsaid(friend: Friend) -> None:
    """What an edited message stated holds no more, and what it had closed holds again."""
    await friend.tell("My doctor is Dr. Wu.", session="first")
    await friend.tell("My doctor is now Dr. Silva.")
    # The reply shows that this is a history: the first message was edited into another.
    edited = [
        {"role": "user", "content": "Nice day."},
        {"role": "assistant", "content": "Reply 2."},
        {"role": "user", "content": "And you?"},
    ]
    await friend.world.say(edited, "told", "k")
    lines = await friend.ask("Who is my doctor?")
    assert "2026-05-02 - [user] My doctor is Dr. Wu." in lines
    assert not any("Silva" in line for line in lines)


async def test_a_deleted_session_is_forgotten(friend: Friend) -> None:
    """With a session go its memories, and with them what they did."""
    await friend.tell("My doctor is Dr. Wu.", session="first")
    await friend.tell("My doctor is now Dr. Silva.", session="second")
    assert (await friend.world.client.delete("/api/sessions/second")).status_code == 200
    lines = await friend.ask("Who is my doctor?")
    assert "2026-05-02 - [user] My doctor is Dr. Wu." in lines
    assert not any("Silva" in line for line in lines)


async def test_a_receipt_names_the_memories(friend: Friend) -> None:
    """What was recalled says why, with which memories, and what the server said about it; no text is kept twice."""
    told = await friend.tell("My doctor is Dr. Wu.", "My doctor is now Dr. Silva.")
    (change,) = told["superseded"]
    friend.calendar.now += 60
    response = await friend.world.say("Who is my doctor?", "asked", "k")
    receipt = await friend.world.get("/v1/receipts/" + response.json()["hermes"]["receipt_id"])
    old, new = receipt["prompt"]["recalled"]
    assert (old["memories"], new["memories"]) == ([change["id"]], [change["by"]])
    assert old["notes"] == ["(superseded 2026-05-03: see #3a)"]
    assert old["text"] == "My doctor is Dr. Wu."
    assert [refused["rule"] for refused in receipt["memory"]["refused"]] == ["question"]


async def test_small_talk_makes_no_memory(friend: Friend) -> None:
    """Greetings and thanks are refused, and the receipt says by which rule."""
    told = await friend.tell("Good morning! Thanks a lot, you are great.")
    assert told["added"] == []
    assert told["refused_in_all"] >= 1


# -- targets ------------------------------------------------------------------------------------------------------------------


async def test_j1_a_fact_stays_under_its_key(friend: Friend) -> None:
    """A fact saved under one key appears in the prompt of no other."""
    await friend.tell("My doctor is Dr. Wu.", key="tenant:alice")
    assert await friend.ask("Who is my doctor?", key="tenant:bob") == []
    assert len(await friend.ask("Who is my doctor?", key="tenant:alice")) == 1


async def test_j2_a_tenant_finds_nothing_of_another(friend: Friend) -> None:
    """The same key in another tenant recalls nothing."""
    await friend.tell("My doctor is Dr. Wu.")
    other = await friend.world.key("other", worlds.OTHER_KEY)
    await other.say("Who is my doctor?", "asked", "k")
    assert "Wu" not in friend.world.model.seen


async def test_j3_two_keys_with_the_same_first_message(friend: Friend) -> None:
    """Without an id, equal first messages under two keys are two transcripts and two memories."""
    one = await friend.world.say("My doctor is Dr. Wu.", None, "a")
    two = await friend.world.say("My doctor is Dr. Wu.", None, "b")
    ids = [r.json()["hermes"]["session_id"] for r in (one, two)]
    assert ids[0] != ids[1]
    changes = [await friend.world.get("/v1/receipts/" + r.json()["hermes"]["receipt_id"]) for r in (one, two)]
    assert [len(c["memory"]["added"]) for c in changes] == [1, 1]


async def test_j4_j5_a_repeated_request_is_learned_once(friend: Friend) -> None:
    """The same idempotency key learns once; with another session it is another request; with another body it is refused."""
    header = {"Idempotency-Key": "one"}
    first = await friend.world.say("My doctor is Dr. Wu.", "s", "k", headers=header)
    again = await friend.world.say("My doctor is Dr. Wu.", "s", "k", headers=header)
    assert first.content == again.content
    refused = await friend.world.chat("My doctor is Dr. No.", "s", "k", headers=header)
    assert refused.status_code == 409
    elsewhere = await friend.world.say("My doctor is Dr. Wu.", "t", "other", headers=header)
    assert elsewhere.json()["hermes"]["session_id"] == "t"
    (line,) = await friend.ask("Who is my doctor?")
    assert "Dr. Wu" in line


async def test_j6_keys_that_look_alike(friend: Friend) -> None:
    """Neither signs nor scripts make two keys one memory."""
    keys = ["a:b", "a-b", "a/b", "a b", "私", "我"]
    for number, key in enumerate(keys):
        await friend.tell(f"My locker number is {number}{number}{number}.", session=f"told-{number}", key=key)
    for number, key in enumerate(keys):
        lines = "\n".join(await friend.ask("What is my locker number?", key=key))
        assert set(re.findall(r"\b(\d)\1\1\b", lines)) == {str(number)}


async def test_j15_a_fact_amid_a_long_message_survives_compression(tmp_path: Path) -> None:
    """A statement in the middle of forty thousand characters is known when the session was compressed."""
    async with worlds.running(tmp_path, context_budget=65_536, compress_at=0.5) as world:
        log = "\n".join(f"2026-05-01 12:00:{n % 60:02d} INFO worker {n} finished batch {n * 7}" for n in range(350))
        told = await world.say(f"Here is the log.\n{log}\nMy locker number is 4242.\n{log}", "s", "k")
        for number in range(12):
            told = await world.say(f"And {number} more words: " + "lorem ipsum dolor " * 120, "s", "k")
        assert told.json()["hermes"]["session_id"] != "s", "it was compressed"
        for session in ("s", "fresh"):
            await world.say("What is my locker number?", session, "k")
            assert "My locker number is 4242." in world.model.seen


async def test_j44_a_fact_is_known_in_the_next_turn(friend: Friend) -> None:
    """What a turn saved is in the prompt of the next one, of the same session and of others of the key."""
    await friend.tell("My doctor is Dr. Wu.")
    assert len(await friend.ask("Who is my doctor?")) == 1
    await friend.world.say("Who is my doctor?", "told", "k")
    assert "My doctor is Dr. Wu." in friend.world.model.seen


async def test_j46_recalled_text_is_not_sent_again(friend: Friend) -> None:
    """The recalled lines of one turn are in no later prompt, nor learned from if a client sends them back."""
    await friend.tell("My doctor is Dr. Wu.")
    await friend.world.say("Who is my doctor?", "asked", "k")
    block = friend.world.model.prompt[-1]["content"]
    assert "<mnemon-recall" in block
    await friend.world.say("Lovely weather today.", "asked", "k")
    assert "<mnemon-recall" not in friend.world.model.seen
    back = await friend.tell(block, session="elsewhere", key="another")
    assert (back["added"], back["merged"]) == ([], [])
