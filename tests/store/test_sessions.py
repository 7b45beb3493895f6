"""Sessions, lineages, keys and channels: what belongs together is found together, and goes together."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mnemon.core import errors
from mnemon.core.records import Idempotency, Identity
from mnemon.memory.fulltext import FullText
from mnemon.store.base import Driver
from mnemon.store.frames import Frames
from mnemon.store.idempotency import Record, Records
from mnemon.store.receipts import Receipts
from mnemon.store.sessions import NewSession, Sessions, Usage
from mnemon.store.works import Said, Works
from tests.store.steps import Store, Talk, assistant, note, opened

ALIKE = [
    "a:b",
    "a-b",
    "a/b",
    "a b",
    "A:b",
    "a:b ",
    "a_b",
    "agent:主:私聊",
    "agent:主:私話",
    "é",
    "e\u0301",
    "%C3%A9",
    "ß",
    "ss",
    "'",
    "\\",
    "1",
    "01",
]

TABLES = (
    "lineages",
    "sessions",
    "channels",
    "messages",
    "branches",
    "compactions",
    "passages",
    "idempotency",
    "works",
    "frames",
    "receipts",
)


# -- beginnings ---------------------------------------------------------------------------------------------------------


async def test_a_session_is_as_it_was_begun(store: Store) -> None:
    """Everything said of a session when it begins is read back from it."""
    who = Identity(user_id="42", user_name="Zoë", chat_id="c", chat_name="n", chat_type="dm", thread_id="t")

    def work(talk: Talk) -> Any:
        made = talk.begin("s", source="cli", title="Tee ☕", model="m", system_prompt="Be brief.", session_key="k", identity=who, at=7.5)
        return made, talk.lineage("s"), dict(talk.sessions.get("s"))

    made, found, row = await store.write(work)
    assert made == found
    assert (found.root, found.tip, found.parent, found.session_key, found.system_prompt) == ("s", "s", None, "k", "Be brief.")
    assert (found.next_position, found.compacted_to, found.chain, found.branches, found.state) == (1, 0, b"", 0, ())
    assert {n: row[n] for n in who.where()} == who.where()
    assert (row["source"], row["title"], row["model"], row["started_at"], row["session_key"]) == ("cli", "Tee ☕", "m", 7.5, "k")
    assert row["has_system_prompt"]
    assert row["ended_at"] is None


async def test_an_id_is_taken_once(store: Store) -> None:
    """A second session of the same id is refused, and the first stays as it is; an id within a compressed lineage is taken too."""

    def first(talk: Talk) -> None:
        talk.begin("s", title="first")
        talk.say("s", "hello")
        talk.compress("s", "child", upto=1)

    await store.write(first)
    for taken in ("s", "child"):
        with pytest.raises(errors.Conflict) as caught:
            await store.write(lambda talk, taken=taken: talk.begin(taken, title="second"))  # type: ignore[misc]
        assert caught.value.code == "session_exists"
    assert (await store.read(lambda talk: talk.sessions.get("s")))["title"] == "first"


async def test_an_id_is_a_name_within_its_tenant(store: Store) -> None:
    """Another tenant's equal id is another session, and cannot be seen, renamed, deleted or continued from here."""
    other = store.other()
    await store.write(lambda talk: [talk.begin("same", title="mine"), talk.say("same", "mine alone")])
    await store.write(lambda talk: talk.begin("only-mine"))
    await other.write(lambda talk: talk.begin("same", title="theirs"))
    assert await other.read(lambda talk: talk.path("same")) == []
    assert await other.read(lambda talk: talk.sessions.lineage_of("only-mine")) is None
    with pytest.raises(errors.NotFound):
        await other.read(lambda talk: talk.sessions.get("only-mine"))
    with pytest.raises(errors.NotFound):
        await other.write(lambda talk: talk.sessions.delete("only-mine"))
    await other.write(lambda talk: talk.sessions.rename("only-mine", "stolen"))
    await other.write(lambda talk: talk.sessions.delete("same"))
    assert await store.read(lambda talk: (talk.sessions.get("same")["title"], talk.sessions.get("only-mine")["title"])) == ("mine", None)
    assert await store.read(lambda talk: talk.path("same")) == ["mine alone"]


