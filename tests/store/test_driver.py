"""The port that every repository stands on: what a driver promises of transactions, processes and the end."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from mnemon.core import errors, ids
from mnemon.store import keys
from mnemon.store.base import Driver, Tx
from mnemon.store.keys import ApiKey
from mnemon.store.sqlite import Sqlite
from tests.store.steps import PATIENCE, opened, until

CHILD = """
import asyncio, sys
from pathlib import Path
from mnemon.app import open_driver
from mnemon.config import Settings
from mnemon.store import keys

async def main():
    driver = open_driver(Settings(data_dir=Path(), database_url=sys.argv[1]))
    await driver.open()
    for name, durable in (("durable", True), ("relaxed", False)):
        key = keys.ApiKey(name=name, tenant="t", hash=keys.hashed(name))
        await driver.write(lambda tx: keys.add(tx, key), durable=durable)
    print(driver.owner, flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


def key(name: str) -> ApiKey:
    """A row to write: keys are the simplest thing there is."""
    return ApiKey(name=name, tenant="t", hash=keys.hashed(name))


def adding(name: str) -> Callable[[Tx], str]:
    """A unit of work that writes one row."""

    def work(tx: Tx) -> str:
        keys.add(tx, key(name))
        return name

    return work


def breaking(name: str) -> Callable[[Tx], str]:
    """A unit of work that writes a row and then fails."""

    def work(tx: Tx) -> str:
        keys.add(tx, key(name))
        raise ZeroDivisionError(name)

    return work


async def names(driver: Driver) -> set[str]:
    """The rows there are."""
    return {k.name for k in await driver.read(keys.everyone)}


@pytest.fixture
async def other(driver: Driver, database_url: str) -> AsyncIterator[Driver]:
    """A second process's driver on the database of `driver`."""
    async with opened(database_url) as found:
        yield found


@pytest.mark.parametrize("durable", [True, False])
async def test_a_write_is_seen_by_the_next_read(driver: Driver, other: Driver, durable: bool) -> None:  # noqa: FBT001 - a parameter
    """When a write has returned, its value is handed back and every reader of every process sees it."""
    assert await driver.write(adding("one"), durable=durable) == "one"
    assert await names(driver) == {"one"}
    assert await names(other) == {"one"}


async def test_a_unit_that_raises_leaves_nothing(driver: Driver) -> None:
    """A unit of work that fails is undone, its own exception reaches the caller, and the driver goes on."""
    with pytest.raises(ZeroDivisionError):
        await driver.write(breaking("half"))
    await driver.write(adding("whole"))
    assert await names(driver) == {"whole"}


async def test_one_failure_in_a_group_leaves_the_others(driver: Driver) -> None:
    """Of many units that wait together, those that fail fail alone."""
    gate = threading.Event()
    first = asyncio.ensure_future(driver.write(lambda _: gate.wait(PATIENCE)))
    works = [breaking(f"bad{n}") if n % 7 == 3 else adding(f"good{n}") for n in range(40)]
    waiting = [asyncio.ensure_future(driver.write(work)) for work in works]
    await asyncio.sleep(0.02)
    gate.set()
    assert await first
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert [n for n, r in enumerate(results) if isinstance(r, ZeroDivisionError)] == [3, 10, 17, 24, 31, 38]
    assert await names(driver) == {f"good{n}" for n in range(40) if n % 7 != 3}


async def test_a_refused_statement_is_a_store_error(driver: Driver) -> None:
    """What the database refuses is told in our words, undoes its unit, and leaves the connection usable."""

    def refused(tx: Tx) -> None:
        keys.add(tx, key("half"))
        tx.run("branches_add", lineage=987654, number=1, start=1, at=1.0)

    with pytest.raises(errors.StoreError):
        await driver.write(refused)
    both = await asyncio.gather(driver.write(refused), driver.write(adding("whole")), return_exceptions=True)
    assert isinstance(both[0], errors.StoreError)
    assert await names(driver) == {"whole"}


async def test_many_concurrent_writes_all_land(driver: Driver) -> None:
    """Four hundred writes at once, durable and relaxed mixed, are all there, each exactly once."""
    wanted = [f"k{n}" for n in range(400)]
    done = await asyncio.gather(*(driver.write(adding(name), durable=n % 3 > 0) for n, name in enumerate(wanted)))
    assert list(done) == wanted
    assert sorted(k.name for k in await driver.read(keys.everyone)) == sorted(wanted)


async def test_work_is_carried_out_though_its_caller_left(driver: Driver) -> None:
    """A write that was begun is carried out, even when whoever waited for it was cancelled."""
    gate, begun = threading.Event(), threading.Event()

    def work(tx: Tx) -> None:
        begun.set()
        gate.wait(PATIENCE)
        keys.add(tx, key("late"))

    waiting = asyncio.ensure_future(driver.write(work))
    behind = asyncio.ensure_future(driver.write(adding("behind")))
    await asyncio.to_thread(begun.wait, PATIENCE)
    waiting.cancel()
    behind.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    gate.set()
    await until_there(driver, {"late", "behind"})


async def until_there(driver: Driver, wanted: set[str]) -> None:
    """Wait for rows that nobody waits for."""
    for _ in range(500):
        if await names(driver) == wanted:
            return
        await asyncio.sleep(0.01)
    assert await names(driver) == wanted


async def test_a_read_sees_one_snapshot(driver: Driver, other: Driver) -> None:
    """What is committed while a read is under way is not seen by the rest of it."""
    begun, gate = threading.Event(), threading.Event()

    def work(tx: Tx) -> tuple[int, int]:
        before = len(keys.everyone(tx))
        begun.set()
        gate.wait(PATIENCE)
        return before, len(keys.everyone(tx))

    reading = asyncio.ensure_future(driver.read(work))
    await asyncio.to_thread(begun.wait, PATIENCE)
    await driver.write(adding("ours"))
    await other.write(adding("theirs"))
    gate.set()
    assert await reading == (0, 0)
    assert await driver.read(lambda tx: len(keys.everyone(tx))) == 2


async def test_a_read_cannot_write(driver: Driver) -> None:
    """A write smuggled into a read is refused, not lost in silence and not carried out."""
    with pytest.raises(errors.StoreError):
        await driver.read(adding("smuggled"))
    await driver.write(adding("honest"))
    assert await names(driver) == {"honest"}


async def test_a_living_process_is_alive(driver: Driver, other: Driver) -> None:
    """A process is known to be alive by itself and by others, and an unknown one is not."""
    for asking in (driver, other):
        assert await asking.write(lambda tx: tx.alive(driver.owner)) is True
        assert await asking.write(lambda tx: tx.alive(other.owner)) is True
        assert await asking.write(lambda tx: tx.alive(ids.owner())) is False


async def test_a_closed_driver_is_dead(driver: Driver, database_url: str) -> None:
    """A process that left in an orderly way is dead at once."""
    async with opened(database_url) as short:
        assert await driver.write(lambda tx: tx.alive(short.owner)) is True
    assert await driver.write(lambda tx: tx.alive(short.owner)) is False


async def test_kill_9_loses_no_write_and_frees_the_name(driver: Driver, database_url: str) -> None:
    """What a process wrote survives its kill -9, relaxed writes too, and it is known to be dead without anybody's help."""
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", CHILD, database_url, stdout=subprocess.PIPE)
    assert child.stdout is not None
    owner = int(await child.stdout.readline())
    assert await driver.write(lambda tx: tx.alive(owner)) is True
    child.send_signal(signal.SIGKILL)
    await child.wait()
    for _ in range(500):
        if not await driver.write(lambda tx: tx.alive(owner)):
            break
        await asyncio.sleep(0.01)
    assert await driver.write(lambda tx: tx.alive(owner)) is False
    assert await names(driver) == {"durable", "relaxed"}


async def test_a_touch_is_seen_by_every_process(driver: Driver, other: Driver) -> None:
    """Each touch changes the topic's number in every process, and no other topic's; even one touch right after another."""
    quiet = driver.stamp("quiet")
    for _ in range(5):
        before = [driver.stamp("keys"), other.stamp("keys")]
        await driver.write(lambda tx: tx.touch("keys"))
        await until(lambda before=before: driver.stamp("keys") != before[0] and other.stamp("keys") != before[1])  # type: ignore[misc]
    assert driver.stamp("quiet") == quiet


async def test_a_touch_is_told_when_it_is_committed_and_only_then(driver: Driver, other: Driver) -> None:
    """Nobody hears of a change before it can be read, nor of one that came to nothing."""
    before = [driver.stamp("keys"), other.stamp("keys")]
    inside = threading.Event()
    go_on = threading.Event()

    def change(tx: Tx) -> None:
        tx.touch("keys")
        inside.set()
        assert go_on.wait(PATIENCE)

    def fail(tx: Tx) -> None:
        tx.touch("failed")
        raise errors.NotFound("nothing")

    task = asyncio.ensure_future(driver.write(change))
    await asyncio.to_thread(inside.wait, PATIENCE)
    await asyncio.sleep(0.1)
    assert [driver.stamp("keys"), other.stamp("keys")] == before
    go_on.set()
    await task
    await until(lambda: driver.stamp("keys") != before[0] and other.stamp("keys") != before[1])
    failed = other.stamp("failed")
    with pytest.raises(errors.NotFound):
        await driver.write(fail)
    await asyncio.sleep(0.1)
    assert other.stamp("failed") == failed


async def test_an_end_finishes_what_was_begun(database_url: str) -> None:
    """Closing waits for the writes that were queued before; later ones are refused, and none waits for ever."""
    async with opened(database_url) as driver:
        before = [asyncio.ensure_future(driver.write(adding(f"k{n}"))) for n in range(150)]
        await asyncio.sleep(0)
        closing = asyncio.ensure_future(driver.close())
        await asyncio.sleep(0)
        late = [asyncio.ensure_future(driver.write(adding(f"late{n}"))) for n in range(3)]
        async with asyncio.timeout(PATIENCE):
            assert len(await asyncio.gather(*before)) == 150
            told = await asyncio.gather(*late, return_exceptions=True)
            await closing
        with pytest.raises(errors.Unavailable):
            await driver.write(adding("after"))
        with pytest.raises(errors.Unavailable):
            await driver.read(keys.everyone)
    assert all(isinstance(t, str | errors.Unavailable) for t in told)
    async with opened(database_url) as again:
        assert await names(again) == {f"k{n}" for n in range(150)} | {t for t in told if isinstance(t, str)}


async def test_an_address_that_leads_nowhere(database_url: str, tmp_path: Path) -> None:
    """A database that cannot be opened is told in one sentence, and nothing is left half open."""
    (tmp_path / "file").write_text("not a folder")
    nowhere = f"sqlite:///{tmp_path}/file/mnemon.db" if database_url.startswith("sqlite") else "postgresql://postgres@127.0.0.1:1/none"
    with pytest.raises(errors.Unavailable, match="cannot open the"):
        async with opened(nowhere):
            pass


async def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    """A file of somebody else's is refused and left as it is."""
    path = tmp_path / "mnemon.db"
    path.write_text("a shopping list\n" * 300)
    with pytest.raises(errors.Unavailable, match="cannot open the database"):
        async with opened(f"sqlite:///{path}"):
            pass
    assert path.read_text() == "a shopping list\n" * 300


async def test_a_copy_made_in_use_is_whole(tmp_path: Path) -> None:
    """A backup taken while writes go on is a sound database that holds all that was committed before it began."""
    async with opened(f"sqlite:///{tmp_path}/mnemon.db") as driver:
        assert isinstance(driver, Sqlite)
        await asyncio.gather(*(driver.write(adding(f"k{n}")) for n in range(50)))
        meanwhile = asyncio.gather(*(driver.write(adding(f"later{n}")) for n in range(50)))
        await asyncio.to_thread(driver.backup, tmp_path / "copy.db")
        await meanwhile
    async with opened(f"sqlite:///{tmp_path}/copy.db") as copy:
        assert isinstance(copy, Sqlite)
        assert copy.integrity() == "ok"
        assert await names(copy) >= {f"k{n}" for n in range(50)}


@pytest.mark.postgres
async def test_connections_that_broke_are_made_again(postgres_url: str) -> None:
    """After the database dropped every connection the driver works by itself as before, and its process counts as alive again."""

    def drop(_: Any = None) -> None:
        others = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            dropped = [pid for pid, _ in connection.execute(f"SELECT pid, pg_terminate_backend(pid) {others}").fetchall()]
            while connection.execute("SELECT 1 FROM pg_stat_activity WHERE pid = ANY(%s)", (dropped,)).fetchall():
                pass

    async with opened(postgres_url) as driver, opened(postgres_url) as other:
        await driver.write(adding("before"))
        stamp = driver.stamp("keys")
        await driver.write(lambda tx: tx.touch("keys"))
        await until(lambda: driver.stamp("keys") != stamp)
        stamp = driver.stamp("keys")
        await asyncio.to_thread(drop)
        await driver.write(adding("after"))
        assert await names(driver) == {"before", "after"}
        for _ in range(500):
            with contextlib.suppress(errors.Unavailable):
                if await other.write(lambda tx: tx.alive(driver.owner)):
                    break
            await asyncio.sleep(0.01)
        assert await other.write(lambda tx: tx.alive(driver.owner)) is True
        assert driver.stamp("keys") != stamp, "what was touched meanwhile must be taken for changed"
