"""`mnemon backup` and `mnemon restore`: the SQLite database as one file. PostgreSQL has tools of its own."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from mnemon import app as composition
from mnemon.cli import options
from mnemon.config import Settings
from mnemon.core import errors
from mnemon.store.sqlite import Sqlite

# What SQLite keeps beside a database. Left beside another one of the same name, they would be taken for its own and ruin it.
COMPANIONS = ("-wal", "-shm", "-journal")


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@options.settings_options("data_dir", "database_url")
def backup(file: Path, *, force: bool, **flags: Any) -> None:
    """Write a copy of the database to FILE.

    Works while the server runs and writes: the copy is the database as it was at one moment, checked before it gets its name. It holds
    every conversation, memory and key name, so keep it safe; only its owner can read it. The key that was made at the first start (the
    file `api_key` in the data directory) and the settings are not part of it.

    For PostgreSQL use pg_dump.
    """
    with options.told():
        settings = options.load(flags)
        driver = embedded(settings, 'pg_dump --format=custom --file=FILE "$MNEMON_DATABASE_URL"')
        if not driver.path.exists():
            raise errors.NotFound(f"there is no database at {driver.path} yet")
        if file.exists() and file.samefile(driver.path):
            raise errors.Invalid(f"{file} is the database itself: name another file")
        if file.is_dir() or not file.absolute().parent.is_dir():
            raise errors.Invalid(f"{file} is a folder, or lies in one that does not exist: name a file")
        if not force and os.path.lexists(file):
            raise errors.Conflict(f"{file} exists: name another file, or replace it with --force")
        with copied(driver, file) as copy:
            size = copy.stat().st_size
            for companion in COMPANIONS:
                beside(file, companion).unlink(missing_ok=True)
            put(copy, file)
    click.echo(f"{file}: {size / 1e6:.1f} MB, checked and sound.")


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@options.settings_options("data_dir", "database_url")
def restore(file: Path, **flags: Any) -> None:
    """Put FILE, made by `mnemon backup`, in the database's place.

    Stop the server first. FILE is checked and not changed. The database that is there now is kept beside the new one, under its name
    with `.before-restore-` and the time at the end.

    For PostgreSQL use pg_restore.
    """
    with options.told():
        settings = options.load(flags)
        driver = embedded(settings, 'pg_restore --clean --if-exists --dbname="$MNEMON_DATABASE_URL" FILE')
        unused(driver)
        pending = usable(driver, file)
        driver.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with copied(Sqlite(file, owner=0), driver.path) as copy:
            unused(driver)
            give(copy, driver.path if driver.path.exists() else driver.path.parent)
            kept = aside(driver)
            put(copy, driver.path)
    click.echo(f"{driver.path} is now what {file} holds." + (f" The database before it is kept as {kept}." if kept else ""))
    if pending:
        click.echo("It was written by an older version; the next start of `mnemon serve` brings it up to date.")


def embedded(settings: Settings, instead: str) -> Sqlite:
    """The driver, if the database is a file of ours. Raises `Invalid`, which names the command for PostgreSQL."""
    driver = composition.open_driver(settings)
    if not isinstance(driver, Sqlite):
        raise errors.Invalid(f"the database is PostgreSQL, which has its own tool for this: {instead}")
    return driver


def unused(driver: Sqlite) -> None:
    """Raises `Conflict` if any process has the database open."""
    if driver.living():
        raise errors.Conflict(f"{driver.path} is in use: stop the server (and any other mnemon command) on it first")


def usable(driver: Sqlite, file: Path) -> list[str]:
    """Raises unless the file is a database that this version can open; the migrations it lacks."""
    if not file.is_file():
        raise errors.NotFound(f"there is no file {file}")
    if driver.path.exists() and file.samefile(driver.path):
        raise errors.Invalid(f"{file} is the database itself: name a copy made with `mnemon backup`")
    try:
        found = Sqlite(file, owner=0).condition()
    except errors.StoreError as error:
        raise errors.Invalid(f"{file} cannot be restored: {error.message}") from error
    if not found.ours:
        raise errors.Invalid(f"{file} is not a database of Mnemon's")
    if found.foreign:
        raise errors.Invalid(f"{file} was written by a newer version of Mnemon (it has {', '.join(found.foreign)}): upgrade Mnemon first")
    return found.pending


@contextlib.contextmanager
def copied(source: Sqlite, target: Path) -> Iterator[Path]:
    """A checked copy in the target's folder under a name of its own, gone afterwards unless it was put in place. Raises `StoreError`."""
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.absolute().parent) as folder:
        copy = Path(folder) / "copy"
        copy.touch(mode=0o600)
        try:
            source.backup(copy)
            found = Sqlite(copy, owner=0).integrity()
        except errors.StoreError as error:
            raise errors.StoreError(f"{source.path} cannot be copied: {error.message}") from error
        if found != "ok":
            raise errors.StoreError(f"{source.path} is damaged: {found}")
        yield copy


def give(copy: Path, neighbour: Path) -> None:
    """Let a copy made by root belong to whom its neighbour belongs to: the server runs as somebody else."""
    if os.geteuid() == 0:
        owner = neighbour.stat()
        os.chown(copy, owner.st_uid, owner.st_gid)


def aside(driver: Sqlite) -> Path | None:
    """Keep the present database under another name, with whatever belongs to it; the name, if there is one."""
    with contextlib.suppress(errors.StoreError):  # it may be damaged, which is a reason to restore; then its log is kept with it
        driver.fold()
    kept = driver.path.with_name(f"{driver.path.name}.before-restore-{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}")
    for companion in COMPANIONS:
        with contextlib.suppress(FileNotFoundError):
            beside(driver.path, companion).rename(beside(kept, companion))
    if not driver.path.exists():
        return None
    try:
        os.link(driver.path, kept)  # so that at no moment there is no database
    except OSError:
        driver.path.rename(kept)
    return kept


def beside(path: Path, companion: str) -> Path:
    return path.with_name(path.name + companion)


def put(copy: Path, target: Path) -> None:
    """Give a file its name, in the place of whatever has it now, for good."""
    copy.replace(target)
    folder = os.open(target.absolute().parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
