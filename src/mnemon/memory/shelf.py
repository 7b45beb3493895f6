"""What recall read of a scope: the lines that were found lately and what the ledger says of them, while nothing of the scope changes.

Every change of what is stored already counts up in the scope's own row, whichever process makes it, and a turn reads that row when it
begins. What is only added has numbers that nobody asked for yet, so it need not count.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from mnemon.core.records import Recalled
from mnemon.memory.base import Query
from mnemon.store.memories import Called, Evidence, Link, Remembered

MOST = 4096  # of all scopes; a line with a passage of 500 characters takes about 1.5 kB, what is around a memory about as much

Place = tuple[str, int]
"""A message: its session and its position."""


class Around(NamedTuple):
    """What is around a memory: its links, and the rows of itself, of those and of what closed any of them, each with its first evidence."""

    links: list[Link]
    closings: dict[str, str]
    memories: dict[str, Remembered]
    evidence: dict[str, Evidence]


class Shelf:
    """What was read of one scope, as it stood at a version of it.

    Lines by the numbers of their passages; what messages state, without or with when it happened; what is around a memory. `along` is what
    comes along with every recall; None until it is known.
    """

    def __init__(self, version: tuple[int, int]) -> None:
        self.version = version
        self.lines: dict[int, Recalled] = {}
        self.along: list[Called] | None = None
        self.places: dict[tuple[Place, bool], list[Called]] = {}
        self.around: dict[str, Around] = {}

    def __len__(self) -> int:
        return len(self.lines) + len(self.places) + len(self.around)

    def missing(self, places: Iterable[Place], *, dated: bool) -> list[Place]:
        """The messages that were not looked at yet."""
        return [place for place in places if (place, dated) not in self.places]

    def stated(self, places: Iterable[Place], *, dated: bool) -> list[Called]:
        """What the messages state, which were looked at."""
        return [each for place in places for each in self.places[place, dated]]


class Shelves:
    """The shelves of the scopes in use; what was not used for longest goes first."""

    def __init__(self, *, most: int = MOST) -> None:
        self.most = most
        self.shelves: OrderedDict[tuple[str, int], Shelf] = OrderedDict()

    def get(self, query: Query) -> Shelf:
        """The shelf of a scope; a new one if anything changed there before this turn began."""
        version = (query.erasures, query.changes)
        key = (query.tenant, query.scope)
        shelf = self.shelves.get(key)
        if shelf is None or shelf.version < version:
            shelf = self.shelves[key] = Shelf(version)
        self.shelves.move_to_end(key)
        return shelf

    def keep(self, shelf: Shelf, lines: Mapping[int, Recalled]) -> None:
        """Put lines on a shelf. They were read after it was got, so they are no older than its version."""
        shelf.lines.update(lines)
        self.trim()

    def trim(self) -> None:
        """Let go of shelves until what is left is not too much."""
        held = sum(map(len, self.shelves.values()))
        while held > self.most and self.shelves:
            held -= len(self.shelves.popitem(last=False)[1])
