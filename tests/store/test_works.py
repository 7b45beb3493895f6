"""Works: what was asked for by a name is known from its beginning to its end, and after the death of who was at it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from mnemon.core import errors
from mnemon.store import works
from mnemon.store.base import Tx
from mnemon.store.frames import Frames
from mnemon.store.works import Work, Works
from tests.store import steps
from tests.store.steps import Store, opened


async def begun(store: Store, *, owner: int | None = None) -> str:
    """A run that is under way."""
    name = steps.unique("run")

    def work(tx: Tx) -> None:
        who = store.driver.owner if owner is None else owner
        Works(tx, store.tenant).begin(name, "run", status="running", body={"model": "m"}, session_id="s", owner=who, at=1.0)

    await store.driver.write(work)
    return name


async def found(store: Store, name: str) -> Work:
    """The run as it is known."""
    return await store.driver.read(lambda tx: Works(tx, store.tenant).get(name, "run"))


async def test_a_work_is_known_from_its_beginning(store: Store) -> None:
    """It runs until it is finished, and then says how it ended; when it began stays."""
    name = await begun(store)
    seen = await found(store, name)
    assert (seen.status, seen.ended, seen.session_id, seen.body) == ("running", False, "s", {"model": "m"})
    await store.driver.write(
        lambda tx: Works(tx, store.tenant).finish(name, "run", status="completed", body={"model": "m", "usage": 1}, said=None, at=9.0)
    )
    seen = await found(store, name)
    assert (seen.status, seen.ended, seen.session_id, seen.body["usage"], seen.at, seen.updated_at) == ("completed", True, "s", 1, 1.0, 9.0)


async def test_a_name_belongs_to_its_tenant_and_its_kind(store: Store) -> None:
    """Under another tenant, or as another kind, it is not found."""
    name = await begun(store)
    with pytest.raises(errors.NotFound) as refused:
        await store.driver.read(lambda tx: Works(tx, store.tenant + "-other").get(name, "run"))
    assert refused.value.code == "run_not_found"
    with pytest.raises(errors.NotFound):
        await store.driver.read(lambda tx: Works(tx, store.tenant).get(name, "response"))


async def test_what_a_dead_process_had_under_way_is_interrupted(store: Store, shared_url: str) -> None:
    """It is seen at once, and written down by whoever looks after it; what a living process does is left alone."""
    ours = await begun(store)
    async with opened(shared_url) as short:
        theirs = await begun(store, owner=short.owner)
        assert (await found(store, theirs)).status == "running"
    assert (await found(store, theirs)).status == "interrupted"
    await store.driver.write(lambda tx: works.settle(tx, now=5.0))
    assert ((await found(store, theirs)).status, (await found(store, theirs)).updated_at) == ("interrupted", 5.0)
    assert (await found(store, ours)).status == "running"


async def test_a_work_can_be_asked_to_stop(store: Store) -> None:
    """Who has it under way is told; one that has ended cannot be stopped."""
    name = await begun(store)
    assert await store.driver.write(lambda tx: bool(Works(tx, store.tenant).stop(name)))
    assert (await found(store, name)).status == "stopping"
    assert (store.tenant, name) in await store.driver.read(lambda tx: works.to_stop(tx, owner=store.driver.owner))
    await store.driver.write(lambda tx: Works(tx, store.tenant).finish(name, "run", status="cancelled", body={}, said=None, at=2.0))
    assert not await store.driver.write(lambda tx: bool(Works(tx, store.tenant).stop(name)))
    assert (await found(store, name)).status == "cancelled"


async def test_a_deleted_work_takes_its_frames_along(store: Store) -> None:
    """Neither it nor what was streamed of it is found any more."""
    name = await begun(store)

    def work(tx: Tx) -> None:
        Frames(tx, store.tenant).add(name, number=1, data=b"data: 1\n\n", at=1.0)
        Works(tx, store.tenant).delete(name)

    await store.driver.write(work)
    assert await store.driver.read(lambda tx: Works(tx, store.tenant).find(name, "run")) is None
    assert await store.driver.read(lambda tx: Frames(tx, store.tenant).after(name, 0)) == []


async def test_only_what_runs_can_be_steered(store: Store) -> None:
    """What is said to it is kept in order, word for word, and told to whoever has it under way; stopping or over, it takes nothing."""
    name, texts = await begun(store), ("Faster.", "two\nlines \u2028 of \x85 it")
    assert await store.driver.write(lambda tx: [bool(Works(tx, store.tenant).steer(name, text)) for text in texts]) == [True, True]
    assert (await found(store, name)).steers == texts
    assert (store.tenant, name, texts) in await store.driver.read(lambda tx: works.steered(tx, owner=store.driver.owner))
    await store.driver.write(lambda tx: Works(tx, store.tenant).stop(name))
    assert not await store.driver.write(lambda tx: bool(Works(tx, store.tenant).steer(name, "Late.")))
    await store.driver.write(lambda tx: Works(tx, store.tenant).finish(name, "run", status="cancelled", body={}, said=None, at=2.0))
    assert not await store.driver.write(lambda tx: bool(Works(tx, store.tenant).steer(name, "Late.")))
    assert (await found(store, name)).steers == texts


async def test_what_a_process_lost_sight_of_is_interrupted(store: Store) -> None:
    """What it knows and what just began are left alone."""
    lost, known = await begun(store), await begun(store)

    def settle(now: float) -> Callable[[Tx], int]:
        return lambda tx: works.forgotten(tx, owner=store.driver.owner, known={(store.tenant, known)}, now=now)

    await store.driver.write(settle(1.0 + works.SLACK_SECONDS))
    assert (await found(store, lost)).status == "running"
    await store.driver.write(settle(2.0 + works.SLACK_SECONDS))
    assert (await found(store, lost)).status == "interrupted"
    assert (await found(store, known)).status == "running"
    assert (store.tenant, known) in await store.driver.read(works.under_way)
    assert (store.tenant, lost) not in await store.driver.read(works.under_way)


async def test_old_works_of_a_kind_are_forgotten(store: Store) -> None:
    """What ended before then goes; what ended later, still runs or is of another kind stays."""
    old, young, running = await begun(store), await begun(store), await begun(store)

    def finish(tx: Tx) -> None:
        for name, at in ((old, -9.0), (young, 9.0)):
            Works(tx, store.tenant).finish(name, "run", status="completed", body={}, said=None, at=at)
        works.expire(tx, kind="response", before=5.0)

    await store.driver.write(finish)
    assert (await found(store, old)).ended
    await store.driver.write(lambda tx: works.expire(tx, kind="run", before=-5.0))
    assert await store.driver.read(lambda tx: Works(tx, store.tenant).find(old, "run")) is None
    assert (await found(store, young)).ended
    assert not (await found(store, running)).ended


async def test_many_ask_at_once_whether_a_process_is_dead(store: Store, shared_url: str) -> None:
    """A dead process is dead for all of them: those who ask do not take each other for it."""
    async with opened(shared_url) as short:
        theirs = await begun(store, owner=short.owner)
    together = threading.Barrier(2, timeout=10)

    def look(tx: Tx) -> str:
        seen = Works(tx, store.tenant).get(theirs, "run").status
        together.wait()  # while both transactions are open
        return seen + Works(tx, store.tenant).get(theirs, "run").status

    assert set(await asyncio.gather(*(store.driver.read(look) for _ in range(2)))) == {"interrupted" * 2}
