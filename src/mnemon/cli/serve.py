"""`mnemon serve`: the server."""

from __future__ import annotations

import logging
import socket
from typing import Any

import click
import uvicorn

from mnemon import app as composition
from mnemon.cli import options
from mnemon.config import SettingError, Settings
from mnemon.core import errors
from mnemon.edge.protocol import Protocol

GRACE_SECONDS = 10


class Server(uvicorn.Server):
    """uvicorn, which says what it is once it listens."""

    def __init__(self, config: uvicorn.Config, settings: Settings) -> None:
        super().__init__(config)
        self.settings = settings

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            for line in greeting(self.settings, self._port()):
                click.echo(line)

    def _port(self) -> int:
        return int(self.servers[0].sockets[0].getsockname()[1])


def greeting(settings: Settings, port: int) -> list[str]:
    """The start-up lines: where, on what, which model, and a call that works when pasted."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    model = settings.upstream_url or "built in: a small extractive responder, not a language model (set --upstream-url for a real one)"
    database = settings.database() if settings.database().startswith("sqlite") else "PostgreSQL"
    key_file = settings.data_dir / composition.KEY_FILE
    if settings.api_key is not None:
        credential, shown = "MNEMON_API_KEY", "$MNEMON_API_KEY"
    elif key_file.exists():
        shown = key_file.read_text().strip()
        credential = f"{shown}  (kept in {key_file})"
    else:
        credential, shown = "those made with `mnemon keys add`", "<your key>"
    return [
        f"Mnemon listens on http://{host}:{port}",
        f"  model     {model}",
        f"  database  {database}",
        f"  key       {credential}",
        "",
        "Try it:",
        f"  curl -s http://{host}:{port}/v1/chat/completions -H 'Authorization: Bearer {shown}' \\"
        if settings.api_key is None
        else f'  curl -s http://{host}:{port}/v1/chat/completions -H "Authorization: Bearer {shown}" \\',
        "    -H 'Content-Type: application/json' -H 'X-Hermes-Session-Id: hello' \\",
        """    -d '{"model": "mnemon", "messages": [{"role": "user", "content": "My name is Alex."}]}'""",
    ]


@click.command()
@options.settings_options()
def serve(**flags: Any) -> None:
    """Run the server.

    Every flag can also be set as MNEMON_<NAME> in the environment, or in a TOML file.
    """
    settings = options.load(flags)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    try:
        application = composition.create_app(settings)
    except SettingError as error:
        options.stop(str(error))
    config = uvicorn.Config(
        application,
        host=settings.host,
        port=settings.port,
        http=Protocol,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
        backlog=2048,
    )
    server = Server(config, settings)
    try:
        server.run()
    except errors.MnemonError as error:
        options.stop(error.message)
    if not server.started:
        raise SystemExit(1)
