"""One writer per session: a lease holds while its owner lives, and fences off one that was only thought dead."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from mnemon.core import errors, ids
from mnemon.store.base import Driver, Tx
from mnemon.store.leases import RowLeases
from tests.store.steps import Store, opened


async def take(store: Store, token: str, *, name: str = "s") -> bool:
    """Try to become the writer of a session, for a turn that runs."""
    store.driver.enter(token)
    return await store.driver.begin(lambda tx: tx.leases(store.tenant).take(name, token), writes=False)


async def end(store: Store, token: str, *, name: str = "s") -> None:
    """Release as a commit does."""
    await store.driver.write(lambda tx: tx.leases(store.tenant).end(name, token)())
    store.driver.leave(token)


def leave_a_dead_ones(store: Store, token: str) -> Callable[[Tx], bool]:
    """What a process that is gone left behind, where leases are rows."""

    def write(tx: Tx) -> bool:
        return RowLeases(tx, store.tenant, owner=ids.owner(), running={token}).take("s", token)

    return write


@pytest.fixture
async def neighbour(store: Store, shared_url: str) -> AsyncIterator[Driver]:
    """Another living process on the database."""
    async with opened(shared_url) as found:
        yield found


async def test_one_holder_at_a_time(store: Store, neighbour: Driver) -> None:
    """While a living process holds a session nobody else gets it, neither there nor in another process; afterwards anybody does."""
    there = Store(neighbour, store.tenant, store.memory)
    assert await take(store, "one")
    assert not await take(store, "two")
    assert not await take(there, "three")
    await end(store, "one")
    assert await take(there, "three")
    assert not await take(store, "two")


async def test_names_and_tenants_do_not_touch(store: Store) -> None:
    """A lease on one session holds no other, nor the equal name of another tenant."""
    assert await take(store, "one")
    assert await take(store, "two", name="another")
    assert await take(store.other(), "three")


async def test_of_many_who_try_one_wins(store: Store, neighbour: Driver) -> None:
    """Of many turns that begin at once in two processes exactly one becomes the writer."""
    there = Store(neighbour, store.tenant, store.memory)
    tokens = [f"t{n}" for n in range(20)]
    results = await asyncio.gather(*(take((store, there)[n % 2], token) for n, token in enumerate(tokens)))
    assert sum(results) == 1


async def test_a_dead_owner_is_taken_over_at_once(store: Store, shared_url: str) -> None:
    """The lease of a process that is gone is free, without a time to wait for."""
    async with opened(shared_url) as short:
        assert await take(Store(short, store.tenant, store.memory), "old")
        assert not await take(store, "new")
    assert await take(store, "new")


async def test_of_many_heirs_one_inherits(store: Store, neighbour: Driver) -> None:
    """When a dead process left a session, one of those who wait for it gets it, and only one."""
    if not store.driver.shared:
        pytest.skip("a lock goes with its process")
    await store.driver.write(leave_a_dead_ones(store, "old"))
    there = Store(neighbour, store.tenant, store.memory)
    tokens = [f"t{n}" for n in range(12)]
    won: list[bool] = []
    while not any(won):
        won = await asyncio.gather(*(take((store, there)[n % 2], token) for n, token in enumerate(tokens)))
    assert sum(won) == 1


async def test_a_holder_that_was_replaced_cannot_commit(store: Store) -> None:
    """A turn whose session was taken over learns it at the commit, writes nothing, and leaves the new holder alone."""
    if store.driver.shared:
        await store.driver.write(leave_a_dead_ones(store, "old"))
    assert await take(store, "new")
    with pytest.raises(errors.LeaseLost) as caught:
        await end(store, "old")
    assert caught.value.code == "lease_lost"
    await end(store, "new")


async def test_what_a_fenced_commit_wrote_is_undone(store: Store) -> None:
    """Whatever a unit of work wrote before it noticed the loss is gone with it."""
    await store.write(lambda talk: talk.begin("s"))

    def late(talk: object) -> None:
        talk.say("s", "must not stay")  # type: ignore[attr-defined]
        talk.tx.leases(store.tenant).end("s", "lost")()  # type: ignore[attr-defined]

    with pytest.raises(errors.LeaseLost):
        await store.write(late)
    assert await store.read(lambda talk: talk.path("s")) == []


async def test_a_turn_that_left_is_no_obstacle(store: Store) -> None:
    """A lease that was not given back, of a turn that runs no more, is free; one of a running turn is not."""
    assert await take(store, "forgotten")
    assert not await take(store, "next")
    store.driver.leave("forgotten")
    assert await take(store, "next")
    with pytest.raises(errors.LeaseLost):
        await end(store, "forgotten")


async def test_taking_twice_is_taking_once(store: Store) -> None:
    """A lock that a turn holds already stays held, and one release frees it."""
    if store.driver.shared:
        pytest.skip("a row is inserted once")
    assert await take(store, "one")
    assert await take(store, "one")
    await end(store, "one")
    assert await take(store, "two")


async def test_giving_up_is_quiet_and_exact(store: Store) -> None:
    """Giving up frees one's own lease, and does nothing to another's."""
    await take(store, "one")
    await store.driver.write(lambda tx: tx.leases(store.tenant).give_up("s", "stranger"))
    assert not await take(store, "two")
    await store.driver.write(lambda tx: tx.leases(store.tenant).give_up("s", "one"))
    assert await take(store, "two")


async def test_a_lease_ends_once(store: Store) -> None:
    """A lease that was ended is not there a second time."""
    await take(store, "one")
    await end(store, "one")
    with pytest.raises(errors.LeaseLost):
        await end(store, "one")
