"""SQLite: one file, one writer thread with group commit, readers beside it.

The writer drains its queue into one transaction, each unit of work in a savepoint of its own, and pays for one `fsync` for all of
them. Work that need not survive a power cut (leases) rides along or is committed without an `fsync`; `kill -9` loses neither.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import logging
import mmap
import os
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from mnemon.core import errors
from mnemon.store import base, migrate
from mnemon.store.leases import LockLeases, Locks

T = TypeVar("T")
Result = tuple[Any, BaseException | None]

READERS = 4
LARGEST_BATCH = 64
CACHE_KIB = 8192
REWRITTEN_AT_ONCE = 64 * 2**20  # bytes, which takes about half a second

log = logging.getLogger("mnemon.store")


class SqliteTx:
    """A transaction on one connection."""

    def __init__(self, connection: sqlite3.Connection, driver: Sqlite) -> None:
        self.connection = connection
        self.driver = driver
        self.statements = driver.statements
        self.touched: set[str] = set()

    def run(self, name: str, /, **params: Any) -> int:
        return self.connection.execute(self.statements[name], params).rowcount

    def many(self, name: str, rows: Iterable[Mapping[str, Any]], /) -> None:
        self.connection.executemany(self.statements[name], rows)

    def one(self, name: str, /, **params: Any) -> base.Row | None:
        row: base.Row | None = self.connection.execute(self.statements[name], params).fetchone()
        return row

    def all(self, name: str, /, **params: Any) -> list[base.Row]:
        return self.connection.execute(self.statements[name], params).fetchall()

    def plain(self, name: str, /, **params: Any) -> list[tuple[Any, ...]]:
        cursor = self.connection.cursor()
        cursor.row_factory = None
        return cursor.execute(self.statements[name], params).fetchall()

    def script(self, text: str) -> None:
        """Several statements, inside the open transaction (`executescript` would commit it)."""
        statement = ""
        for line in text.splitlines(keepends=True):
            statement += line
            if sqlite3.complete_statement(statement):
                self.connection.execute(statement)
                statement = ""

    def leases(self, tenant: str) -> LockLeases:
        if self.driver.locks is None:
            raise closed()
        return LockLeases(self.driver.locks, tenant)

    def alive(self, owner: int) -> bool:
        """A process holds a lock on its file in `owners` for as long as it lives; what a dead one left is cleared away."""
        file = self.driver.owners / str(owner)
        if held(file):
            return True
        file.unlink(missing_ok=True)
        return False

    def touch(self, topic: str) -> None:
        self.touched.add(topic)

    def tell(self) -> None:
        """Let the others know what this transaction touched, now that it is committed. One touch too many does no harm."""
        while self.touched:
            path = self.driver.owners / f"{self.touched.pop()}.stamp"
            path.touch()
            now = max(time.time_ns(), path.stat().st_mtime_ns + 1)  # many a kernel's own clock for files is too coarse
            os.utime(path, ns=(now, now))


class Work(NamedTuple):
    """A unit of work in the writer's queue, and where its result goes."""

    function: Callable[[base.Tx], Any]
    durable: bool
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]


