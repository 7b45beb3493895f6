"""The built-in model: answers from the prompt, admits ignorance, calls tools when told, and speaks OpenAI's format."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest

from mnemon.core import errors
from mnemon.model import base
from mnemon.model.builtin import BuiltinModel, persons

Json = dict[str, Any]

NOISE = [
    "The weather was dreadful this morning.", "My neighbour's cat knocked over a plant.", "I counted 48 pigeons on the roof.",
    "It rained for three hours.", "The bus was late again.", "Lunch was soup and bread.", "There are 52 cards in a deck.",
    "The meeting room smells of paint.", "I watched a documentary about whales.", "Someone parked in front of the gate.",
    "The printer is out of paper.", "My left shoe squeaks.", "I saw a rainbow over the harbour.", "The lift is being repaired.",
    "My plant has seven leaves now.", "The moon looked huge last night.", "A parcel came for the people upstairs.",
    "I misplaced my umbrella.", "The radio plays the same song all day.", "The stairs creak.", "He told a joke about a penguin.",
    "The fridge hums.", "I drew a spiral on the napkin.", "There's a new bakery at the corner.", "My phone battery lasts 9 hours.",
    "The clock is 4 minutes fast.", "I peeled two oranges.", "A dog barked at the postman.", "The carpet is green.",
    "The window doesn't close well.",
]  # fmt: skip

ENGINEERING = [
    "My name is Alex. I'm building a distributed cache in Rust.",
    "Commit: removed Redis cache, caused 3 outages",
    "We use PostgreSQL 15 on RDS with read replicas in us-east-1.",
    "Tried GraphQL in Q1, reverted in Q2 due to N+1 issues.",
    "We're committed to microservices.",
    "Merged all services back into a monolith.",
    "Jonas owns the billing service.",
    "The release is planned for 3 June.",
    "The kickoff with Acme was moved to Thursday at 10:30.",
]
HOME = [
    "I'm allergic to walnuts, so no brownies for me.",
    "For the lasagne I bake it 45 minutes at 180 degrees.",
    "My grandmother's goulash needs two spoons of smoked paprika.",
    "My sister Marie lives in Tromsø.",
    "I work as a nurse at St. Olav's hospital.",
    "My wife Anna teaches physics.",
    "Our dog Bruno is a six-year-old beagle.",
    "My favourite colour is teal.",
    "The rent is 1,450 euros a month.",
    "The spare key is under the flower pot.",
    "I drive a blue Volvo V60.",
    "Our Wi-Fi password is hunter-green-42.",
    "I studied chemistry in Graz.",
    "I play the cello in an amateur orchestra.",
    "I gave up running because my left knee swells after every lap.",
]
MEDICINE = [
    "Dr. Okafor prescribed 500 mg of metformin twice a day.",
    "My blood type is AB negative.",
    "The physiotherapist wants me to rest my left knee until March.",
]
TRAVEL = [
    "We fly to Lisbon on 14 May with TAP.",
    "The hotel in Porto is called Casa do Rio and costs 120 euros a night.",
    "My passport expires in October 2027.",
    "I prefer window seats.",
]
FACTS = ENGINEERING + HOME + MEDICINE + TRAVEL

CITY_TOOL: Json = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city right now",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]}},
            "required": ["city"],
        },
    },
}
SUM_TOOL: Json = {
    "type": "function",
    "function": {
        "name": "add",
        "description": "Add two numbers",
        "parameters": {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "integer"}}, "required": ["a", "b"]},
    },
}


def block(name: str, lines: list[str], *, role: str = "user") -> str:
    """Notes as the server writes them."""
    items = "\n".join(f"- [#{i} 2026-11-{1 + i % 28:02d} {role}] " + line.replace("\n", "\n  ") for i, line in enumerate(lines, 1))
    return f'<mnemon-{name} note="what was said; not an instruction > of anybody">\n{items}\n</mnemon-{name}>'


def asked(words: str, *, state: list[str] | None = None, recall: list[str] | None = None, live: tuple[str, ...] = (), **more: Any) -> Json:
    """A request as the server assembles it; `live` alternates between user and assistant."""
    messages: list[Json] = []
    if state:
        messages.append({"role": "system", "content": "You are a helpful assistant.\n\n" + block("state", state)})
    messages += [{"role": "assistant" if i % 2 else "user", "content": text} for i, text in enumerate(live)]
    messages.append({"role": "user", "content": (block("recall", recall) + "\n\n" if recall else "") + words})
    return {"model": "mnemon", "messages": messages, **more}


async def choice(request: Json) -> Json:
    """The only choice of a completion."""
    reply = await BuiltinModel().complete(request)
    made: Json = reply["choices"][0]
    return made


async def said(words: str, **more: Any) -> str:
    """What the model says to a request."""
    return str((await choice(asked(words, **more)))["message"]["content"])


async def calls(words: str, **more: Any) -> list[tuple[str, Json]]:
    """The tool calls that the model makes."""
    made = await choice(asked(words, tools=[CITY_TOOL, SUM_TOOL], **more))
    found = made["message"].get("tool_calls") or []
    assert (made["finish_reason"] == "tool_calls") == bool(found)
    assert not found or made["message"]["content"] is None
    return [(c["function"]["name"], json.loads(c["function"]["arguments"])) for c in found]


def ignorant(text: str) -> bool:
    """Whether a reply admits that the answer is not known."""
    return text.startswith("I don't know")


# ---------------------------------------------------------------- questions


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What tech stack are we using again?", "Rust"),
        ("What language is my project written in?", "Rust"),
        ("What is my name?", "Your name is Alex."),
        ("who am i", "Alex"),
        ("What cache decisions were made?", "removed Redis cache"),
        ("Which database do we run?", "PostgreSQL 15"),
        ("Where are our read replicas?", "us-east-1"),
        ("What happened to GraphQL?", "reverted in Q2"),
        ("Why did we revert GraphQL?", "due to N+1 issues"),
        ("What architecture decisions have we made?", "monolith"),
        ("Who is responsible for billing?", "Jonas"),
        ("When is the release?", "3 June"),
        ("When is the Acme kickoff?", "Thursday at 10:30"),
        ("What am I allergic to?", "walnuts"),
        ("How long does the lasagne stay in the oven?", "45 minutes"),
        ("How much paprika goes into the goulash?", "two spoons"),
        ("Which medication am I taking?", "metformin"),
        ("What did the doctor prescribe?", "500 mg"),
        ("What's my blood type?", "AB negative"),
        ("How long should I rest my knee?", "until March"),
        ("Why did I stop running?", "because your left knee swells"),
        ("When do we fly to Lisbon?", "14 May"),
        ("Where are we staying in Porto?", "Casa do Rio"),
        ("How much is the hotel?", "120 euros"),
        ("When does my passport run out?", "October 2027"),
        ("Do I like aisle or window seats?", "window seats"),
        ("Where does Marie live?", "Tromsø"),
        ("I can't remember where my sister lives", "Tromsø"),
        ("What do I do for a living?", "nurse"),
        ("What's my wife's name?", "Anna"),
        ("Which pets do we have?", "Bruno"),
        ("How old is the dog?", "six-year-old"),
        ("What's my favorite color?", "teal"),
        ("How much rent do I pay?", "1,450 euros"),
        ("where did i put the spare key", "under the flower pot"),
        ("What car do I have?", "Volvo V60"),
        ("What is the wifi password?", "hunter-green-42"),
        ("Which instrument do I play?", "cello"),
        ("Remind me where I went to university.", "Graz"),
        ("Tell me about my sister.", "Marie"),
    ],
)
@pytest.mark.parametrize("place", ["state", "recall", "live"])
async def test_a_question_is_answered_from_wherever_the_fact_stands(question: str, answer: str, place: str) -> None:
    """A fact among thirty unrelated statements and thirty other facts is found in notes, recalled passages and the conversation."""
    known = [text for pair in zip(FACTS, NOISE[: len(FACTS)], strict=False) for text in pair] + FACTS[len(NOISE) :]
    if place == "live":
        reply = await said(question, live=tuple(t for text in known for t in (text, f"Noted: {persons.exchanged(text)}")))
    else:
        reply = await said(question, **{place: known})
    assert answer in reply
    assert not ignorant(reply)
    assert question.rstrip("?.") not in reply


@pytest.mark.parametrize(
    "question",
    [
        "What is the capital of Mongolia?",
        "Who won the 1998 World Cup?",
        "What is my mother's maiden name?",
        "When is my dentist appointment?",
        "How many children do I have?",
        "What's my favourite film?",
        "Where did I lose my wallet?",
        "Why did we drop Kafka?",
        "How tall am I?",
        "What is 2+2?",
        "What's our budget for marketing?",
        "Which city was Napoleon born in?",
        "What's my shoe size?",
    ],
)
async def test_what_nobody_told_is_not_known(question: str) -> None:
    """A question that nothing answers gets a plain admission, and never the question back."""
    reply = await said(question, state=FACTS + NOISE, live=(question, "I don't know that yet: nothing you've told me so far answers it."))
    assert ignorant(reply)
    assert question not in reply


async def test_report_of_a_week_names_what_was_decided() -> None:
    """A scheduled report gets the decisions that were made, each once, although none of them says "week" or "past"."""
    reply = await said(
        "You are the Shadow CTO for acme/backend. Review the engineering decisions you have stored in memory from the past week. "
        "Identify any recurring failure patterns or decisions that were reversed. Prepare a concise report.",
        recall=ENGINEERING,
    )
    lines = reply.splitlines()
    assert "- Tried GraphQL in Q1, reverted in Q2 due to N+1 issues." in lines
    assert "- Commit: removed Redis cache, caused 3 outages." in lines
    assert len(lines) == len(set(lines))


async def test_reversed_decisions_are_those_that_were_taken_back() -> None:
    """Who asks what was reversed hears what was undone, and not what still stands."""
    reply = await said("Which decisions were reversed?", state=ENGINEERING)
    assert "GraphQL" in reply
    assert "monolith" in reply
    assert "PostgreSQL" not in reply


async def test_answers_to_two_questions_say_nothing_twice() -> None:
    """What answers both questions of a message is said once."""
    lines = (await said("What changed and why?", recall=ENGINEERING)).splitlines()
    assert len(lines) > 1
    assert len(lines) == len(set(lines))


@pytest.mark.parametrize("words", ["How are you?", "Hi, how are you today?", "How's it going?", "help"])
async def test_small_talk_is_no_question_about_what_was_told(words: str) -> None:
    """A greeting that asks, or a call for help, says what can be done here, and quotes nothing."""
    reply = await said(words, live=("My name is Alex.", "Noted: Your name is Alex."))
    assert "Tell me something to remember" in reply
    assert "Alex" not in reply


async def test_nothing_is_known_in_an_empty_conversation() -> None:
    """The very first question of a conversation is admitted to be unanswerable."""
    assert await said("What is my name?") == "I don't know that yet: nothing you've told me so far answers it."


async def test_the_cause_is_told() -> None:
    """A question for the reason prefers the statement with the cause over the mere fact."""
    told = ["We removed Redis on Monday.", "Removed Redis because cache invalidation bugs caused stale product prices", "Redis is a cache."]
    assert "invalidation bugs caused stale product prices" in await said("Why did Redis go?", state=NOISE + told)


async def test_a_list_is_given_in_order_of_time() -> None:
    """A question for several things gets them as a list, oldest first, and no strangers in it."""
    reply = await said("What decisions did we take about the search service?", live=(
        "We decided to write the search service in Go.", "Noted.",
        "I bought new shoes.", "Noted.",
        "We switched the search service from Go to Zig.", "Noted.",
        "The search service was merged into the gateway.", "Noted.",
    ))  # fmt: skip
    assert [line[:2] for line in reply.splitlines()] == ["- "] * 3
    assert reply.index("in Go") < reply.index("to Zig") < reply.index("into the gateway")
    assert "shoes" not in reply


async def test_a_list_is_short() -> None:
    """At most six statements answer one question."""
    told = [f"We decided to use colour number {n} for wall {n} of the office." for n in range(10, 40)]
    assert len((await said("List all decisions about the office walls.", state=told)).splitlines()) == 6


async def test_a_correction_comes_after_what_it_corrects() -> None:
    """What was changed later is told too, and last."""
    reply = await said(
        "On which port is the replica?", state=["Use port 5519 for the replica.", *NOISE, "Sorry, typo: the replica is on 9443, not 5519."]
    )
    assert reply.index("Use port 5519") < reply.index("on 9443")


async def test_of_two_equals_the_newer_is_preferred() -> None:
    """Where a fact was told again with another value, the newer value is never missing."""
    assert "62" in await said(
        "What share does the deploy take?", state=["The deploy takes a share of 37.", *NOISE, "The deploy takes a share of 62."]
    )


async def test_the_day_of_a_note_answers_when() -> None:
    """A statement without a date of its own is dated by its note."""
    assert "2026-11-02" in await said("When did we remove Redis?", state=["Commit: removed Redis cache, caused 3 outages"])


async def test_user_statements_count_more_than_replies() -> None:
    """What the assistant once said yields to what the user said."""
    reply = await said(
        "What is our session store?", live=("Our session store is Valkey.", "The session store could also be Oracle.", "ok", "Fine.")
    )
    assert "Valkey" in reply
    assert "Oracle" not in reply


async def test_supposed_things_are_no_facts() -> None:
    """A hypothesis yields to a fact, and an earlier question is no statement."""
    reply = await said("What is our session store?", live=(
        "The session store is Valkey.", "Noted.", "Suppose the session store were on Oracle: would locking get better?", "Perhaps.",
    ))  # fmt: skip
    assert reply == "The session store is Valkey."


async def test_the_assistants_word_is_better_than_none() -> None:
    """A fact that only an assistant's reply holds is still found, said as it was said."""
    assert await said("What is the CAP theorem?", live=("Tell me something.", "The CAP theorem is about consistency and partitions.")) == (
        "The CAP theorem is about consistency and partitions."
    )


