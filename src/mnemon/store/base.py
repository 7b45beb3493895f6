"""The driver port that the repositories stand on.

A unit of work is an ordinary function that takes a `Tx` and returns a value. A driver runs it off the event loop inside one
transaction and hands the value back: one thread hop, whatever the function does. So repositories are plain synchronous code,
no transaction can stay open across an await, and both databases run the same lines.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
Row = Mapping[str, Any]


class Touched(Protocol):
    """The outcome of a statement that may still be on its way: whether it touched any row. To ask is to wait for it."""

    def __bool__(self) -> bool: ...

    def __int__(self) -> int: ...


class Leases(Protocol):
    """Leases of one tenant. A token names the turn that holds one."""

    def take(self, name: str, token: str) -> bool:
        """Try to become the one writer; False if a living process is. What the last writer wrote is seen from here on."""
        ...

    def give_up(self, name: str, token: str) -> None:
        """Release, if it is still ours."""
        ...

    def end(self, name: str, token: str) -> Callable[[], None]:
        """Release as part of a commit; what this returns is called before that ends.

        It raises `LeaseLost` if somebody else holds the lease by now: then nothing may be written.
        """
        ...


class Tx(Protocol):
    """An open transaction. Statements are called by their name in `sql/queries.sql`; parameters are keywords."""

    def run(self, name: str, /, **params: Any) -> Touched:
        """Execute, perhaps not at once: statements may travel together until somebody asks for an outcome."""
        ...

    def many(self, name: str, rows: Iterable[Mapping[str, Any]], /) -> None:
        """Execute once for each row of parameters."""
        ...

    def one(self, name: str, /, **params: Any) -> Row | None:
        """The first row, or None."""
        ...

    def all(self, name: str, /, **params: Any) -> list[Row]:
        """Every row, in the statement's order."""
        ...

    def plain(self, name: str, /, **params: Any) -> list[tuple[Any, ...]]:
        """Every row as its values in the order of the columns: for many rows, since it is cheaper."""
        ...

    def leases(self, tenant: str) -> Leases:
        """The leases of a tenant's sessions."""
        ...

    def alive(self, owner: int) -> bool:
        """Whether the process that called itself `owner` still runs. Never wrong about a dead one of this machine or cluster."""
        ...

    def touch(self, topic: str) -> None:
        """Tell every process that shares the database that the topic changed: once this transaction is committed, and only then."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """What is there before a driver opens it. `applied` are the migrations it has, `known` those of this version, oldest first."""

    software: str
    """Name and version of the database software."""
    exists: bool
    applied: frozenset[str] = frozenset()
    known: tuple[str, ...] = ()

    @property
    def ours(self) -> bool:
        """Whether this is a database of Mnemon's."""
        return not self.applied.isdisjoint(self.known)

    @property
    def pending(self) -> list[str]:
        """What opening it would apply."""
        return [name for name in self.known if name not in self.applied]

    @property
    def foreign(self) -> list[str]:
        """What only a newer version of Mnemon can have applied."""
        return sorted(self.applied.difference(self.known))


class Driver(Protocol):
    """A database. `owner` names this process among those that share it, for as long as the driver is open."""

    owner: int
    name: str
    shared: bool
    """Whether several servers may use it at once."""

    async def open(self) -> None:
        """Connect, migrate, announce this process. Raises `errors.Unavailable` with a sentence that says what to do."""
        ...

    async def close(self) -> None:
        """Finish what was begun, take the announcement back, disconnect."""
        ...

    async def read(self, work: Callable[[Tx], T]) -> T:
        """Run `work` on a snapshot. It must not write."""
        ...

    async def glance(self, work: Callable[[Tx], T]) -> T:
        """Read a little: it may run at once, on the event loop, and each statement sees what is committed by then."""
        ...

    async def begin(self, work: Callable[[Tx], T], *, writes: bool) -> T:
        """Run the beginning of a turn: it takes a lease, and `writes` says that it does more. Not durable: the process's end undoes it."""
        ...

    def enter(self, token: str) -> None:
        """A turn of this name runs in this process from now on; only such a turn is granted a lease."""
        ...

    def leave(self, token: str) -> None:
        """It has ended; a lease that it still holds is free."""
        ...

    def write(self, work: Callable[[Tx], T], *, durable: bool = True) -> Awaitable[T]:
        """Run `work` in a transaction and commit it; if it raises, nothing of it remains.

        When this returns, the change is visible to every reader and survives `kill -9`; with `durable`, a power cut too.
        """
        ...

    async def scrub(self, *, whole: bool) -> bool:
        """Take what was deleted out of the database's own files, beside readers and writers; False if somebody was in the way.

        With `whole`, everything is rewritten, at any size; without, only if that takes no time that a turn would notice.
        """
        ...

    def stamp(self, topic: str) -> int:
        """A number that changes whenever any process touched the topic (`Tx.touch`). Cheap enough for every request."""
        ...

    def condition(self) -> Condition:
        """Look at the database without changing or creating anything; it need not be open. Raises `StoreError`."""
        ...


STATEMENT = re.compile(r"^-- name: (\w+)(?: @(\w+))?\s*$", re.MULTILINE)


def statements(dialect: str) -> dict[str, str]:
    """The named statements of `sql/queries.sql`, in the wording of one dialect."""
    pieces = STATEMENT.split(resources.files("mnemon.store").joinpath("sql/queries.sql").read_text())[1:]
    found: dict[str, str] = {}
    for name, only, text in zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True):
        if only in (None, dialect):
            found[name] = text.strip().rstrip(";")
    return found


def migrations(dialect: str) -> list[tuple[str, str]]:
    """(name, script) of every migration, oldest first."""
    folder = resources.files("mnemon.store").joinpath("sql", dialect)
    files = sorted((f for f in folder.iterdir() if f.name.endswith(".sql")), key=lambda f: f.name)
    return [(f.name.removesuffix(".sql"), f.read_text()) for f in files]