async def test_a_missing_session_is_told(store: Store) -> None:
    """A session that is not there gives a clear error with its code, and no lineage."""
    with pytest.raises(errors.NotFound, match="there is no session 'nobody'") as caught:
        await store.read(lambda talk: talk.sessions.get("nobody"))
    assert (caught.value.code, caught.value.param) == ("session_not_found", "session_id")
    assert await store.read(lambda talk: talk.sessions.lineage_of("nobody")) is None


async def test_who_and_where_are_kept_until_said_anew(store: Store) -> None:
    """A later request adds what it knows of the user and the place; what it leaves out stays."""

    def work(talk: Talk) -> Any:
        talk.begin("s", identity=Identity(user_id="1", chat_name="old"))
        talk.sessions.identify("s", Identity(chat_name="new", thread_id="9"))
        talk.sessions.identify("s", Identity())
        return talk.sessions.get("s")

    row = await store.write(work)
    assert (row["user_id"], row["chat_name"], row["thread_id"], row["user_name"]) == ("1", "new", "9", None)


async def test_counters_add_up(store: Store) -> None:
    """Usage adds up over the turns; the model is the latest, the preview the first."""

    def work(talk: Talk) -> Any:
        talk.begin("s")
        one = Usage(messages=2, tool_calls=1, input_tokens=10, output_tokens=5, cache_read_tokens=3, reasoning_tokens=2, calls=1)
        talk.sessions.count("s", one)
        talk.sessions.count("s", Usage(messages=3, input_tokens=1, model="a", preview="first words"))
        talk.sessions.count("s", Usage(model="b", preview="later words"))
        talk.sessions.count("s", Usage())
        return talk.sessions.get("s")

    row = await store.write(work)
    counted = [
        row[n] for n in ("message_count", "tool_call_count", "input_tokens", "output_tokens", "cache_read_tokens", "reasoning_tokens")
    ]
    assert counted == [5, 1, 11, 5, 3, 2]
    assert (row["api_call_count"], row["model"], row["preview"]) == (1, "b", "first words")


# -- lineages -----------------------------------------------------------------------------------------------------------


async def test_the_tip_is_found_from_any_id(store: Store) -> None:
    """The oldest, the middle and the newest session of a compressed lineage lead to the same tip and the same transcript."""

    def work(talk: Talk) -> Any:
        talk.begin("root", session_key="k", system_prompt="p")
        talk.say("root", "one", assistant("1"), "two", assistant("2"))
        talk.compress("root", "middle", upto=2, at=5.0)
        talk.say("root", "three", assistant("3"))
        talk.compress("middle", "newest", upto=4, at=6.0)
        talk.say("middle", "four")
        found = [talk.lineage(name) for name in ("root", "middle", "newest")]
        rows = [talk.sessions.get(name) for name in ("root", "middle", "newest")]
        return found, rows, [talk.path(name) for name in ("root", "middle", "newest")]

    found, rows, paths = await store.write(work)
    assert found[0] == found[1] == found[2]
    assert (found[0].root, found[0].tip, found[0].parent) == ("root", "newest", "middle")
    assert (found[0].compacted_to, found[0].state) == (4, (note(4, "state up to 4"),))
    assert [r["end_reason"] for r in rows] == ["compression", "compression", None]
    assert [r["ended_at"] for r in rows] == [5.0, 6.0, None]
    assert [r["parent_id"] for r in rows] == [None, "root", "middle"]
    assert {r["session_key"] for r in rows} == {"k"}
    assert paths == [["one", "1", "two", "2", "three", "3", "four"]] * 3


async def test_messages_know_their_session(store: Store) -> None:
    """Each message keeps the id of the session it was said in."""

    def work(talk: Talk) -> list[str]:
        talk.begin("root")
        talk.say("root", "one", "two")
        talk.compress("root", "child", upto=1)
        talk.say("root", "three")
        return [m.session_id for m in talk.messages("root").live(after=0)]

    assert await store.write(work) == ["root", "root", "child"]


# -- keys and channels --------------------------------------------------------------------------------------------------


