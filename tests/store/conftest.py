"""Databases for the tests of this folder: one of their own for those that need it, one for all the others."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from mnemon.store.base import Driver
from tests import postgres
from tests.store import steps
from tests.store.steps import Store


@pytest.fixture
async def driver(database_url: str) -> AsyncIterator[Driver]:
    """An open driver on an empty database of the test's own, once on SQLite and once on PostgreSQL."""
    async with steps.opened(database_url) as found:
        yield found


@pytest.fixture(scope="session", params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def shared_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A database that many tests write to, as the tenants of a server do."""
    if request.param == "sqlite":
        folder: Path = tmp_path_factory.mktemp("shared")
        yield f"sqlite:///{folder}/mnemon.db"
    else:
        with postgres.database(request.getfixturevalue("postgres_server")) as url:
            yield url


@pytest.fixture(scope="session")
async def shared_driver(shared_url: str) -> AsyncIterator[Driver]:
    """An open driver on the shared database."""
    async with steps.opened(shared_url) as found:
        yield found


@pytest.fixture
def store(shared_driver: Driver) -> Store:
    """A tenant of the test's own among all the others: what it finds there is its own or a breach."""
    return Store.new(shared_driver)
