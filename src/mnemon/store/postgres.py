"""PostgreSQL: several servers on one database.

A small pool of threads, each with a connection of its own, runs the units of work. One more connection holds an advisory lock that
says "this process lives" and listens for what other processes changed; when the process dies, the server frees the lock.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import select
import selectors
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import psycopg
from psycopg.rows import dict_row

from mnemon.core import errors
from mnemon.store import base, migrate
from mnemon.store.leases import RowLeases

log = logging.getLogger("mnemon.store")

T = TypeVar("T")

THREADS = 8
PARAMETER = re.compile(r"(?<!:):([a-z_]+)")
CONNECT_SECONDS = 10
CLOSE_SECONDS = 5
# A database that vanished without a word is noticed within half a minute; one that hangs, when a statement takes a whole one.
OPTIONS = {
    "connect_timeout": CONNECT_SECONDS,
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
# Every statement of ours has its index. Until a table was analysed the planner takes it for tiny and reads all of it, at any size.
SETTINGS = "SET enable_seqscan = off; SET jit = off; SET statement_timeout = '60s'"
HOLD_WORDS = (
    "messages memories memory_terms passages lineages sessions compactions idempotency frames receipts works jobs occurrences".split()
)
MIGRATION_LOCK = 7_236_431  # any number, the same in every process: two servers that start together migrate one after the other


class PostgresTx:
    """A transaction on one connection."""

    def __init__(self, connection: psycopg.Connection[dict[str, Any]], driver: Postgres) -> None:
        self.connection = connection
        self.cursor = connection.cursor()
        self.driver = driver
        self.statements = driver.statements
        self.pipeline: psycopg.Pipeline | None = None

    def run(self, name: str, /, **params: Any) -> Sent:
        return Sent(self, self.connection.cursor().execute(self.statements[name], params))

    def many(self, name: str, rows: Iterable[Mapping[str, Any]], /) -> None:
        self.connection.cursor().executemany(self.statements[name], list(rows))

    def one(self, name: str, /, **params: Any) -> base.Row | None:
        return self._execute(name, params).fetchone()

    def all(self, name: str, /, **params: Any) -> list[base.Row]:
        return list(self._execute(name, params).fetchall())

    def plain(self, name: str, /, **params: Any) -> list[tuple[Any, ...]]:
        return [tuple(row.values()) for row in self._execute(name, params).fetchall()]

    def leases(self, tenant: str) -> RowLeases:
        return RowLeases(self, tenant, owner=self.driver.owner, running=self.driver.running)

    def alive(self, owner: int) -> bool:
        """A living process holds the lock of its number. Those who try it share it, and so do not take each other for that process."""
        free = self.cursor.execute("SELECT pg_try_advisory_xact_lock_shared(%s) AS free", (owner,)).fetchone()
        return not (free and free["free"])

    def touch(self, topic: str) -> None:
        self.cursor.execute("SELECT pg_notify('mnemon', %s)", (topic,))

    def script(self, text: str) -> None:
        self.connection.execute(text)

    def _execute(self, name: str, params: Mapping[str, Any]) -> psycopg.Cursor[dict[str, Any]]:
        return self.cursor.execute(self.statements[name], params)


class Sent:
    """A statement on its way to the server."""

    def __init__(self, tx: PostgresTx, cursor: psycopg.Cursor[dict[str, Any]]) -> None:
        self.tx = tx
        self.cursor = cursor

    def __int__(self) -> int:
        if self.tx.pipeline and self.cursor.rowcount < 0:
            self.tx.pipeline.sync()
        return self.cursor.rowcount

    def __bool__(self) -> bool:
        return int(self) > 0


class Postgres:
    """The driver for a `postgresql://` address."""

    name = "postgres"
    shared = True

    def __init__(self, url: str, *, owner: int) -> None:
        self.url = url
        self.owner = owner
        texts = base.statements("postgres")
        self.statements = {name: PARAMETER.sub(r"%(\1)s", text) for name, text in texts.items()}
        self.threads: ThreadPoolExecutor | None = None
        self.local = threading.local()
        self.opened: list[psycopg.Connection[Any]] = []
        self.running: set[str] = set()
        self.stamps: dict[str, int] = {}
        self.connects = 0
        self.listener: threading.Thread | None = None
        self.bell: tuple[socket.socket, ...] = ()
        self.closing = threading.Event()
        self.announced = threading.Event()

    async def open(self) -> None:
        self.closing.clear()
        try:
            await asyncio.to_thread(self._prepare)
        except psycopg.Error as error:
            message = f"cannot open the PostgreSQL database: {str(error).strip()}"
            raise errors.Unavailable(message) from error
        self.threads = ThreadPoolExecutor(THREADS, thread_name_prefix="mnemon-postgres")
        self.bell = socket.socketpair()
        self.listener = threading.Thread(target=self._listen_loop, name="mnemon-listener", daemon=True)
        self.listener.start()
        await asyncio.to_thread(self.announced.wait, 30)

    def _prepare(self) -> None:
        with psycopg.connect(self.url, **self._options(), row_factory=dict_row) as connection, connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (MIGRATION_LOCK,))
            plain = connection.cursor(row_factory=psycopg.rows.tuple_row)
            migrate.apply(PostgresTx(connection, self), "postgres", plain.execute)

    async def close(self) -> None:
        """As the port says; but a database that does not answer is waited for only so long, then its connections are cut."""
        self.closing.set()
        threads, self.threads = self.threads, None
        if threads and not await ended(threads.shutdown):
            threads.shutdown(wait=False, cancel_futures=True)
            self._cut()
            await asyncio.to_thread(threads.shutdown)
        if self.listener:
            self.bell[1].send(b"!")
            if not await ended(self.listener.join):
                self._cut()
                await asyncio.to_thread(self.listener.join, CLOSE_SECONDS)
            for end in self.bell:
                end.close()
        self.listener = None
        for connection in self.opened:
            connection.close()
        self.opened.clear()

    def _cut(self) -> None:
        """End every connection under whoever waits for an answer on it."""
        log.warning("PostgreSQL does not answer; its connections are cut")
        for connection in self.opened:
            with contextlib.suppress(psycopg.Error, OSError), socket.socket(fileno=os.dup(connection.fileno())) as end:
                end.shutdown(socket.SHUT_RDWR)

    async def read(self, work: Callable[[base.Tx], T]) -> T:
        return await self._submit(self._read, work)

    async def glance(self, work: Callable[[base.Tx], T]) -> T:
        return await self._submit(self._glance, work)

    async def begin(self, work: Callable[[base.Tx], T], *, writes: bool) -> T:
        """A lease that outlives a failure is nobody's, so that no transaction is needed for it alone."""
        return await self._submit(self._relaxed if writes else self._glance, work)

    def write(self, work: Callable[[base.Tx], T], *, durable: bool = True) -> asyncio.Future[T]:
        return self._submit(self._durable if durable else self._relaxed, work)

    def enter(self, token: str) -> None:
        """Before the database knows it, so that no other turn of this process takes it for a dead one's."""
        self.running.add(token)

    def leave(self, token: str) -> None:
        self.running.discard(token)

    def _submit(self, run: Callable[[Callable[[base.Tx], T]], T], work: Callable[[base.Tx], T]) -> asyncio.Future[T]:
        """Once submitted a unit of work is carried out, whoever stops waiting for it."""
        loop = asyncio.get_running_loop()
        if self.threads:
            submitted = loop.run_in_executor(self.threads, run, work)
            submitted.add_done_callback(lambda late: late.cancelled() or late.exception())  # perhaps nobody is left to hear of it
            return asyncio.shield(submitted)
        refused: asyncio.Future[T] = loop.create_future()
        refused.set_exception(errors.Unavailable("the database is closed"))
        return refused

    def _read(self, work: Callable[[base.Tx], T]) -> T:
        return transacted(self._tx("relaxed"), work, begin="BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")

    def _glance(self, work: Callable[[base.Tx], T]) -> T:
        tx = self._tx("relaxed")
        with translated(tx):
            return work(tx)

    def _relaxed(self, work: Callable[[base.Tx], T]) -> T:
        return transacted(self._tx("relaxed"), work)

    def _durable(self, work: Callable[[base.Tx], T]) -> T:
        return transacted(self._tx("durable"), work)

    def _tx(self, mode: str) -> PostgresTx:
        """The thread's own connection of this mode; a relaxed one does not wait for the disk."""
        tx: PostgresTx | None = getattr(self.local, mode, None)
        if tx is not None and cut(tx.connection):
            tx.connection.close()
            tx = None
        if tx is None:
            try:
                connection = psycopg.connect(self.url, **self._options(), row_factory=dict_row, autocommit=True)
                connection.execute(f"{SETTINGS}; SET synchronous_commit = off" if mode == "relaxed" else SETTINGS)
            except psycopg.Error as error:
                raise errors.Unavailable("the database cannot be reached") from error
            self.opened = [c for c in self.opened if not c.closed]
            self.opened.append(connection)
            tx = PostgresTx(connection, self)
            setattr(self.local, mode, tx)
        return tx

    def _options(self) -> dict[str, Any]:
        """How to connect, where the address itself does not say it."""
        given = psycopg.conninfo.conninfo_to_dict(self.url)
        return {name: value for name, value in OPTIONS.items() if name not in given}

    async def scrub(self, *, whole: bool) -> bool:
        """Vacuum: dead rows are gone for good, and their space is free for others."""
        await asyncio.to_thread(self._vacuum)
        return True

    def _vacuum(self) -> None:
        try:
            with psycopg.connect(self.url, **self._options(), autocommit=True) as connection:
                connection.execute(f"VACUUM {', '.join(HOLD_WORDS)}")
        except psycopg.Error as error:
            raise errors.Unavailable("the database could not be vacuumed") from error

    def stamp(self, topic: str) -> int:
        # What was touched while we were not listening is not known, so a new connection counts as a touch of every topic.
        return self.connects + self.stamps.get(topic, 0)

    def condition(self) -> base.Condition:
        try:
            with psycopg.connect(self.url, **self._options()) as connection:
                server = connection.execute("SELECT current_setting('server_version')").fetchone()
                there = connection.execute("SELECT to_regclass('migrations') IS NOT NULL").fetchone()
                rows = connection.execute("SELECT name FROM migrations").fetchall() if there and there[0] else []
        except psycopg.Error as error:
            message = f"cannot open the PostgreSQL database: {str(error).strip()}"
            raise errors.Unavailable(message) from error
        return base.Condition(
            software=f"PostgreSQL {server[0] if server else ''}".strip(),
            exists=bool(rows),
            applied=frozenset(name for (name,) in rows),
            known=tuple(name for name, _ in base.migrations("postgres")),
        )

    def _listen_loop(self) -> None:
        """Hold the lock that says we live, and count what others touch; after a lost connection, do both again."""
        while not self.closing.is_set():
            try:
                with psycopg.connect(self.url, **self._options(), autocommit=True) as connection:
                    self.opened.append(connection)
                    connection.execute("LISTEN mnemon")
                    self.connects += 1  # what was said while nobody listened may concern any topic
                    connection.execute("SELECT pg_advisory_lock(%s)", (self.owner,))
                    self.announced.set()
                    self._listen(connection)
                    # The end of the connection would free it too, but only a moment later.
                    connection.execute("SELECT pg_advisory_unlock(%s)", (self.owner,))
            except psycopg.Error:
                if not self.closing.is_set():
                    time.sleep(0.5)

    def _listen(self, connection: psycopg.Connection[Any]) -> None:
        """Sleep until somebody touches a topic, or until the bell rings for the end."""
        with selectors.DefaultSelector() as selector:
            selector.register(connection, selectors.EVENT_READ)
            selector.register(self.bell[0], selectors.EVENT_READ)
            while not self.closing.is_set():
                for note in connection.notifies(timeout=0):
                    self.stamps[note.payload] = self.stamps.get(note.payload, 0) + 1
                selector.select()


