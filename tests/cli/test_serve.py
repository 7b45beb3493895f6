"""`mnemon serve` as a process: what stops its start, what its first lines promise, and how it ends."""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import socket
import sqlite3
import stat
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from mnemon import cli
from tests import postgres, servers
from tests.servers import Answer, Server
from tests.upstream import Upstream

SECONDS_TO_STOP = 5.0
EVERYWHERE = "0.0.0.0"  # noqa: S104 - what the setting is tried with


def refused(*args: str, env: servers.Environment) -> str:
    """The one line with which a start that must fail says why."""
    ended = servers.command("serve", *args, env={"MNEMON_PORT": "0", **env})
    return one_line(ended.returncode, ended.stdout, ended.stderr)


def one_line(code: int, out: str, err: str) -> str:
    """What a start says that fails as it should."""
    assert code == 2
    assert out == ""
    line, *rest = err.splitlines()
    assert rest == []
    assert line.startswith("mnemon: ")
    return line


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({"MNEMON_PORT": "eighty"}, "MNEMON_PORT must be a whole number from 0 to 65535, not 'eighty'"),
        ({"MNEMON_PORT": "70000"}, "MNEMON_PORT must be"),
        ({"MNEMON_CONTEXT_BUDGET": "1"}, "MNEMON_CONTEXT_BUDGET must be"),
        ({"MNEMON_UPSTREAM_URL": "127.0.0.1:11434"}, "MNEMON_UPSTREAM_URL must be an http:// or https:// address"),
        ({"MNEMON_UPSTREAM_URL": "http://me:secret@127.0.0.1/v1"}, "must not hold a user name or password"),
        ({"MNEMON_DATABASE_URL": "mysql://x"}, "MNEMON_DATABASE_URL must be sqlite:///FILE or postgresql://"),
        ({"MNEMON_CONFIG": "/no/such/file.toml"}, "cannot read the settings file /no/such/file.toml"),
        ({"MNEMON_TIMEZONE": "Mars/Olympus"}, "MNEMON_TIMEZONE must be an IANA time zone"),
    ],
)
def test_a_wrong_setting_stops_the_start_with_one_line(tmp_path: Path, env: dict[str, str], said: str) -> None:
    """A setting that cannot be used ends the start with exit code 2 and one line that names it, and no secret."""
    ended = CliRunner(env={"MNEMON_DATA_DIR": str(tmp_path / "data"), "MNEMON_PORT": "0", **env}).invoke(cli.main, ["serve"])
    line = one_line(ended.exit_code, ended.stdout, ended.stderr)
    assert said in line
    assert "secret" not in line
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({"MNEMON_PROT": "80"}, "MNEMON_PROT is not a setting; did you mean MNEMON_PORT?"),
        ({"MNEMON_HOST": EVERYWHERE, "MNEMON_API_KEY": "hermes"}, "MNEMON_API_KEY is shorter than 16 characters"),
        ({"MNEMON_HOST": "no-such-host.invalid"}, "cannot listen on no-such-host.invalid: it is not an address of this machine"),
        ({"MNEMON_DATABASE_URL": "postgresql://me:secret@127.0.0.1:1/none"}, "cannot open the PostgreSQL database"),
    ],
)
def test_a_process_that_cannot_start_leaves_one_line(tmp_path: Path, env: dict[str, str], said: str) -> None:
    """The same holds for a process: exit code 2, one line, no traceback, no secret."""
    line = refused(env={"MNEMON_DATA_DIR": str(tmp_path), **env})
    assert said in line
    assert "secret" not in line


def test_a_wrong_flag_is_named_as_a_flag(tmp_path: Path) -> None:
    """The line names the setting where the person set it."""
    assert "--port must be a whole number" in refused("--port", "x", env={"MNEMON_DATA_DIR": str(tmp_path)})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("port = ", "is not valid TOML"),
        ("prot = 80", "prot is not a setting; did you mean port?"),
        ("port = 99999", "port in the settings file must be"),
    ],
)
def test_a_wrong_settings_file_stops_the_start(tmp_path: Path, text: str, said: str) -> None:
    """A file that is not TOML, or holds a wrong setting, is refused like any other."""
    (tmp_path / "mnemon.toml").write_text(text)
    assert said in refused(env={"MNEMON_DATA_DIR": str(tmp_path), "MNEMON_PORT": None})


