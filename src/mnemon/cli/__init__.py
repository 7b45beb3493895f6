"""The command line: one module for each group of commands, loaded when it is asked for."""

from __future__ import annotations

import importlib

import click

# Each with its module, in the order in which help lists them.
HOMES = {
    "serve": "serve",
    "worker": "worker",
    "chat": "chat",
    "keys": "keys",
    "memory": "memory",
    "jobs": "jobs",
    "check": "check",
    "backup": "backup",
    "restore": "backup",
}


class Commands(click.Group):
    """`mnemon serve` need not know how to chat: what it does not load, it need not wait for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(HOMES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in HOMES:
            return None
        found: click.Command = getattr(importlib.import_module(f"mnemon.cli.{HOMES[cmd_name]}"), cmd_name)
        return found


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="mnemon-server", prog_name="mnemon")
def main() -> None:
    """Mnemon gives any OpenAI-compatible model a durable memory.

    Start it with `mnemon serve`; it prints a key and a first call to try.
    """
