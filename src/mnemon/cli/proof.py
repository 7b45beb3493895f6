"""What is left of deleted words: cut into pieces, they are looked for in the bytes of the database's files, and nothing else is claimed.

A long text is stored on several pages with other bytes in between, so only pieces can be found. A piece that somebody else said too is in
the files by right; it is counted apart. Short words stand in any file by chance and are not looked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from mnemon.core import errors
from mnemon.store.base import Driver
from mnemon.store.erasures import Said, escaped, said_anywhere
from mnemon.store.sqlite import Sqlite, holding

LONGEST, SHORTEST = 48, 12
MOST = 2000
SHOWN = 5


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
    return long_enough or [piece for piece in found if piece]


async def of(driver: Driver, texts: Iterable[str]) -> list[str]:
    """What a search for the words gives, in lines for people. Raises `StoreError` if any is left that nobody else said."""
    cut = pieces(texts)
    wanted = {piece: escaped(piece) for piece in cut[:MOST]}
    others = await driver.read(lambda tx: {p for p, words in wanted.items() if said_anywhere(tx, words) or said_anywhere(tx, p)})
    if isinstance(driver, Sqlite):
        left = driver.holds(words.encode() for words in wanted.values())
        still = [piece for piece, words in wanted.items() if words.encode() in left and piece not in others]
        where = f"the bytes of {driver.path.name}, its log and its index"
    else:
        still, where = [], "messages, memories, states and kept replies"
    if still:
        raise errors.StoreError(f"{len(still)} of {len(wanted)} pieces of what was deleted are still in {where}: run the command again")
    alone = {piece: words for piece, words in wanted.items() if piece not in others}
    lines = [
        f"Searched {where} for {counted(len(alone), 'piece')} of the deleted words, of up to {LONGEST} characters each: none is there."
    ]
    if len(cut) > MOST:
        lines.append(f"Not searched for: {len(cut) - MOST} more pieces.")
    if others:
        lines.append(f"{counted(len(others), 'piece')} more: said elsewhere too, by others or in another memory, and kept there.")
    return [*lines, *(copies(driver, alone) if isinstance(driver, Sqlite) else ())]


def unsearched(driver: Driver) -> list[str]:
    """The databases that `mnemon restore` kept beside this one: what was deleted before may be in them."""
    paths = kept(driver.path) if isinstance(driver, Sqlite) else []
    return [f"{path}, kept by `mnemon restore`, may hold what was deleted. Delete it if you do not need it." for path in paths]


def copies(driver: Sqlite, wanted: Mapping[str, str]) -> list[str]:
    """The databases that `mnemon restore` kept beside this one, and whether the words are in them."""
    found = []
    for path in kept(driver.path):
        held = holding(path, {words.encode() for words in wanted.values()})
        says = f"holds {counted(len(held), 'piece')} of the deleted words" if held else "was searched too and holds none of it"
        found.append(f"{path}, kept by `mnemon restore`, {says}. Nothing was changed in it; delete it if you do not need it.")
    return found


def kept(path: Path) -> list[Path]:
    """What a restore left beside a database, logs included."""
    return sorted(each for each in path.parent.glob(f"{path.name}.before-restore-*") if each.is_file() and not each.name.endswith("-shm"))


def elsewhere(left: Sequence[tuple[str, Said]]) -> list[str]:
    """The messages in which a value stands by itself still: they neither stated nor repeated the memory."""
    lines = [f"Kept: {value!r} by itself still stands in {said.session_id} #{said.position} ({said.message.role})." for value, said in left]
    return lines if len(lines) <= SHOWN else [*lines[:SHOWN], f"  … and {len(lines) - SHOWN} more such messages"]


def counted(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