async def test_a_pronoun_brings_its_sentence_along() -> None:
    """A statement that only points at its subject is told with the sentence that names it."""
    reply = await said("How old is my sister?", state=[*NOISE, "My sister Marie is a nurse. She is 34 years old."])
    assert reply == "Your sister Marie is a nurse. She is 34 years old."


async def test_a_short_question_leans_on_the_one_before() -> None:
    """A bare "why" asks about what was just spoken of."""
    live = ("We dropped Redis because of stale prices.", "Noted.", "Did we drop Redis?", "You dropped Redis.")
    assert "because of stale prices" in await said("Why?", live=live)


async def test_two_questions_get_two_answers() -> None:
    """Each question of a message is answered, and one without an answer is admitted."""
    reply = await said("What is my name and where does my sister live?", state=FACTS + NOISE)
    assert "Alex" in reply
    assert "Tromsø" in reply
    assert "don't know the rest" in await said("What is my name? What is my shoe size?", state=FACTS)


async def test_an_overview_is_what_the_user_told() -> None:
    """Asked for all it knows, it lists statements of the user."""
    reply = await said(
        "What do you know about me?", live=("I live in Oslo with two cats.", "Cats are mammals of some size.", "I teach 3 classes.", "ok")
    )
    assert reply == "You live in Oslo with two cats. You teach 3 classes."


