"""Reading the stream of a work that does not run here: from any number on, over gaps, and with an end in any case."""

from __future__ import annotations

import pytest

from mnemon.core import errors
from mnemon.runs import following
from mnemon.runs.following import Numbered, Stream
from mnemon.store.base import Tx
from mnemon.store.frames import Frames
from mnemon.store.works import Work, Works
from tests.store import steps
from tests.store.steps import Store

END = b"data: end\n\n"
ANEW = b"data: anew\n\n"


def frame(number: int) -> bytes:
    """A frame that says which it is."""
    return b"data: %d\n\n" % number


def retell(_tx: Tx, _work: Work, logged: Numbered) -> Numbered:
    """Add an end if there is none."""
    return logged if logged and logged[-1][1] == END else [*logged, (logged[-1][0] + 1 if logged else 9, ANEW)]


async def written(store: Store, batches: Numbered, *, ended: bool = True) -> Stream:
    """A run with these batches in its log."""
    stream = Stream(tenant=store.tenant, name=steps.unique("run"), kind="run", retell=retell)

    def work(tx: Tx) -> None:
        mine = Works(tx, store.tenant)
        mine.begin(stream.name, "run", status="running", body={}, session_id=None, owner=store.driver.owner, at=1.0)
        for number, data in batches:
            Frames(tx, store.tenant).add(stream.name, number=number, data=data, at=1.0)
        if ended:
            mine.finish(stream.name, "run", status="completed", body={}, said=None, at=2.0)

    await store.driver.write(work)
    return stream


async def told(store: Store, stream: Stream, after: int) -> Numbered:
    """What a follower gets of it."""
    return await store.driver.read(lambda tx: following.look(tx, stream, after=after)[1])


@pytest.mark.parametrize("after", range(8))
async def test_what_has_ended_is_read_from_any_number_on(store: Store, after: int) -> None:
    """Frames of several batches come one by one, each once; behind the end, the end."""
    stream = await written(store, [(1, frame(1) + frame(2)), (3, frame(3)), (4, frame(4) + END)])
    whole = [(1, frame(1)), (2, frame(2)), (3, frame(3)), (4, frame(4)), (5, END)]
    assert await told(store, stream, after) == (whole[after:] or [(5, END)])


async def test_a_log_that_was_full_shows_the_end_behind_a_gap(store: Store) -> None:
    """What was not written is missing, and the end has its true number."""
    stream = await written(store, [(1, frame(1) + frame(2)), (900, END)])
    assert await told(store, stream, 0) == [(1, frame(1)), (2, frame(2)), (900, END)]
    assert await told(store, stream, 500) == [(900, END)]


async def test_a_missing_end_is_told_anew(store: Store) -> None:
    """Behind the last frame there is, and alone if there is none; also to who saw more than was written before a crash."""
    torn = await written(store, [(1, frame(1) + frame(2))])
    assert await told(store, torn, 1) == [(2, frame(2)), (3, ANEW)]
    assert await told(store, torn, 7) == [(3, ANEW)]
    gone = await written(store, [])
    assert await told(store, gone, 0) == await told(store, gone, 50) == [(9, ANEW)]


async def test_mirrors_get_what_is_new_and_the_whole_of_what_ended(store: Store) -> None:
    """One look for all: news of what runs, every frame of what is over; an unknown work is over with nothing."""
    runs = await written(store, [(1, frame(1)), (2, frame(2))], ended=False)
    over = await written(store, [(1, frame(1) + END)])
    never = Stream(tenant=store.tenant, name="never", kind="run", retell=retell)
    known = [(runs.tenant, runs.name, 1), (over.tenant, over.name, 1), (never.tenant, never.name, 0)]
    news, ended = await store.driver.read(lambda tx: following.changes(tx, [runs, over, never], known))
    assert news == {(runs.tenant, runs.name): [(2, frame(2))]}
    assert ended == {(over.tenant, over.name): [(1, frame(1)), (2, END)], (never.tenant, never.name): []}


async def test_an_unknown_work_cannot_be_followed(store: Store) -> None:
    """It is not found, nor is another tenant's, nor a run as a response."""
    stream = await written(store, [(1, END)])
    for tenant, name, kind in ((store.tenant, "never", "run"), ("another", stream.name, "run"), (store.tenant, stream.name, "response")):
        wrong = Stream(tenant=tenant, name=name, kind=kind, retell=retell)  # type: ignore[arg-type]
        with pytest.raises(errors.NotFound):
            await told(store, wrong, 0)
