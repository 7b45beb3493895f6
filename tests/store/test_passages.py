"""What was said is found again by its words: in its own scope, in any script, and never anywhere else."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from mnemon.core.records import Identity, Message
from mnemon.memory import fulltext
from mnemon.memory.base import Learned, Query
from mnemon.memory.fulltext import FullText
from mnemon.memory.index import Indexes
from mnemon.store.passages import Passages
from mnemon.store.sessions import NewSession
from tests.store.steps import LEARNING, Store, Talk, assistant, opened, user

NASTY = [
    "scope : 1",
    "scope:1 AND words:secret",
    '"scope" : "1" OR tenant : *',
    "secret* NEAR(secret, 5) secret^2",
    "secret:* & !secret | (secret <-> secret)",
    "'/1' & 'secret'",
    "'; DROP TABLE passages; -- secret",
    'secret "unbalanced quote',
    "secret ' and \\ and %s and :scope and $1 and {x}",
    "{secret} [secret] (secret ))(( -secret +secret ~secret",
    "secret\x00secret",
    "/2 /3 secret /1",
    "SELECT * FROM messages WHERE secret = 1",
    "tenant-1 tenant-2 1 2 3 secret",
]


async def say(store: Store, *texts: str, session: str = "s", key: str | None = None) -> None:
    """Messages of a session, which begins with the first."""

    def work(talk: Talk) -> None:
        if talk.sessions.lineage_of(session) is None:
            talk.begin(session, session_key=key)
        talk.say(session, *texts)

    await store.write(work)


# -- finding --------------------------------------------------------------------------------------------------------------


async def test_found_by_any_of_its_words(store: Store) -> None:
    """A message is found by one of its words, in another form too, with its source; what shares no word is not found."""
    await say(store, "We are building a distributed cache in Rust.", "The office dog sleeps.")
    assert await store.found("s", "which caches do you know?") == ["We are building a distributed cache in Rust."]
    assert await store.found("s", "DOGS") == ["The office dog sleeps."]
    assert await store.found("s", "elephants") == []
    assert await store.found("s", "what is it about?") == [], "stopwords are no words"
    lineage = await store.read(lambda talk: talk.lineage("s"))
    (found,) = await store.recall(lineage.scope, "dog")
    assert (found.role, found.session_id, found.position, found.at, found.start) == ("user", "s", 2, 1.0, 0)
    assert found.score > 0


async def test_the_best_comes_first(store: Store) -> None:
    """More of the words, and rarer ones, rank higher; the scores say so; and no more is given than may be shown."""
    await say(store, "The zebra.", "The zebra and the okapi.", *(f"A giraffe, number {n}." for n in range(30)))
    assert (await store.found("s", "zebra okapi giraffe"))[:2] == ["The zebra and the okapi.", "The zebra."]
    assert len(await store.found("s", "giraffe")) >= 30
    scope = (await store.read(lambda t: t.lineage("s"))).scope
    scores = [r.score for r in await store.recall(scope, "zebra okapi giraffe")]
    assert scores == sorted(scores, reverse=True)
    thrifty = replace(store, memory=FullText(store.driver, recall_tokens=40))
    assert 0 < len(await thrifty.recall(scope, "giraffe")) < 15


async def test_everybody_in_a_transcript_is_remembered(store: Store) -> None:
    """What the model said and what a tool found is found like what the user said."""

    def work(talk: Talk) -> None:
        talk.begin("s")
        talk.say("s", "zebra?", assistant("A zebra.", "c1"), {"role": "tool", "tool_call_id": "c1", "content": "zebra, says the tool"})

    await store.write(work)
    assert sorted(await store.found("s", "zebra")) == ["A zebra.", "zebra, says the tool", "zebra?"]


async def test_the_middle_of_a_long_message(store: Store) -> None:
    """A fact in the midst of thirty thousand characters is found, and shown with its surroundings only."""
    filler = ["It rained again, and the river rose a little, as rivers do." for _ in range(500)]
    text = " ".join([*filler[:250], "The pass phrase is xyzzy.", *filler[250:]])
    await say(store, text)
    lineage = await store.read(lambda talk: talk.lineage("s"))
    found = (await store.recall(lineage.scope, "xyzzy"))[0]
    assert "The pass phrase is xyzzy." in found.text
    assert len(found.text) <= fulltext.PASSAGE
    assert text[found.start : found.start + len(found.text)] == found.text
    assert found.tokens is None


async def test_parts_are_searched_as_text(store: Store) -> None:
    """The text parts of a message with images are found."""
    parts = [{"type": "text", "text": "This is a quagga."}, {"type": "image_url", "image_url": {"url": "https://e/zebra.png"}}]
    await store.write(lambda talk: (talk.begin("s"), talk.say("s", user(parts))))
    assert await store.found("s", "quagga") == ["This is a quagga."]
    assert await store.found("s", "zebra") == []


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("我们正在用Rust构建分布式缓存。", "缓存怎么样了？"),
        ("我们正在用Rust构建分布式缓存。", "rust"),
        ("昨日は東京で会議がありました", "東京の会議"),
        ("우리는 데이터베이스를 씁니다", "데이터베이스"),
        ("Мы используем базу данных", "базу"),
        ("نستخدم قاعدة البيانات", "البيانات"),
        ("हम कैश बना रहे हैं", "कैश"),
        ("Der Schlüssel heißt Straßenfest", "STRASSENFEST"),
        ("İstanbul'da buluşalım", "istanbul"),
        ("call user_id_of(42) first", "user_id_of"),
        ("set MNEMON_CONTEXT_BUDGET=16384", "mnemon_context_budget"),
        ("CACHE-1234 is done", "what about CACHE-1234?"),
        ("commit 3f2a9c1e fixed it", "3f2a9c1e"),
        ("𝓕𝓪𝓷𝓬𝔂 letters", "fancy"),
        ("emoji 👩‍👩‍👧 family", "family"),
    ],
)
async def test_in_any_script(store: Store, said: str, asked: str) -> None:
    """Scripts without spaces, with accents and cases of their own, and identifiers are found by what people would type."""
    await say(store, said, "something else entirely")
    assert await store.found("s", asked) == [said]


@pytest.mark.parametrize(
    "odd",
    [
        "x" * 1000,
        "x" * 1000 + " zebra",
        "zebra \x00 \x00nul",
        "ﷺ" * 64 + " zebra",
        "zebra " + "é" * 3000,
        "zebra \u2028 \ufeff \U0010ffff",
        "zebra" * 300,
    ],
)
async def test_odd_texts_are_stored_and_found(store: Store, odd: str) -> None:
    """Endless words, NUL and exotic characters do no harm: the message is stored whole, and what is a word in it is found."""
    await say(store, odd)
    assert await store.read(lambda talk: talk.path("s")) == [odd]
    assert bool(await store.found("s", "zebra")) is ("zebra " in odd or " zebra" in odd)
    assert isinstance(await store.found("s", odd), list)


# -- not finding ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("nasty", NASTY)
async def test_no_text_is_a_query_language(store: Store, nasty: str) -> None:
    """Whatever a user says or asks is words and nothing else: it finds what is its own and never what is another's."""
    other = store.other()
    await say(other, "the secret of the other tenant")
    await say(store, "a secret under a key", session="keyed", key="k")
    await say(store, "nothing to see", nasty)
    assert await store.found("s", nasty) == [nasty.strip()]
    assert [t for t in await other.found("s", nasty) if "other tenant" not in t] == []
    assert [t for t in await store.found("keyed", nasty) if t != "a secret under a key"] == []


