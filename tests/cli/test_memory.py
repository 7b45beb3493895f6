"""`mnemon memory`: what is remembered, read and deleted on the database itself, with a server running on it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mnemon import cli
from mnemon.cli import proof
from tests import servers
from tests.servers import Server

SECRET = "My passport number is XK-4471-PQ."
REDIS = "We removed Redis because cache invalidation bugs caused stale product prices."


class Shell:
    """`mnemon memory` in this process, on one database."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir

    def run(self, *args: str, stdin: str = "") -> Result:
        """The outcome, whatever it is."""
        command = ["memory", *args, "--data-dir", str(self.data_dir)]
        return CliRunner().invoke(cli.main, command, input=stdin)

    def memory(self, *args: str, stdin: str = "") -> str:
        """What a command about the memory of key `k` prints when it succeeds."""
        result = self.run(*args, "--key", "k", stdin=stdin)
        assert result.exit_code == 0, result.output
        return result.stdout

    def rows(self, *args: str) -> list[dict[str, object]]:
        """The same as data."""
        return [json.loads(line) for line in self.memory(*args, "--json").splitlines()]

    def bytes(self) -> bytes:
        """Everything in the database's files."""
        return b"".join(path.read_bytes() for path in self.data_dir.glob("mnemon.db*") if path.is_file())


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A real server with two things said under the key `k`; its built-in model quotes what it was told."""
    with servers.running(data_dir=tmp_path) as found:
        for text in (SECRET, REDIS, "What is my passport number?"):
            found.chat(text, session="s", key="k")
        yield found


@pytest.fixture
def shell(server: Server, tmp_path: Path) -> Shell:
    """The command line on that server's database."""
    return Shell(tmp_path)


def test_looking(shell: Shell) -> None:
    """Lists, searches, reasons and timelines as tables and as JSON."""
    listed = shell.memory("list")
    assert listed.splitlines()[0].split() == ["ID", "SINCE", "STATE", "KIND", "MEMORY"]
    assert "passport number is XK-4471-PQ" in listed
    assert len(shell.rows("list", "--text", "redis")) == 1
    assert "XK-4471" in shell.memory("search", "passport", "number")
    assert shell.rows("search", "passport", "number")[0]["object"] == "memory.hit"
    assert "because: cache invalidation bugs" in shell.memory("why", "why", "did", "we", "remove", "Redis?")
    assert "Redis" in shell.memory("timeline", "Redis")
    assert shell.memory("list", "--state", "retracted").strip() == "There is nothing."
    assert shell.run("list", "--session", "s").stdout == listed


def test_export_and_import(shell: Shell, tmp_path: Path) -> None:
    """What is exported can be imported into another memory, once."""
    file = tmp_path / "memories.jsonl"
    assert "2 memories" in shell.memory("export", "--output", str(file))
    assert file.read_text() == shell.memory("export")
    for expected in ("2 memories added, 0 were there already.", "0 memories added, 2 were there already."):
        assert shell.run("import", str(file), "--key", "copy").stdout.strip() == expected
    wrong = shell.run("import", "-", "--key", "copy", stdin="{}\n")
    assert (wrong.exit_code, "line 1" in wrong.stderr) == (2, True)


def test_forgetting_asks_first(shell: Shell, server: Server) -> None:
    """The preview shows what would go; without a yes nothing does; with one it is gone for the running server too."""
    (row,) = shell.rows("list", "--text", "passport")
    asked = shell.memory("forget", "--id", str(row["id"]), stdin="n\n")
    assert str(row["id"]) in asked
    assert "Nothing was deleted." in asked
    assert len(shell.rows("list")) == 2
    assert "Deleted: 1 memory" in shell.memory("forget", "--id", str(row["id"]), "--yes")
    assert "XK-4471" not in server.chat("What is my passport number?", session="t", key="k").text


