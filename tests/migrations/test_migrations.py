"""Migrations: every step, from the oldest schema on, with rows in it.

A new migration is tried without a change here: rows of the schema it brings go into `data/NNNN_rows.sql`, and `check` says how they read.
"""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from mnemon.core import errors
from mnemon.core.records import Idempotency, Identity, StateLine
from mnemon.memory.base import Query
from mnemon.memory.fulltext import FullText
from mnemon.store import base, keys
from mnemon.store.base import Driver, Tx
from mnemon.store.frames import Frames
from mnemon.store.idempotency import Record, Records, stream_of
from mnemon.store.memories import Memories
from mnemon.store.messages import Messages
from mnemon.store.passages import Passages
from mnemon.store.receipts import Receipts
from mnemon.store.sessions import Sessions
from mnemon.store.sqlite import Sqlite
from tests.store.steps import opened

DATA = Path(__file__).parent / "data"
STEPS = [name for name, _ in base.migrations("sqlite")]
NOTE = StateLine(position=1, role="user", at=1767225600.0, kind="fact", text="My name is Alex.", score=1.7)

OPEN = """
import asyncio, sys
from pathlib import Path
from mnemon.app import open_driver
from mnemon.config import Settings

async def main():
    driver = open_driver(Settings(data_dir=Path(), database_url=sys.argv[1]))
    print("ready", flush=True)
    sys.stdin.readline()
    await driver.open()
    await driver.close()

asyncio.run(main())
"""


class Plain:
    """A database without a driver of ours in between."""

    def __init__(self, url: str, connection: Any) -> None:
        self.dialect = "sqlite" if url.startswith("sqlite") else "postgres"
        self.connection = connection

    def script(self, text: str) -> None:
        """Several statements; `{blob:…}` in them is a byte string, `{yes}` and `{no}` are truth values."""
        blob = {"sqlite": r"x'\1'", "postgres": r"'\\x\1'::bytea"}[self.dialect]
        yes, no = {"sqlite": ("1", "0"), "postgres": ("TRUE", "FALSE")}[self.dialect]
        text = re.sub(r"\{blob:([0-9a-f]*)\}", blob, text).replace("{yes}", yes).replace("{no}", no)
        run = self.connection.executescript if self.dialect == "sqlite" else self.connection.execute
        run(text)
        self.connection.commit()

    def rows(self, text: str) -> list[tuple[Any, ...]]:
        """What a query gives."""
        return [tuple(row) for row in self.connection.execute(text).fetchall()]

    def upto(self, step: str) -> None:
        """The schema of an older version: the migrations up to a step, each with the rows of its time."""
        self.script("CREATE TABLE migrations (name TEXT PRIMARY KEY)")
        for name, text in base.migrations(self.dialect):
            self.script(text)
            self.script(f"INSERT INTO migrations (name) VALUES ('{name}')")
            rows = DATA / f"{name[:4]}_rows.sql"
            if rows.exists():
                self.script(rows.read_text(encoding="utf-8"))
            if name == step:
                return

    def schema(self) -> list[tuple[Any, ...]]:
        """Every table, column, key and index."""
        if self.dialect == "sqlite":
            return self.rows("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name")
        return [
            *self.rows(
                "SELECT table_name, column_name, data_type, is_nullable, column_default FROM information_schema.columns"
                " WHERE table_schema = 'public' ORDER BY 1, 2"
            ),
            *self.rows("SELECT tablename, indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1, 2"),
            *self.rows(
                "SELECT conrelid::regclass::text, pg_get_constraintdef(oid) FROM pg_constraint"
                " WHERE connamespace = 'public'::regnamespace ORDER BY 1, 2"
            ),
        ]

    def content(self) -> dict[str, list[tuple[Any, ...]]]:
        """Every row of every table."""
        listing = {
            "sqlite": "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'",
            "postgres": "SELECT tablename FROM pg_tables WHERE schemaname = 'public'",
        }
        return {name: sorted(self.rows(f"SELECT * FROM {name}"), key=repr) for (name,) in self.rows(listing[self.dialect])}


