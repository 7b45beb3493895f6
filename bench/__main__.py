"""`python -m bench`: measures Mnemon beside a direct call and two relays, on this machine, and prints the table."""

import argparse
import contextlib
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from bench import contestants, processes, report, rows
from bench.processes import BenchError, Server
from bench.rounds import Plan, Round, Runner


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--rounds", type=int, help="rounds to take the median over (5; with --quick 1)")
    parser.add_argument("--quick", action="store_true", help="a first look: one round, less of everything; figures are rough")
    parser.add_argument(
        "--only", action="append", choices=sorted(rows.PARTS), metavar="ROW", help=f"only these rows: {', '.join(rows.PARTS)}"
    )
    parser.add_argument(
        "--long", type=int, default=1000, metavar="N", help="turns of the long session (1000; more than that in the first round only)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to a file")
    parser.add_argument(
        "--dir", type=Path, help="where the data goes while it runs: a real disk, not memory (the system's temporary folder)"
    )
    parser.add_argument("--no-postgres", action="store_true", help="leave PostgreSQL out")
    parser.add_argument(
        "--twin", action="store_true", help="put a second durable relay in Mnemon's place: shows the noise of the bench itself"
    )
    options = parser.parse_args()
    if options.rounds is None:
        options.rounds = 1 if options.quick else 5
    return options


def _plan(options: argparse.Namespace, names: tuple[str, ...]) -> Plan:
    parts = frozenset(part for row in options.only or rows.PARTS for part in rows.PARTS[row])
    if options.quick:
        return Plan(names=names, parts=parts, twin=options.twin, turns={1: 20, 16: 2, 64: 1}, chunks=20, long=options.long)
    return Plan(names=names, parts=parts, twin=options.twin, long=options.long)


def _entrants(options: argparse.Namespace, model: Server, folder: Path) -> tuple[str, ...]:
    """Those who can take part: each is started once, which also fills the caches before the first round."""
    entered = ["direct"]
    for name in contestants.ORDER[1:]:
        if options.twin and name in ("no-memory", "postgres"):
            continue
        if options.no_postgres and name == "postgres":
            continue
        why = None if options.twin else contestants.missing(name)
        if why is None:
            try:
                Runner(_plan(options, (name,)), model, folder).try_start(name)
            except BenchError as error:
                if name in ("bare", "durable"):
                    raise
                why = str(error)
        if why is None:
            entered.append(name)
        else:
            print(f"skipped: {name}: {why}")
    return tuple(entered)


def _measure(options: argparse.Namespace, model: Server, folder: Path, told: list[Round]) -> None:
    names = _entrants(options, model, folder)
    plan = _plan(options, names)
    runner = Runner(plan, model, folder)
    print(f"contestants: {', '.join(names)}{' (a twin of the durable relay)' if options.twin else ''}", flush=True)
    for number in range(options.rounds):
        began = time.monotonic()
        told.append(runner.run(number, long=options.long if number == 0 else min(options.long, 1000)))
        print(f"round {number + 1} of {options.rounds}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)


def _print(options: argparse.Namespace, told: list[Round]) -> None:
    chosen = [row for row in rows.all_rows(options.long) if not options.only or row.name in options.only]
    print(f"\nMedians of {len(told)} round{'s' if len(told) > 1 else ''}; x NAME: times that contestant's, ratios taken within a round.\n")
    print(report.table(chosen, told))
    for number, one in enumerate(told, 1):
        for note in one.notes:
            print(f"round {number}: {note}")
    if len(told) < 5 or options.quick:
        print("Fewer than five rounds, or --quick: a look, not a verdict.")
    if options.json:
        settings: dict[str, object] = {key: str(value) if isinstance(value, Path) else value for key, value in vars(options).items()}
        options.json.write_text(report.as_json(chosen, told, settings))


def _stop(*_: object) -> None:
    raise SystemExit(143)


def main() -> int:
    """Run the bench; 0 when it came to its end, whatever the figures, 1 when a contestant broke."""
    options = _options()
    signal.signal(signal.SIGTERM, _stop)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    folder = Path(tempfile.mkdtemp(prefix="mnemon-bench-", dir=options.dir))
    told: list[Round] = []
    broken = None
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, data on {report.filesystem(folder)}, limit of {hard} open files")
        model = contestants.upstream(folder)
        stack.callback(processes.stop, [model])
        try:
            contestants.first_answer(model, time.perf_counter())
            _measure(options, model, folder, told)
        except BenchError as error:
            broken = str(error)
        except KeyboardInterrupt:
            broken = "interrupted"
    if told:
        _print(options, told)
    if broken:
        print(f"stopped early: {broken}", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
