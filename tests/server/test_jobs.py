"""Jobs on real servers: two on one PostgreSQL, restarts, kills, and a worker by itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests import postgres, servers
from tests.servers import KEY, Server
from tests.upstream import Upstream

Json = dict[str, Any]
PATIENCE = 20.0


def until(condition: Callable[[], Any], patience: float = PATIENCE) -> Any:
    """Wait for something that a server does by itself; what it is."""
    deadline = time.monotonic() + patience
    while not (found := condition()):
        assert time.monotonic() < deadline, "it never came about"
        time.sleep(0.05)
    return found


def soon(seconds: float) -> str:
    """An instant ahead."""
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()


def made(server: Server, **fields: Any) -> Json:
    """A new job."""
    answer = server.call("POST", "/api/jobs", {"name": "n", "schedule": "every 24h", "prompt": "p", **fields})
    assert answer.status == 200, answer
    found: Json = answer.body["job"]
    return found


def runs(server: Server, job: Json) -> list[Json]:
    """Its runs, newest first."""
    found: list[Json] = server.call("GET", f"/api/jobs/{job['id']}/runs").body["data"]
    return found


def ended(server: Server, job: Json, count: int = 1) -> list[Json]:
    """Its runs, once so many have ended."""
    return until(lambda: found if len(found := [r for r in runs(server, job) if r["finished_at"]]) >= count else None)  # type: ignore[no-any-return]


def asked(upstream: Upstream, words: str) -> int:
    """How often the model was asked this."""
    return sum(words in str(request["messages"][-1]["content"]) for request in upstream.requests)


def test_a_killed_servers_run_is_taken_up_when_it_is_back(stored: Server, upstream: Upstream, tmp_path: Path) -> None:
    """The run has one row and one turn, though the model was asked twice; a paused job stays paused."""
    prompt = f"[[slow 2]] run of {tmp_path.name}"
    job, resting = made(stored, prompt=prompt), made(stored, schedule=soon(1))
    stored.call("POST", f"/api/jobs/{resting['id']}/pause")
    stored.call("POST", f"/api/jobs/{job['id']}/run")
    until(lambda: asked(upstream, prompt))
    stored.kill()
    stored.restart()
    (run,) = ended(stored, job)
    assert (run["status"], run["attempts"], asked(upstream, prompt)) == ("done", 2, 2)
    messages = stored.call("GET", f"/api/sessions/job%3A{job['id']}/messages").body["data"]
    assert [m["role"] for m in messages] == ["user", "assistant"]
    assert stored.call("GET", f"/api/jobs/{resting['id']}").body["job"]["state"] == "paused"
    assert runs(stored, resting) == []


def test_a_stop_hands_a_run_over(server: Server, upstream: Upstream, tmp_path: Path) -> None:
    """A server that is stopped amid a run that takes long gives it back, and the next one takes it up; deleted, it is stopped."""
    prompt = f"[[words 40]] [[slow 40]] stopped {tmp_path.name}"
    job = made(server, prompt=prompt)
    server.call("POST", f"/api/jobs/{job['id']}/run")
    until(lambda: asked(upstream, prompt))
    server.restart()
    until(lambda: asked(upstream, prompt) == 2)
    (run,) = runs(server, job)
    assert (run["status"], run["attempts"]) == ("running", 2)
    assert server.call("DELETE", f"/api/jobs/{job['id']}").body == {"ok": True}
    until(lambda: [1 for request in upstream.left if prompt in str(request["messages"][-1]["content"])][1:])


def test_jobs_missed_while_no_server_ran(stored: Server, upstream: Upstream, tmp_path: Path) -> None:
    """An instant that passed during a short outage is run as soon as a server is back, once."""
    job = made(stored, schedule=soon(0.5), prompt=f"missed {tmp_path.name}")
    stored.kill()
    time.sleep(1)
    stored.restart()
    ended(stored, job)
    time.sleep(1)
    assert [run["status"] for run in runs(stored, job)] == ["done"]
    assert asked(upstream, f"missed {tmp_path.name}") == 1


@pytest.mark.postgres
def test_two_servers_fire_each_instant_once_though_one_is_killed(tmp_path: Path, postgres_server: str, upstream: Upstream) -> None:
    """Thirty jobs at close instants, one server killed amid them: one row and one committed turn each, all within seconds."""
    with postgres.database(postgres_server) as url:
        env = {"MNEMON_DATABASE_URL": url}
        with (
            servers.running(data_dir=tmp_path / "a", upstream=upstream, env=env) as one,
            servers.running(data_dir=tmp_path / "b", upstream=upstream, env=env) as other,
        ):
            jobs = [made(one, schedule=soon(2 + n / 10), prompt=f"[[slow 0.4]] instant-{n}. of {tmp_path.name}") for n in range(30)]
            until(lambda: asked(upstream, f"of {tmp_path.name}") >= 12)
            one.kill()
            found = [ended(other, job) for job in jobs]
            assert Counter(len(each) for each in found) == {1: 30}
            assert Counter(each[0]["status"] for each in found) == {"done": 30}
            calls = [asked(upstream, f"instant-{n}. of {tmp_path.name}") for n in range(30)]
            assert min(calls) >= 1
            assert sum(calls) <= 30 + 16
            for job in jobs:
                messages = other.call("GET", f"/api/sessions/job%3A{job['id']}/messages").body["data"]
                assert [m["role"] for m in messages] == ["user", "assistant"]


@pytest.mark.postgres
def test_a_worker_by_itself_runs_what_a_server_was_asked(tmp_path: Path, postgres_server: str, upstream: Upstream) -> None:
    """`mnemon worker` does the jobs while no server is there, and ends when it is asked to."""
    with postgres.database(postgres_server) as url:
        env = {"MNEMON_DATABASE_URL": url}
        with servers.running(data_dir=tmp_path / "a", upstream=upstream, env=env) as server:
            job = made(server, schedule=soon(2), prompt=f"alone {tmp_path.name}")
            server.kill()
            command = [sys.executable, "-m", "mnemon", "worker", "--data-dir", str(tmp_path / "w"), "--upstream-url", upstream.url]
            clean = {name: value for name, value in os.environ.items() if not name.startswith(servers.FOREIGN)}
            with subprocess.Popen([*command, "--database-url", url], env=clean, stdout=subprocess.DEVNULL) as worker:
                until(lambda: asked(upstream, f"alone {tmp_path.name}"))
                time.sleep(0.5)
                worker.send_signal(signal.SIGTERM)
                assert worker.wait(PATIENCE) == 0
            server.restart()
            assert [run["status"] for run in runs(server, job)] == ["done"]
            assert server.key == KEY
