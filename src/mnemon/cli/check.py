"""`mnemon check`: is everything there that the server needs? Looks only: it changes nothing, and a running server does not notice."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import click

from mnemon import app as composition
from mnemon import config
from mnemon.cli import options
from mnemon.config import Settings
from mnemon.core import errors
from mnemon.store import keys
from mnemon.store.base import Driver
from mnemon.store.sqlite import Sqlite
from mnemon.turn.pipeline import cause_of

LEAST_FREE = 100 * 2**20
PATIENCE = 10.0
LISTED = 5


class Finding(NamedTuple):
    """One line: what was looked at, whether it is well, and what is there or what to do."""

    subject: str
    well: bool
    text: str


@click.command()
@options.settings_options()
def check(**flags: Any) -> None:
    """Check settings, data, database and model. A line for each says ok, or what to do.

    Takes the settings of `mnemon serve`. Works while the server runs and changes nothing. Ends with 1 if anything is wrong.
    """
    wrong = 0
    for finding in findings(flags):
        wrong += not finding.well
        text = " ".join(finding.text.split())
        click.echo(f"{'ok   ' if finding.well else 'WRONG'}  {finding.subject:<15} {text}")
    raise SystemExit(1 if wrong else 0)


def findings(flags: dict[str, Any]) -> Iterator[Finding]:
    try:
        settings = config.load(flags)
    except config.SettingError as error:
        yield Finding("settings", well=False, text=str(error))
        return
    doubts = config.doubts(settings)
    yield Finding("settings", well=not doubts, text="; ".join(doubts) or "understood")
    yield data_directory(settings)
    try:
        driver = composition.open_driver(settings)
    except config.SettingError as error:
        yield Finding("database", well=False, text=str(error))
        return
    yield (found := database(driver))
    ready = found.well and driver.condition().exists
    if ready and isinstance(driver, Sqlite):
        yield integrity(driver)
    yield disk(settings)
    yield asyncio.run(model(settings))
    yield asyncio.run(credential(settings, driver if ready else None))
    yield key_length(settings)


def data_directory(settings: Settings) -> Finding:
    subject, folder = "data directory", settings.data_dir
    if not folder.exists():
        parent = nearest(folder)
        if writable(parent):
            return Finding(subject, well=True, text=f"{folder} will be created at the first start")
        return Finding(
            subject, well=False, text=f"{folder} cannot be created: {parent} is not a folder you may write to; set MNEMON_DATA_DIR"
        )
    if not writable(folder):
        return Finding(subject, well=False, text=f"{folder} is not a folder you may write to: change its owner, or set MNEMON_DATA_DIR")
    return Finding(subject, well=True, text=f"{folder} is writable")


def writable(folder: Path) -> bool:
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)


def nearest(path: Path) -> Path:
    """The path, or the nearest folder above it that exists."""
    return path if path.exists() or path == path.parent else nearest(path.parent)


def database(driver: Driver) -> Finding:
    subject = "database"
    try:
        found = driver.condition()
    except errors.StoreError as error:
        return Finding(subject, well=False, text=error.message)
    if found.foreign:
        newer = ", ".join(found.foreign)
        return Finding(subject, well=False, text=f"it was written by a newer version of Mnemon (it has {newer}): upgrade Mnemon")
    if isinstance(driver, Sqlite) and not writable(nearest(driver.path.parent)):
        return Finding(subject, well=False, text=f"{driver.path.parent} is not a folder you may write to")
    if not found.exists:
        return Finding(subject, well=True, text=f"{found.software}; will be created at the first start")
    if not found.ours:
        return Finding(subject, well=False, text="it is not a database of Mnemon's: set MNEMON_DATABASE_URL or MNEMON_DATA_DIR to another")
    if found.pending:
        lacks = ", ".join(found.pending)
        return Finding(subject, well=False, text=f"it lacks {lacks}: start `mnemon serve` to bring it up to date (`mnemon backup` before)")
    return Finding(subject, well=True, text=f"{found.software}, newest schema ({found.known[-1]})")


def integrity(driver: Sqlite) -> Finding:
    subject = "integrity"
    try:
        found = driver.integrity()
    except errors.StoreError as error:
        found = error.message
    if found != "ok":
        return Finding(subject, well=False, text=f"{driver.path} is damaged ({found}): stop the server and `mnemon restore` a backup")
    return Finding(subject, well=True, text="the file is sound, and so are the references between its rows")


def disk(settings: Settings) -> Finding:
    folder = nearest(settings.data_dir)
    free = shutil.disk_usage(folder).free
    if free < LEAST_FREE:
        return Finding("disk", well=False, text=f"{free / 1e6:.0f} MB free at {folder}: make room")
    return Finding("disk", well=True, text=f"{free / 1e9:.1f} GB free")


async def model(settings: Settings) -> Finding:
    subject, url = "model", settings.upstream_url
    if url is None:
        return Finding(
            subject, well=True, text="built in: a small extractive responder, not a language model (set MNEMON_UPSTREAM_URL for one)"
        )
    try:
        upstream = composition.open_model(replace(settings, upstream_timeout=min(settings.upstream_timeout, PATIENCE)))
        try:
            offered = [str(each["id"]) for each in await upstream.models() if each.get("id")]
        finally:
            await upstream.close()
    except errors.ModelDenied as error:
        return Finding(subject, well=False, text=f"{url} does not accept the key: set MNEMON_UPSTREAM_KEY ({error.message})")
    except errors.MnemonError as error:
        return Finding(subject, well=False, text=f"{url}/models: {error.message} ({cause_of(error)}) Is MNEMON_UPSTREAM_URL right?")
    if not settings.upstream_model and not offered:
        return Finding(subject, well=False, text=f"{url} answers but lists no model: set MNEMON_UPSTREAM_MODEL")
    used = settings.upstream_model or offered[0]
    text = f"{url} answers; {used!r} will be used"
    if used not in offered:
        text += f", which it does not list (it lists {', '.join(offered[:LISTED]) or 'none'})"
    return Finding(subject, well=True, text=text)


async def credential(settings: Settings, driver: Driver | None) -> Finding:
    subject, file = "credential", settings.data_dir / composition.KEY_FILE
    if settings.api_key is not None:
        return Finding(subject, well=True, text="MNEMON_API_KEY is set")
    if file.exists():
        if stat.S_IMODE(file.stat().st_mode) & 0o077:
            return Finding(subject, well=False, text=f"others may read {file}: chmod 600 {file}")
        return Finding(subject, well=True, text=f"the key made at the first start, in {file}")
    try:
        living = await valid_keys(driver) if driver else 0
    except errors.StoreError as error:
        return Finding(subject, well=False, text=error.message)
    if living:
        return Finding(subject, well=True, text=f"{living} made with `mnemon keys add`")
    return Finding(subject, well=True, text=f"one will be made at the first start and kept in {file}")


async def valid_keys(driver: Driver) -> int:
    """How many keys of the database are valid."""
    await driver.open()
    try:
        return sum(key.revoked_at is None for key in await driver.read(keys.everyone))
    finally:
        await driver.close()


def key_length(settings: Settings) -> Finding:
    subject, file = "key length", settings.data_dir / composition.KEY_FILE
    if settings.loopback():
        return Finding(subject, well=True, text=f"any will do: only this machine can reach {settings.host}")
    # A short MNEMON_API_KEY was refused with the settings.
    if settings.api_key is None and file.exists() and len(file.read_text().strip()) < config.SHORTEST_PUBLIC_KEY:
        text = f"the key in {file} is shorter than {config.SHORTEST_PUBLIC_KEY} characters: delete the file, and a new one is made"
        return Finding(subject, well=False, text=text)
    return Finding(subject, well=True, text=f"long enough for {settings.host}, which others can reach")
