"""`mnemon keys`: make, list and end API keys. Works on the database itself, whether a server runs on it or not."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

import click

from mnemon import app as composition
from mnemon.cli import options
from mnemon.config import Settings
from mnemon.core import clock, errors, ids
from mnemon.store import keys as store
from mnemon.store.base import Driver, Tx

T = TypeVar("T")

LONGEST_NAME = 64
LARGEST_LIMIT = 1_000_000
HEADINGS = ("NAME", "TENANT", "LIMITS", "CREATED", "STATE")


@click.group()
def keys() -> None:
    """Make, list and revoke API keys.

    Every client of the server sends a key. One is made at the first start; make more to keep people or programs apart: nothing of one
    tenant is visible to another, and a key is a tenant of its own unless it is made with --tenant. Changes take effect at once, in
    running servers too.
    """


@keys.command()
@click.argument("name")
@click.option(
    "--tenant", metavar="T", help="Share everything with the other keys of this tenant; `default` is the tenant of MNEMON_API_KEY."
)
@click.option(
    "--requests-per-minute", metavar="N", type=click.IntRange(1, LARGEST_LIMIT), help="Refuse more with 429.  [default: no limit]"
)
@click.option(
    "--concurrency", metavar="N", type=click.IntRange(1, LARGEST_LIMIT), help="Most requests in flight at once.  [default: no limit]"
)
@options.settings_options("data_dir", "database_url")
def add(name: str, *, tenant: str | None, requests_per_minute: int | None, concurrency: int | None, **flags: Any) -> None:
    """Make a key called NAME and print its secret.

    The secret is shown this once; only a hash of it is kept. NAME is up to 64 printable characters and is used up for ever, also
    when the key is revoked.
    """
    secret = ids.api_key()
    with options.told():
        key = store.ApiKey(
            name=named("NAME", name),
            tenant=named("--tenant", tenant) if tenant is not None else f"key:{name}",
            hash=store.hashed(secret),
            requests_per_minute=requests_per_minute,
            concurrency=concurrency,
            created_at=clock.system(),
        )
        asyncio.run(change(options.load(flags), lambda tx: store.add(tx, key)))
    click.echo(secret)
    click.echo("This is the only time it is shown. Clients send it as the header  Authorization: Bearer <that key>", err=True)


@keys.command("list")
@options.settings_options("data_dir", "database_url")
def show(**flags: Any) -> None:
    """List the keys made with `mnemon keys add`, oldest first.

    Never shows a secret. MNEMON_API_KEY and the key made at the first start are not among them.
    """
    with options.told():
        found = asyncio.run(everyone(options.load(flags)))
    if not found:
        click.echo("There are none yet. Make one with: mnemon keys add NAME")
        return
    for line in table([HEADINGS, *map(row, found)]):
        click.echo(line)


@keys.command()
@click.argument("name")
@options.settings_options("data_dir", "database_url")
def revoke(name: str, **flags: Any) -> None:
    """End the key called NAME, for good and at once. What was stored with it stays."""
    with options.told():
        settings = options.load(flags)
        existing(composition.open_driver(settings))
        asyncio.run(change(settings, lambda tx: store.revoke(tx, name, at=clock.system())))
    click.echo(f"{name!r} is revoked.")


def named(what: str, text: str) -> str:
    """A name that can be shown in a table and typed again. Raises `Invalid`."""
    if not 1 <= len(text) <= LONGEST_NAME or not text.isprintable() or text != text.strip():
        message = f"{what} must be 1 to {LONGEST_NAME} printable characters without a space at either end, not {text!r}"
        raise errors.Invalid(message)
    return text


@contextlib.asynccontextmanager
async def opened(driver: Driver) -> AsyncIterator[Driver]:
    await driver.open()
    try:
        yield driver
    finally:
        await driver.close()


async def change(settings: Settings, work: Callable[[Tx], T]) -> T:
    """Carry out a change of the keys."""
    async with opened(composition.open_driver(settings)) as driver:
        return await driver.write(work)


async def everyone(settings: Settings) -> list[store.ApiKey]:
    async with opened(existing(composition.open_driver(settings))) as driver:
        return await driver.read(store.everyone)


def existing(driver: Driver) -> Driver:
    """A driver whose database is there: to look for keys where there are none must not make one. Raises `NotFound`."""
    if not driver.condition().exists:
        raise errors.NotFound("there is no database here yet; `mnemon serve` and `mnemon keys add` make one (is it the right --data-dir?)")
    return driver


def row(key: store.ApiKey) -> tuple[str, ...]:
    limits = [
        f"{key.requests_per_minute} a minute" if key.requests_per_minute is not None else "",
        f"{key.concurrency} at once" if key.concurrency is not None else "",
    ]
    state = "valid" if key.revoked_at is None else f"revoked {moment(key.revoked_at)}"
    return key.name, key.tenant, ", ".join(filter(None, limits)) or "none", moment(key.created_at), state


def moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")


def table(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(len(text) for text in column) for column in zip(*rows, strict=True)]
    return ["  ".join(text.ljust(width) for text, width in zip(each, widths, strict=True)).rstrip() for each in rows]
