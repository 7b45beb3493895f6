"""The lines in which turns wait."""

from __future__ import annotations

import asyncio

import pytest

from mnemon.core import errors
from mnemon.turn.gates import Gates


async def settle() -> None:
    """Let everything happen that can."""
    for _ in range(10):
        await asyncio.sleep(0)


class Story:
    """Turns of one conversation whose own name is `root`, and the order in which they get to write."""

    def __init__(self) -> None:
        self.gates = Gates()
        self.wrote: list[str] = []
        self.end: dict[str, asyncio.Event] = {}
        self.writer: str | None = None

    async def turn(self, label: str, name: str) -> None:
        """What the pipeline does: try, and wait for the writer if there is one."""
        self.end[label] = asyncio.Event()
        async with self.gates.hold(name, reject=False) as place:
            while self.writer is not None:
                assert await self.gates.behind(place, "root"), "it would have to poll"
            self.writer = label
            self.gates.writing(place, "root")
            self.wrote.append(label)
            await self.end[label].wait()
            self.writer = None

    async def started(self, label: str, name: str) -> asyncio.Task[None]:
        """A turn that has come as far as it can."""
        task = asyncio.create_task(self.turn(label, name))
        await settle()
        return task


async def test_one_line_for_all_names_of_a_conversation() -> None:
    """Whatever names they come by, turns write in the order in which they came, and none of them asks over and over."""
    story = Story()
    names = ["child", "root", "tip", "child", "key", "root", "tip", "key", "child"]
    tasks = [await story.started(str(number), name) for number, name in enumerate(names)]
    for number in range(len(names)):
        assert story.wrote == [str(n) for n in range(number + 1)]
        story.end[str(number)].set()
        await settle()
    await asyncio.gather(*tasks)
    assert story.gates.lines == {}


async def test_who_gives_up_waiting_holds_nobody_up() -> None:
    """A turn that is cancelled while it waits leaves its place to the next."""
    story = Story()
    tasks = [await story.started(str(number), name) for number, name in enumerate(["root", "tip", "root", "tip"])]
    tasks[1].cancel()
    tasks[2].cancel()
    story.end["0"].set()
    await settle()
    assert story.wrote == ["0", "3"]
    story.end["3"].set()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert story.gates.lines == {}


async def test_a_writer_goes_before_those_who_came_earlier() -> None:
    """Whom the database made the writer stands first, though another of its line came before it."""
    gates = Gates()
    async with gates.hold("root", reject=False) as early, gates.hold("tip", reject=False) as late:
        gates.writing(late, "root")
        waiting = asyncio.create_task(gates.behind(early, "root"))
        await settle()
        assert not waiting.done()
        gates._leave(late)
        assert await waiting
        gates._join(late, "root")


async def test_nobody_of_this_process_before_us() -> None:
    """Whoever is first of a line and still finds the conversation busy is told to look again later."""
    gates = Gates()
    async with gates.hold("tip", reject=False) as place:
        assert not await gates.behind(place, "root")
        assert not await gates.behind(place, "root")
    assert gates.lines == {}


async def test_a_line_is_refused_on_request() -> None:
    """Who does not want to wait is told at once that somebody stands there."""
    gates = Gates()
    async with gates.hold("root", reject=True):
        with pytest.raises(errors.Conflict) as refused:
            async with gates.hold("root", reject=True):
                pass
    assert refused.value.code == "session_busy"
    async with gates.hold("root", reject=True):
        pass
