"""Real servers and the official client for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import postgres, servers
from tests.servers import Server
from tests.upstream import Upstream


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    """The scripted model, one for the tests of a file: each looks for its own messages there."""
    with servers.scripted_upstream() as found:
        yield found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, upstream: Upstream) -> Iterator[Server]:
    """A server on SQLite with the scripted model behind it, one for the tests of a file: each has sessions of its own."""
    with servers.running(data_dir=tmp_path_factory.mktemp("data"), upstream=upstream) as found:
        yield found


@pytest.fixture
def stored(tmp_path: Path, database_url: str, upstream: Upstream) -> Iterator[Server]:
    """A server of the test's own, once on SQLite and once on PostgreSQL: for what depends on the store, and for crashes."""
    with servers.running(data_dir=tmp_path, upstream=upstream, env={"MNEMON_DATABASE_URL": database_url}) as found:
        yield found


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, postgres_server: str, upstream: Upstream) -> Iterator[tuple[Server, Server]]:
    """Two servers on one database; each test has work of its own, and brings back what it kills."""
    with postgres.database(postgres_server) as url:
        env = {"MNEMON_DATABASE_URL": url}
        with (
            servers.running(data_dir=tmp_path_factory.mktemp("a"), upstream=upstream, env=env) as one,
            servers.running(data_dir=tmp_path_factory.mktemp("b"), upstream=upstream, env=env) as other,
        ):
            yield one, other