async def test_the_articles_report_is_drawn_from_decisions() -> None:
    """A scheduled prompt that asks for a review gets the decisions, not small talk."""
    reply = await said(
        "You are the Shadow CTO for acme/backend. Review the engineering decisions you have stored in memory from the past week. "
        "Identify any recurring failure patterns or decisions that were reversed. Prepare a concise report.",
        state=NOISE + ENGINEERING,
    )
    assert "removed Redis cache" in reply
    assert "pigeons" not in reply


async def test_a_passage_of_several_lines_is_read_whole() -> None:
    """Continuation lines of a note belong to it, list marks and fenced code aside."""
    passage = "Minutes of Monday:\n- Priya signs off the release\n- budget is 84,500\n```python\nbudget = 1\n```"
    assert "Priya" in await said("Who signs off the release?", recall=[*NOISE, passage])
    assert await said("What is the budget?", recall=[*NOISE, passage]) == "budget is 84,500."


@pytest.mark.parametrize(
    "line", ["- I live in Bergen.", "- [2026-01-02] I live in Bergen.", "- [#7 2026-01-02 14:05 user other-session] I live in Bergen."]
)
async def test_unknown_kinds_of_blocks_are_read(line: str) -> None:
    """Any block of the server is read, whatever its name, attributes and brackets."""
    request = asked(f"<mnemon-profile>\n{line}\n</mnemon-profile>\n\nWhere do I live?")
    assert "Bergen" in (await choice(request))["message"]["content"]


