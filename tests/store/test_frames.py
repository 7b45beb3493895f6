"""The event log: frames in numbered batches, read from any number on, kept for a day."""

from __future__ import annotations

import pytest

from mnemon.store import frames
from mnemon.store.base import Tx
from mnemon.store.frames import KEPT_SECONDS, Frames
from tests.store import steps
from tests.store.steps import Store

BATCHES = [(1, b"one two "), (3, b"three \x00\xff"), (4, b"four")]


async def written(store: Store, stream: str, *, at: float = 0.0) -> None:
    """A stream of four frames in three batches."""
    await store.driver.write(lambda tx: frames.add_all(tx, [(store.tenant, stream, *batch) for batch in BATCHES], at=at))


@pytest.mark.parametrize(("seen", "left"), [(0, BATCHES), (1, BATCHES), (2, BATCHES[1:]), (3, BATCHES[2:])])
async def test_a_stream_is_read_from_any_frame_on(store: Store, seen: int, left: list[tuple[int, bytes]]) -> None:
    """Every batch with a frame behind the last one seen comes, in order; another stream's and another tenant's do not."""
    stream = steps.unique("run")
    await written(store, stream)
    await written(store, stream + "-other")
    assert await store.driver.read(lambda tx: Frames(tx, store.tenant).after(stream, seen)) == left
    assert await store.driver.read(lambda tx: Frames(tx, store.tenant + "-other").after(stream, 0)) == []


async def test_a_batch_may_come_again_with_more_behind_it(store: Store) -> None:
    """Who could not learn whether a batch was written writes it again, and nobody reads anything twice."""
    stream = steps.unique("run")
    await written(store, stream)
    again = [(store.tenant, stream, 4, b"four five ")]
    await store.driver.write(lambda tx: frames.add_all(tx, again, at=1.0))
    assert await store.driver.read(lambda tx: Frames(tx, store.tenant).after(stream, 0)) == [*BATCHES[:2], (4, b"four five ")]


async def test_streams_are_dropped_one_by_one(store: Store) -> None:
    """What is dropped is gone, its neighbour is not."""
    gone, kept = steps.unique("run"), steps.unique("run")
    await written(store, gone)
    await written(store, kept)
    await store.driver.write(lambda tx: Frames(tx, store.tenant).drop(gone))
    found: list[list[tuple[int, bytes]]] = await store.driver.read(
        lambda tx: [Frames(tx, store.tenant).after(name, 0) for name in (gone, kept)]
    )
    assert found == [[], BATCHES]


async def test_frames_are_kept_for_a_day(store: Store) -> None:
    """Clearing away takes what is older than a day and leaves what is younger."""
    old, young, far = steps.unique("run"), steps.unique("run"), 90_000_000.0
    await written(store, old, at=far)
    await written(store, young, at=far + 10)

    def clear(tx: Tx) -> list[int]:
        frames.expire(tx, now=far + KEPT_SECONDS + 5)
        return [len(Frames(tx, store.tenant).after(name, 0)) for name in (old, young)]

    assert await store.driver.write(clear) == [0, 3]


async def test_news_of_many_streams_come_in_one_look(store: Store) -> None:
    """Each stream's batches behind the last frame known, in order; nothing of others, and nothing of one that has no news."""
    one, two, quiet = steps.unique("run"), steps.unique("run"), steps.unique("run")
    for name in (one, two, quiet):
        await written(store, name)
    known = [(store.tenant, one, 0), (store.tenant, two, 2), (store.tenant, quiet, 4), (store.tenant, "never", 0)]
    found = await store.driver.read(lambda tx: frames.news(tx, known))
    assert found == {(store.tenant, one): BATCHES, (store.tenant, two): BATCHES[1:]}
    assert await store.driver.read(lambda tx: frames.news(tx, [])) == {}
