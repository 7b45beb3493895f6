"""`mnemon worker`: runs jobs and nothing else; no address is listened on."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from typing import Any

import click

from mnemon import app as composition
from mnemon.cli import options
from mnemon.config import Settings

SETTINGS = tuple(name for name in options.HELP if name not in ("host", "port", "api_key", "cors_origins", "openwebui_headers"))


@click.command()
@options.settings_options(*SETTINGS)
def worker(**flags: Any) -> None:
    """Run scheduled jobs without serving HTTP.

    For more hands on one PostgreSQL: `mnemon serve` runs jobs too. Takes the settings of the server.
    """
    settings = options.load(flags)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    with options.told(), contextlib.suppress(KeyboardInterrupt):
        asyncio.run(work(settings))


async def work(settings: Settings) -> None:
    """Until somebody ends it."""
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    async with composition.at_work(settings):
        click.echo("Mnemon works on jobs. Ctrl-C ends it.")
        await ended.wait()
