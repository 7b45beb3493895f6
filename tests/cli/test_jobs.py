"""`mnemon jobs`: scheduled prompts on the database itself, with a server running on it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mnemon import cli
from tests import servers
from tests.servers import Server


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the database is."""
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def server(data_dir: Path) -> Iterator[Server]:
    """A real server whose built-in model quotes what it was told."""
    with servers.running(data_dir=data_dir) as found:
        yield found


def run(data_dir: Path, *args: str) -> Result:
    """The outcome of `mnemon jobs`, whatever it is."""
    return CliRunner().invoke(cli.main, ["jobs", *args, "--data-dir", str(data_dir)])


def jobs(data_dir: Path, *args: str) -> str:
    """What it prints when it succeeds."""
    result = run(data_dir, *args)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.usefixtures("server")
def test_a_job_is_made_run_and_read(data_dir: Path) -> None:
    """The id is all that `add` prints; a running server runs it, and `logs` shows what it said."""
    job = jobs(
        data_dir, "add", "report", "0 9 * * MON", "Say something.", "--key", "k", "--timezone", "Europe/Berlin", "--repeat", "3"
    ).strip()
    (shown,) = [json.loads(line) for line in jobs(data_dir, "list", "--json").splitlines()]
    assert (shown["id"], shown["session_key"], shown["timezone"], shown["repeat"]["times"]) == (job, "k", "Europe/Berlin", 3)
    jobs(data_dir, "run", job)
    deadline = time.monotonic() + 15
    while not (found := [r for line in jobs(data_dir, "logs", job, "--json").splitlines() if (r := json.loads(line))["finished_at"]]):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert (found[0]["status"], found[0]["source"]) == ("done", "manual")
    assert "by hand" in jobs(data_dir, "logs", job)


@pytest.mark.usefixtures("server")
def test_a_job_is_paused_and_resumed(data_dir: Path) -> None:
    """A paused job is listed with `--all` only."""
    job = jobs(data_dir, "add", "resting", "@daily", "p").strip()
    assert "'resting' is paused." in jobs(data_dir, "pause", job)
    assert job not in jobs(data_dir, "list")
    assert job in jobs(data_dir, "list", "--all")
    assert "fires next at" in jobs(data_dir, "resume", job)
    assert job in jobs(data_dir, "list")


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("add", "n", "whenever", "p"), "schedule is not understood"),
        (("add", "n", "@daily", "p", "--deliver", "fax"), "deliver must be local"),
        (("add", "n", "@daily", "p", "--deliver", "webhook:http://10.0.0.1/"), "private address"),
        (("run", "0123456789ab"), "there is no job"),
        (("logs", "0123456789ab"), "there is no job"),
    ],
)
def test_what_cannot_be_done_is_told_in_one_line(data_dir: Path, args: tuple[str, ...], told: str) -> None:
    """A wrong wish ends with status 2 and the reason."""
    result = run(data_dir, *args)
    assert result.exit_code == 2
    assert result.stderr.startswith("mnemon: ")
    assert told in result.stderr
