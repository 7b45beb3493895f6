"""What jobs cost while none is due: finding those that are, and an idle server, with few and with many of them registered."""

import asyncio
import statistics
import time
from pathlib import Path

from bench import contestants, processes
from bench.processes import Server
from mnemon import Settings
from mnemon.app import open_driver
from mnemon.core import ids
from mnemon.jobs.schedule import parsed
from mnemon.jobs.wishes import Wish
from mnemon.store import jobs as store
from mnemon.store.base import Tx
from mnemon.store.jobs import Jobs

REGISTERED = (100, 10_000)
LOOKS = 200
IDLE_SECONDS = 10.0
AHEAD = 86_400.0
BATCH = 1000


def register(tx: Tx, *, count: int, now: float) -> None:
    """Jobs that are due tomorrow, one every few seconds."""
    for number in range(count):
        schedule = parsed("every 1d", zone="UTC", now=now + number)
        wish = Wish(name=f"job {number}", prompt="Report.", schedule=schedule)
        Jobs(tx, "default").add(ids.job(), body=wish.stored(), next_run_at=now + AHEAD + number, times=None, at=now)


async def looked(folder: Path, count: int) -> float:
    """Fill a new database; the median seconds it takes to learn that nothing is due, and when something will be."""
    settings = Settings(data_dir=folder, database_url=None)
    driver = open_driver(settings)
    await driver.open()
    try:
        now = time.time()
        for start in range(0, count, BATCH):
            await driver.write(lambda tx, start=start: register(tx, count=min(BATCH, count - start), now=now + start))  # type: ignore[misc] # a default is no name of Tx
        times = []
        for _ in range(LOOKS):
            began = time.perf_counter()
            due, after = await driver.glance(lambda tx: (store.due(tx, now=now, limit=1), store.next_at(tx)))
            times.append(time.perf_counter() - began)
            assert not due
            assert after is not None
        return statistics.median(times)
    finally:
        await driver.close()


def measured(folder: Path, model: Server) -> dict[int, tuple[float, float]]:
    """For each number of jobs the seconds of a look, and the share of a core that a server at rest takes."""
    found = {}
    for count in REGISTERED:
        (folder / f"jobs-{count}-data").mkdir(parents=True)
        look = asyncio.run(looked(folder / f"jobs-{count}-data", count))
        server = contestants.mnemon(f"jobs-{count}", model.port, folder)
        try:
            contestants.first_answer(server, time.perf_counter())
            processes.settle(server)
            before, began = server.cpu(), time.perf_counter()
            time.sleep(IDLE_SECONDS)
            found[count] = (look, (server.cpu() - before) / (time.perf_counter() - began))
            server.check()
        finally:
            processes.stop([server])
    return found
