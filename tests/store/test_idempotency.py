"""Idempotency records: the same request gets the same answer, once and for a day."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mnemon.core import errors, ids
from mnemon.core.records import Idempotency
from mnemon.store.base import Tx
from mnemon.store.frames import Frames
from mnemon.store.idempotency import KEPT_SECONDS, Record, Records, expire, stream_of
from tests.store import steps
from tests.store.steps import Store, opened

NOW = 1_000_000.0


def wanted(fingerprint: bytes = b"body", slot: bytes | None = None) -> Idempotency:
    """A request; without a slot, one that nobody used."""
    return Idempotency(slot=slot or steps.unique("slot").encode(), fingerprint=fingerprint, key="the-key")


async def find(store: Store, which: Idempotency, *, now: float = NOW) -> Any:
    """What is known of a request."""
    return await store.driver.write(lambda tx: Records(tx, store.tenant).find(which, now=now))


async def begin(store: Store, which: Idempotency, *, owner: int | None = None, now: float = NOW) -> bool:
    """Start to work on a request."""
    owner = store.driver.owner if owner is None else owner
    return await store.driver.write(lambda tx: Records(tx, store.tenant).begin(which, owner=owner, now=now))


async def finish(store: Store, which: Idempotency, body: bytes = b"reply", *, now: float = NOW) -> None:
    """Keep an answer."""
    record = Record(headers={"session_id": "ß☕", "compressed": False, "receipt_id": None}, body=body)
    await store.driver.write(lambda tx: Records(tx, store.tenant).finish(which, record, lineage=None, now=now))


async def test_from_the_beginning_to_the_answer(store: Store) -> None:
    """Unknown, then being worked on by this process, then answered: with the headers and the very bytes."""
    which = wanted()
    assert await find(store, which) is None
    assert await begin(store, which)
    assert await find(store, which) == store.driver.owner
    body = bytes(range(256)) * 100
    await finish(store, which, body)
    found = await find(store, which)
    assert found == Record(headers={"session_id": "ß☕", "compressed": False, "receipt_id": None}, body=body, replayed=True)
    assert await find(store, which) == found


async def test_an_answer_needs_no_beginning(store: Store) -> None:
    """A record may be finished without having been begun, as `/new` does."""
    which = wanted()
    await finish(store, which)
    assert isinstance(await find(store, which), Record)


async def test_another_body_is_a_conflict(store: Store) -> None:
    """The key with another body is refused while the first is worked on, and after; the first stays what it is."""
    which = wanted(b"one")
    other = wanted(b"two", slot=which.slot)
    await begin(store, which)
    for _ in range(2):
        with pytest.raises(errors.Conflict, match="'the-key' was used before with another body") as caught:
            await find(store, other)
        assert (caught.value.code, caught.value.param) == ("idempotency_key_conflict", "Idempotency-Key")
        await finish(store, which)
    assert isinstance(await find(store, which), Record)


async def test_one_begins(store: Store, shared_url: str) -> None:
    """Of two processes that begin the same request at once, one does the work."""
    async with opened(shared_url) as neighbour:
        which = wanted()
        there = Store(neighbour, store.tenant, store.memory)
        begun = await asyncio.gather(*(begin((store, there)[n % 2], which) for n in range(10)))
        assert sum(begun) == 1
        assert await find(store, which) in (store.driver.owner, neighbour.owner)


async def test_a_day_long(store: Store) -> None:
    """An answer is kept for 24 hours and not longer; after that the key is free, for another body too."""
    which = wanted()
    await finish(store, which, now=NOW)
    assert isinstance(await find(store, which, now=NOW + KEPT_SECONDS), Record)
    assert KEPT_SECONDS == 24 * 3600
    assert await find(store, wanted(b"other", slot=which.slot), now=NOW + KEPT_SECONDS + 1) is None
    assert await begin(store, wanted(b"other", slot=which.slot))


async def test_the_day_begins_with_the_answer(store: Store) -> None:
    """However long the work took, its answer is kept for 24 hours from when it was given."""
    which = wanted()
    await begin(store, which, now=NOW)
    await finish(store, which, now=NOW + 5000)
    assert isinstance(await find(store, which, now=NOW + 5000 + KEPT_SECONDS), Record)
    assert await find(store, which, now=NOW + 5001 + KEPT_SECONDS) is None


async def test_the_sweep_takes_the_old_only(store: Store) -> None:
    """Clearing away removes what is older than a day, finished or not, counts it, and leaves what is young."""
    far = 50_000_000.0  # later than what other tests left behind
    old, young, working = wanted(), wanted(), wanted()
    await store.driver.write(lambda tx: expire(tx, now=far))
    await finish(store, old, now=far)
    await finish(store, young, now=far + 5000)
    await begin(store, working, now=far)
    assert await store.driver.write(lambda tx: expire(tx, now=far + KEPT_SECONDS + 1)) == 2
    assert await find(store, old, now=far) is None
    assert isinstance(await find(store, young, now=far), Record)
    assert await find(store, working, now=far) is None


async def test_a_dead_process_leaves_the_work_to_be_done(store: Store, shared_url: str) -> None:
    """What a process left unfinished when it died is free to be tried again, frames and all; another body may come instead."""
    async with opened(shared_url) as short:
        which = wanted()
        await begin(Store(short, store.tenant, store.memory), which)
        await short.write(lambda tx: Frames(tx, store.tenant).add(stream_of(which), number=1, data=b"half a reply", at=0.0))
        assert await find(store, which) == short.owner
    assert await find(store, wanted(b"other", slot=which.slot)) is None
    assert await store.driver.read(lambda tx: Frames(tx, store.tenant).after(stream_of(which), 0)) == []
    assert await begin(store, which)


async def test_a_dead_process_s_answer_stays(store: Store, shared_url: str) -> None:
    """What a process finished before it died is the answer."""
    async with opened(shared_url) as short:
        which = wanted()
        await begin(Store(short, store.tenant, store.memory), which)
        await finish(Store(short, store.tenant, store.memory), which, b"done")
    assert (await find(store, which)).body == b"done"


async def test_a_failed_turn_leaves_no_record(store: Store) -> None:
    """Giving up makes the key free again; it cannot take back another's claim, nor an answer."""
    which = wanted()

    async def give_up(owner: int) -> None:
        await store.driver.write(lambda tx: Records(tx, store.tenant).give_up(which, owner=owner))

    await begin(store, which)
    await give_up(ids.owner())
    assert await find(store, which) == store.driver.owner
    await give_up(store.driver.owner)
    assert await find(store, which) is None
    await finish(store, which)
    await give_up(store.driver.owner)
    assert isinstance(await find(store, which), Record)


async def test_frames_make_room_for_the_answer(store: Store) -> None:
    """What was streamed is dropped when the answer is recorded, and nobody else's stream with it."""
    which, other = wanted(), wanted()
    await begin(store, which)
    await begin(store, other)

    def write(tx: Tx) -> None:
        for each in (which, other):
            Frames(tx, store.tenant).add(stream_of(each), number=1, data=b"data: 1\n\n", at=0.0)

    await store.driver.write(write)
    await finish(store, which)
    assert await store.driver.read(lambda tx: Frames(tx, store.tenant).after(stream_of(which), 0)) == []
    assert await store.driver.read(lambda tx: len(Frames(tx, store.tenant).after(stream_of(other), 0))) == 1