async def test_scopes_do_not_touch(store: Store) -> None:
    """Neither another session, nor another key, nor another tenant is searched, whatever the number of the scope that is named."""
    other = store.other()
    await say(store, "secret of the session")
    await say(store, "secret of the key", session="k1", key="one")
    await say(store, "secret of the other key", session="k2", key="two")
    await say(other, "secret of the tenant")
    assert await store.found("s", "secret") == ["secret of the session"]
    assert await store.found("k1", "secret") == ["secret of the key"]
    assert await other.found("s", "secret") == ["secret of the tenant"]
    theirs = await other.read(lambda talk: talk.lineage("s"))
    assert await store.recall(theirs.scope, "secret") == []
    assert await Store(store.driver, store.tenant, FullText(store.driver)).recall(theirs.scope, "secret") == []
    assert await store.read(lambda talk: talk.passages(theirs.scope)) == 0
    numbers = dict.fromkeys(range(1, 50), 1.0)
    assert await store.read(lambda talk: Passages(talk.tx, talk.tenant, theirs.scope).texts(numbers)) == {}


async def test_a_scope_does_not_depend_on_its_neighbours(store: Store) -> None:
    """What is found, and in which order, is the same whether other tenants say much, little or nothing."""
    texts = [f"report {n} about the zebra" if n % 50 == 0 else f"report {n} about the weather" for n in range(300)]
    store.memory.engine.ready()
    await store.write(lambda talk: talk.begin("s"))
    await turn(store, "s", *texts)
    before = [(r.text, r.score) for r in await store.recall((await store.read(lambda t: t.lineage("s"))).scope, "zebra report")]
    for number in range(3):
        await say(store.other(), *(f"zebra zebra report {n}" for n in range(200 + number)))
    fresh = replace(store, memory=FullText(store.driver))
    for again in (store, fresh):
        assert [(r.text, r.score) for r in await again.recall((await store.read(lambda t: t.lineage("s"))).scope, "zebra report")] == before


