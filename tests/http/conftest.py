"""The servers that the tests of this folder talk to."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from tests import postgres
from tests.http import world as worlds
from tests.http.world import World

SCHEMA = "migrations"
PATIENCE = 5.0


@pytest.fixture(scope="session")
def shared_postgres(postgres_server: str) -> Iterator[str]:
    """One PostgreSQL database for all tests of this folder: to make one for each takes longer than most of them."""
    with postgres.database(postgres_server) as url:
        yield url


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database without rows: the same test runs once on SQLite and once on PostgreSQL."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/mnemon.db"
        return
    # Asked for by name, so that a run on SQLite alone starts no server.
    url = str(request.getfixturevalue("shared_postgres"))
    yield url
    emptied(url)


def emptied(url: str) -> None:
    """Take every row out; a connection that a test left open is a leak, and an error."""
    with psycopg.connect(url) as connection:
        others = "SELECT query FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        deadline = time.monotonic() + PATIENCE
        while left := connection.execute(others).fetchall():
            assert time.monotonic() < deadline, left
            connection.rollback()  # within a transaction the answer would stay the same
            time.sleep(0.005)
        connection.execute("SET LOCAL session_replication_role = replica")
        for (name,) in connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall():
            if name != SCHEMA:
                connection.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(name)))


@pytest.fixture
async def world(tmp_path: Path, database_url: str) -> AsyncIterator[World]:
    """A server with default settings, once on SQLite and once on PostgreSQL: for what depends on what is stored."""
    async with worlds.running(tmp_path, database_url) as found:
        yield found


@pytest.fixture
async def light(tmp_path: Path) -> AsyncIterator[World]:
    """A server with default settings on SQLite: for what is decided before the store is asked."""
    async with worlds.running(tmp_path) as found:
        yield found


@pytest.fixture
async def two(world: World) -> tuple[World, World]:
    """One server as two tenants see it."""
    return world, await world.key("other", worlds.OTHER_KEY)