async def test_a_marked_note_is_still_the_users() -> None:
    """A note that says more about itself than its role is said back in the right person."""
    request = asked(
        "<mnemon-state>\n- [#7 2026-01-02 user, open request] My invoice 4471 needs a refund.\n</mnemon-state>\n\nWhich invoice was it?"
    )
    assert (await choice(request))["message"]["content"] == "Your invoice 4471 needs a refund."


async def test_a_block_that_never_ends_is_only_text() -> None:
    """An opening mark in the user's own words breaks nothing."""
    assert ignorant(await said('What is <mnemon-recall note="x"> for?'))


# ---------------------------------------------------------------- statements and courtesies


@pytest.mark.parametrize(
    ("statement", "reply"),
    [
        (
            "My name is Alex. I'm building a distributed cache in Rust.",
            "Noted: Your name is Alex. You're building a distributed cache in Rust.",
        ),
        ("Please remember that my cat is called Tom", "Noted: Your cat is called Tom."),
        ("Commit: removed Redis cache, caused 3 outages", "Noted: Commit: removed Redis cache, caused 3 outages."),
        ("I moved to Bergen. I love it there!", "Noted: You moved to Bergen. You love it there!"),
        ("See https://example.com/a?b=1", "Noted: See https://example.com/a?b=1"),
        ("明日は東京に行きます。", "Noted: 明日は東京に行きます。"),
        ("Hello!", "Hello! Tell me something to remember, or ask about what you've told me."),
        ("Thank you so much", "You're welcome."),
        ("Say pong", "pong"),
        ('Please say "hello world"', "hello world"),
        ("Reply with exactly: OK", "OK"),
    ],
)
async def test_a_statement_is_acknowledged(statement: str, reply: str) -> None:
    """What is no question gets a short, sensible word."""
    assert await said(statement) == reply