async def test_what_is_in_the_prompt_is_not_recalled(store: Store) -> None:
    """The live tail of a session is left out, its compressed part is not; other sessions of the key are not the tail."""
    await say(store, "early zebra", "late zebra", session="one", key="k")
    await say(store, "zebra elsewhere", session="two", key="k")
    assert sorted(await store.found("one", "zebra", live=0)) == ["zebra elsewhere"]
    assert sorted(await store.found("one", "zebra", live=1)) == ["early zebra", "zebra elsewhere"]
    assert sorted(await store.found("two", "zebra", live=0)) == ["early zebra", "late zebra"]


async def test_old_branches_are_not_recalled(store: Store) -> None:
    """What was edited away is readable but not recalled, in an index that had seen it before the edit too."""
    await say(store, "the zebra stays", "the zebra goes")
    assert len(await store.found("s", "zebra")) == 2

    def edit(talk: Talk) -> None:
        talk.branch("s", start=2)
        talk.say("s", "the zebra instead")

    await store.write(edit)
    for memory in (store.memory, FullText(store.driver)):
        assert sorted(await replace(store, memory=memory).found("s", "zebra")) == ["the zebra instead", "the zebra stays"]


# -- the index and the database -----------------------------------------------------------------------------------------------


async def commit(store: Store, session: str, *texts: str) -> None:
    """Say something and tell the memory that it is durable, as a turn does."""

    def work(talk: Talk) -> tuple[Learned, int]:
        lineage = talk.lineage(session)
        before = lineage.scope_size
        positions = talk.say(session, *texts)
        plans = list(zip(positions, LEARNING.prepare([Message(user(t)) for t in texts], [()] * len(texts)), strict=True))
        return Learned(tenant=talk.tenant, scope=lineage.scope, lineage=lineage.id, plans=plans), before

    store.memory.committed(*await store.write(work))


async def ask(store: Store, session: str, text: str) -> list[tuple[str, float]]:
    """What a turn that begins now recalls."""
    lineage = await store.read(lambda talk: talk.lineage(session))
    query = Query(
        tenant=store.tenant,
        scope=lineage.scope,
        size=lineage.scope_size,
        changes=lineage.scope_changes,
        lineage=0,
        live=0,
        text=text,
        identity=Identity(),
    )
    return [(r.text, r.score) for r in await store.memory.recall(query)]


