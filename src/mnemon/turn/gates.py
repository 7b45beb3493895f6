"""Turns of one conversation wait in the order in which they came, before they ask the database.

A turn first stands in the line of the name it came by. When the database has said which conversation that is, it moves to the line of the
conversation's own name: whichever of its ids a client uses, all its turns end up in one line.
"""

from __future__ import annotations

import asyncio
import bisect
import contextlib
import itertools
from collections.abc import AsyncIterator, Hashable

from mnemon.core import errors


class Place:
    """Where a turn stands: in which line, since when, and whether it is the conversation's writer."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.name: Hashable = None
        self.writes = False
        self.called = asyncio.Event()

    def rank(self) -> tuple[bool, int]:
        return not self.writes, self.number


class Gates:
    """A line for each name, there only while somebody stands in it. Whoever is first in a line may ask the database."""

    def __init__(self) -> None:
        self.lines: dict[Hashable, list[Place]] = {}
        self.arrivals = itertools.count()

    @contextlib.asynccontextmanager
    async def hold(self, name: Hashable, *, reject: bool) -> AsyncIterator[Place]:
        """Wait for our turn. Raises `Conflict` at once if it is not, and the client asked for that."""
        if reject and name in self.lines:
            raise busy()
        place = Place(next(self.arrivals))
        self._join(place, name)
        try:
            await self._first(place)
            yield place
        finally:
            self._leave(place)

    def writing(self, place: Place, name: Hashable) -> None:
        """The conversation's name is known, and this turn is its writer: all others stand behind it."""
        self._leave(place)
        place.writes = True
        self._join(place, name)

    async def behind(self, place: Place, name: Hashable) -> bool:
        """The conversation's name is known, but it has a writer: wait for our turn. False if nobody here stands before us."""
        if place.name != name:
            self._leave(place)
            self._join(place, name)
        return await self._first(place)

    def _join(self, place: Place, name: Hashable) -> None:
        place.name = name
        bisect.insort(self.lines.setdefault(name, []), place, key=Place.rank)

    def _leave(self, place: Place) -> None:
        line = self.lines[place.name]
        line.remove(place)
        if line:
            line[0].called.set()
        else:
            del self.lines[place.name]

    async def _first(self, place: Place) -> bool:
        """Wait until nobody stands before us; whether anybody did."""
        waited = False
        while self.lines[place.name][0] is not place:
            waited = True
            place.called.clear()
            await place.called.wait()
        return waited


def busy() -> errors.Conflict:
    return errors.Conflict("another turn of this session is running", code="session_busy")