def test_a_purge_says_what_it_searched(shell: Shell, server: Server) -> None:
    """With the server running, no byte of the files holds the words any more, the copies in replies included; no more is claimed."""
    assert b"XK-4471-PQ" in shell.bytes()
    (row,) = shell.rows("list", "--text", "passport")
    told = shell.memory("purge", "--id", str(row["id"]), "--yes")
    assert "Searched the bytes of mnemon.db, its log and its index for " in told
    assert "of up to 48 characters each: none is there." in told
    assert "Prove" not in told
    assert b"XK-4471-PQ" not in shell.bytes()
    assert b"Redis" in shell.bytes()
    assert "Redis" in server.chat("Why did we remove Redis?", session="t", key="k").text


def test_a_purge_names_where_the_value_still_stands(shell: Shell, server: Server) -> None:
    """A message that neither stated nor repeated the memory keeps its words, and the command says which it is."""
    server.chat("Somebody wrote XK-4471-PQ on my door, can you believe it?", session="u", key="k")
    (row,) = shell.rows("list", "--text", "passport number")
    assert "Kept: 'XK-4471-PQ' by itself still stands in u #1 (user)." in shell.memory("purge", "--id", str(row["id"]), "--yes")


def test_a_purge_searches_what_a_restore_kept(shell: Shell, tmp_path: Path) -> None:
    """The database that `mnemon restore` put aside is searched and named; it is not changed."""
    kept = tmp_path / "mnemon.db.before-restore-20260101T000000.000000Z"
    kept.write_bytes(b"... " + SECRET.encode() + b" ...")
    told = shell.memory("purge")
    assert f"{kept}, kept by `mnemon restore`, may hold what was deleted." in told
    (row,) = shell.rows("list", "--text", "passport")
    told = shell.memory("purge", "--id", str(row["id"]), "--yes")
    assert f"{kept}, kept by `mnemon restore`, holds 1 piece of the deleted words." in told
    assert SECRET.encode() in kept.read_bytes()


def test_a_session_of_a_key_is_not_its_whole_memory(shell: Shell) -> None:
    """`--session` with `--everything` does not widen to the key of that session: it is refused, and nothing goes."""
    for wide in (("--everything",), ("--from", "2020-01-01")):
        for command in ("forget", "purge"):
            result = shell.run(command, "--session", "s", *wide, "--yes")
            assert result.exit_code == 2, result.output
            (line,) = result.stderr.splitlines()
            assert "belongs to the key 'k', whose whole memory this would reach" in line
            assert "--conversation s" in line
    assert len(shell.rows("list")) == 2


def test_a_purge_of_everything(shell: Shell) -> None:
    """The whole memory of a key goes with the conversations it came from."""
    assert "conversation" in shell.memory("purge", "--everything", "--yes")
    assert b"XK-4471-PQ" not in shell.bytes()
    assert b"Redis" not in shell.bytes()
    assert "Swept" in shell.memory("purge")


def test_one_line_says_what_is_wrong(shell: Shell, tmp_path: Path) -> None:
    """No memory named, none there, two ways at once, nothing to delete."""
    for args, words in (
        (("list",), "whose memory?"),
        (("list", "--session", "never"), "there is no session"),
        (("forget", "--key", "k"), "in one way"),
        (("forget", "--key", "k", "--id", "m", "--everything"), "in one way"),
        (("forget", "--key", "k", "--position", "1"), "in one way"),
        (("forget", "--key", "k", "--id", "mem_never"), "there is no memory"),
        (("forget", "--key", "never used", "--everything"), "nothing to delete"),
    ):
        result = shell.run(*args)
        assert result.exit_code == 2, args
        (line,) = result.stderr.splitlines()
        assert line.startswith("mnemon: ")
        assert words in line
    assert Shell(tmp_path / "nowhere").run("list", "--key", "k").exit_code == 2


def test_pieces_are_found_however_long_the_text() -> None:
    """Long texts are looked for in pieces of some words; short words prove nothing unless there is nothing else."""
    text = "word " * 100
    assert all(12 <= len(piece) <= 48 for piece in proof.pieces([text]))
    assert proof.pieces(["a", "My passport number is XK."]) == ["My passport number is XK."]
    assert proof.pieces(["XK-1"]) == ["XK-1"]
