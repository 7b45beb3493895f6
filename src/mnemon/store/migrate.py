"""Migrations: numbered SQL files, applied in order, each recorded in the transaction that applies it. Forward only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from mnemon.core import errors
from mnemon.store import base


class Scripted(Protocol):
    """A transaction that can run a whole script."""

    def script(self, text: str) -> None: ...


def apply(tx: Scripted, dialect: str, execute: Callable[[str], Any]) -> list[str]:
    """Bring the schema up to date inside the caller's transaction; the names of what was applied now.

    Raises `StoreError` if the database was written by a newer version: going back is not possible, and guessing would lose data.
    """
    execute("CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY)")
    done = {row[0] for row in execute("SELECT name FROM migrations").fetchall()}
    known = base.migrations(dialect)
    unknown = done - {name for name, _ in known}
    if unknown:
        message = f"the database was written by a newer version of Mnemon (it has {', '.join(sorted(unknown))}): upgrade Mnemon to open it"
        raise errors.StoreError(message)
    applied = []
    for name, text in known:
        if name not in done:
            tx.script(text)
            execute(f"INSERT INTO migrations (name) VALUES ('{name}')")  # noqa: S608 - our own file names
            applied.append(name)
    return applied