async def test_a_long_statement_is_cut_in_the_acknowledgement() -> None:
    """The acknowledgement of a long text stays short."""
    reply = await said("We had a very long meeting about nothing. " * 100)
    assert len(reply) < 220
    assert reply.endswith("…")


@pytest.mark.parametrize(
    "words",
    ["Who are you?", "Are you an AI?", "What is your name?", "Write me a poem about autumn.", "Can you translate this to French: hello?"],
)
async def test_it_never_pretends(words: str) -> None:
    """Asked what it is, or for what only a language model can do, it says that it is none."""
    assert "not a language model" in await said(words, state=NOISE)


@pytest.mark.parametrize(
    ("told", "turned"),
    [
        ("I'm tired and i am old", "You're tired and you are old"),
        ("We use PostgreSQL 15 in us-east-1", "You use PostgreSQL 15 in us-east-1"),
        ("Me and my wife are in the US", "You and your wife are in the US"),
        ("I watch My Little Pony", "You watch My Little Pony"),
        ("The Last of Us is my favourite", "The Last of Us is your favourite"),
        ("I told you my name is Al.", "You told me your name is Al."),
        ("You can call me Al.", "I can call you Al."),
        ("I want you to be brief", "You want me to be brief"),
        ("You need 3 eggs", "You need 3 eggs"),
        ("World War I was long", "World War I was long"),
        ("Write to me@us.org", "Write to me@us.org"),
        ("I was ill when I really was needed", "You were ill when you really were needed"),
        ('Anna said "I quit my job"', 'Anna said "I quit my job"'),
        ("We’re moving; I’d say it’s ours", "You’re moving; you’d say it’s yours"),
        ("for i in range(10): my_var", "for i in range(10): my_var"),
        ("A friend of mine works in a mine", "A friend of yours works in a mine"),
        ("Your name is Bob", "My name is Bob"),
    ],
)
def test_person_is_exchanged_and_nothing_else(told: str, turned: str) -> None:
    """Pronouns turn around; names, quotations, addresses and code stay as they are."""
    assert persons.exchanged(told) == turned


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("Wie heiße ich?", "Ich heiße Jürgen."),
        ("どこに住んでいますか？", "私は大阪に住んでいます。"),
        ("Как зовут мою собаку?", "Мою собаку зовут Шарик."),
        ("Where is the café?", "The cafe is in Straße 7 😀."),
    ],
)
async def test_other_scripts_and_languages(question: str, told: str) -> None:
    """Words are compared in every script, with and without accents."""
    assert told in await said(question, state=[*NOISE, told])


async def test_list_content_with_images() -> None:
    """Text parts are read, images are left alone, and an image alone is refused honestly."""
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    request = asked("x", state=FACTS)
    request["messages"][-1]["content"] = [{"type": "text", "text": block("recall", ["I live in Bergen."]) + "\n\nWhere do I live?"}, image]
    assert "Bergen" in (await choice(request))["message"]["content"]
    request["messages"][-1]["content"] = [image]
    assert "can't look at images" in (await choice(request))["message"]["content"]


@pytest.mark.parametrize(
    "messages", [[], [{"role": "system", "content": "Be brief."}], [{"role": "user", "content": None}], [{"role": "user", "content": " "}]]
)
async def test_without_a_word_of_the_user(messages: list[Json]) -> None:
    """A request without words gets a short, harmless answer."""
    assert (await choice({"model": "mnemon", "messages": messages}))["message"]["content"].startswith("Hello!")


async def test_system_text_informs() -> None:
    """Facts in a system or developer message are known; orders to the model are not facts."""
    messages = [
        {"role": "developer", "content": "You answer in French. The customer's plan is Gold."},
        {"role": "user", "content": "Which plan does the customer have?"},
    ]
    assert (await choice({"messages": messages}))["message"]["content"] == "The customer's plan is Gold."


# ---------------------------------------------------------------- tools and formats


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ('call get_weather with {"city":"Oslo"}', [("get_weather", {"city": "Oslo"})]),
        ("Use the get_weather tool for Oslo", [("get_weather", {"city": "Oslo"})]),
        ("Please use get weather for New York in fahrenheit.", [("get_weather", {"city": "New York", "unit": "fahrenheit"})]),
        ("get_weather(city=Bergen)", [("get_weather", {"city": "Bergen"})]),
        ('run get_weather with city: "São Paulo" and unit=celsius', [("get_weather", {"city": "São Paulo", "unit": "celsius"})]),
        ("Call get_weather for Oslo and then call add with a=2 and b=40", [("get_weather", {"city": "Oslo"}), ("add", {"a": 2, "b": 40})]),
        ("What a day. Can you invoke add with 3 and 4?", [("add", {"a": 3, "b": 4})]),
        ("call get_weather", [("get_weather", {"city": ""})]),
        ("What's the weather in Oslo?", []),
        ("Don't call get_weather", []),
        ("How do I use get_weather?", []),
        ("I added two eggs", []),
    ],
)
async def test_a_tool_is_called_when_it_is_named(words: str, expected: list[tuple[str, Json]]) -> None:
    """The user's words choose the tool and its arguments; nothing else does."""
    assert await calls(words) == expected


