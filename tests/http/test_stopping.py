"""Turns that are stopped or refused at an inconvenient moment: nobody waits for them afterwards."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

from mnemon.store.base import Tx
from mnemon.store.postgres import THREADS
from mnemon.turn.answer import LAST_WORD_SECONDS
from tests.http.conftest import emptied
from tests.http.test_runs import ended, events, names, start
from tests.http.world import World, background, error, running, until

MOMENT = 0.05  # for a turn to go as far as it can by itself
SOON = 5.0


@pytest.fixture
async def pair(tmp_path: Path, database_url: str) -> AsyncIterator[tuple[World, World]]:
    """Two servers on one database."""
    async with running(tmp_path, database_url) as one, running(tmp_path, database_url) as other:
        yield one, other


@contextlib.asynccontextmanager
async def database_at_a_standstill(world: World) -> AsyncIterator[None]:
    """Whatever is asked of the database while the block runs is done when it is left, in order where the database keeps one."""
    driver: Any = world.app.state.services.driver
    released = threading.Event()
    blocked = threading.Semaphore(0)

    def block(_tx: Tx) -> None:
        blocked.release()
        released.wait(SOON)

    count = THREADS if driver.shared else 1
    blocks = [asyncio.ensure_future(driver.write(block, durable=False)) for _ in range(count)]
    for _ in blocks:
        await asyncio.to_thread(blocked.acquire)
    try:
        yield
    finally:
        released.set()
        await asyncio.gather(*blocks)


async def test_a_refused_turn_leaves_its_session_to_every_server(pair: tuple[World, World]) -> None:
    """What is refused only when its session is known holds nothing afterwards, wherever the next turn comes in."""
    one, other = pair
    await one.say("Before.", "s", "chan")
    for number in range(3):
        error(await one.chat("Mine?", "s", "another"), 409, "session_key_conflict")
        result = {"role": "tool", "tool_call_id": "none", "content": "x"}
        error(await one.chat([result], "s"), 400, "unknown_tool_call")
        async with asyncio.timeout(SOON):
            await other.say(f"After {number}.", "s")


async def test_a_turn_stopped_while_it_begins_leaves_its_session_free(pair: tuple[World, World]) -> None:
    """Its lease may be granted only after it was stopped; it is given back all the same."""
    one, other = pair
    turns = one.app.state.services.turns
    await one.say("Before.", "s")
    async with database_at_a_standstill(one):
        turn = asyncio.create_task(one.chat("Stopped.", "s", headers={"Idempotency-Key": "k"}))
        await asyncio.sleep(MOMENT)
        (stopped,) = turns.running
        stopped.cancel()
        await asyncio.sleep(MOMENT)
    error(await turn, 409, "cancelled")
    for world in pair:
        async with asyncio.timeout(SOON):
            await world.say("Next.", "s")
    async with asyncio.timeout(SOON):
        await other.say("Stopped.", "s", headers={"Idempotency-Key": "k"})


async def test_a_run_stopped_over_and_over_has_one_end(world: World) -> None:
    """Each further stop may meet it at a later moment of its end; it is cancelled once, and all who watch it see that."""
    world.model.gate.clear()
    run_id = await start(world, "Stopped.", {"X-Hermes-Session-Id": "s"})
    await world.model.asked.wait()
    turns = world.app.state.services.turns
    async with background(events(world, run_id)) as watched:
        async with database_at_a_standstill(world):
            for _ in range(4):
                turns.cancel("default", run_id)
                await asyncio.sleep(MOMENT)
        async with asyncio.timeout(SOON):
            assert (await ended(world, run_id))["status"] == "cancelled"
            await watched
    assert names(watched.result())[-1] == "run.cancelled"
    assert not turns.running
    world.model.gate.set()
    async with asyncio.timeout(SOON):
        await world.say("Next.", "s")


async def test_who_asks_again_does_not_join_a_turn_that_is_stopped(world: World) -> None:
    """A retry that comes while the first try is still being given up gets an answer of its own."""
    turns = world.app.state.services.turns
    world.model.gate.clear()
    first = asyncio.create_task(world.chat("Once.", headers={"Idempotency-Key": "k"}))
    await world.model.asked.wait()
    async with database_at_a_standstill(world):
        (stopped,) = turns.running
        stopped.cancel()
        await asyncio.sleep(MOMENT)
        again = asyncio.create_task(world.say("Once.", headers={"Idempotency-Key": "k"}))
        await asyncio.sleep(MOMENT)
    error(await first, 409, "cancelled")
    world.model.gate.set()
    async with asyncio.timeout(SOON):
        assert (await again).headers.get("Idempotency-Replayed") is None


@pytest.mark.postgres
async def test_what_could_not_be_given_back_is_given_back_later(tmp_path: Path, shared_postgres: str) -> None:
    """A turn that failed because the database was away holds neither its session nor its key once that is there again."""
    async with running(tmp_path, shared_postgres) as one, running(tmp_path, shared_postgres) as other:
        await one.say("Before.", "s")
        driver: Any = one.app.state.services.driver
        one.model.gate.clear()
        turn = asyncio.create_task(one.chat("Lost.", "s", headers={"Idempotency-Key": "k"}))
        await asyncio.sleep(MOMENT)
        await one.model.asked.wait()
        connects = driver.connects
        async with database_away(shared_postgres):
            one.model.gate.set()
            error(await turn, 503)
        while driver.connects == connects:  # noqa: ASYNC110 - a thread of the driver counts
            await asyncio.sleep(MOMENT)

        async def answered() -> bool:  # each connection to the database is found broken once
            return (await other.chat("Lost.", "s", headers={"Idempotency-Key": "k"})).status_code == 200

        await until(answered, SOON)
    emptied(shared_postgres)


@contextlib.asynccontextmanager
async def database_away(url: str) -> AsyncIterator[None]:
    """Nobody can use the database while the block runs."""
    name = urlsplit(url).path[1:]
    with psycopg.connect(url.removesuffix(name) + "postgres", autocommit=True) as connection:
        allow = sql.SQL("ALTER DATABASE {} WITH ALLOW_CONNECTIONS {}")
        connection.execute(allow.format(sql.Identifier(name), sql.SQL("false")))
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,))
        try:
            yield
        finally:
            connection.execute(allow.format(sql.Identifier(name), sql.SQL("true")))


async def test_a_run_stopped_during_its_commit_is_stored_or_cancelled(world: World) -> None:
    """Whatever the database makes of a commit that nobody waits for any more, the run and the transcript say the same."""
    for number in range(3):
        world.model.gate.clear()
        world.model.asked.clear()
        run_id = await start(world, "Stopped.", {"X-Hermes-Session-Id": f"s{number}"})
        await world.model.asked.wait()
        async with database_at_a_standstill(world):
            world.model.gate.set()
            await asyncio.sleep(MOMENT)
            world.app.state.services.turns.cancel("default", run_id)
            await asyncio.sleep(LAST_WORD_SECONDS + MOMENT)
        async with asyncio.timeout(SOON):
            found = await ended(world, run_id)
        stored = (await world.client.get(f"/api/sessions/s{number}/messages")).status_code == 200
        assert found["status"] == ("completed" if stored else "cancelled")
