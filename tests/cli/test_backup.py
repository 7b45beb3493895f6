"""`mnemon backup` and `mnemon restore`, on databases that real servers write to."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from mnemon import cli
from mnemon.store import base
from tests import servers
from tests.servers import Server


def run(data_dir: Path, *args: str | Path, **settings: str) -> str:
    """What a command that succeeds prints."""
    env = {"MNEMON_DATA_DIR": str(data_dir)} | {f"MNEMON_{name.upper()}": value for name, value in settings.items()}
    result = CliRunner(env=env).invoke(cli.main, [str(arg) for arg in args])
    assert result.exit_code == 0, result.output
    return result.stdout


def error(data_dir: Path, *args: str | Path, **settings: str) -> str:
    """The one line with which a command that fails says why."""
    env = {"MNEMON_DATA_DIR": str(data_dir)} | {f"MNEMON_{name.upper()}": value for name, value in settings.items()}
    result = CliRunner(env=env).invoke(cli.main, [str(arg) for arg in args])
    assert result.exit_code == 2
    assert result.stdout == ""
    [line] = result.stderr.splitlines()
    assert line.startswith("mnemon: ")
    return line


def rows(file: Path, query: str) -> list[Any]:
    """What a database file holds."""
    with contextlib.closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as connection:
        return connection.execute(query).fetchall()


def said(server: Server, session: str) -> list[str]:
    """The texts of a session, oldest first."""
    answer = server.call("GET", f"/api/sessions/{session}/messages")
    return [message["content"] for message in answer.body["data"]] if answer.status == 200 else []


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A data directory of its own, so that everything else in `tmp_path` is the test's."""
    return tmp_path / "home"


