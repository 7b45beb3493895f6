"""The compressed state of a conversation through the whole server: made from the ledger, bounded, never an old value as if it held."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mnemon.context import blocks
from mnemon.context.compress import STATE_SHARE
from mnemon.context.tokens import Counter, message_tokens
from tests.http.test_compression import WORDS
from tests.http.world import ID, World, running

BUDGET = 1500
DAY = 86_400.0
MAY = 1_777_593_600.0  # 2026-05-01


class Calendar:
    """A clock that stands still between the days."""

    def __init__(self) -> None:
        self.now = MAY

    def __call__(self) -> float:
        return self.now


class Talk:
    """One conversation, a day for each thing that is told; small talk takes no time."""

    def __init__(self, world: World, calendar: Calendar) -> None:
        self.world = world
        self.calendar = calendar
        self.compressions = 0
        self.tip = "root"
        self.turns = 0

    async def say(self, text: str) -> None:
        """One turn; the state that the model saw must keep to its share."""
        self.turns += 1
        response = await self.world.say(text, "root", "k")
        self.compressions += response.headers[ID] != self.tip
        self.tip = response.headers[ID]
        assert tokens_of(self.state()) <= int(BUDGET * STATE_SHARE)

    async def tell(self, *texts: str) -> None:
        """Each on a day of its own."""
        for text in texts:
            self.calendar.now += DAY
            await self.say(text)

    async def chat(self, compressions: int) -> None:
        """Talk about nothing until the conversation was compressed so many times more, and once again, to see what the model is told."""
        wanted = self.compressions + compressions
        while self.compressions < wanted:
            chance = random.Random(self.turns)
            await self.say(f"How do you spell {' '.join(chance.choice(WORDS) for _ in range(50))}?")
        await self.say("Is that so?")

    def state(self) -> list[str]:
        """The lines of the state in the last prompt."""
        first = self.world.model.prompt[0]
        if first["role"] != "system" or blocks.STATE not in first["content"]:
            return []
        lines: list[str] = first["content"].partition(blocks.STATE + "\n")[2].partition(blocks.STATE_END)[0].splitlines()
        return lines

    def about(self, word: str) -> list[str]:
        """The lines of the state that speak of something."""
        return [line for line in self.state() if word in line]


def tokens_of(lines: list[str]) -> int:
    """What a state costs with its frame."""
    if not lines:
        return 0
    counter = Counter.for_model(None)
    assert counter.ready()
    return message_tokens(counter, {"role": "system", "content": "\n".join([blocks.STATE, *lines, blocks.STATE_END])})


@pytest.fixture
async def talk(tmp_path: Path, database_url: str) -> AsyncIterator[Talk]:
    """A server with small prompts on either database, and one long conversation."""
    calendar = Calendar()
    async with running(tmp_path, database_url, clock=calendar, context_budget=BUDGET, recall_tokens=200) as world:
        yield Talk(world, calendar)


async def test_a_new_value_stands_without_the_old(talk: Talk) -> None:
    """The state holds the value of today and says since when, the old value not at all; nor does a reply that repeated it."""
    talk.world.model.script.append("Noted: Dr. Wu is your doctor, and Dr. Wu is in room 12.")
    await talk.tell("My doctor is Dr. Wu.")
    await talk.chat(1)
    assert talk.about("My doctor") == ["- [#1 2026-05-02 user] My doctor is Dr. Wu."]
    await talk.tell("My doctor is now Dr. Silva.")
    said = 2 * talk.turns - 1
    await talk.chat(2)
    assert talk.about("doctor") == [f"- [#{said} 2026-05-03 user] My doctor is now Dr. Silva. (current since 2026-05-03; supersedes #1)"]
    assert not talk.about("Wu")


async def test_a_reversal_is_flagged_with_its_date(talk: Talk) -> None:
    """Both positions stand in the state, each with its message, the old one marked as over and since when, and stay there."""
    await talk.tell("We're committed to microservices.", "Merged all services back into a monolith.")
    for _ in range(3):
        await talk.chat(1)
        assert talk.state()[:2] == [
            "- [#1 2026-05-02 user] We're committed to microservices. (superseded 2026-05-03: see #3)",
            "- [#3 2026-05-03 user] Merged all services back into a monolith. (current since 2026-05-03; reversal of #1)",
        ]


async def test_what_is_reversed_later_is_marked_in_the_next_state(talk: Talk) -> None:
    """A position that stood in the state is left out while its reversal is live, and comes back marked when that leaves."""
    await talk.tell("We're committed to microservices.")
    await talk.chat(1)
    assert talk.about("microservices") == ["- [#1 2026-05-02 user] We're committed to microservices."]
    await talk.tell("Merged all services back into a monolith.")
    said = 2 * talk.turns - 1
    await talk.chat(2)
    assert talk.about("microservices") == [f"- [#1 2026-05-02 user] We're committed to microservices. (superseded 2026-05-03: see #{said})"]
    assert talk.about("monolith") == [
        f"- [#{said} 2026-05-03 user] Merged all services back into a monolith. (current since 2026-05-03; reversal of #1)"
    ]


async def test_what_was_taken_back_is_gone_from_the_next_state(talk: Talk) -> None:
    """After "forget that" the next state has neither the words nor a reply that repeated them; what stood beside them stays."""
    talk.world.model.script.append("I will remember that 4711 is your access code.")
    await talk.tell("My access code is 4711. My sister is called Ada.")
    await talk.chat(1)
    assert talk.about("4711")
    await talk.tell("Please forget my access code.")
    await talk.chat(2)
    assert not talk.about("4711")
    assert talk.about("Ada") == ["- [#1 2026-05-02 user] My sister is called Ada."]


@pytest.mark.parametrize(("change", "word"), [("Please forget my access code.", "4711"), ("My access code is now 9950.", "4711")])
async def test_the_turn_that_compresses_counts(talk: Talk, change: str, word: str) -> None:
    """What ends in the very turn that compresses does not get into the state that this turn makes, nor does a reply that repeated it."""
    talk.world.model.script.append("I will remember that 4711 is your access code.")
    await talk.tell("My access code is 4711. My sister is called Ada.")
    await talk.say(f"How do you spell {' '.join(WORDS * 4)}?")
    talk.world.model.script.append(" ".join(WORDS * 20))
    before = talk.compressions
    await talk.tell(change)
    assert talk.compressions == before + 1, "this turn compressed"
    await talk.say("Is that so?")
    assert talk.about("Ada")
    assert not talk.about(word)


async def test_a_reason_names_what_it_explains(talk: Talk) -> None:
    """A reason that was given later stands in the state with the message of what it is the reason for."""
    await talk.tell("We moved the launch to March.", "The reason we moved the launch was a failed audit.")
    await talk.chat(2)
    assert talk.about("launch") == [
        "- [#1 2026-05-02 user] We moved the launch to March.",
        "- [#3 2026-05-03 user] The reason we moved the launch was a failed audit. (reason for #1)",
    ]


async def test_twenty_compressions_later(talk: Talk) -> None:
    """What was stated in the first turns is in the state word for word after twenty compressions, and the state keeps to its share."""
    facts = ["My name is Alex.", "From now on answer in German.", "We decided to use PostgreSQL 15.", "My locker number is 42."]
    await talk.tell(*facts)
    await talk.chat(20)
    assert [line.partition("] ")[2] for line in talk.state()[:4]] == facts


async def test_a_fork_knows_what_became_of_it(talk: Talk) -> None:
    """A fork without a key has memories of its own, and its next state marks what is superseded in it alone."""
    await talk.world.say("My doctor is Dr. Wu.", "plain")
    for number in range(9):
        await talk.world.say(f"How do you spell {number} {' '.join(WORDS)}?", "plain")
    await talk.world.post("/api/sessions/plain/fork", {"id": "fork"})
    await talk.world.say("My doctor is now Dr. Silva.", "fork")
    for number in range(18):
        for name in ("fork", "plain"):
            await talk.world.say(f"How do you spell {number} {' '.join(WORDS)}?", name)
    assert "My doctor is Dr. Wu." in str(talk.about("doctor"))
    await talk.world.say("Is that so?", "fork")
    assert "Silva" in str(talk.about("doctor"))
    assert "Wu" not in str(talk.state())


async def test_without_memory_sentences_are_kept(tmp_path: Path) -> None:
    """With no memory provider, sentences with names and numbers stand for what left the prompt."""
    async with running(tmp_path, context_budget=BUDGET, recall_tokens=200, memory_provider="none") as world:
        talk = Talk(world, Calendar())
        await talk.tell("My doctor is Erin Wu.", "The spare key lies with Marisol Lindqvist in flat 12.")
        await talk.chat(3)
        assert len(talk.about("Erin Wu")) == len(talk.about("Marisol Lindqvist in flat 12")) == 1
