"""Credentials and what lies between tenants: nothing of one is visible to another."""

from __future__ import annotations

import asyncio
from pathlib import Path

import psycopg
import pytest

from mnemon.store import keys
from mnemon.store.keys import ApiKey
from tests.http.world import CHANNEL, ID, KEY, OTHER_KEY, RECEIPT, World, background, error, path_of, running, text, until


async def test_every_route_but_health_needs_a_key(light: World) -> None:
    """Without a valid key there is 401 in the one error shape, which says where to find one, on known and unknown routes alike."""
    routes = [(method, route.path) for route in light.app.routes for method in route.methods or () if method != "HEAD"]  # type: ignore[attr-defined]
    assert len(routes) >= 19
    for method, path in [*routes, ("GET", "/nowhere"), ("DELETE", "/v1/models")]:
        for header in ({}, {"Authorization": "Bearer nonsense"}, {"Authorization": KEY}, {"Authorization": f"Basic {KEY}"}):
            response = await light.of("").client.request(method, path, headers={"Authorization": "", **header})
            if path in ("/health", "/v1/health"):
                assert response.status_code == 200
                assert response.json()["status"] == "ok"
            else:
                assert "mnemon serve" in error(response, 401, "invalid_api_key")["message"]
                assert response.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
async def test_the_scheme_is_case_insensitive(light: World, scheme: str) -> None:
    """The word before the key may be written in any case."""
    response = await light.client.get("/v1/models", headers={"Authorization": f"{scheme} {KEY}"})
    assert response.status_code == 200


async def test_j03_equal_names_of_two_tenants_are_two_conversations(two: tuple[World, World]) -> None:
    """The same id, key and first message under two credentials make two transcripts."""
    one, other = two
    await one.say("The safe code is 4711.", "shared", "chan")
    await other.say("What is the safe code?", "shared", "chan")
    assert "4711" not in one.model.seen
    await other.say("And by key alone?", key="chan")
    assert "4711" not in one.model.seen
    assert await one.messages("shared") == [("user", "The safe code is 4711."), ("assistant", "Reply 1.")]
    assert (await other.messages("shared"))[0] == ("user", "What is the safe code?")


async def test_j07_listing_and_reading_stop_at_the_tenant(two: tuple[World, World]) -> None:
    """Listings, sessions, messages, forks, chats, changes and receipts of another tenant do not exist, and errors do not tell."""
    one, other = two
    response = await one.say("Secret plan.", "mine", "chan")
    receipt = response.headers[RECEIPT]
    assert await other.listed() == []
    assert await other.listed("session_key=chan&include_children=true") == []
    path = path_of("mine")
    client = other.client
    answers = [
        await client.get(path),
        await client.get(f"{path}/messages"),
        await client.patch(path, json={"title": "x"}),
        await client.delete(path),
        await other.post(f"{path}/fork", {}),
        await other.post(f"{path}/chat", {"message": "Hi."}),
        await other.post(f"{path}/chat/stream", {"message": "Hi."}),
    ]
    for answer in answers:
        assert "Secret" not in error(answer, 404, "session_not_found")["message"]
    error(await client.get(f"/v1/receipts/{receipt}"), 404, "receipt_not_found")
    assert (await one.get(f"/v1/receipts/{receipt}"))["id"] == receipt
    assert await one.listed() == ["mine"]
    assert len(one.model.requests) == 1


async def test_idempotency_keys_of_two_tenants_do_not_meet(two: tuple[World, World]) -> None:
    """The same Idempotency-Key with the same body is another request under another credential."""
    one, other = two
    first = await one.say("Hi.", "s", headers={"Idempotency-Key": "k"})
    second = await other.say("Hi.", "s", headers={"Idempotency-Key": "k"})
    assert (text(first), text(second)) == ("Reply 1.", "Reply 2.")


async def test_deleting_is_bound_to_the_tenant(two: tuple[World, World]) -> None:
    """A session of one tenant survives the deletion of its namesake."""
    one, other = two
    await one.say("Hi.", "s")
    await other.say("Hi.", "s")
    assert (await other.client.delete(path_of("s"))).status_code == 200
    assert len(await one.messages("s")) == 2
    assert await other.listed() == []