def test_a_data_directory_that_cannot_be_made_stops_the_start(tmp_path: Path) -> None:
    """Where the data directory cannot be, one line says so."""
    (tmp_path / "file").touch()
    assert f"{tmp_path}/file/data: Not a directory" in refused(env={"MNEMON_DATA_DIR": f"{tmp_path}/file/data"})


def test_a_database_of_a_newer_version_stops_the_start(tmp_path: Path) -> None:
    """A database that this version does not understand is not touched."""
    with servers.running(data_dir=tmp_path):
        pass
    with contextlib.closing(sqlite3.connect(tmp_path / "mnemon.db")) as connection:
        connection.execute("INSERT INTO migrations VALUES ('9999_future')")
        connection.commit()
    assert "newer version of Mnemon (it has 9999_future)" in refused(env={"MNEMON_DATA_DIR": str(tmp_path)})


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", EVERYWHERE])
def test_a_port_in_use_stops_the_start(tmp_path: Path, host: str) -> None:
    """A port that somebody else has is one clear line, and nothing is created."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        env = {"MNEMON_DATA_DIR": str(tmp_path / "data"), "MNEMON_PORT": port, "MNEMON_HOST": host, "MNEMON_API_KEY": servers.KEY}
        assert f"port {port} of {host} is in use" in refused(env=env)
    assert not (tmp_path / "data").exists()


def test_the_first_start_makes_a_key_and_a_call_that_works(tmp_path: Path) -> None:
    """The key is shown once and kept where only its owner can read it; the call works when pasted, at later starts too."""
    if not shutil.which("curl"):
        pytest.skip("there is no curl here")
    with servers.running(data_dir=tmp_path / "my data", env={"MNEMON_API_KEY": None}) as server:
        file = tmp_path / "my data" / "api_key"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        key = file.read_text()
        assert key.strip() in server.output()
        assert "Alex" in pasted(server)
        server.restart()
        assert key.strip() not in server.output(), "it is shown once"
        assert f"key       kept in {file}" in server.output()
        assert "Alex" in pasted(server)
        assert file.read_text() == key


def pasted(server: Server) -> str:
    """The reply to the call in the start-up lines, as a shell makes it."""
    lines = server.output().partition("Try it:\n")[2]
    ended = subprocess.run(["sh", "-c", lines], capture_output=True, text=True, check=True, timeout=30)
    return str(json.loads(ended.stdout)["choices"][0]["message"]["content"])


def test_a_model_without_an_address_is_doubted(tmp_path: Path) -> None:
    """A model or a key for an upstream that is not set has no effect, and the start says so."""
    env = {"MNEMON_UPSTREAM_MODEL": "llama3.3", "MNEMON_UPSTREAM_KEY": "secret"}
    with servers.running(data_dir=tmp_path, env=env) as server:
        assert "MNEMON_UPSTREAM_MODEL has no effect without MNEMON_UPSTREAM_URL" in server.output()
        assert "MNEMON_UPSTREAM_KEY has no effect" in server.output()
        assert "secret" not in server.output()
    checked = CliRunner(env={"MNEMON_DATA_DIR": str(tmp_path), **env}).invoke(cli.main, ["check"])
    assert checked.exit_code == 1
    assert "WRONG  settings        MNEMON_UPSTREAM_MODEL has no effect" in checked.stdout


def test_a_configured_key_is_not_printed(tmp_path: Path) -> None:
    """A key from the settings stays out of the start-up lines, and no other is made."""
    with servers.running(data_dir=tmp_path) as server:
        assert servers.KEY not in server.output()
        assert not (tmp_path / "api_key").exists()


def test_the_start_says_which_model_answers() -> None:
    """The built-in model is called what it is."""
    with servers.running() as server:
        assert "not a language model" in server.output()


def test_ctrl_c_ends_a_server_quietly() -> None:
    """Ctrl-C is an ordinary way to stop: exit code 0, nothing more is said."""
    with servers.running() as server:
        before = server.output()
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(SECONDS_TO_STOP) == 0
        assert server.output() == before


def test_sigterm_ends_an_idle_server_at_once() -> None:
    """A server without work ends within seconds, clients that keep a connection open notwithstanding."""
    with servers.running() as server, contextlib.closing(server.connect()) as idle:
        idle.request("GET", "/health")
        idle.getresponse().read()
        server.stop(SECONDS_TO_STOP)
        assert "Traceback" not in server.output()


@pytest.mark.parametrize("stream", [False, True])
def test_sigterm_finishes_the_turn_in_flight(stream: bool) -> None:  # noqa: FBT001 - a parameter of the test
    """A turn that has begun is answered and kept, while no new connection is taken."""
    with servers.scripted_upstream() as upstream, servers.running(upstream=upstream) as server:
        with in_flight(server, upstream, "[[say one two three four]] [[slow 2]]", stream=stream) as answers:
            server.process.send_signal(signal.SIGTERM)
            time.sleep(0.5)
            with pytest.raises(ConnectionRefusedError):
                server.call("GET", "/health")
            server.process.wait(SECONDS_TO_STOP)
        [answer] = answers
        assert answer.status == 200
        if stream:
            assert "four" in answer.body
            assert '"finish_reason":"stop"' in answer.body
        else:
            assert answer.text == "one two three four"
        server.restart()
        stored = server.call("GET", "/api/sessions/held/messages").body["data"]
        assert [message["role"] for message in stored] == ["user", "assistant"]


def test_a_turn_that_does_not_end_is_handed_back() -> None:
    """A stop waits for a turn only so long; then its client is told to try again, and the session is free."""
    with servers.scripted_upstream() as upstream, servers.running(upstream=upstream) as server:
        with in_flight(server, upstream, "[[hang]]") as answers:
            server.stop(12)
        [answer] = answers
        assert answer.status == 503
        assert answer.body["error"]["code"] == "server_stopping"
        assert "Traceback" not in server.output()
        server.restart()
        assert server.chat("again", session="held").text == "ECHO:again"


def test_a_stop_says_what_it_waits_for_and_can_be_hurried() -> None:
    """Ctrl-C names the turns in flight and how long they may take; a second one hands them back at once."""
    with servers.scripted_upstream() as upstream, servers.running(upstream=upstream) as server:
        with in_flight(server, upstream, "[[hang]]") as answers:
            server.process.send_signal(signal.SIGINT)
            deadline = time.monotonic() + SECONDS_TO_STOP
            while "Stopping: waiting up to 8 s for 1 turn (" not in server.output():
                assert time.monotonic() < deadline, server.output()
                time.sleep(0.02)
            server.process.send_signal(signal.SIGINT)
            assert server.process.wait(SECONDS_TO_STOP) == 0
        [answer] = answers
        assert answer.body["error"]["code"] == "server_stopping"
        assert "Traceback" not in server.output()


@pytest.mark.postgres
def test_a_stop_does_not_wait_for_ever_for_a_database_that_hangs(postgres_url: str) -> None:
    """A turn whose commit gets no answer holds the stop up for some seconds, not longer."""
    with (
        postgres.hanging(postgres_url) as (url, hang),
        servers.scripted_upstream() as upstream,
        servers.running(upstream=upstream, env={"MNEMON_DATABASE_URL": url}) as server,
    ):
        with in_flight(server, upstream, "[[say one two three]] [[slow 1]]") as answers:
            hang.set()
            time.sleep(1.5)
            server.process.send_signal(signal.SIGINT)
            time.sleep(1)
            server.process.send_signal(signal.SIGINT)
            assert server.process.wait(20) == 0
        assert answers[0].body["error"]["code"] == "server_stopping"
        assert "never retrieved" not in server.output()


@contextlib.contextmanager
def in_flight(server: Server, upstream: Upstream, text: str, *, stream: bool = False) -> Iterator[list[Answer]]:
    """A turn of the session `held` that has reached the model when the block is entered, and has its answer when it is left."""
    answers: list[Answer] = []
    body = {"model": "mnemon", "stream": stream, "messages": [{"role": "user", "content": text}]}

    def ask() -> None:
        answers.append(server.call("POST", "/v1/chat/completions", body, X_Hermes_Session_Id="held"))

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        while not upstream.requests:
            time.sleep(0.02)
        yield answers
    finally:
        thread.join()
