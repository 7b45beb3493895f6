"""The command line: one module for each group of commands."""

from __future__ import annotations

import click

from mnemon.cli.backup import backup, restore
from mnemon.cli.chat import chat
from mnemon.cli.check import check
from mnemon.cli.jobs import jobs
from mnemon.cli.keys import keys
from mnemon.cli.memory import memory
from mnemon.cli.serve import serve
from mnemon.cli.worker import worker


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="mnemon-server", prog_name="mnemon")
def main() -> None:
    """Mnemon gives any OpenAI-compatible model a durable memory.

    Start it with `mnemon serve`; it prints a key and a first call to try.
    """


for command in (serve, worker, chat, keys, memory, jobs, check, backup, restore):
    main.add_command(command)