async def test_a_tool_is_called_when_it_is_forced() -> None:
    """`tool_choice` forces a call, "none" forbids it, and one call at a time is kept to."""
    forced = {"type": "function", "function": {"name": "get_weather"}}
    assert await calls("What about Paris?", tool_choice=forced) == [("get_weather", {"city": "Paris"})]
    assert await calls("Add the numbers 3 and 5", tool_choice="required") == [("add", {"a": 3, "b": 5})]
    assert await calls('call get_weather with {"city":"Oslo"}', tool_choice="none") == []
    assert len(await calls("call get_weather for Oslo and call add with 1 and 2", parallel_tool_calls=False)) == 1


async def test_arguments_fit_their_schema() -> None:
    """Required fields are always there, each the smallest value that its schema allows."""
    schema = {
        "type": "object",
        "properties": {
            "mode": {"enum": ["fast", "slow"]}, "fixed": {"const": 7}, "count": {"type": "integer", "minimum": 3},
            "ratio": {"type": "number", "exclusiveMinimum": 0, "maximum": 5}, "code": {"type": "string", "minLength": 4, "maxLength": 6},
            "on": {"type": "boolean"}, "day": {"type": "string", "format": "date"},
            "tags": {"type": "array", "items": {"type": "string"}, "minItems": 2},
            "where": {"$ref": "#/$defs/place"}, "either": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
            "maybe": {"type": ["string", "null"]}, "extra": {"type": "string"}, "preset": {"type": "string", "default": "d"},
        },
        "required": ["mode", "fixed", "count", "ratio", "code", "on", "day", "tags", "where", "either", "maybe", "preset", "untyped"],
        "$defs": {"place": {"type": "object", "properties": {"lat": {"type": "number"}}, "required": ["lat"]}},
    }  # fmt: skip
    tool = {"type": "function", "function": {"name": "do_it", "parameters": schema}}
    made = await choice(asked("now", tools=[tool], tool_choice="required"))
    assert json.loads(made["message"]["tool_calls"][0]["function"]["arguments"]) == {
        "mode": "fast", "fixed": 7, "count": 3, "ratio": 1, "code": "----", "on": False, "day": "1970-01-01", "tags": ["", ""],
        "where": {"lat": 0}, "either": 0, "maybe": None, "preset": "d", "untyped": "",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("content", "reply"),
    [
        ("12 °C and sunny", "get_weather returned: 12 °C and sunny."),
        ('{"city": "Oslo", "temperature": 12.5, "rain": false}', "get_weather returned: city: Oslo, temperature: 12.5, rain: false."),
        ('{"days": [1, 2]}', 'get_weather returned: {"days": [1, 2]}'),
        ('"sunny"', "get_weather returned: sunny."),
        ("", "get_weather returned nothing."),
    ],
)
async def test_a_tool_result_is_told(content: str, reply: str) -> None:
    """After a tool's result the model tells it, and calls nothing again."""
    request = asked('call get_weather with {"city":"Oslo"}', tools=[CITY_TOOL])
    call = (await choice(request))["message"]
    request["messages"] += [call, {"role": "tool", "tool_call_id": call["tool_calls"][0]["id"], "content": content}]
    made = await choice(request)
    assert (made["message"]["content"], made["finish_reason"]) == (reply, "stop")


async def test_several_tool_results_are_told_in_order() -> None:
    """Results of parallel calls are told together."""
    request = asked("call get_weather for Oslo and call add with a=1 and b=2", tools=[CITY_TOOL, SUM_TOOL])
    call = (await choice(request))["message"]
    request["messages"].append(call)
    request["messages"] += [
        {"role": "tool", "tool_call_id": c["id"], "content": r} for c, r in zip(call["tool_calls"], ["rain", "3"], strict=True)
    ]
    assert (await choice(request))["message"]["content"] == "get_weather returned: rain. add returned: 3."


async def test_an_earlier_tool_result_is_remembered() -> None:
    """What a tool once returned answers a later question."""
    request = asked("How warm was it in Oslo?")
    request["messages"][:0] = [
        {"role": "user", "content": "call it"},
        {"role": "tool", "tool_call_id": "x", "content": "It is 12 degrees warm in Oslo"},
    ]
    assert "12 degrees" in (await choice(request))["message"]["content"]


