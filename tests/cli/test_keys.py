"""`mnemon keys`: keys made, listed and ended on the database itself, with servers running on it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mnemon import cli
from tests import servers
from tests.servers import Server

AT_ONCE = 2.0


class Shell:
    """`mnemon keys` in this process, on one database."""

    def __init__(self, data_dir: Path, database_url: str) -> None:
        self.env = {"MNEMON_DATA_DIR": str(data_dir), "MNEMON_DATABASE_URL": database_url}

    def run(self, *args: str) -> Result:
        """The outcome, whatever it is."""
        return CliRunner(env=self.env).invoke(cli.main, ["keys", *args])

    def keys(self, *args: str) -> str:
        """What a command that succeeds prints."""
        result = self.run(*args)
        assert result.exit_code == 0, result.output
        return result.stdout

    def error(self, *args: str) -> str:
        """The one line with which a command that fails says why."""
        result = self.run(*args)
        assert result.exit_code == 2
        [line] = result.stderr.splitlines()
        assert line.startswith("mnemon: ")
        return line


@pytest.fixture
def shell(tmp_path: Path, database_url: str) -> Shell:
    """The command line on an empty database, once of each kind."""
    return Shell(tmp_path, database_url)


@pytest.fixture
def small(tmp_path: Path) -> Shell:
    """The command line on an empty SQLite database."""
    return Shell(tmp_path, f"sqlite:///{tmp_path}/mnemon.db")


def status(server: Server, secret: str, path: str = "/v1/models") -> int:
    """How the server answers to a key."""
    return server.call("GET", path, Authorization=f"Bearer {secret}").status


def becomes(server: Server, secret: str, wanted: int) -> bool:
    """Whether the answer to a key is, or at once becomes, this status."""
    deadline = time.monotonic() + AT_ONCE
    while status(server, secret) != wanted:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def test_a_key_works_in_a_running_server_until_it_is_revoked(shell: Shell) -> None:
    """A key made while the server runs is valid at once, and invalid at once when it is revoked; others are not touched."""
    with servers.running(env=shell.env) as server:
        first, second = shell.keys("add", "first").strip(), shell.keys("add", "second").strip()
        assert becomes(server, first, 200)
        assert becomes(server, second, 200)
        shell.keys("revoke", "first")
        assert becomes(server, first, 401)
        assert status(server, second) == 200
        assert status(server, servers.KEY) == 200


def test_a_key_is_a_tenant_of_its_own(shell: Shell) -> None:
    """What one key stores another does not find, unless both were made for one tenant."""
    alone, friend, ours = (
        shell.keys("add", *args).strip() for args in (["default"], ["b", "--tenant", "key:default"], ["c", "--tenant", "default"])
    )
    with servers.running(env=shell.env) as server:
        server.chat("hello", session="mine", Authorization=f"Bearer {alone}")
        server.chat("hello", session="theirs")
        assert status(server, alone, "/api/sessions/mine") == 200
        assert status(server, friend, "/api/sessions/mine") == 200
        assert status(server, ours, "/api/sessions/mine") == 404
        assert status(server, ours, "/api/sessions/theirs") == 200
        assert status(server, alone, "/api/sessions/theirs") == 404


def test_a_key_made_before_the_first_start_is_the_credential(small: Shell) -> None:
    """Where there is a key, no other is made at the first start."""
    secret = small.keys("add", "only").strip()
    with servers.running(data_dir=Path(small.env["MNEMON_DATA_DIR"]), env={**small.env, "MNEMON_API_KEY": None}) as server:
        assert status(server, secret) == 200
        assert "keys add" in server.output()
        assert not (server.data_dir / "api_key").exists()


def test_limits_hold(small: Shell) -> None:
    """A key made with a limit is refused with 429 beyond it."""
    secret = small.keys("add", "slow", "--requests-per-minute", "2").strip()
    with servers.running(env=small.env) as server:
        assert [status(server, secret) for _ in range(3)] == [200, 200, 429]


def test_the_list_shows_everything_but_secrets(shell: Shell) -> None:
    """The table tells name, tenant, limits, time and state of every key ever made, oldest first."""
    secrets = [
        shell.keys("add", "laptop").strip(),
        shell.keys("add", "Jürgen's phone", "--tenant", "family", "--requests-per-minute", "60", "--concurrency", "4").strip(),
    ]
    shell.keys("revoke", "laptop")
    listed = shell.keys("list")
    heading, first, second = listed.splitlines()
    assert heading.split() == ["NAME", "TENANT", "LIMITS", "CREATED", "STATE"]
    assert first.startswith("laptop          key:laptop  none")
    assert "revoked 2" in first
    assert "family      60 a minute, 4 at once" in second
    assert second.endswith("UTC  valid")
    assert not any(secret[3:] in listed for secret in secrets)


def test_the_secret_alone_is_on_the_standard_output(small: Shell) -> None:
    """So that it can be put into a variable; how to use it is said beside."""
    result = small.run("add", "script")
    assert result.stdout.startswith("mn-")
    assert len(result.stdout.split()) == 1
    assert "Authorization: Bearer" in result.stderr


def test_a_secret_is_stored_only_as_a_hash(small: Shell, tmp_path: Path) -> None:
    """The database does not hold what clients send."""
    secret = small.keys("add", "hashed").strip()
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert files
    assert not any(secret.encode() in file.read_bytes() for file in files)


def test_a_name_is_never_used_twice(shell: Shell) -> None:
    """A name that is taken, by a revoked key too, is refused."""
    shell.keys("add", "bob")
    assert "there is a key named 'bob' already" in shell.error("add", "bob")
    shell.keys("revoke", "bob")
    assert "there is a key named 'bob' already" in shell.error("add", "bob")


def test_only_a_living_key_can_be_revoked(shell: Shell) -> None:
    """To revoke twice, or what never was, is an error."""
    shell.keys("add", "bob")
    shell.keys("revoke", "bob")
    assert "no living key named 'bob'" in shell.error("revoke", "bob")
    assert "no living key named 'eve'" in shell.error("revoke", "eve")


@pytest.mark.parametrize("name", ["", " ", "a\nb", "a\x1b[31m", "x" * 65, " edge"])
def test_a_name_that_cannot_be_shown_is_refused(small: Shell, name: str) -> None:
    """Names and tenants are 1 to 64 printable characters; nothing is created for another."""
    assert "NAME must be 1 to 64 printable characters" in small.error("add", "--", name)
    assert "--tenant must be" in small.error("add", "fine", "--tenant", name)
    assert not (Path(small.env["MNEMON_DATA_DIR"]) / "mnemon.db").exists()


def test_looking_creates_nothing(shell: Shell, tmp_path: Path) -> None:
    """To list or revoke where there is no database is an error, and makes none."""
    assert "no database here yet" in shell.error("list")
    assert "no database here yet" in shell.error("revoke", "bob")
    assert list(tmp_path.iterdir()) == []


def test_an_empty_list_says_how_to_make_a_key(small: Shell) -> None:
    """A database without keys is no error."""
    with servers.running(data_dir=Path(small.env["MNEMON_DATA_DIR"])):
        assert "mnemon keys add NAME" in small.keys("list")


def test_a_database_out_of_reach_is_one_line(tmp_path: Path) -> None:
    """What PostgreSQL has to say in several lines comes in one."""
    shell = Shell(tmp_path, "postgresql://me:secret@127.0.0.1:1/none")
    assert "secret" not in shell.error("list")
    assert "Connection refused" in shell.error("add", "bob")
