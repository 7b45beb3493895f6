"""Settings as command-line flags: each has the name of its setting."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, NoReturn, TypeVar

import click

from mnemon import config
from mnemon.core import errors

F = TypeVar("F", bound=Callable[..., Any])

HELP = {
    "host": "Address to listen on.  [default: 127.0.0.1]",
    "port": "Port to listen on.  [default: 8642]",
    "api_key": "The key clients must send. Without one, a key is made at the first start.",
    "data_dir": "Where the database and the first key are kept.",
    "database_url": "postgresql://… for several servers on one database.  [default: a SQLite file in the data directory]",
    "upstream_url": "Base URL of any OpenAI-compatible model.  [default: the small built-in model]",
    "upstream_key": "Key for the upstream model.",
    "upstream_model": "Model name to ask the upstream for.  [default: the first it offers]",
    "context_budget": "Most prompt tokens ever sent upstream.  [default: 16384]",
    "recall_tokens": "How many of them recalled memories may fill.  [default: 2048]",
    "upstream_timeout": "Seconds of silence allowed from the model.  [default: 120]",
    "compress_at": "Share of the budget the live history may fill before it is compressed.  [default: 0.6]",
    "memory_provider": "builtin, or none for no recall at all.  [default: builtin]",
    "embeddings": "builtin, or off to recall by words alone.  [default: builtin]",
    "timezone": "IANA time zone for schedules, and for relative dates in what is remembered.  [default: UTC]",
    "openwebui_headers": "on: take session, user and chat from Open WebUI's forwarded headers.  [default: off]",
    "runs_kept_days": "Days that a run can be looked at after its end.  [default: 30]",
    "webhook_private": "on: allow job deliveries to private addresses.  [default: off]",
    "cors_origins": "Comma list of web origins that may call the server.  [default: none]",
    "model_name": "Name under which the model is offered.  [default: mnemon]",
}


def settings_options(*names: str) -> Callable[[F], F]:
    """Flags for these settings (all of them if none is named), and `--config`."""

    def decorate(command: F) -> F:
        for name in reversed(names or tuple(HELP)):
            command = click.option(f"--{name.replace('_', '-')}", name, metavar="VALUE", help=HELP[name])(command)
        return click.option("--config", metavar="FILE", help="TOML file with settings.  [default: mnemon.toml in the data directory]")(
            command
        )

    return decorate


def load(flags: dict[str, Any]) -> config.Settings:
    """The settings, or one clear line and the end."""
    with told():
        return config.load(flags)


@contextlib.contextmanager
def told() -> Iterator[None]:
    """What is known to go wrong inside ends the command with one clear line."""
    try:
        yield
    except config.SettingError as error:
        stop(str(error))
    except errors.MnemonError as error:
        stop(error.message)
    except OSError as error:
        stop(f"{error.filename}: {error.strerror}" if error.filename else str(error))


def stop(message: str) -> NoReturn:
    """Say why, in one line, and end. What a database driver has to say may come in several."""
    click.echo(f"mnemon: {' '.join(message.split())}", err=True)
    raise SystemExit(2)