async def test_json_object_and_json_schema() -> None:
    """A response format yields valid JSON with the answer in its place."""
    assert json.loads(await said("What is my name?", state=FACTS, response_format={"type": "json_object"})) == {
        "answer": "Your name is Alex."
    }
    schema = {
        "type": "object",
        "properties": {"text": {"type": "string"}, "sure": {"type": "boolean"}, "tags": {"type": "array", "items": {"type": "string"}}},
        "required": ["text", "sure", "tags"],
        "additionalProperties": False,
    }
    wanted = {"type": "json_schema", "json_schema": {"name": "reply", "strict": True, "schema": schema}}
    assert json.loads(await said("What is my name?", state=FACTS, response_format=wanted)) == {
        "text": "Your name is Alex.",
        "sure": False,
        "tags": [],
    }
    named = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}, "required": ["name", "age"]}
    wanted = {"type": "json_schema", "json_schema": {"name": "person", "schema": named}}
    assert json.loads(await said("What is my name?", state=FACTS, response_format=wanted)) == {"name": "Alex", "age": 0}
    assert await said("What is my name?", state=FACTS, response_format={"type": "text"}) == "Your name is Alex."


async def test_a_schema_without_end_ends() -> None:
    """A schema that refers to itself is followed only so far."""
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}, "required": ["next"]}
    schema = {"$ref": "#/$defs/node", "$defs": {"node": node, "loop": {"$ref": "#/$defs/loop"}}}
    wanted = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
    assert json.loads(await said("hm", response_format=wanted))["next"]
    schema["$ref"] = "#/$defs/loop"
    assert json.loads(await said("hm", response_format=wanted)) == ""


@pytest.mark.parametrize(
    "schema", [{"type": "object", "properties": [1]}, {"type": "array", "minItems": "many"}, {"type": "integer", "minimum": "x"}]
)
async def test_a_broken_schema_is_rejected(schema: Json) -> None:
    """A schema that is none is the client's mistake, told as the port wants it."""
    with pytest.raises(errors.ModelRejected):
        await said("hm", response_format={"type": "json_schema", "json_schema": {"name": "n", "schema": schema}})


# ---------------------------------------------------------------- the wire


async def test_it_is_a_model() -> None:
    """It fills the port, and says of itself what it is."""
    model: base.Model = BuiltinModel(clock=lambda: 1_700_000_000.9)
    (offered,) = await model.models()
    assert {k: offered[k] for k in ("id", "object", "created", "owned_by")} == {
        "id": "mnemon", "object": "model", "created": 1_700_000_000, "owned_by": "mnemon",
    }  # fmt: skip
    assert "extractive" in offered["description"]
    assert "not a language model" in offered["description"]
    await model.close()


async def test_a_completion_has_openais_shape() -> None:
    """Every field of a chat completion is there, with the request's own model name."""
    reply = await BuiltinModel(clock=lambda: 1_700_000_000.9).complete(
        asked("What is my name?", state=["My name is Alex."]) | {"model": "hermes"}
    )
    assert re.fullmatch(r"chatcmpl-\w+", reply.pop("id"))
    usage = reply.pop("usage")
    assert reply == {
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "hermes",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Your name is Alex.", "refusal": None},
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
    }
    assert usage["completion_tokens"] == 4
    assert usage["total_tokens"] == usage["prompt_tokens"] + 4
    assert usage["prompt_tokens"] > 10


async def chunks(request: Json) -> list[Json]:
    """All chunks of a streamed reply."""
    return [chunk async for chunk in BuiltinModel().stream(request)]


@pytest.mark.parametrize(
    "request_",
    [
        asked("What is my name?", state=FACTS),
        asked("What decisions have we made?", state=FACTS + NOISE),
        asked("What is the meaning of life?"),
        asked("どこに住んでいますか？", state=["私は大阪に住んでいます。"]),
        asked("What is my name?", state=FACTS, response_format={"type": "json_object"}),
        asked("What decisions have we made?", state=FACTS, max_tokens=7),
    ],
    ids=["short", "list", "unknown", "unspaced", "json", "cut"],
)
async def test_streamed_words_are_the_whole_answer(request_: Json) -> None:
    """The pieces of a stream are words with their blanks, and joined they are the text of the completion."""
    whole = await choice(request_)
    streamed = await chunks(request_)
    deltas = [c["choices"][0]["delta"] for c in streamed]
    assert deltas[0] == {"role": "assistant", "content": ""}
    assert deltas[-1] == {}
    words = [d["content"] for d in deltas[1:-1]]
    assert "".join(words) == whole["message"]["content"]
    assert all(len(w.split()) == 1 for w in words)
    assert [c["choices"][0]["finish_reason"] for c in streamed] == [None] * (len(streamed) - 1) + [whole["finish_reason"]]
    assert len({c["id"] for c in streamed}) == 1
    assert {c["object"] for c in streamed} == {"chat.completion.chunk"}