async def ended(wait: Callable[[], None]) -> bool:
    """Wait for the end of something, but not for ever; whether it came."""
    done, _ = await asyncio.wait([asyncio.ensure_future(asyncio.to_thread(wait))], timeout=CLOSE_SECONDS)
    return bool(done)


def cut(connection: psycopg.Connection[Any]) -> bool:
    """Whether a connection that rests is none any more: all that a server says to one unasked is that it goes away."""
    if connection.closed:
        return True
    waiting = select.poll()
    waiting.register(connection.fileno(), select.POLLIN)
    return bool(waiting.poll(0))


def transacted(tx: PostgresTx, work: Callable[[base.Tx], T], *, begin: str = "BEGIN") -> T:
    """Run `work` in a transaction. Statements whose outcome nobody asks for travel with the next one that somebody does."""
    try:
        with translated(tx), tx.connection.pipeline() as tx.pipeline:
            tx.connection.execute(begin)
            result = work(tx)
            tx.connection.execute("COMMIT")
        return result
    finally:
        tx.pipeline = None


@contextlib.contextmanager
def translated(tx: PostgresTx) -> Iterator[None]:
    """The driver's errors, in our words; whatever happened, the connection is clean or closed afterwards."""
    try:
        yield
    except psycopg.OperationalError as error:
        tx.connection.close()
        message = "the database cannot be reached"
        raise errors.Unavailable(message) from error
    except psycopg.Error as error:
        undo(tx)
        raise errors.StoreError("the database refused a statement") from error
    except BaseException:
        undo(tx)
        raise


def undo(tx: PostgresTx) -> None:
    try:
        tx.connection.rollback()
    except psycopg.Error:
        tx.connection.close()