async def test_keys_that_look_alike_are_different(store: Store) -> None:
    """No two keys share a scope or a transcript, however alike they look."""

    def begin(talk: Talk) -> None:
        for number, key in enumerate(ALIKE):
            talk.begin(f"s{number}", session_key=key)
            talk.say(f"s{number}", f"the secret of number{number}")

    def look(talk: Talk) -> Any:
        scopes = [talk.sessions.existing_scope(key) for key in ALIKE]
        current = [talk.sessions.current_of(key) for key in ALIKE]
        listed = [[r["id"] for r in talk.sessions.listing(limit=9, offset=0, session_key=key)] for key in ALIKE]
        return scopes, current, listed

    await store.write(begin)
    scopes, current, listed = await store.read(look)
    assert len(set(scopes)) == len(ALIKE)
    assert current == [f"s{n}" for n in range(len(ALIKE))]
    for number in range(len(ALIKE)):
        assert await store.found(f"s{number}", "secret") == [f"the secret of number{number}"]
    assert listed == [[f"s{n}"] for n in range(len(ALIKE))]


async def test_a_key_is_not_a_session_name(store: Store) -> None:
    """A key and a session of the same name are two scopes, and so are the equal keys of two tenants."""
    other = store.other()

    def work(talk: Talk) -> tuple[int, int]:
        return talk.begin("x").scope, talk.begin("y", session_key="x").scope

    ours, theirs = await store.write(work), await other.write(work)
    assert len({*ours, *theirs}) == 4


async def test_an_unused_key_has_no_scope_and_no_transcript(store: Store) -> None:
    """Looking for a key does not make it."""
    assert await store.read(lambda talk: (talk.sessions.existing_scope("k"), talk.sessions.current_of("k"))) == (None, None)


async def test_sessions_of_a_key_share_its_scope(store: Store) -> None:
    """Two transcripts under one key are one memory; a session without a key is alone in its own."""

    def work(talk: Talk) -> Any:
        one, two, alone = talk.begin("one", session_key="k"), talk.begin("two", session_key="k"), talk.begin("alone")
        shared = [found.shared for each in (one, two, alone) if (found := talk.sessions.lineage_of(each.root))]
        return (one.scope, 0, 0, 0, 0) == (two.scope, 0, 0, 0, 0) == talk.sessions.existing_scope("k"), shared

    assert await store.write(work) == (True, [True, True, False])


async def test_the_key_alone_continues_its_current_transcript(store: Store) -> None:
    """The first session of a key is its current one, later ones are not, until one is made current; its child counts as itself."""

    def work(talk: Talk) -> list[str | None]:
        talk.begin("one", session_key="k")
        seen = [talk.sessions.current_of("k")]
        two = talk.begin("two", session_key="k")
        seen.append(talk.sessions.current_of("k"))
        talk.sessions.make_current("k", two.id)
        talk.say("two", "hello")
        talk.compress("two", "child", upto=1)
        return [*seen, talk.sessions.current_of("k")]

    assert await store.write(work) == ["one", "one", "two"]


async def test_binding_moves_what_was_said(store: Store) -> None:
    """A session that began without a key takes its memories into the key's scope, old branches and earlier parts included."""

    def before(talk: Talk) -> tuple[int, int]:
        talk.begin("s")
        talk.say("s", "the zebra sleeps", assistant("a quagga wakes"), "edited away: the okapi")
        talk.branch("s", start=3)
        talk.say("s", "instead the giraffe")
        talk.compress("s", "child", upto=2)
        return talk.lineage("s").scope, talk.begin("elsewhere", session_key="k").scope

    def bind(talk: Talk) -> int:
        return talk.sessions.bind(talk.lineage("s"), "k")

    def look(talk: Talk) -> Any:
        lineage = talk.lineage("child")
        return lineage.session_key, lineage.scope

    old, new = await store.write(before)
    assert await store.write(bind) == new
    assert await store.read(look) == ("k", new)
    found = await store.found("elsewhere", "zebra quagga okapi giraffe")
    assert sorted(found) == ["a quagga wakes", "instead the giraffe", "the zebra sleeps"]
    assert await store.recall(old, "zebra giraffe") == []
    assert await store.read(lambda talk: (talk.passages(old), talk.passages(new))) == (0, 4)
    assert await store.read(lambda talk: talk.sessions.current_of("k")) == "elsewhere"


async def test_binding_to_a_new_key_makes_the_session_current(store: Store) -> None:
    """The first session bound to a key is what the key alone continues."""

    def work(talk: Talk) -> Any:
        talk.begin("s")
        talk.sessions.bind(talk.lineage("s"), "k")
        return talk.sessions.current_of("k")

    assert await store.write(work) == "s"


async def test_a_bound_session_stays_with_its_key(store: Store) -> None:
    """Nothing re-binds a lineage that has its key, not even a second attempt in the store."""

    def work(talk: Talk) -> Any:
        lineage = talk.begin("s", session_key="first")
        talk.sessions.bind(lineage, "second")
        return talk.lineage("s").session_key

    assert await store.write(work) == "first"