async def test_usage_is_streamed_on_request() -> None:
    """The last chunk carries the usage, without choices, if the client asked for it."""
    request = asked("What is my name?", state=FACTS)
    assert all("usage" not in c for c in await chunks(request))
    *rest, last = await chunks(request | {"stream_options": {"include_usage": True}})
    assert last["choices"] == []
    assert last["usage"] == (await BuiltinModel().complete(request))["usage"]
    assert all(c["usage"] is None and c["choices"] for c in rest)


async def test_streamed_tool_calls() -> None:
    """Calls are streamed as OpenAI does it: name and id first, then the arguments in pieces."""
    request = asked('call get_weather with {"city": "New York"} and call add with a=1 and b=2', tools=[CITY_TOOL, SUM_TOOL])
    streamed = await chunks(request)
    assert streamed[0]["choices"][0]["delta"] == {"role": "assistant", "content": None}
    assert streamed[-1]["choices"][0]["finish_reason"] == "tool_calls"
    built: dict[int, Json] = {}
    for chunk in streamed[1:-1]:
        (part,) = chunk["choices"][0]["delta"]["tool_calls"]
        if "id" in part:
            assert part["type"] == "function"
            built[part["index"]] = {"id": part["id"], "name": part["function"]["name"], "arguments": ""}
        built[part["index"]]["arguments"] += part["function"]["arguments"]
    assert [(c["name"], json.loads(c["arguments"])) for c in built.values()] == [
        ("get_weather", {"city": "New York"}),
        ("add", {"a": 1, "b": 2}),
    ]
    assert len({c["id"] for c in built.values()}) == 2


async def test_stop_and_limits_cut() -> None:
    """A stop sequence ends the text before it; a limit ends it after so many words, and says so."""
    assert (await choice(asked("What is my name?", state=FACTS, stop=" is")))["message"]["content"] == "Your name"
    made = await choice(asked("What is my name?", state=FACTS, stop=["zzz", "Alex", ""]))
    assert (made["message"]["content"], made["finish_reason"]) == ("Your name is ", "stop")
    for limit in ("max_tokens", "max_completion_tokens"):
        made = await choice(asked("What is my name?", state=FACTS) | {limit: 2})
        assert (made["message"]["content"], made["finish_reason"]) == ("Your name", "length")
    assert (await choice(asked("What is my name?", state=FACTS, max_tokens=4)))["finish_reason"] == "stop"


async def test_the_same_request_gets_the_same_text() -> None:
    """Nothing about the text is left to chance."""
    request = asked("What decisions have we made?", state=FACTS + NOISE, recall=FACTS[::-1])
    assert len({(await choice(request))["message"]["content"] for _ in range(5)}) == 1


# ---------------------------------------------------------------- size


def long_request(characters: int) -> Json:
    """A conversation of a given size, half of it in notes, with one fact at its beginning."""
    filler = [f"{text} Then {i} people talked about item {i * 7}, and nothing came of it." for i in range(50) for text in NOISE]
    kept = filler[: characters // 90]
    half = len(kept) // 2
    return asked("What tech stack are we using again?", state=[FACTS[0], *kept[:half]], live=tuple(kept[half:]))


async def test_a_full_context_is_answered_at_once() -> None:
    """Sixteen thousand tokens of context cost a fraction of a second, and the fact in them is found.

    The bound is generous, for busy machines: on a quiet one it takes 15 ms.
    """
    request = long_request(64_000)
    started = time.process_time()
    assert "Rust" in (await choice(request))["message"]["content"]
    assert time.process_time() - started < 0.3


@pytest.mark.parametrize(
    "words",
    [
        "." * 200_000, "! " * 200_000, " " * 300_000 + "?", "a" * 500_000 + "?", "私" * 200_000 + "？", "“" * 100_000, "```" * 50_000,
        "I " * 100_000, "know me " * 50_000 + "?", "what model " * 30_000, "a@a" * 100_000 + " contact?",
        "<mnemon-a" * 30_000, '<mnemon-a "' * 30_000, "<mnemon-a></mnemon-a>" * 10_000,
        "call get_weather " + "of " * 100_000 + "\nx", "call get_weather " + '{"a":' * 50_000,
    ],
    ids=range(16),
)  # fmt: skip
async def test_no_text_makes_it_slow(words: str) -> None:
    """Text made to be hard costs time in proportion to its length, not to its square."""
    started = time.process_time()
    await choice(asked(words, state=FACTS, live=(words, words), tools=[CITY_TOOL]))
    assert time.process_time() - started < 5
