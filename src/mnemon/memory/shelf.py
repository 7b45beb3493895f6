"""What recall read of a scope: the lines that were found lately, kept for as long as nothing of the scope changes.

Every change of what is stored already counts up in the scope's own row, whichever process makes it, and a turn reads that row when it
begins. What is only added has numbers that nobody asked for yet, so it need not count.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping

from mnemon.core.records import Recalled
from mnemon.memory.base import Query

LINES = 2048  # of all scopes; a line with a passage of 500 characters takes about 1.5 kB


class Shelf:
    """Lines of one scope by the numbers of their passages, as they stood at a version of it.

    `idle` says that nothing comes along with every recall; None until it is known.
    """

    def __init__(self, version: tuple[int, int]) -> None:
        self.version = version
        self.lines: dict[int, Recalled] = {}
        self.idle: bool | None = None


class Shelves:
    """The shelves of the scopes in use; what was not used for longest goes first."""

    def __init__(self, *, most: int = LINES) -> None:
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
        held = sum(len(each.lines) for each in self.shelves.values())
        while held > self.most and self.shelves:
            held -= len(self.shelves.popitem(last=False)[1].lines)
