"""The PostgreSQL that the other tests stand on."""

from __future__ import annotations

import psycopg
import pytest

from tests import postgres

pytestmark = pytest.mark.postgres


def test_databases_are_empty_and_isolated(postgres_server: str, postgres_url: str) -> None:
    """What is written into one test's database is not seen in another's."""
    with postgres.database(postgres_server) as other_url:
        assert other_url != postgres_url
        with psycopg.connect(postgres_url) as connection, psycopg.connect(other_url) as other:
            connection.execute("CREATE TABLE note (body text)")
            connection.execute("INSERT INTO note VALUES ('mine')")
            connection.commit()
            assert tables(connection) == ["note"]
            assert tables(other) == []


def test_a_database_is_gone_after_its_test(postgres_server: str) -> None:
    """Nothing is left behind on the server."""
    with postgres.database(postgres_server) as url:
        name = url.rpartition("/")[2]
        assert name in databases(postgres_server)
    assert name not in databases(postgres_server)


def test_the_server_is_a_durable_one(postgres_server: str) -> None:
    """Tests of durability mean something: commits are flushed, as on a server people run."""
    with psycopg.connect(postgres_server) as connection:
        for setting in ("fsync", "synchronous_commit", "full_page_writes"):
            assert connection.execute("SELECT current_setting(%s)", (setting,)).fetchone() == ("on",)


def tables(connection: psycopg.Connection) -> list[str]:
    """The tables that a user made."""
    return [name for (name,) in connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")]


def databases(url: str) -> list[str]:
    """The databases of the server."""
    with psycopg.connect(url) as connection:
        return [name for (name,) in connection.execute("SELECT datname FROM pg_database")]
