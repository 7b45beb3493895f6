"""Scopes of many memories, and the process that fills them and asks them."""

import json
from pathlib import Path

from bench import processes
from bench.processes import BenchError

SIZES = (1000, 10_000, 100_000)
LIMIT = 1800.0  # seconds; filling the largest takes a minute or several


def measured(folder: Path) -> dict[int, dict[str, float]]:
    """For each size the seconds of its `opening`, and `median` and `p95` of recalls; what was filled before is used again."""
    server = processes.spawn("recall", ["-m", "bench.recall", str(folder)], port=0, folder=folder)
    try:
        code = server.process.wait(LIMIT)
    finally:
        processes.stop([server])
    if code:
        raise BenchError(f"measuring recall ended with status {code}:\n{server.log_tail()}")
    told = json.loads(server.log.read_text().splitlines()[-1])
    return {int(size): times for size, times in told.items()}