class Sqlite:
    """The driver for a database file."""

    name = "sqlite"
    shared = False

    def __init__(self, path: Path, *, owner: int) -> None:
        self.path = path
        self.owner = owner
        self.statements = base.statements("sqlite")
        self.owners = path.with_name(path.name + "-owners")
        self.queue: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
        self.writer: threading.Thread | None = None
        self.readers: ThreadPoolExecutor | None = None
        self.local = threading.local()
        self.opened: list[sqlite3.Connection] = []
        self.presence: int | None = None
        self.locks: Locks | None = None
        self.here: SqliteTx | None = None
        self.stamps: dict[str, Path] = {}

    async def open(self) -> None:
        try:
            await asyncio.to_thread(self._prepare)
        except (sqlite3.Error, OSError) as error:
            message = f"cannot open the database {self.path}: {error}"
            raise errors.Unavailable(message) from error
        self.readers = ThreadPoolExecutor(READERS, thread_name_prefix="mnemon-reader")
        self.writer = threading.Thread(target=self._write_loop, name="mnemon-writer", daemon=True)
        self.writer.start()

    def _prepare(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))  # conversations are nobody else's; the log takes the file's mode
        self.owners.mkdir(exist_ok=True)
        self.presence = os.open(self.owners / str(self.owner), os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(self.presence, fcntl.LOCK_EX)
        self.locks = Locks(self.owners / "leases")
        connection = self._connect()
        try:
            connection.execute("BEGIN IMMEDIATE")
            migrate.apply(SqliteTx(connection, self), "sqlite", connection.execute)
            connection.execute("COMMIT")
        finally:
            connection.close()

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=30, cached_statements=256)
        connection.row_factory = sqlite3.Row
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA secure_delete = ON")  # what is deleted is overwritten; `scrub` does the rest
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        connection.create_function("unhex", 1, bytes.fromhex, deterministic=True)  # which SQLite itself has only since 3.41
        return connection

    async def close(self) -> None:
        writer, self.writer = self.writer, None  # from here on writes are refused: nobody would carry them out
        if writer:
            self.queue.put(None)
            await asyncio.to_thread(writer.join)
        if self.readers:
            self.readers.shutdown()
        for connection in self.opened:
            connection.close()
        if self.presence is not None:
            (self.owners / str(self.owner)).unlink(missing_ok=True)
            os.close(self.presence)
        if self.locks:
            self.locks.close()
        self.readers, self.presence, self.locks, self.here = None, None, None, None
        self.opened.clear()

    async def read(self, work: Callable[[base.Tx], T]) -> T:
        if not self.readers:
            raise closed()
        return await asyncio.get_running_loop().run_in_executor(self.readers, self._read, work)

    def _read(self, work: Callable[[base.Tx], T]) -> T:
        tx: SqliteTx | None = getattr(self.local, "tx", None)
        if tx is None:
            tx = self.local.tx = self._reader()
        return on_a_snapshot(tx, work)

    def _reader(self) -> SqliteTx:
        connection = self._connect()
        connection.execute("PRAGMA query_only = ON")
        self.opened.append(connection)
        return SqliteTx(connection, self)

    async def glance(self, work: Callable[[base.Tx], T]) -> T:
        """On the event loop: a few rows by their keys take microseconds, a thread would take longer to wake up."""
        with TRANSLATED:
            return work(self._here())

    async def begin(self, work: Callable[[base.Tx], T], *, writes: bool) -> T:
        """Without writing, if it can be: a lease is a lock in the kernel. Each look is fresh, to see what its last holder wrote."""
        if writes:
            return await self.write(work, durable=False)
        return await self.glance(work)

    def _here(self) -> SqliteTx:
        if not self.readers:
            raise closed()
        if self.here is None:
            self.here = self._reader()
        return self.here

    def enter(self, token: str) -> None:
        if self.locks:
            self.locks.enter(token)

    def leave(self, token: str) -> None:
        if self.locks:
            self.locks.leave(token)

    def write(self, work: Callable[[base.Tx], T], *, durable: bool = True) -> asyncio.Future[T]:
        """Once queued a unit of work is carried out, whoever stops waiting for it."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        if self.writer:
            self.queue.put(Work(work, durable, loop, future))
        else:
            future.set_exception(closed())
        return future

    def _write_loop(self) -> None:
        connection = self._connect()
        tx = SqliteTx(connection, self)
        full = True
        while (first := self.queue.get()) is not None:
            batch, last = self._drain(first)
            durable = any(work.durable for work in batch)
            if durable != full:
                connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
                full = durable
            deliver(batch, self._commit(tx, batch))
            if last:
                break
        connection.close()

    def _drain(self, first: Work) -> tuple[list[Work], bool]:
        """Whatever waits by now, up to a limit; and whether the end was among it."""
        batch = [first]
        while len(batch) < LARGEST_BATCH:
            try:
                work = self.queue.get_nowait()
            except queue.Empty:
                break
            if work is None:
                return batch, True
            batch.append(work)
        return batch, False

    def _commit(self, tx: SqliteTx, batch: list[Work]) -> list[Result]:
        connection = tx.connection
        results: list[Result]
        try:
            with TRANSLATED:
                connection.execute("BEGIN IMMEDIATE")
                alone = len(batch) == 1
                results = [(batch[0].function(tx), None)] if alone else [savepoint(tx, work) for work in batch]
                connection.execute("COMMIT")
                tx.tell()
        except Exception as error:  # noqa: BLE001 - whatever it was, its place is with those who wait for the result
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            tx.touched.clear()
            results = [(None, error)] * len(batch)
        return results

    def stamp(self, topic: str) -> int:
        file = self.stamps.get(topic) or self.stamps.setdefault(topic, self.owners / f"{topic}.stamp")
        try:
            return file.stat().st_mtime_ns
        except FileNotFoundError:
            return 0

    @contextlib.contextmanager
    def _look(self) -> Iterator[sqlite3.Connection]:
        """A connection that creates no file and leaves the database's settings as they are. For commands: its errors tell all."""
        try:
            with contextlib.closing(sqlite3.connect(f"{self.path.absolute().as_uri()}?mode=rw", uri=True, timeout=30)) as connection:
                connection.execute("PRAGMA query_only = ON")
                yield connection
        except sqlite3.Error as error:
            message = f"the database {self.path} cannot be used: {error}"
            raise errors.StoreError(message) from error

    def condition(self) -> base.Condition:
        software = f"SQLite {sqlite3.sqlite_version}"
        known = tuple(name for name, _ in base.migrations("sqlite"))
        if not self.path.exists():
            return base.Condition(software=software, exists=False, known=known)
        with self._look() as connection:
            tables = connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'migrations'").fetchall()
            rows = connection.execute("SELECT name FROM migrations").fetchall() if tables else []
        return base.Condition(software=software, exists=True, applied=frozenset(name for (name,) in rows), known=known)

    def living(self) -> list[int]:
        """The processes that have the database open."""
        files = self.owners.iterdir() if self.owners.is_dir() else ()
        return [int(file.name) for file in files if file.name.isdigit() and held(file)]

    def backup(self, target: Path) -> None:
        """A consistent copy in a single file, made while the database is in use.

        It is read in one go, on one snapshot: a copy in steps begins anew whenever another process writes, and may never end.
        """
        with self._look() as source:
            copy = sqlite3.connect(target)
            try:
                source.backup(copy)
                copy.execute("PRAGMA journal_mode = DELETE")
            finally:
                copy.close()

    def fold(self) -> None:
        """Move what the write-ahead log holds into the file itself, so that the file is all there is. Nobody else may have it open."""
        with self._look() as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    async def scrub(self, *, whole: bool) -> bool:
        """Rewrite the file, since a page may keep a copy of what stood in it before, and empty the log."""
        return await asyncio.to_thread(self._scrub, whole=whole)

    def _scrub(self, *, whole: bool) -> bool:
        connection = self._connect()
        try:
            if whole or self.path.stat().st_size <= REWRITTEN_AT_ONCE:
                connection.execute("VACUUM")
            busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        except sqlite3.OperationalError as error:
            log.warning("deleted words could not be swept out of %s yet: %s", self.path, error)
            return False
        finally:
            connection.close()
        return not busy

    def holds(self, words: Iterable[bytes]) -> set[bytes]:
        """Which of these stand anywhere in the bytes of the file, its log or its index."""
        wanted = set(words)
        return set().union(*(holding(self.path.with_name(self.path.name + name), wanted) for name in ("", "-wal", "-shm")))

    def integrity(self) -> str:
        """What SQLite says of the file: ok, or what is wrong."""
        with self._look() as connection:
            found = str(connection.execute("PRAGMA integrity_check").fetchone()[0])
            broken = connection.execute("PRAGMA foreign_key_check").fetchall()
        return found if not broken else f"{found}; {len(broken)} rows break a foreign key"


