"""Real servers for tests: `mnemon serve` as a process on a free port, and the scripted model behind it.

    with servers.scripted_upstream() as upstream, servers.running(upstream=upstream) as server:
        reply = server.chat("My name is Alex.", session="hello")
        server.kill()     # as a power cut would
        server.restart()  # same port, same data, same settings

A process gets no setting from the machine the tests run on, only what the test gives it.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from tests.upstream import Upstream, scripted

KEY = "test-key-0123456789"
START_SECONDS = 60.0
STOP_SECONDS = 30.0
FOREIGN = ("MNEMON_", "API_SERVER_", "OPENAI_", "XDG_")
LISTENS = re.compile(rb"^Mnemon listens on (http://\S+)$", re.MULTILINE)

Environment = Mapping[str, str | None]
scripted_upstream = scripted


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A reply of the server. `body` is what its JSON says, or its text if it is none."""

    status: int
    headers: dict[str, str]
    """By their names in small letters."""
    body: Any

    @property
    def text(self) -> str:
        """What the model said, if this is a chat completion."""
        assert self.status == 200, self
        return str(self.body["choices"][0]["message"]["content"])


class Server:
    """A `mnemon serve` process. `url` has no `/v1`; `key` is a key it accepts."""

    def __init__(self, *, data_dir: Path, log: Path, env: Environment, args: tuple[str, ...]) -> None:
        self.data_dir = data_dir
        self.env: Environment = {"MNEMON_API_KEY": KEY, "MNEMON_PORT": "0", "MNEMON_DATA_DIR": str(data_dir), **env}
        self.args = args
        self.url = ""
        self._log = log
        self.process: subprocess.Popen[bytes] = self._start()

    @property
    def key(self) -> str:
        """The configured key, or the one made at the first start."""
        return self.env.get("MNEMON_API_KEY") or (self.data_dir / "api_key").read_text().strip()

    def output(self) -> str:
        """Everything the present process printed so far."""
        return self._log.read_bytes().decode(errors="replace")

    def kill(self) -> None:
        """End the process without a chance to say goodbye."""
        self.process.kill()
        self.process.wait(STOP_SECONDS)

    def stop(self, seconds: float = STOP_SECONDS) -> int:
        """Ask the process to end, and wait until it has; its exit code. One that does not end is killed, and an error."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise

    def restart(self) -> None:
        """Start again on the same port, with the same data and settings; a process that still runs is stopped first."""
        if self.process.poll() is None:
            self.stop()
        self.env = {**self.env, "MNEMON_PORT": str(urlsplit(self.url).port)}
        self.process = self._start()

    def call(self, method: str, path: str, body: Any = None, **headers: str | None) -> Answer:
        """One request with the server's key. A header's name is written with underscores: `X_Hermes_Session_Id="s"`; None leaves it out."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if "Authorization" not in sent:
            sent["Authorization"] = f"Bearer {self.key}"
        with contextlib.closing(self.connect()) as connection:
            payload = None if body is None else json.dumps(body).encode()
            given = {name: value for name, value in sent.items() if value is not None}
            connection.request(method, path, payload, {"Content-Type": "application/json", **given})
            response = connection.getresponse()
            raw = response.read()
            found: Any = raw.decode(errors="replace")
            with contextlib.suppress(ValueError):
                found = json.loads(raw)
            return Answer(status=response.status, headers={name.lower(): value for name, value in response.getheaders()}, body=found)

    def connect(self) -> http.client.HTTPConnection:
        """A connection of the caller's own, for streams and for what `call` does not know."""
        address = urlsplit(self.url)
        assert address.hostname
        return http.client.HTTPConnection(address.hostname, address.port, timeout=120)

    def chat(self, text: str, *, session: str | None = None, key: str | None = None, **headers: str | None) -> Answer:
        """One turn, not streamed. `session` and `key` name the conversation, as in the two headers."""
        body = {"model": "mnemon", "messages": [{"role": "user", "content": text}]}
        return self.call("POST", "/v1/chat/completions", body, X_Hermes_Session_Id=session, X_Hermes_Session_Key=key, **headers)

    def _start(self) -> subprocess.Popen[bytes]:
        with self._log.open("wb") as output:
            process = start("serve", *self.args, env=self.env, stdout=output)
        try:
            self._wait(process)
        except BaseException:
            process.kill()
            process.wait()
            raise
        return process

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        """Wait for the start-up lines, which name the port, and for `/health`."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            assert process.poll() is None, f"the server ended with {process.returncode}:\n{self.output()}"
            if found := LISTENS.search(self._log.read_bytes()):
                self.url = found[1].decode().replace("//0.0.0.0", "//127.0.0.1")
                assert self.call("GET", "/health", Authorization=None).status == 200
                return
            time.sleep(0.02)
        raise TimeoutError(f"the server did not start within {START_SECONDS:.0f} seconds:\n{self.output()}")


@contextlib.contextmanager
def running(
    *, data_dir: Path | None = None, env: Environment | None = None, args: tuple[str, ...] = (), upstream: Upstream | None = None
) -> Iterator[Server]:
    """A server that has answered `/health`; it is stopped when the block is left.

    Without `data_dir` it keeps its data in a folder of its own that goes away with it. `env` holds settings; a value of None takes
    one away, the key that every server gets too. `args` are flags of `mnemon serve`. Without `upstream` the built-in model answers.
    """
    with contextlib.ExitStack() as stack:
        own = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mnemon-test-")))
        settings = {"MNEMON_UPSTREAM_URL": upstream.url if upstream else None, **(env or {})}
        server = Server(data_dir=data_dir or own / "data", log=own / "log", env=settings, args=args)
        try:
            yield server
        finally:
            if server.process.poll() is None:
                server.stop()


def command(
    *args: str, env: Environment | None = None, stdin: str = "", seconds: float = START_SECONDS
) -> subprocess.CompletedProcess[str]:
    """Run `mnemon ARGS…` to its end. One that does not end in time is killed, and an error."""
    process = start(*args, env=env or {}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with process:
        try:
            out, err = process.communicate(stdin.encode(), timeout=seconds)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(args, process.returncode, out.decode(), err.decode())


def start(
    *args: str, env: Environment, stdin: int = subprocess.DEVNULL, stdout: int | IO[bytes], stderr: int = subprocess.STDOUT
) -> subprocess.Popen[bytes]:
    """`mnemon ARGS…` as a process, in an environment with nothing of ours in it but `env`."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    given = {name: value for name, value in env.items() if value is not None}
    return subprocess.Popen([sys.executable, "-m", "mnemon", *args], env={**clean, **given}, stdin=stdin, stdout=stdout, stderr=stderr)