async def test_two_keys_of_one_tenant_share_everything(world: World) -> None:
    """A key made for an existing tenant sees its sessions."""
    await world.say("Hi.", "s")
    second = await world.key("phone", OTHER_KEY, tenant="default")
    assert await second.listed() == ["s"]


async def test_a_revoked_key_is_refused_at_once(world: World) -> None:
    """A request with a key that was revoked a moment ago gets 401."""
    other = await world.key("gone", OTHER_KEY)
    await other.say("Hi.")
    await world.revoke("gone")
    await asyncio.sleep(0.05 if world.app.state.services.driver.shared else 0)
    error(await other.chat("Hi."), 401, "invalid_api_key")
    await world.say("Mine works.")


@pytest.mark.postgres
async def test_a_key_revoked_while_the_database_was_away_is_refused(tmp_path: Path, postgres_url: str) -> None:
    """A server that lost its connection learns afterwards which keys ended meanwhile."""
    async with running(tmp_path, postgres_url) as world:
        driver = world.app.state.services.driver
        await driver.write(lambda tx: keys.add(tx, ApiKey(name="gone", tenant="gone", hash=keys.hashed(OTHER_KEY))))
        other = world.of(OTHER_KEY)
        await other.say("Hi.")
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            holders = "SELECT pid FROM pg_stat_activity WHERE query LIKE 'SELECT pg_advisory_lock%' AND datname = current_database()"
            ended = f"SELECT pg_terminate_backend(pid) FROM ({holders}) AS holding"
            assert connection.execute(ended).fetchall() == [(True,)]
            connection.execute("UPDATE api_keys SET revoked_at = 1 WHERE name = 'gone'")
            connection.execute("NOTIFY mnemon, 'keys'")

        async def refused() -> bool:
            return (await other.chat("Hi.")).status_code == 401

        await until(refused, 3)


async def test_j50_limits_hold_on_every_route(light: World) -> None:
    """A key's concurrency and its requests per minute bind chat completions and session chat alike: 429 with Retry-After."""
    slow = await light.key("slow", OTHER_KEY, concurrency=1)
    await slow.say("Hi.", "s")
    light.model.gate.clear()
    light.model.asked.clear()
    async with background(slow.say("Wait.", "s")):
        await light.model.asked.wait()
        for path, body in (
            (f"{path_of('s')}/chat", {"message": "x"}),
            ("/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}]}),
        ):
            response = await slow.post(path, body)
            assert error(response, 429, "rate_limit_exceeded")["type"] == "rate_limit_error"
            assert int(response.headers["retry-after"]) >= 1
        light.model.gate.set()
    await slow.say("Free again.", "s")
    counted = await light.key("counted", "a-third-key-for-the-tests", requests_per_minute=3)  # one was spent on trying it
    await counted.say("1")
    await counted.say("2")
    refused = await counted.chat("3", headers={ID: "s", CHANNEL: "k"})
    error(refused, 429, "rate_limit_exceeded")
    assert 1 <= int(refused.headers["retry-after"]) <= 60
    assert (refused.headers[ID], refused.headers[CHANNEL]) == ("s", "k")


async def test_a_turn_holds_its_key_s_place_to_its_end(light: World) -> None:
    """A client that leaves does not free its place while its turn runs on; the end of the turn does."""
    slow = await light.key("slow", OTHER_KEY, concurrency=1)
    light.model.gate.clear()
    leaving = asyncio.create_task(slow.say("Wait.", "s"))
    await light.model.asked.wait()
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    error(await asyncio.wait_for(slow.chat("Meanwhile."), 5), 429, "rate_limit_exceeded")
    light.model.gate.set()

    async def free() -> bool:
        return (await slow.chat("Now.")).status_code == 200

    await until(free)
    assert len(await light.of(OTHER_KEY).messages("s")) == 2