async def test_two_processes_make_one_scope(database_url: str) -> None:
    """Sessions that begin under a new key at the same moment in two processes end in the same scope."""
    async with opened(database_url) as one, opened(database_url) as two:

        def begin(name: str) -> Any:
            return lambda tx: Sessions(tx, "t").begin(NewSession(id=name, source="api", session_key="k"), at=1.0).scope

        drivers: list[Driver] = [one, two]
        scopes = await asyncio.gather(*(drivers[n % 2].write(begin(f"s{n}")) for n in range(20)))
        assert len(set(scopes)) == 1
        current = {await d.read(lambda tx: Sessions(tx, "t").current_of("k")) for d in drivers}
        assert len(current) == 1


# -- listing ------------------------------------------------------------------------------------------------------------


async def test_listing_is_newest_activity_first(store: Store) -> None:
    """A listing shows the latest active first, pages through all without a gap or a repeat, and knows its tenant only."""
    other = store.other()

    def work(talk: Talk) -> None:
        for number in range(7):
            talk.begin(f"s{number}", at=10.0 + number)
        talk.say("s2", "back again", at=50.0)

    await store.write(work)
    await other.write(work)
    pages = [await store.read(lambda talk, o=o: [r["id"] for r in talk.sessions.listing(limit=3, offset=o)]) for o in (0, 3, 6, 9)]  # type: ignore[misc]
    assert pages == [["s2", "s6", "s5"], ["s4", "s3", "s1"], ["s0"], []]


async def test_equal_times_are_paged_without_a_gap(store: Store) -> None:
    """Sessions of the same instant have an order too."""
    await store.write(lambda talk: [talk.begin(f"s{n}", at=1.0) for n in range(9)])
    seen = [r["id"] for o in (0, 4, 8) for r in await store.read(lambda talk, o=o: talk.sessions.listing(limit=4, offset=o))]  # type: ignore[misc]
    assert sorted(seen) == [f"s{n}" for n in range(9)]


async def test_listing_shows_a_lineage_as_its_tip(store: Store) -> None:
    """A compressed lineage is one row, its tip, with the root's name, beginning and first words; its children appear when asked for."""

    def work(talk: Talk) -> Any:
        talk.begin("root", at=1.0)
        talk.sessions.count("root", Usage(preview="first words"))
        talk.say("root", "hello", at=2.0)
        talk.compress("root", "child", upto=1, at=3.0)
        talk.compress("child", "grandchild", upto=1, at=4.0)
        return talk.sessions.listing(limit=9, offset=0), talk.sessions.listing(limit=9, offset=0, children=True)

    rows, every = await store.write(work)
    assert [(r["id"], r["root"], r["root_preview"], r["root_started_at"]) for r in rows] == [("grandchild", "root", "first words", 1.0)]
    assert [r["id"] for r in every] == ["grandchild", "child", "root"]


async def test_listing_filters(store: Store) -> None:
    """Source and key narrow a listing down, alone and together; a filter that fits nothing gives nothing."""

    def work(talk: Talk) -> list[list[str]]:
        talk.begin("a", source="cli", session_key="k", at=1.0)
        talk.begin("b", source="api", session_key="k", at=2.0)
        talk.begin("c", source="api", at=3.0)
        filters: list[dict[str, Any]] = [
            {"source": "api"},
            {"session_key": "k"},
            {"source": "cli", "session_key": "k"},
            {"session_key": "%"},
        ]
        return [[r["id"] for r in talk.sessions.listing(limit=9, offset=0, **f)] for f in filters]

    assert await store.write(work) == [["c", "b"], ["b", "a"], ["a"], []]


# -- deletion -----------------------------------------------------------------------------------------------------------


