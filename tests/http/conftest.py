"""The servers that the tests of this folder talk to."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.http import world as worlds
from tests.http.world import World


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
