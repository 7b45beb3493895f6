"""What becomes of a response, and of its turn, when the client goes away: whenever that is."""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from typing import Any

import pytest

from mnemon.edge.render import Stream, Whole
from mnemon.turn.running import Running

PATIENCE = 5.0


class Client:
    """A client's end of a request: `gone` tells when it leaves."""

    def __init__(self) -> None:
        self.sent: list[MutableMapping[str, Any]] = []
        self.gone = asyncio.Event()

    async def receive(self) -> MutableMapping[str, Any]:
        """What a server tells of a client whose request is complete."""
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: MutableMapping[str, Any]) -> None:
        """Take a part of the response."""
        self.sent.append(message)


async def waiting(running: Running) -> None:
    """A turn whose model does not answer."""
    await asyncio.Event().wait()


def begun() -> Running:
    """A turn that is running."""
    running = Running(numbered=False)
    running.task = asyncio.create_task(waiting(running))
    return running


def response(kind: str, running: Running, *, stateless: bool) -> Whole | Stream:
    """The response to a turn."""
    if kind == "JSON":
        return Whole(running, lambda _: {}, leave_cancels=stateless)
    return Stream(running, lambda _: {}, after=0, leave_cancels=stateless)


both = pytest.mark.parametrize("kind", ["JSON", "stream"])


@both
@pytest.mark.parametrize("after", [None, 0.0, 0.2], ids=["before", "at once", "later"])
@pytest.mark.parametrize("stateless", [True, False])
async def test_a_client_that_leaves(kind: str, after: float | None, stateless: bool) -> None:  # noqa: FBT001
    """Its response ends, whether it left before, at once or later; a stateless turn is stopped, that of a session goes on."""
    client, running = Client(), begun()
    assert running.task is not None
    if after is None:
        client.gone.set()
    answering = asyncio.create_task(response(kind, running, stateless=stateless)({"type": "http"}, client.receive, client.send))
    if after is not None:
        await asyncio.sleep(after)
        client.gone.set()
    async with asyncio.timeout(PATIENCE):
        await answering
    assert client.sent == []
    assert running.watchers == 0
    await asyncio.wait([running.task], timeout=0.05)
    assert running.task.cancelled() == stateless
    running.task.cancel()


@both
async def test_a_turn_that_others_watch_goes_on(kind: str) -> None:
    """A client that leaves stops no turn that somebody else still waits for; the last one that leaves does."""
    first, second, running = Client(), Client(), begun()
    assert running.task is not None
    answers = [
        asyncio.create_task(response(kind, running, stateless=True)({"type": "http"}, client.receive, client.send))
        for client in (first, second)
    ]
    first.gone.set()
    async with asyncio.timeout(PATIENCE):
        await answers[0]
        await asyncio.sleep(0.05)
        assert not running.task.done()
        second.gone.set()
        await answers[1]
        await asyncio.wait([running.task])
    assert running.task.cancelled()


@pytest.mark.parametrize("pause", [0.0, 0.2])
async def test_a_client_that_stays_gets_its_answer(pause: float) -> None:
    """A reply that comes at once and one that takes a while are sent alike."""
    client, running = Client(), begun()
    answering = asyncio.create_task(response("JSON", running, stateless=True)({"type": "http"}, client.receive, client.send))
    await asyncio.sleep(pause)
    running.finish([], b"{}")
    async with asyncio.timeout(PATIENCE):
        await answering
    start, body = client.sent
    assert (start["status"], body["body"]) == (200, b"{}")
    assert dict(start["headers"]) == {b"content-type": b"application/json", b"content-length": b"2"}
    assert running.task is not None
    assert not running.task.done()
    running.task.cancel()