@pytest.fixture(scope="module")
def one_turn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory that a server has left behind, made once."""
    folder = tmp_path_factory.mktemp("one-turn")
    with servers.running(data_dir=folder) as server:
        server.chat("hello", session="s")
    return folder


@pytest.fixture
def used(one_turn: Path, home: Path) -> Path:
    """A data directory whose database holds one turn, `hello` in the session `s`."""
    return shutil.copytree(one_turn, home)


class Talkers:
    """Clients that talk without a pause, each in a session of its own; `done` counts the turns that were answered."""

    def __init__(self, server: Server, number: int) -> None:
        self.server = server
        self.done = [0] * number
        self.stopped = threading.Event()
        self.threads = [threading.Thread(target=self._talk, args=(index,)) for index in range(number)]

    def wait(self, turns: int) -> None:
        """Return when so many turns were answered."""
        deadline = time.monotonic() + 60
        while sum(self.done) < turns:
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def _talk(self, index: int) -> None:
        while not self.stopped.is_set():
            assert self.server.chat(f"note {self.done[index]}", session=f"talker-{index}").status == 200
            self.done[index] += 1


@contextlib.contextmanager
def talking(server: Server, number: int) -> Iterator[Talkers]:
    """Clients that talk until the block is left."""
    talkers = Talkers(server, number)
    for thread in talkers.threads:
        thread.start()
    try:
        yield talkers
    finally:
        talkers.stopped.set()
        for thread in talkers.threads:
            thread.join()


def test_a_backup_while_turns_are_written_is_whole(home: Path, tmp_path: Path) -> None:
    """Each copy is sound, holds every turn answered before it was begun, and no half of any turn."""
    with (
        servers.scripted_upstream() as upstream,
        servers.running(data_dir=home, upstream=upstream) as server,
        talking(server, 4) as talkers,
    ):
        for number in range(4):
            talkers.wait(4 * (number + 1))
            before = list(talkers.done)
            file = tmp_path / f"copy-{number}.db"
            assert "checked and sound" in run(home, "backup", file)
            counts = dict(rows(file, "SELECT session_id, count(*) FROM messages GROUP BY session_id"))
            assert all(count % 2 == 0 for count in counts.values())
            assert all(counts.get(f"talker-{index}", 0) >= 2 * turns for index, turns in enumerate(before))
            assert rows(file, "PRAGMA integrity_check") == [("ok",)]
    assert all(file.suffix == ".db" for file in tmp_path.glob("copy*"))


def test_a_backup_is_one_file_for_its_owner_alone(used: Path, tmp_path: Path) -> None:
    """Nothing lies beside it, and others cannot read it."""
    run(used, "backup", tmp_path / "copy.db")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy.db", "home"]
    assert stat.S_IMODE((tmp_path / "copy.db").stat().st_mode) == 0o600


def test_a_backup_replaces_nothing_unless_forced(used: Path, tmp_path: Path) -> None:
    """An existing file stays as it is; with --force it is replaced, with what SQLite had left beside it."""
    file = tmp_path / "copy.db"
    file.write_text("precious")
    (tmp_path / "copy.db-wal").write_text("stale")
    assert "exists" in error(used, "backup", file)
    assert file.read_text() == "precious"
    run(used, "backup", "--force", file)
    assert not (tmp_path / "copy.db-wal").exists()
    assert rows(file, "SELECT count(*) FROM messages") == [(2,)]


def test_a_backup_that_cannot_be_made_says_why(used: Path, tmp_path: Path) -> None:
    """No database, the database itself, a folder and a folder that is missing are each one clear line."""
    assert "there is no database at" in error(tmp_path / "none", "backup", tmp_path / "copy.db")
    assert "the database itself" in error(used, "backup", "--force", used / "mnemon.db")
    assert "is a folder" in error(used, "backup", "--force", tmp_path)
    assert "does not exist" in error(used, "backup", tmp_path / "none" / "copy.db")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home"]


def test_postgresql_has_its_own_tools(tmp_path: Path) -> None:
    """The line names the command to use instead, and shows no password."""
    url = "postgresql://me:secret@127.0.0.1:1/none"
    assert "pg_dump" in error(tmp_path, "backup", tmp_path / "copy.db", database_url=url)
    assert "pg_restore" in error(tmp_path, "restore", tmp_path / "copy.db", database_url=url)


def test_a_damaged_database_gives_no_backup(used: Path, tmp_path: Path) -> None:
    """A copy that is not sound never gets the name that was asked for."""
    with contextlib.closing(sqlite3.connect(used / "mnemon.db", isolation_level=None)) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute("DELETE FROM lineages")
    assert "is damaged" in error(used, "backup", tmp_path / "copy.db")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home"]


def test_a_restored_server_knows_what_the_backup_knew(home: Path, tmp_path: Path) -> None:
    """After a restore the server has the state of the backup, and what came later is kept aside."""
    copy = tmp_path / "copy.db"
    with servers.running(data_dir=home) as server:
        server.chat("before", session="s")
        run(home, "backup", copy)
        server.chat("after", session="s")
        server.stop()
        original = copy.read_bytes()
        told = run(home, "restore", copy)
        assert copy.read_bytes() == original
        server.restart()
        assert [text for text in said(server, "s") if text in ("before", "after")] == ["before"]
        server.chat("and on", session="s")
    [kept] = home.glob("mnemon.db.before-restore-*")
    assert str(kept) in told
    assert rows(kept, "SELECT count(*) FROM messages") == [(4,)]


def test_a_backup_goes_to_another_machine(used: Path, tmp_path: Path) -> None:
    """Restored into an empty data directory, a backup is a database like any other."""
    run(used, "backup", tmp_path / "copy.db")
    run(tmp_path / "new", "restore", tmp_path / "copy.db")
    with servers.running(data_dir=tmp_path / "new") as server:
        assert said(server, "s")[0] == "hello"
    assert not list((tmp_path / "new").glob("*before-restore*"))


def test_a_crashed_server_loses_nothing_by_a_restore(home: Path, tmp_path: Path) -> None:
    """What a killed server left in the log is kept aside with its database, and does not reach the restored one."""
    copy = tmp_path / "copy.db"
    with servers.running(data_dir=home) as server:
        server.chat("first", session="s")
        run(home, "backup", copy)
        server.chat("second", session="s")
        server.kill()
        assert (home / "mnemon.db-wal").exists()
        run(home, "restore", copy)
        [kept] = [path for path in home.glob("*before-restore*") if path.name.endswith("Z")]
        assert rows(kept, "SELECT count(*) FROM messages") == [(4,)]
        server.restart()
        assert len(said(server, "s")) == 2


def test_a_ruined_database_can_be_restored(used: Path, tmp_path: Path) -> None:
    """The database that is replaced need not be readable, and is kept all the same."""
    run(used, "backup", tmp_path / "copy.db")
    (used / "mnemon.db").write_bytes(b"ruined" * 1000)
    (used / "mnemon.db-wal").write_bytes(b"not the log of this database")
    run(used, "restore", tmp_path / "copy.db")
    assert rows(used / "mnemon.db", "SELECT count(*) FROM messages") == [(2,)]
    assert not (used / "mnemon.db-wal").exists()
    assert any(path.read_bytes() == b"ruined" * 1000 for path in used.glob("*before-restore*"))


def test_nothing_is_restored_under_a_running_server(home: Path, tmp_path: Path) -> None:
    """While a server has the database open, a restore is refused and changes nothing."""
    with servers.running(data_dir=home) as server:
        server.chat("hello", session="s")
        run(home, "backup", tmp_path / "copy.db")
        server.chat("more", session="s")
        assert "is in use: stop the server" in error(home, "restore", tmp_path / "copy.db")
        assert len(said(server, "s")) == 4
    assert not list(home.glob("*before-restore*"))


def test_only_a_database_of_ours_is_restored(used: Path, tmp_path: Path) -> None:
    """A missing file, text, another program's database and the database itself are each refused, and nothing is changed."""
    text, other = tmp_path / "text", tmp_path / "other.db"
    text.write_text("hello, " * 1000)
    with contextlib.closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE migrations (name)")
    before = (used / "mnemon.db").read_bytes()
    assert "there is no file" in error(used, "restore", tmp_path / "none")
    assert "file is not a database" in error(used, "restore", text)
    assert "not a database of Mnemon's" in error(used, "restore", other)
    assert "the database itself" in error(used, "restore", used / "mnemon.db")
    assert (used / "mnemon.db").read_bytes() == before
    assert not list(used.glob("*before-restore*"))


def test_a_damaged_copy_is_not_restored(used: Path, tmp_path: Path) -> None:
    """A copy that lost a part on its way is refused before anything is moved."""
    copy = tmp_path / "copy.db"
    run(used, "backup", copy)
    whole = copy.read_bytes()
    copy.write_bytes(whole[: len(whole) // 2])
    line = error(used, "restore", copy)
    assert "damaged" in line or "cannot be copied" in line
    assert len(rows(used / "mnemon.db", "SELECT 1 FROM messages")) == 2
    assert not list(used.glob("*before-restore*"))


def test_a_copy_of_another_version(used: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A newer one is refused; an older one is taken, and brought up to date by the next start."""
    copy = tmp_path / "copy.db"
    run(used, "backup", copy)
    original = base.migrations
    monkeypatch.setattr(base, "migrations", lambda dialect: [*original(dialect), ("0999_next", "SELECT 1;")])
    assert "brings it up to date" in run(used, "restore", copy)
    monkeypatch.undo()
    with contextlib.closing(sqlite3.connect(copy)) as connection:
        connection.execute("INSERT INTO migrations VALUES ('9999_future')")
        connection.commit()
    assert "newer version of Mnemon (it has 9999_future)" in error(used, "restore", copy)
