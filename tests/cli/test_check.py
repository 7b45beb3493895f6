"""`mnemon check`: a line for everything the server needs."""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from mnemon import cli
from mnemon.store import base
from tests import servers

SUBJECTS = ["settings", "data directory", "database", "disk", "model", "credential", "key length"]
EVERYWHERE = "0.0.0.0"  # noqa: S104 - what the setting is tried with


def check(data_dir: Path, **settings: str) -> tuple[int, dict[str, tuple[bool, str]]]:
    """The exit code, and for each line its subject, whether it is ok, and what it says."""
    env = {"MNEMON_DATA_DIR": str(data_dir)} | {f"MNEMON_{name.upper()}": value for name, value in settings.items()}
    result = CliRunner(env=env).invoke(cli.main, ["check"])
    assert result.stderr == ""
    lines = result.stdout.splitlines()
    assert all(line.startswith(("ok     ", "WRONG  ")) for line in lines)
    return result.exit_code, {line[7:22].strip(): (line.startswith("ok"), line[23:]) for line in lines}


@pytest.fixture(scope="module")
def one_turn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory that a server has left behind, made once."""
    folder = tmp_path_factory.mktemp("one-turn")
    with servers.running(data_dir=folder) as server:
        server.chat("hello", session="s")
    return folder


@pytest.fixture
def database(one_turn: Path, tmp_path: Path) -> Path:
    """A data directory with a database that a server has written to."""
    return shutil.copytree(one_turn, tmp_path / "data")


def spoil(data_dir: Path, *statements: str) -> None:
    """Change the database behind the server's back."""
    with contextlib.closing(sqlite3.connect(data_dir / "mnemon.db", isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def test_before_the_first_start_all_is_well_and_nothing_is_created(tmp_path: Path) -> None:
    """With no data at all the check says what the first start will make, and makes nothing of it."""
    code, found = check(tmp_path / "data")
    assert code == 0
    assert list(found) == SUBJECTS
    assert all(well for well, _ in found.values())
    for subject in ("data directory", "database", "credential"):
        assert "first start" in found[subject][1]
    assert "not a language model" in found["model"][1]
    assert list(tmp_path.iterdir()) == []


def test_a_running_server_is_checked_without_being_disturbed(tmp_path: Path) -> None:
    """The check works beside a server, and leaves the data directory as it was."""
    with servers.running(data_dir=tmp_path, env={"MNEMON_API_KEY": None}) as server:
        server.chat("hello", session="s")
        before = sorted(path.name for path in tmp_path.rglob("*"))
        code, found = check(tmp_path)
        assert sorted(path.name for path in tmp_path.rglob("*")) == before
        assert server.chat("still there?", session="s").status == 200
    assert code == 0
    assert list(found) == [*SUBJECTS[:3], "integrity", *SUBJECTS[3:]]
    assert "newest schema" in found["database"][1]
    assert "made at the first start" in found["credential"][1]


@pytest.mark.postgres
def test_postgresql_is_checked(tmp_path: Path, postgres_url: str) -> None:
    """PostgreSQL is reached, its version told, and nothing is created in it before the first start."""
    _, found = check(tmp_path / "data", database_url=postgres_url)
    assert found["database"][0]
    assert found["database"][1].startswith("PostgreSQL 1")
    assert "will be created" in found["database"][1]
    with servers.running(data_dir=tmp_path, env={"MNEMON_DATABASE_URL": postgres_url}):
        code, found = check(tmp_path, database_url=postgres_url)
    assert code == 0
    assert "newest schema" in found["database"][1]


def test_a_database_out_of_reach_is_wrong(tmp_path: Path) -> None:
    """The other lines are there all the same, and the exit code says that something is wrong."""
    code, found = check(tmp_path, database_url="postgresql://me:secret@127.0.0.1:1/none")
    assert code == 1
    assert [subject for subject, (well, _) in found.items() if not well] == ["database"]
    assert "Connection refused" in found["database"][1]
    assert "secret" not in json.dumps(found)


def test_wrong_settings_are_the_only_line(tmp_path: Path) -> None:
    """Without settings nothing else can be looked at; a key too short for the host is among them."""
    code, found = check(tmp_path, host=EVERYWHERE, api_key="short")
    assert code == 1
    assert list(found) == ["settings"]
    assert "shorter than 16 characters" in found["settings"][1]
    assert check(tmp_path, prot="1")[1]["settings"] == (False, "MNEMON_PROT is not a setting; did you mean MNEMON_PORT?")


def test_a_data_directory_that_cannot_be_is_wrong(tmp_path: Path) -> None:
    """A folder below a file cannot be made."""
    (tmp_path / "file").touch()
    code, found = check(tmp_path / "file" / "data")
    assert code == 1
    assert not found["data directory"][0]
    assert not found["database"][0]
    code, found = check(tmp_path / "file")
    assert not found["data directory"][0]


def test_a_file_that_is_no_database_is_wrong(tmp_path: Path) -> None:
    """Neither text nor a database of another program will do."""
    (tmp_path / "mnemon.db").write_text("not a database, " * 100)
    assert "not a database" in check(tmp_path)[1]["database"][1]
    (tmp_path / "mnemon.db").unlink()
    spoil(tmp_path, "CREATE TABLE notes (text)")
    code, found = check(tmp_path)
    assert code == 1
    assert "not a database of Mnemon's" in found["database"][1]


def test_a_damaged_database_is_wrong(database: Path) -> None:
    """Damage that a start would not notice is found."""
    with contextlib.closing(sqlite3.connect(database / "mnemon.db")) as connection:
        [(page,)] = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'lineages_by_activity'")
        [(size,)] = connection.execute("PRAGMA page_size")
    with (database / "mnemon.db").open("r+b") as file:
        content = bytearray(file.read())
        start = (page - 1) * size
        content[start : start + size] = content[start : start + size].replace(b"default", b"another")
        file.seek(0)
        file.write(content)
    code, found = check(database)
    assert code == 1
    assert found["database"][0]
    assert "is damaged" in found["integrity"][1]
    assert "mnemon restore" in found["integrity"][1]


def test_a_broken_reference_is_wrong(database: Path) -> None:
    """Rows that point at nothing are found, though the file itself is sound."""
    spoil(database, "PRAGMA foreign_keys = OFF", "DELETE FROM lineages")
    code, found = check(database)
    assert code == 1
    assert "break a foreign key" in found["integrity"][1]


def test_a_database_of_another_version_is_wrong(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A newer one needs a newer Mnemon; an older one is brought up to date by a start, not by the check."""
    original = base.migrations
    monkeypatch.setattr(base, "migrations", lambda dialect: [*original(dialect), ("0999_next", "SELECT 1;")])
    code, found = check(database)
    assert code == 1
    assert "lacks 0999_next: start `mnemon serve`" in found["database"][1]
    monkeypatch.undo()
    assert check(database)[0] == 0
    spoil(database, "INSERT INTO migrations VALUES ('9999_future')")
    assert "upgrade Mnemon" in check(database)[1]["database"][1]


def test_the_upstream_is_asked_for_its_models(tmp_path: Path) -> None:
    """The line names the model that will be used: the configured one, or the first on offer."""
    with servers.scripted_upstream() as upstream:
        upstream.models = ["first", "second"]
        assert check(tmp_path, upstream_url=upstream.url)[1]["model"] == (True, f"{upstream.url} answers; 'first' will be used")
        assert check(tmp_path, upstream_url=upstream.url, upstream_model="second")[1]["model"][1].endswith("'second' will be used")
        well, text = check(tmp_path, upstream_url=upstream.url, upstream_model="third")[1]["model"]
        assert well
        assert "which it does not list (it lists first, second)" in text
        upstream.models = []
        code, found = check(tmp_path, upstream_url=upstream.url)
        assert code == 1
        assert "set MNEMON_UPSTREAM_MODEL" in found["model"][1]
        assert upstream.requests == []


def test_an_upstream_out_of_reach_is_wrong(tmp_path: Path) -> None:
    """Nobody at the address, a wrong key and an address that cannot be used are each said."""
    code, found = check(tmp_path, upstream_url="http://127.0.0.1:1/v1")
    assert code == 1
    assert found["model"][1].startswith("http://127.0.0.1:1/v1/models: The model cannot be reached")
    with servers.scripted_upstream() as upstream:
        upstream.key = "right"
        well, text = check(tmp_path, upstream_url=upstream.url, upstream_key="wrong")[1]["model"]
        assert not well
        assert "set MNEMON_UPSTREAM_KEY" in text
        assert check(tmp_path, upstream_url=upstream.url, upstream_key="right")[0] == 0
    well, text = check(tmp_path, upstream_url="http://me:secret@127.0.0.1/v1")[1]["model"]
    assert not well
    assert "user name or password" in text


def test_a_key_file_that_others_can_read_is_wrong(database: Path) -> None:
    """The key made at the first start is its owner's alone, and long enough for the host."""
    file = database / "api_key"
    file.write_text("short\n")
    file.chmod(0o644)
    code, found = check(database, host=EVERYWHERE)
    assert code == 1
    assert found["credential"] == (False, f"others may read {file}: chmod 600 {file}")
    assert not found["key length"][0]
    file.chmod(0o600)
    assert check(database)[0] == 0


def test_a_full_disk_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Less than 100 MB is too little to begin with."""
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=10**7))
    code, found = check(tmp_path)
    assert code == 1
    assert found["disk"][1].startswith("10 MB free")