def fill(talk: Talk, name: str, *, key: str | None = None) -> None:
    """A session with a row in every table."""
    lineage = talk.begin(name, session_key=key)
    talk.say(name, f"the secret word is {name}word", assistant("noted"), "edited away")
    talk.branch(name, start=3)
    talk.say(name, f"once more {name}word", assistant("noted again"))
    talk.compress(name, f"{name}-child", upto=2)
    Receipts(talk.tx, talk.tenant).add(f"rcpt-{name}", lineage=lineage.id, body={"about": name}, at=1.0)
    records, wanted = Records(talk.tx, talk.tenant), wanted_of(talk.tenant, name)
    records.finish(wanted, Record(headers={}, body=b"reply"), lineage=lineage.id, now=1.0)
    works, said = Works(talk.tx, talk.tenant), Said(lineage=lineage.id, session_id=name, first=1, last=2, chain=b"")
    works.finish(f"run-{name}", "run", status="completed", body={"model": name}, said=said, at=1.0)
    Frames(talk.tx, talk.tenant).add(f"run-{name}", number=1, data=f"frames of {name}word".encode(), at=1.0)


def wanted_of(tenant: str, name: str) -> Idempotency:
    """The idempotency key of `fill`."""
    return Idempotency(slot=f"{tenant}/{name}".encode(), fingerprint=b"f", key=name)


async def test_deletion_takes_everything_along(driver: Driver) -> None:
    """Deleting any session of a lineage leaves no row and no word of it in any table; the neighbour keeps all of its own."""
    store = Store(driver, "t", FullText(driver))
    await store.write(lambda talk: fill(talk, "keep", key="kept"))
    before = await counts(store)
    await store.write(lambda talk: fill(talk, "gone", key="going"))
    filled = await counts(store)
    assert [table for table in TABLES if filled[table] <= before[table]] == []
    scope = await store.read(lambda talk: talk.lineage("gone").scope)
    await store.write(lambda talk: talk.sessions.delete("gone-child"))
    assert await counts(store) == before
    assert await store.recall(scope, "goneword secret") == []
    assert await store.read(lambda talk: talk.sessions.current_of("going")) is None
    assert await store.read(lambda talk: Records(talk.tx, "t").find(wanted_of("t", "gone"), now=1.0)) is None
    with pytest.raises(errors.NotFound):
        await store.read(lambda talk: Receipts(talk.tx, "t").get("rcpt-gone"))
    for name in ("gone", "gone-child"):
        assert await store.read(lambda talk, name=name: talk.sessions.lineage_of(name)) is None  # type: ignore[misc]
    assert len(await store.found("keep", "keepword")) == 2
    left = await everything(store)
    assert "goneword" not in left
    assert "keepword" in left


async def counts(store: Store) -> dict[str, int]:
    """Rows of every table."""

    def work(tx: Any) -> dict[str, int]:
        found = {}
        for table in TABLES:
            row = tx.connection.execute(f"SELECT count(*) AS n FROM {table}").fetchone()
            found[table] = int(row["n"])
        return found

    return await store.driver.read(work)


async def everything(store: Store) -> str:
    """All that is stored, in all tables."""

    def work(tx: Any) -> str:
        return "".join(
            str([tuple(dict(row).values()) for row in tx.connection.execute(f"SELECT * FROM {table}").fetchall()]) for table in TABLES
        )

    return await store.driver.read(work)


async def test_a_deleted_id_begins_anew(store: Store) -> None:
    """A new session under a deleted id knows nothing of the old one."""

    def work(talk: Talk) -> Any:
        talk.begin("s")
        talk.say("s", "the old secret")
        talk.sessions.delete("s")
        new = talk.begin("s")
        return talk.path("s"), new.next_position

    assert await store.write(work) == ([], 1)
    assert await store.found("s", "secret") == []


async def test_a_lineage_number_is_never_given_again(store: Store) -> None:
    """A turn that still holds a deleted session can write into no other one: the number it knows stays nobody's."""

    def work(talk: Talk) -> tuple[int, int]:
        old = talk.begin("old").id
        talk.sessions.delete("old")
        return old, talk.begin("new").id

    old, new = await store.write(work)
    assert old != new


async def test_deleting_what_is_not_there(store: Store) -> None:
    """Deleting an unknown session is an error, and so is deleting twice."""
    await store.write(lambda talk: talk.begin("s"))
    await store.write(lambda talk: talk.sessions.delete("s"))
    with pytest.raises(errors.NotFound):
        await store.write(lambda talk: talk.sessions.delete("s"))


# -- forks --------------------------------------------------------------------------------------------------------------


def make_fork(talk: Talk, source: str, name: str) -> None:
    """A fork under the key of its source, as the route makes one."""
    found = talk.lineage(source)
    talk.sessions.fork(found, NewSession(id=name, source="api", parent_id=source, session_key=found.session_key), at=9.0)


