"""Proof of a deletion: the words, cut into pieces, are looked for in the bytes of the database's files.

A long text is stored on several pages with other bytes in between, so only pieces can be found, and only pieces prove anything. A piece
that somebody else said too is in the files by right; it is counted apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from mnemon.core import errors
from mnemon.store.base import Driver
from mnemon.store.erasures import escaped, said_anywhere
from mnemon.store.sqlite import Sqlite

LONGEST, SHORTEST = 48, 12
MOST = 2000


def pieces(texts: Iterable[str]) -> list[str]:
    """Texts in pieces of some words each, as they stand in the files."""
    found: dict[str, None] = {}
    for text in texts:
        piece = ""
        for word in re.findall(r"\S+\s*", text):
            if piece and len(piece) + len(word) > LONGEST:
                found[piece.strip()] = None
                piece = ""
            piece += word
        found[piece.strip()] = None
    long_enough = [piece for piece in found if len(piece) >= SHORTEST]
    return (long_enough or [piece for piece in found if piece])[:MOST]


async def of(driver: Driver, texts: Iterable[str]) -> list[str]:
    """What a search for the words gives, in lines for people. Raises `StoreError` if any is left that nobody else said."""
    wanted = {piece: escaped(piece) for piece in pieces(texts)}
    others = await driver.read(lambda tx: {p for p, words in wanted.items() if said_anywhere(tx, words) or said_anywhere(tx, p)})
    if isinstance(driver, Sqlite):
        left = driver.holds(words.encode() for words in wanted.values())
        still = [piece for piece, words in wanted.items() if words.encode() in left and piece not in others]
        where = f"{driver.path.name}, its log and its index"
    else:
        still, where = [], "any row"
    if still:
        raise errors.StoreError(f"{len(still)} of {len(wanted)} pieces of what was deleted are still in {where}: run the command again")
    lines = [f"Proved: {len(wanted) - len(others)} pieces of what was deleted were looked for in {where}; none is there."]
    if others:
        lines.append(f"{len(others)} more pieces are still said elsewhere, by others or in another memory, and stay there.")
    return lines
