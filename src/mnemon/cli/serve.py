"""`mnemon serve`: the server."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import logging
import os
import shlex
import signal
import socket
from types import FrameType
from typing import Any, cast

import click
import uvicorn
from starlette.applications import Starlette

from mnemon import app as composition
from mnemon import config
from mnemon.cli import options
from mnemon.config import SettingError, Settings
from mnemon.edge.protocol import Protocol
from mnemon.turn.pipeline import Turns

GRACE_SECONDS = 3  # for a client to take what it is still owed, once the turns have ended
BACKLOG = 2048
# A name may stand for an address that this machine does not have, as localhost does for ::1 where there is no IPv6.
ABSENT = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)


class Server(uvicorn.Server):
    """uvicorn, which says what it is once it listens.

    It enters the application's lifespan itself: uvicorn would print a traceback where one clear line says why the start failed.
    """

    def __init__(self, server: uvicorn.Config, settings: Settings, application: Starlette) -> None:
        super().__init__(server)
        self.settings = settings
        self.application = application
        self.parts = contextlib.AsyncExitStack()
        self.loop: asyncio.AbstractEventLoop | None = None

    @property
    def turns(self) -> Turns:
        return cast("Turns", self.application.state.services.turns)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A second Ctrl-C: whoever waits has waited long enough."""
        if self.should_exit and sig == signal.SIGINT and self.loop:
            self.loop.call_soon_threadsafe(self.turns.hurry.set)
        super().handle_exit(sig, frame)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self.loop = asyncio.get_running_loop()
        key_is_new = not (self.settings.data_dir / composition.KEY_FILE).exists()
        await self.parts.enter_async_context(self.application.router.lifespan_context(self.application))
        await super().startup(sockets)
        for line in greeting(self.settings, self._port(), key_is_new=key_is_new):
            click.echo(line)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no more connections, end the turns, then the connections.

        A turn that does not end in time is handed back and its client told so; uvicorn, waiting for clients, would only cut them off.
        """
        for listener in self.servers:
            listener.close()
        if count := len(self.turns.running):
            turns = "1 turn" if count == 1 else f"{count} turns"
            click.echo(f"Stopping: waiting up to {composition.STOP_PATIENCE:g} s for {turns} (Ctrl-C again: at once)")
        await self.turns.close(composition.STOP_PATIENCE)
        await super().shutdown(sockets)
        await self.parts.aclose()

    def _port(self) -> int:
        return int(self.servers[0].sockets[0].getsockname()[1])


def listening(host: str, port: int) -> list[socket.socket]:
    """A socket for each address of the host, taken before anything else is done. Raises `SettingError`."""
    found: list[socket.socket] = []
    failures: list[OSError] = []
    try:
        places = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise SettingError(unavailable(host, port, error)) from None
    for family, _, _, _, place in places:
        chosen = found[0].getsockname()[1] if found else port  # with port 0 the first address chooses for all
        try:
            found.append(socket.create_server((place[0], chosen, *place[2:]), family=family, backlog=BACKLOG))
        except OSError as error:
            failures.append(error)
    if not found or any(failure.errno not in ABSENT for failure in failures):
        for each in found:
            each.close()
        raise SettingError(unavailable(host, port, failures[-1]))
    return found


def unavailable(host: str, port: int, error: OSError) -> str:
    """Why the address cannot be listened on, and what to do."""
    if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
        return f"cannot listen on {host}: it is not an address of this machine; set MNEMON_HOST to one that is"
    if error.errno == errno.EADDRINUSE:
        return f"port {port} of {host} is in use: stop what listens there, or choose another port with --port or MNEMON_PORT"
    if error.errno == errno.EACCES:
        return f"port {port} of {host} is reserved: choose one above 1023 with --port or MNEMON_PORT"
    return f"cannot listen on port {port} of {host}: {error.strerror}"


def greeting(settings: Settings, port: int, *, key_is_new: bool) -> list[str]:
    """The start-up lines: where, on what, which model, and a call that works when pasted."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    model = settings.upstream_url or "built in: a small extractive responder, not a language model (set --upstream-url for a real one)"
    database = settings.database() if settings.database().startswith("sqlite") else "PostgreSQL"
    told, sent = credential(settings, key_is_new=key_is_new)
    return [
        f"Mnemon listens on http://{host}:{port}",
        f"  model     {model}",
        f"  database  {database}",
        f"  key       {told}",
        "",
        "Try it:",
        f'  curl -s http://{host}:{port}/v1/chat/completions -H "Authorization: Bearer {sent}" \\',
        "    -H 'Content-Type: application/json' -H 'X-Hermes-Session-Id: hello' \\",
        """    -d '{"model": "mnemon", "messages": [{"role": "user", "content": "My name is Alex."}]}'""",
    ]


def credential(settings: Settings, *, key_is_new: bool) -> tuple[str, str]:
    """What is said of the key, and how a shell comes by it. The key itself is shown once, when it was made."""
    file = settings.data_dir / composition.KEY_FILE
    if settings.api_key is not None:
        in_environment = os.environ.get("MNEMON_API_KEY") == settings.api_key
        return "the one you set", "$MNEMON_API_KEY" if in_environment else "<the key you set>"
    if not file.exists():
        return "those made with `mnemon keys add`", "<your key>"
    if key_is_new:
        secret = file.read_text().strip()
        return f"{secret}  (kept in {file}; shown this once)", secret
    return f"kept in {file}", f"$(cat {shlex.quote(str(file))})"


@click.command()
@options.settings_options()
def serve(**flags: Any) -> None:
    """Run the server.

    Every flag can also be set as MNEMON_<NAME> in the environment, or in a TOML file.
    """
    settings = options.load(flags)
    for doubt in config.doubts(settings):
        click.echo(f"mnemon: {doubt}", err=True)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    with options.told():
        application = composition.create_app(settings)
        sockets = listening(settings.host, settings.port)
        server = uvicorn.Config(
            application,
            http=Protocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=GRACE_SECONDS,
            backlog=BACKLOG,
        )
        # What was built up to here stays for ever; and turns leave few cycles behind: the collector need not look so often.
        gc.freeze()
        gc.set_threshold(20_000, 20, 50)
        with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C is how a server is stopped
            Server(server, settings, application).run(sockets)
