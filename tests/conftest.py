"""What every test stands on: a clean environment, asyncio, and the databases."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import postgres

OUR_PREFIXES = ("MNEMON_", "API_SERVER_")
OUR_NAMES = ("OPENAI_BASE_URL", "OPENAI_API_KEY")


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting of the machine leaks into a test."""
    for name in list(os.environ):
        if name.startswith(OUR_PREFIXES) or name in OUR_NAMES:
            monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Async tests run on asyncio, as the server does."""
    return "asyncio"


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """One PostgreSQL for the whole session, started by the first test that needs it."""
    with postgres.server() as url:
        yield url


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """An empty PostgreSQL database of the test's own. Its user carries the mark `postgres`."""
    with postgres.database(postgres_server) as url:
        yield url


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of the test's own: the same test runs once on SQLite and once on PostgreSQL."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/mnemon.db"
    # Asked for by name, so that a run on SQLite alone starts no server.
    return str(request.getfixturevalue("postgres_url"))


def pytest_addoption(parser: pytest.Parser) -> None:
    """What a run may be asked to do besides."""
    parser.addoption("--soak", action="store_true", help="run the soak of the jobs whole: 30 days of 200 jobs, 500 kills")