@contextmanager
def plain(url: str) -> Iterator[Plain]:
    """Open a database directly."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            yield Plain(url, connection)
    else:
        with psycopg.connect(url) as other:
            yield Plain(url, other)


async def migrated(url: str) -> None:
    """Open once, as a server does at its start."""
    async with opened(url):
        pass


async def check(driver: Driver) -> None:
    """All rows of `data` are read through the repositories as they were written."""
    await driver.write(check_keys)
    await driver.write(check_sessions)
    await driver.write(check_messages)
    driver.enter("new")
    await driver.write(check_rest)
    driver.leave("new")
    await driver.read(check_passages)
    memory = FullText(driver)
    found = {}
    for scope, size in ((1, 3), (2, 1)):
        query = Query(tenant="acme", scope=scope, size=size, changes=0, lineage=0, live=0, text="rust zebra alex", identity=Identity())
        found[scope] = sorted(r.text for r in await memory.recall(query))
    assert found == {1: ["Hello \x00 Alex ☕", "My name is Alex.", "We use Rust."], 2: ["The zebra is mine."]}


def check_keys(tx: Tx) -> None:
    """API keys."""
    found = [(k.name, k.tenant, k.hash, k.requests_per_minute, k.concurrency, k.created_at, k.revoked_at) for k in keys.everyone(tx)]
    assert found == [
        ("acme", "acme", keys.hashed("test"), 60, 4, 1767225600.5, None),
        ("old ☕", "acme", found[1][2], None, None, 1767225601, 1767225700),
    ]


def check_sessions(tx: Tx) -> None:
    """Lineages, sessions, channels, scopes."""
    sessions = Sessions(tx, "acme")
    lineage = sessions.lineage_of("repo:acme/backend")
    assert lineage is not None
    assert lineage == sessions.lineage_of("sess_child")
    assert (lineage.tip, lineage.parent, lineage.session_key, lineage.system_prompt) == (
        "sess_child",
        "repo:acme/backend",
        "agent:主:dm",
        "Be brief.",
    )
    assert (lineage.next_position, lineage.compacted_to, lineage.state, lineage.chain, lineage.branches) == (6, 2, (NOTE,), b"\x05" * 4, 1)
    assert sessions.current_of("agent:主:dm") == "repo:acme/backend"
    assert [r["id"] for r in sessions.listing(limit=9, offset=0)] == ["sess_child", "alone"]
    row = sessions.get("repo:acme/backend")
    assert (row["title"], row["user_name"], row["end_reason"], row["message_count"], row["input_tokens"]) == (
        "Backend",
        "Zoë",
        "compression",
        4,
        100,
    )
    assert sessions.lineage_of("alone") is not None
    assert Sessions(tx, "other").lineage_of("alone") is None


def check_messages(tx: Tx) -> None:
    """Messages, branches, compactions."""
    lineage = Sessions(tx, "acme").lineage_of("sess_child")
    assert lineage is not None
    messages = Messages(tx, "acme", lineage.id)
    path = messages.page(limit=9, offset=0)
    assert [m.text for m in path] == ["My name is Alex.", "Hello \x00 Alex ☕", "We use Rust.", ""]
    assert [m.position for m in path] == [1, 2, 4, 5]
    assert path[-1].message.calls[0]["id"] == "c1"
    assert (path[0].tokens, path[-1].finish_reason, path[-1].at) == (9, "tool_calls", 1767225900.25)
    assert [m.text for m in messages.page(limit=9, offset=0, branch=1)] == ["My name is Alex.", "Hello \x00 Alex ☕", "edited away"]
    assert messages.compaction_before(3) == (2, (NOTE,))
    assert messages.digests()[-1] == (5, b"\x05", b"\x05" * 4)


def check_passages(tx: Tx) -> None:
    """Passages: those of replies are marked, none has a vector yet."""
    entries = [*Passages(tx, "acme", 1).since(0, limit=9), *Passages(tx, "acme", 2).since(0, limit=9)]
    assert [e.words for e in entries] == ["name alex", "hello alex !reply", "use rust", "zebra mine"]
    assert [(e.length, e.vector) for e in entries] == [(16, None), (14, None), (12, None), (18, None)]


def check_rest(tx: Tx) -> None:
    """Leases, idempotency, frames, receipts."""
    records = Records(tx, "acme")
    done = records.find(Idempotency(slot=b"\xaa", fingerprint=b"\xbb", key="k"), now=1767225901)
    assert done == Record(headers={"session_id": "sess_child"}, body=b"\x00\xff\x00")
    unfinished = Idempotency(slot=b"\xab", fingerprint=b"\xbb", key="k")
    assert Frames(tx, "acme").after(stream_of(unfinished), 0) == [], "they belonged to a request in flight"
    assert records.find(unfinished, now=1767225901) is None, "its process is dead"
    assert tx.leases("acme").take("alone", "new")
    assert Receipts(tx, "acme").get("rcpt_1")["prompt"]["recalled"][0]["text"] == "Alex"


def check_memories(tx: Tx) -> None:
    """The ledger, with its evidence and links."""
    memories = Memories(tx, "acme", 1)
    (old, new) = memories.history("mem_old")
    assert (old.text, old.kind, old.slot, old.single, old.details.values) == ("We use Go.", "fact", "we/language", True, ("Go",))
    assert (old.state, old.valid_to, old.closed_by, old.closed_rule) == ("superseded", 1767225650.0, "mem_new", "same_slot")
    assert (new.state, new.pinned, new.happened) == ("active", True, (1767225600.0, 1767312000.0, "day"))
    assert [e.quote for e in memories.evidence(["mem_new"])["mem_new"]] == ["We use Rust."]
    assert [(k.source, k.target, k.kind) for k in memories.links(["mem_old"])] == [("mem_new", "mem_old", "reverses")]
    assert [m.id for m in memories.sharing(["rust"], limit=9)] == ["mem_new"]


@pytest.mark.parametrize("step", STEPS)
async def test_rows_of_every_older_schema_are_kept(database_url: str, step: str) -> None:
    """A database of any older version opens, and all that was in it is read as it was written; the schema is that of a new one."""
    with plain(database_url) as old:
        old.upto(step)
    async with opened(database_url) as driver:
        await check(driver)
        if step >= "0003":
            await driver.read(check_memories)
        if isinstance(driver, Sqlite):
            assert driver.integrity() == "ok"
    with plain(database_url) as now:
        assert [name for (name,) in now.rows("SELECT name FROM migrations ORDER BY name")] == STEPS


@pytest.mark.parametrize("step", STEPS)
async def test_an_old_schema_ends_as_a_new_one(database_url: str, tmp_path: Path, step: str) -> None:
    """However a database came to the newest schema, it is the same schema."""
    await migrated(database_url)
    with plain(database_url) as fresh:
        wanted = fresh.schema()
        tables = ", ".join(fresh.content())
        if fresh.dialect == "postgres":
            fresh.script(f"DROP TABLE {tables} CASCADE")
            other = database_url
        else:
            other = f"sqlite:///{tmp_path}/old.db"
    with plain(other) as old:
        old.upto(step)
    await migrated(other)
    with plain(other) as now:
        assert now.schema() == wanted


async def test_migrating_twice_changes_nothing(database_url: str) -> None:
    """A second start finds nothing to do: same schema, same rows."""
    with plain(database_url) as old:
        old.upto(STEPS[0])
    await migrated(database_url)
    with plain(database_url) as first:
        schema, content = first.schema(), first.content()
    await migrated(database_url)
    with plain(database_url) as second:
        assert second.schema() == schema
        assert second.content() == content


async def test_a_newer_database_is_refused(database_url: str) -> None:
    """A database of a newer version is left alone, with a sentence that says what to do."""
    await migrated(database_url)
    with plain(database_url) as newer:
        newer.script("INSERT INTO migrations (name) VALUES ('0998_later'), ('0999_last')")
        before = newer.content()
    with pytest.raises(errors.StoreError) as caught:
        await migrated(database_url)
    message = "the database was written by a newer version of Mnemon (it has 0998_later, 0999_last): upgrade Mnemon to open it"
    assert str(caught.value) == message
    with plain(database_url) as after:
        assert after.content() == before


async def test_a_database_of_somebody_else_is_left_alone(database_url: str) -> None:
    """Where another program has a table of one of our names, nothing is changed, not even in part."""
    with plain(database_url) as foreign:
        foreign.script("CREATE TABLE receipts (shop TEXT); INSERT INTO receipts VALUES ('bakery')")
        schema = foreign.schema()
    with pytest.raises(errors.StoreError):
        await migrated(database_url)
    with plain(database_url) as after:
        assert after.schema() == schema
        assert after.rows("SELECT shop FROM receipts") == [("bakery",)]


def test_servers_that_start_together(database_url: str) -> None:
    """Two processes that open an empty database at the same moment both come up, and it is migrated once."""
    command = [sys.executable, "-c", OPEN, database_url]
    pipe = subprocess.PIPE
    children = [subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) for _ in range(2)]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    results = [child.communicate(timeout=60) for child in children]
    assert [(child.returncode, told) for child, (_, told) in zip(children, results, strict=True)] == [(0, ""), (0, "")]
    with plain(database_url) as now:
        assert sorted(name for (name,) in now.rows("SELECT name FROM migrations")) == STEPS


def test_the_dialects_have_the_same_steps() -> None:
    """Each migration exists for both databases, numbered without a gap; the oldest has rows to be tried with."""
    assert [name for name, _ in base.migrations("postgres")] == STEPS
    assert [int(name[:4]) for name in STEPS] == list(range(1, len(STEPS) + 1))
    assert (DATA / "0001_rows.sql").exists()


def test_the_dialects_have_the_same_statements() -> None:
    """Every named statement has a wording for each database."""
    assert base.statements("sqlite").keys() == base.statements("postgres").keys()


def test_every_table_has_rows() -> None:
    """No table of the oldest schema is without a row in the data it is tried with."""
    created = set(re.findall(r"CREATE TABLE (\w+)", dict(base.migrations("sqlite"))[STEPS[0]]))
    filled = set(re.findall(r"INSERT INTO (\w+)", (DATA / "0001_rows.sql").read_text(encoding="utf-8")))
    assert created - filled == set()
