"""How long recall takes in scopes of many memories: `python -m bench.recall FOLDER` prints a JSON object, size by size.

It works on the provider itself, without HTTP, and fills the scopes through the repositories: as many chats would take hours. The scopes
are kept in the folder, so that later rounds find them there.
"""

import asyncio
import itertools
import json
import os
import statistics
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench import messages
from bench.scopes import SIZES
from mnemon import Settings
from mnemon.app import open_driver
from mnemon.core import ids
from mnemon.core.records import Identity, Lineage, Message, StoredMessage, chained
from mnemon.memory import words
from mnemon.memory.base import Learned, Query
from mnemon.memory.builtin import Builtin
from mnemon.memory.fulltext import FullText
from mnemon.memory.language import LANGUAGE
from mnemon.store.base import Tx
from mnemon.store.memories import Details, Evidence, Link, Memories, Remembered
from mnemon.store.messages import Messages
from mnemon.store.sessions import NewSession, Sessions

TENANT = "bench"
BATCH = 1000  # messages written in one transaction
CLOSED_EVERY = 20  # of the memories one was superseded by the next
STANDING_EVERY = 200  # one is an instruction
ASKED = 60
BEGUN = 1_700_000_000.0
DAY = 86_400.0
FIRST_QUESTION = 10_000_000  # numbers of messages that nobody said


@dataclass(frozen=True, kw_only=True)
class Times:
    """Of one scope, in seconds: opening it (its first recall), and each recall afterwards."""

    opening: float
    recalls: list[float]


def session_of(size: int) -> str:
    return f"scope-{size}"


def lineage_of(tx: Tx, *, size: int) -> Lineage | None:
    """The conversation that fills the scope of this size, as far as it got."""
    return Sessions(tx, TENANT).lineage_of(session_of(size))


def fill(tx: Tx, *, numbers: Sequence[int], session: str, passages: FullText) -> None:
    """Write messages of one statement each, with their passages and memories, as a commit would."""
    sessions = Sessions(tx, TENANT)
    at = BEGUN + numbers[0] / 100 * DAY
    if sessions.lineage_of(session) is None:
        sessions.begin(NewSession(id=session, source="api", session_key=f"key-{session}"), at=at)
    lineage = sessions.lineage_of(session)
    assert lineage is not None
    said = [Message({"role": "user", "content": messages.sentence(number)}) for number in numbers]
    rows, chain = [], lineage.chain
    for position, message in enumerate(said, lineage.next_position):
        chain = chained(chain, message.digest())
        rows.append((StoredMessage(message=message, position=position, at=at, session_id=session), message.digest(), chain))
    sessions.advance(lineage.id, next_position=lineage.next_position + len(rows), chain=chain, at=at)
    Messages(tx, TENANT, lineage.id).add(rows)
    positions = [stored.position for stored, _, _ in rows]
    plans = passages.prepare(said, [[(0, len(m.text))] for m in said])
    passages.learn(tx, Learned(tenant=TENANT, scope=lineage.scope, lineage=lineage.id, plans=list(zip(positions, plans, strict=True))))
    remember(Memories(tx, TENANT, lineage.scope), lineage, zip(positions, (m.text for m in said), strict=True), at=at)


def remember(memories: Memories, lineage: Lineage, said: Iterable[tuple[int, str]], *, at: float) -> None:
    """The ledger's part: a memory for each message, some of them superseded."""
    stated = [(position, statement(position, text, at=at)) for position, text in said]
    memories.add([memory for _, memory in stated])
    memories.support(
        (memory.id, Evidence(lineage=lineage.id, position=position, start=0, length=len(memory.text), at=at)) for position, memory in stated
    )
    for (_, old), (position, new) in itertools.pairwise(stated):
        if position % CLOSED_EVERY == 0:
            memories.close(old.id, by=new.id, rule="newer_value", at=at)
            memories.link([Link(source=new.id, target=old.id, kind="supersedes", rule="newer_value", at=at)])


def statement(position: int, text: str, *, at: float) -> Remembered:
    found = words.words(text)
    return Remembered(
        id=ids.memory(),
        text=text,
        kind="instruction" if position % STANDING_EVERY == 0 else "event",
        origin="user",
        rule="verb",
        version=LANGUAGE.version,
        valid_from=at,
        recorded_at=at,
        subject="user",
        attribute=found[0],
        details=Details(terms=found, values=(text.split(" near ", maxsplit=1)[0],)),
    )


def asked(number: int) -> str:
    """What is asked for: by turns a plain question, and a whole message that tells something and asks nothing."""
    if number % 2:
        return messages.message(FIRST_QUESTION + number)
    subject = messages.sentence(FIRST_QUESTION + number).split(" near ")[0].removeprefix("We ")
    return f"Why have we {subject}, and what changed since then?"


async def measure(folder: Path) -> dict[int, Times]:
    """Fill what is not filled yet, then ask every scope in turn, so that a busy moment of the machine meets them all."""
    driver = open_driver(Settings(data_dir=folder))
    await driver.open()
    try:
        passages = FullText(driver)
        passages.engine.ready()
        memory = Builtin(driver, passages, LANGUAGE, timezone="UTC")
        for size in SIZES:
            known = await driver.read(partial(lineage_of, size=size))
            for first in range(known.next_position if known else 1, size + 1, BATCH):
                numbers = range(first, min(first + BATCH, size + 1))
                await driver.write(partial(fill, numbers=numbers, session=session_of(size), passages=passages))
        return await _asked(memory)
    finally:
        await driver.close()


async def _asked(memory: Builtin) -> dict[int, Times]:
    scopes: dict[int, Lineage] = {}
    for size in SIZES:
        found = await memory.driver.read(partial(lineage_of, size=size))
        assert found is not None
        assert found.scope_memories == size
        scopes[size] = found
    openings = {size: await _recall(memory, lineage, asked(0)) for size, lineage in scopes.items()}
    recalls: dict[int, list[float]] = {size: [] for size in SIZES}
    for number in range(2 * ASKED):
        for size, lineage in scopes.items():
            seconds = await _recall(memory, lineage, asked(number))
            if number >= ASKED // 6:  # the first ones fill caches
                recalls[size].append(seconds)
    return {size: Times(opening=openings[size], recalls=recalls[size]) for size in SIZES}


async def _recall(memory: Builtin, lineage: Lineage, text: str) -> float:
    query = Query(
        tenant=TENANT,
        scope=lineage.scope,
        size=lineage.scope_memories,  # one passage for each
        memories=lineage.scope_memories,
        changes=lineage.scope_changes,
        lineage=0,
        live=0,
        text=text,
        identity=Identity(),
    )
    began = time.perf_counter()
    found = await memory.recall(query)
    seconds = time.perf_counter() - began
    assert found, "nothing was recalled"
    return seconds


def main() -> None:
    """Measure, and print medians and the rest for the bench to read."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    told = asyncio.run(measure(Path(sys.argv[1])))
    print(
        json.dumps(
            {
                size: {
                    "opening": times.opening,
                    "median": statistics.median(times.recalls),
                    "p95": statistics.quantiles(times.recalls, n=20)[-1],
                }
                for size, times in told.items()
            }
        )
    )


if __name__ == "__main__":
    main()