def holding(path: Path, wanted: set[bytes]) -> set[bytes]:
    """Which of these stand anywhere in the bytes of a file."""
    if not path.exists() or not path.stat().st_size:
        return set()
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return {each for each in wanted if data.find(each) >= 0}


def closed() -> errors.Unavailable:
    return errors.Unavailable("the database is closed")


def on_a_snapshot(tx: SqliteTx, work: Callable[[base.Tx], T]) -> T:
    with TRANSLATED:
        tx.connection.execute("BEGIN")
        try:
            return work(tx)
        finally:
            tx.connection.execute("ROLLBACK")


def held(file: Path) -> bool:
    """Whether a process holds the lock on its file. A shared lock is enough to find out, and disturbs nobody who is just starting."""
    try:
        handle = os.open(file, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def savepoint(tx: SqliteTx, work: Work) -> Result:
    """One unit of work inside a shared transaction: its failure leaves the others alone."""
    tx.connection.execute("SAVEPOINT one")
    try:
        with TRANSLATED:
            result = work.function(tx)
    except Exception as error:  # noqa: BLE001 - handed to the caller who waits for this unit
        tx.connection.execute("ROLLBACK TO one")
        tx.connection.execute("RELEASE one")
        return None, error
    tx.connection.execute("RELEASE one")
    return result, None


def deliver(batch: list[Work], results: list[Result]) -> None:
    """Wake everyone who waits, with one call into each event loop."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], Any, BaseException | None]]] = {}
    for work, (result, error) in zip(batch, results, strict=True):
        by_loop.setdefault(work.loop, []).append((work.future, result, error))
    for loop, outcomes in by_loop.items():
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, outcomes)


def settle(outcomes: list[tuple[asyncio.Future[Any], Any, BaseException | None]]) -> None:
    for future, result, error in outcomes:
        if future.done():
            continue
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)


class Translated:
    """Around work with the database: the driver's errors, in our words. A class, since every statement of a turn's beginning passes it."""

    def __enter__(self) -> None:
        """Nothing to begin."""

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, sqlite3.OperationalError):
            raise errors.Unavailable("the database cannot be used at the moment") from error
        if isinstance(error, sqlite3.Error):
            raise errors.StoreError("the database refused a statement") from error


TRANSLATED = Translated()