async def test_an_index_that_grew_equals_one_that_was_read(store: Store, shared_url: str) -> None:
    """A server that saw every turn, one that saw some, and one that was just started find the same, with the same scores."""
    chance = random.Random(7)
    animals = ["zebra", "okapi", "giraffe", "quagga"]
    async with opened(shared_url) as neighbour:
        there = Store(neighbour, store.tenant, FullText(neighbour))
        await store.write(lambda talk: [talk.begin(name, session_key="k") for name in ("one", "two")])
        for number in range(40):
            where = chance.choice([store, store, there])
            await commit(
                where, chance.choice(["one", "two"]), *(f"{chance.choice(animals)} {number}.{n}" for n in range(chance.randrange(3)))
            )
            if chance.random() < 0.3:
                await ask(chance.choice([store, there]), "one", "zebra")
        fresh = replace(store, memory=FullText(store.driver))
        for animal in animals:
            found = await ask(fresh, "one", animal)
            assert found
            assert await ask(store, "two", animal) == found
            assert await ask(there, "one", animal) == found


async def test_the_next_turn_sees_it_everywhere(store: Store, shared_url: str) -> None:
    """What a commit added is found by the next turn, here and on another server."""
    async with opened(shared_url) as neighbour:
        there = Store(neighbour, store.tenant, FullText(neighbour))
        await store.write(lambda talk: talk.begin("s"))
        for number in range(5):
            await commit((store, there)[number % 2], "s", f"zebra number {number}")
            for where in (store, there):
                assert len(await ask(where, "s", "zebra")) == number + 1


async def test_a_large_scope(store: Store) -> None:
    """In thousands of messages, read in several goes, a rare word is found at once, and a common one gives the newest."""
    await store.write(lambda talk: talk.begin("s"))
    for part in range(3):
        await commit(store, "s", *(f"report {part * 900 + n} on the weather" for n in range(900)))
    await commit(store, "s", "the zebra is called Marty")
    await commit(store, "s", *(f"more on the weather, number {n}" for n in range(50)))
    for memory in (store.memory, FullText(store.driver)):
        where = replace(store, memory=memory)
        assert (await ask(where, "s", "what is the zebra in the weather report called?"))[0][0] == "the zebra is called Marty"
        assert 30 < len(await ask(where, "s", "weather")) < 1000
        assert (await ask(where, "s", "report 1234"))[0][0] == "report 1234 on the weather"


async def test_scopes_make_room_for_each_other(store: Store) -> None:
    """A memory that holds only a few passages at a time still finds everything, in turn."""
    store.memory.engine.ready()
    indexes = store.memory.engine.indexes = Indexes(most_passages=10)
    for session in ("a", "b", "c"):
        await store.write(lambda talk, session=session: talk.begin(session))  # type: ignore[misc]
        await commit(store, session, *(f"zebra {session} {n}" for n in range(6)))
    for _ in range(2):
        for session in ("a", "b", "c"):
            found = await ask(store, session, "zebra")
            assert sorted(t for t, _ in found) == [f"zebra {session} {n}" for n in range(6)]
    assert sum(map(len, indexes.indexes.values())) <= 16


async def test_numbers_leave_no_gap_that_fills_later(store: Store, shared_url: str) -> None:
    """Whoever has read up to a number has read all below it, though two servers write to the scope at once."""
    async with opened(shared_url) as neighbour:
        there = Store(neighbour, store.tenant, store.memory)
        await store.write(lambda talk: [talk.begin(name, session_key="k") for name in ("one", "two")])
        for _ in range(10):
            await say(store, "zebra one", session="one")
            await say(there, "zebra two", "zebra three", session="two")
        scope = (await store.read(lambda talk: talk.lineage("one"))).scope
        entries = await store.read(lambda talk: Passages(talk.tx, talk.tenant, scope).since(0, limit=100))
        assert [e.number for e in entries] == list(range(1, 31))
        assert await store.read(lambda talk: talk.lineage("two").scope_size) == 30