async def test_a_fork_holds_what_its_source_held(store: Store) -> None:
    """A fork has the messages, the compressed state and what can be found; its own session, a scope of its own, and no old branch."""

    def before(talk: Talk) -> None:
        talk.begin("s", system_prompt="p")
        talk.say("s", "the zebra sleeps", assistant("it does"), "edited away: the okapi")
        talk.branch("s", start=3)
        talk.say("s", "the giraffe eats", assistant("leaves"))
        talk.compress("s", "child", upto=2)
        make_fork(talk, "child", "fork")

    await store.write(before)

    def look(talk: Talk) -> Any:
        return talk.lineage("child"), talk.lineage("fork"), talk.messages("fork").live(after=0), talk.sessions.get("fork")

    source, fork, messages, row = await store.read(look)
    assert [m.text for m in messages] == ["the zebra sleeps", "it does", "the giraffe eats", "leaves"]
    assert {m.session_id for m in messages} == {"fork"}
    assert [m.position for m in messages] == [1, 2, 4, 5]
    assert (fork.root, fork.tip, fork.parent, fork.branches) == ("fork", "fork", "child", 0)
    assert (fork.next_position, fork.compacted_to, fork.chain, fork.state) == (
        source.next_position,
        source.compacted_to,
        source.chain,
        source.state,
    )
    assert fork.scope != source.scope
    assert row["message_count"] == 4
    assert sorted(await store.found("fork", "zebra okapi giraffe")) == ["the giraffe eats", "the zebra sleeps"]
    assert await store.read(lambda talk: talk.messages("fork").compaction_before(99)[0]) == 2


async def test_a_fork_and_its_source_go_their_own_ways(store: Store) -> None:
    """Neither side sees, finds or moves with what the other says or edits after the fork, and each finds its own tip."""

    def work(talk: Talk) -> None:
        talk.begin("s")
        talk.say("s", "common ground", assistant("yes"))
        make_fork(talk, "s", "fork")
        talk.say("s", "the zebra of the source")
        talk.say("fork", "the giraffe of the fork")
        talk.branch("fork", start=1)
        talk.say("fork", "another beginning")
        talk.compress("s", "child", upto=2)

    await store.write(work)
    assert await store.read(lambda talk: talk.path("s")) == ["common ground", "yes", "the zebra of the source"]
    assert await store.read(lambda talk: talk.path("fork")) == ["another beginning"]
    assert await store.found("s", "zebra giraffe another") == ["the zebra of the source"]
    assert await store.found("fork", "zebra giraffe another") == ["another beginning"]
    assert await store.read(lambda talk: (talk.lineage("s").tip, talk.lineage("fork").tip)) == ("child", "fork")


async def test_a_fork_stays_under_its_key(store: Store) -> None:
    """A fork of a session with a key lives in the key's scope, and the key's current transcript stays what it was."""

    def work(talk: Talk) -> Any:
        talk.begin("s", session_key="k")
        talk.say("s", "hello there")
        make_fork(talk, "s", "fork")
        return talk.lineage("fork").scope == talk.lineage("s").scope, talk.lineage("fork").session_key, talk.sessions.current_of("k")

    assert await store.write(work) == (True, "k", "s")


async def test_a_fork_survives_its_source(store: Store) -> None:
    """When the source is deleted the fork keeps its messages and memory, and has no parent any more."""

    def work(talk: Talk) -> Any:
        talk.begin("s")
        talk.say("s", "the zebra sleeps")
        make_fork(talk, "s", "fork")
        talk.compress("fork", "fork-child", upto=1)
        talk.sessions.delete("s")
        rows = [talk.sessions.get(name)["parent_id"] for name in ("fork", "fork-child")]
        return rows, talk.path("fork")

    assert await store.write(work) == ([None, "fork"], ["the zebra sleeps"])
    assert await store.found("fork", "zebra") == ["the zebra sleeps"]


async def test_a_fork_of_a_taken_id_is_refused_whole(store: Store) -> None:
    """A fork that cannot have its name leaves nothing behind."""

    def work(talk: Talk) -> None:
        talk.begin("s")
        talk.say("s", "hello")
        talk.begin("taken")

    await store.write(work)
    with pytest.raises(errors.Conflict):
        await store.write(lambda talk: make_fork(talk, "s", "taken"))
    assert await store.read(lambda talk: talk.path("taken")) == []
    assert len(await store.read(lambda talk: talk.sessions.listing(limit=9, offset=0))) == 2
