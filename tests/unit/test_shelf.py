"""How long lines that were recalled are kept."""

from __future__ import annotations

from mnemon.core.records import Identity, Recalled
from mnemon.memory.base import Query
from mnemon.memory.shelf import Shelves


def query(scope: int = 1, *, tenant: str = "t", changes: int = 0, erasures: int = 0) -> Query:
    """A question to a scope at a version of it."""
    return Query(tenant=tenant, scope=scope, size=1, changes=changes, erasures=erasures, lineage=0, live=0, text="", identity=Identity())


def lines(*numbers: int) -> dict[int, Recalled]:
    """Lines of these numbers."""
    return {n: Recalled(text=str(n), role="user", at=0.0, session_id="s", position=n, score=0.0) for n in numbers}


def test_a_change_or_an_erasure_empties_a_shelf() -> None:
    """Lines are kept while nothing changed, and for nobody else; a turn that began before a change uses what is newer."""
    shelves = Shelves()
    shelves.keep(shelves.get(query()), lines(1))
    assert shelves.get(query()).lines.keys() == {1}
    assert not shelves.get(query(tenant="other")).lines
    assert not shelves.get(query(2)).lines
    newer = shelves.get(query(changes=1))
    assert not newer.lines
    assert shelves.get(query()) is newer
    assert shelves.get(query(erasures=1)) is not newer


def test_what_is_read_while_a_scope_changes_is_not_kept() -> None:
    """Lines read for a turn that began before a change do not get on the shelf of those that began after it."""
    shelves = Shelves()
    before = shelves.get(query())
    after = shelves.get(query(changes=1))
    shelves.keep(before, lines(1))
    assert not after.lines


def test_only_so_many_lines_are_kept() -> None:
    """The shelf of the scope that was not asked for longest goes first, and a single one too when it is too large."""
    shelves = Shelves(most=3)
    for scope in (1, 2, 1):
        shelves.keep(shelves.get(query(scope)), lines(scope))
    shelves.keep(shelves.get(query(3)), lines(1, 2))
    assert [bool(shelves.get(query(scope)).lines) for scope in (1, 2, 3)] == [True, False, True]
    shelves.keep(shelves.get(query(3)), lines(1, 2, 3, 4))
    assert not any(shelves.get(query(scope)).lines for scope in (1, 2, 3))