# -- vectors ----------------------------------------------------------------------------------------------------------------


async def vectors_of(store: Store, session: str) -> list[int]:
    """The length of each passage's vector in the database, 0 for none."""

    def work(talk: Talk) -> list[int]:
        return [len(e.vector or b"") for e in Passages(talk.tx, talk.tenant, talk.lineage(session).scope).since(0, limit=100)]

    return await store.read(work)


async def turn(store: Store, session: str, *texts: str) -> None:
    """What a server does at a commit, with the memory of the store."""

    def work(talk: Talk) -> tuple[Learned, int]:
        lineage = talk.lineage(session)
        plans = list(zip(talk.append(session, *texts), plan, strict=True))
        learned = Learned(tenant=talk.tenant, scope=lineage.scope, lineage=lineage.id, plans=plans)
        return learned, store.memory.learn(talk.tx, learned)

    plan = store.memory.prepare([Message(user(t)) for t in texts], [()] * len(texts))
    store.memory.committed(*await store.write(work))


async def test_found_by_what_it_means(store: Store) -> None:
    """A message is found that shares no word with the question; it is stored with its vector, so that a new server finds it too."""
    store.memory.engine.ready()
    await store.write(lambda talk: talk.begin("s"))
    minutes = [f"Minutes {n}: the budget of department {n} was moved to next year." for n in range(40)]
    await turn(store, "s", *minutes[:20], "My kitten sleeps on the sofa all day long.", *minutes[20:])
    assert await vectors_of(store, "s") == [128] * 41
    for memory in (store.memory, FullText(store.driver)):
        found = await ask(replace(store, memory=memory), "s", "Where does the cat like to nap?")
        assert found[0][0] == "My kitten sleeps on the sofa all day long."
    off = replace(store, memory=FullText(store.driver, embeddings=False))
    assert await ask(off, "s", "Where does the cat like to nap?") == []
    assert (await ask(off, "s", "kitten"))[0][0] == "My kitten sleeps on the sofa all day long."


async def test_without_embeddings_no_vector_is_stored(store: Store) -> None:
    """With embeddings off everything is found by its words, and nothing else is worked out."""
    off = replace(store, memory=FullText(store.driver, embeddings=False))
    off.memory.engine.ready()
    await off.write(lambda talk: talk.begin("s"))
    await turn(off, "s", "the zebra", "昨日は東京で会議がありました")
    assert await vectors_of(off, "s") == [0, 0]
    assert await off.found("s", "東京の会議") == ["昨日は東京で会議がありました"]
    assert off.memory.engine.encoder is None


async def test_passages_without_a_vector_get_one(store: Store) -> None:
    """What was stored before there were vectors is embedded when its scope is used, and stored with the scope's next turn."""
    await say(store, "the zebra is striped", "the weather is fine")
    assert await vectors_of(store, "s") == [0, 0]
    assert (await ask(store, "s", "zebra"))[0][0] == "the zebra is striped"
    assert await vectors_of(store, "s") == [0, 0], "reading writes nothing"
    await turn(store, "s", "one more")
    assert await vectors_of(store, "s") == [128] * 3
    assert not store.memory.engine.indexes.get((await store.read(lambda t: t.lineage("s"))).scope).unsaved  # type: ignore[union-attr]


async def test_copies_keep_their_vectors(store: Store) -> None:
    """A fork, and a session that binds to a key, take the vectors along."""
    store.memory.engine.ready()
    await store.write(lambda talk: talk.begin("s"))
    await turn(store, "s", "the zebra", "the okapi")
    await store.write(lambda talk: talk.sessions.fork(talk.lineage("s"), NewSession(id="copy", source="api"), at=2.0))
    assert await vectors_of(store, "copy") == [128, 128]
    await store.write(lambda talk: talk.sessions.bind(talk.lineage("s"), "k"))
    assert await vectors_of(store, "s") == [128, 128]
