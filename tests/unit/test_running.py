"""A turn that runs and those who watch it: each sees every frame once, at its own pace."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemon.core import errors
from mnemon.turn.running import KEEP_ALIVE, LARGEST_LOG, Running, split_frames

PATIENCE = 10.0


def frame(text: str) -> bytes:
    """An SSE frame."""
    return f"data: {text}\n\n".encode()


async def watched(running: Running, after: int = 0) -> bytes:
    """All that a watcher gets."""
    async with asyncio.timeout(PATIENCE):
        return b"".join([piece async for piece in running.follow(after)])


async def settle() -> None:
    """Let every watcher come to rest."""
    for _ in range(5):
        await asyncio.sleep(0)


def begun(*texts: str, numbered: bool = True) -> Running:
    """A turn with frames."""
    running = Running(numbered=numbered)
    for text in texts:
        running.push(frame(text))
    return running


async def test_frames_are_numbered_from_one() -> None:
    """A resumable stream carries the number of each frame, in order, from the first to the last."""
    running = begun("a", "b")
    running.finish([running.numbering(2, frame("c"))], b"")
    assert await watched(running) == b"id: 1\ndata: a\n\nid: 2\ndata: b\n\nid: 3\ndata: c\n\n"


async def test_a_stateless_stream_has_no_numbers() -> None:
    """A stream that cannot be resumed carries none."""
    running = begun("a", numbered=False)
    running.finish([frame("b")], b"")
    assert await watched(running) == b"data: a\n\ndata: b\n\n"


def test_what_the_log_still_lacks() -> None:
    """Everything behind what is written, and the last frames; of a stream that filled its log, only these, with their true number."""
    running = begun("1", "2", "3")
    last = [running.numbering(3, frame("4"))]
    assert running.unlogged(last) == (1, b"".join([*running.frames, *last]))
    running.logged = 2
    assert running.unlogged(last) == (3, b"".join([running.frames[2], *last]))
    running.logged_bytes = LARGEST_LOG
    assert running.unlogged(last) == (4, last[0])


@pytest.mark.parametrize("after", range(6))
async def test_watching_from_a_number_on(after: int) -> None:
    """A watcher that has seen N frames gets those behind N, and none twice; behind the end, nothing."""
    running = begun("1", "2")
    late = asyncio.create_task(watched(running, after))
    await settle()
    running.push(frame("3"))
    await settle()
    running.finish([running.numbering(3, frame("4"))], b"")
    wanted = b"".join(b"id: %d\ndata: %d\n\n" % (n, n) for n in range(after + 1, 5))
    assert await late == wanted
    assert await watched(running, after) == wanted


async def test_a_slow_watcher_holds_nobody_up() -> None:
    """While one watcher sleeps, the turn and the others go on; when it wakes it has missed nothing."""
    running = Running(numbered=True)
    slow = running.follow()
    running.push(frame("0"))
    first = await anext(slow)
    quick = asyncio.create_task(watched(running))
    for number in range(1, 200):
        running.push(frame(str(number)))
        await asyncio.sleep(0)
    running.finish([], b"")
    whole = await quick
    assert whole.count(b"id: ") == 200
    assert first + b"".join([piece async for piece in slow]) == whole


async def test_frames_come_as_they_are_made() -> None:
    """A frame reaches a watcher at once, not when the next one comes."""
    running = Running(numbered=True)
    watcher = running.follow()
    for text in ("a", "b"):
        waiting = asyncio.ensure_future(anext(watcher))
        await settle()
        assert not waiting.done()
        running.push(frame(text))
        assert (await asyncio.wait_for(waiting, PATIENCE)).endswith(frame(text))
    running.finish([], b"")
    with pytest.raises(StopAsyncIteration):
        await anext(watcher)


async def test_a_watcher_that_leaves_takes_nothing_along() -> None:
    """Neither the turn nor another watcher notices that one was cancelled."""
    running = begun("a")
    leaving, staying = asyncio.create_task(watched(running)), asyncio.create_task(watched(running))
    await settle()
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    running.push(frame("b"))
    running.finish([], b"")
    assert (await staying).count(b"id: ") == 2


async def test_failing_before_the_first_frame() -> None:
    """A turn that fails before anything was sent raises its error, for whoever waits for the beginning or the end."""
    running = Running(numbered=True)
    waiting = [asyncio.create_task(running.ready(PATIENCE)), asyncio.create_task(running.result())]
    await settle()
    error = errors.ModelTimeout("silence")
    running.fail(error, [frame("error")])
    for each in waiting:
        with pytest.raises(errors.ModelTimeout):
            await each
    with pytest.raises(errors.ModelTimeout):
        await running.ready(PATIENCE)


async def test_failing_after_the_first_frame() -> None:
    """A turn that fails in the middle of its stream ends it with the frames of the error, numbered on; there is no exception."""
    running = begun("a")
    watcher = asyncio.create_task(watched(running))
    await settle()
    running.fail(errors.BadReply("broke off"), running.numbered_frames([frame("error"), frame("[DONE]")]))
    await running.ready(PATIENCE)
    assert await watcher == b"id: 1\ndata: a\n\nid: 2\ndata: error\n\nid: 3\ndata: [DONE]\n\n"
    with pytest.raises(errors.BadReply):
        await running.result()


async def test_ready_is_patient_only_so_long() -> None:
    """Waiting for the beginning ends with the first frame, or when the patience does; neither is an error."""
    running = Running(numbered=True)
    await running.ready(0.01)
    waiting = asyncio.create_task(running.ready(PATIENCE))
    await settle()
    assert not waiting.done()
    running.push(frame("a"))
    await asyncio.wait_for(waiting, PATIENCE)


async def test_the_whole_reply() -> None:
    """Whoever waits for the body gets it when the turn is committed."""
    running = Running(numbered=False)
    waiting = asyncio.create_task(running.result())
    await settle()
    assert not waiting.done()
    running.finish([], b"body")
    assert await waiting == b"body"
    assert await running.result() == b"body"


async def test_idle_watchers_send_a_comment() -> None:
    """A ping reaches every idle watcher once, counts as no frame, and does not come between frames."""
    running = begun("a")
    one, two = running.follow(), running.follow(1)
    assert await anext(one) == b"id: 1\ndata: a\n\n"
    waiting = [asyncio.ensure_future(anext(w)) for w in (one, two)]
    await settle()
    running.ping()
    assert [await asyncio.wait_for(w, PATIENCE) for w in waiting] == [KEEP_ALIVE, KEEP_ALIVE]
    again = asyncio.ensure_future(anext(one))
    await settle()
    assert not again.done()
    running.push(frame("b"))
    assert await asyncio.wait_for(again, PATIENCE) == b"id: 2\ndata: b\n\n"
    assert KEEP_ALIVE.startswith(b":")
    assert KEEP_ALIVE.endswith(b"\n\n")


async def test_waiting_costs_nothing_afterwards() -> None:
    """A thousand changes leave no waiter behind."""
    running = Running(numbered=True)
    watchers = [asyncio.create_task(watched(running)) for _ in range(10)]
    for number in range(100):
        running.push(frame(str(number)))
        await settle()
    assert len(running.waiters) == 10
    running.finish([], b"")
    await asyncio.gather(*watchers)
    assert running.waiters == []


@given(st.lists(st.binary(min_size=1).map(lambda b: b"data: " + b.replace(b"\n", b" ") + b"\n\n")))
def test_a_recorded_stream_falls_into_its_frames(frames: list[bytes]) -> None:
    """The frames of a stream that was written one after the other are found again."""
    assert split_frames(b"".join(frames)) == frames
