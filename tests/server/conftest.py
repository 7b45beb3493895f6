"""Real servers and the official client for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import servers
from tests.servers import Server
from tests.upstream import Upstream


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    """The scripted model."""
    with servers.scripted_upstream() as found:
        yield found


@pytest.fixture
def server(tmp_path: Path, upstream: Upstream) -> Iterator[Server]:
    """A server on SQLite with the scripted model behind it."""
    with servers.running(data_dir=tmp_path, upstream=upstream) as found:
        yield found


@pytest.fixture
def stored(tmp_path: Path, database_url: str, upstream: Upstream) -> Iterator[Server]:
    """The same, once on SQLite and once on PostgreSQL: for what depends on the store."""
    with servers.running(data_dir=tmp_path, upstream=upstream, env={"MNEMON_DATABASE_URL": database_url}) as found:
        yield found
