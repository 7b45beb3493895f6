"""One round: every contestant started afresh, given the same load in turn, and ended. All ratios are later taken within a round."""

import contextlib
import dataclasses
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bench import client, contestants, jobs, load, messages, processes, scopes
from bench.processes import BenchError, Server

CLIENTS = (1, 16, 64)
STREAMS = ((1, 0.05), (64, 0.05), (200, 0.05), (1000, 0.2))
SLICES = 5
LONG_BUDGET = 4096


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to measure, and how much of it."""

    names: tuple[str, ...]
    parts: frozenset[str]
    twin: bool = False
    # For each number of clients, the turns of each client in one slice; five slices make 250 + 640 + 1,280 turns.
    turns: dict[int, int] = field(default_factory=lambda: {1: 50, 16: 8, 64: 4})
    chunks: int = 40
    long: int = 1000


@dataclass(kw_only=True)
class Round:
    """Figures of one round: measure → contestant → value. A figure that could not be had is absent, and a note says why."""

    figures: dict[str, dict[str, float]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def put(self, measure: str, name: str, value: float) -> None:
        """Keep one figure."""
        self.figures.setdefault(measure, {})[name] = value


class Runner:
    """Runs rounds on one scripted upstream."""

    def __init__(self, plan: Plan, model: Server, folder: Path) -> None:
        self._plan = plan
        self._model = model
        self._folder = folder

    def try_start(self, name: str) -> None:
        """Start one contestant and end it again, unmeasured: caches fill, and one that cannot start is known before the first round."""
        with self._scratch() as folder, contextlib.ExitStack() as stack:
            alone = dataclasses.replace(self._plan, names=(name,))
            Runner(alone, self._model, folder)._start(folder, stack, Round())  # noqa: SLF001 - our own

    def run(self, number: int, *, long: int) -> Round:
        """Measure all that the plan asks for; contestants take turns in an order that rotates from round to round."""
        told = Round()
        if self._plan.parts & {"start", "json", "stream"}:
            self._side_by_side(number, told)
        if "long" in self._plan.parts and "mnemon" in self._plan.names and not self._plan.twin:
            self._long(long, told)
        if "recall" in self._plan.parts and "mnemon" in self._plan.names and not self._plan.twin:
            self._recall(told)
        if "jobs" in self._plan.parts and "mnemon" in self._plan.names and not self._plan.twin:
            self._jobs(told)
        return told

    def _side_by_side(self, number: int, told: Round) -> None:
        with self._scratch() as folder, contextlib.ExitStack() as stack:
            servers = self._start(folder, stack, told)
            turn = number % len(servers)
            servers = servers[turn:] + servers[:turn]
            try:
                self._load(servers, told)
            except OSError as error:  # a connection refused: most likely the process is gone, and its log says more
                for server in servers:
                    server.check()
                raise BenchError(f"a contestant stopped answering: {error!r}") from error

    def _load(self, servers: list[Server], told: Round) -> None:
        if self._plan.parts & {"json", "stream"}:
            self._warm_up(servers)
        if "json" in self._plan.parts:
            self._json(servers, told)
        if "stream" in self._plan.parts:
            self._streams([server for server in servers if server.name not in ("no-memory", "postgres")], told)

    @contextlib.contextmanager
    def _scratch(self) -> Iterator[Path]:
        folder = Path(tempfile.mkdtemp(prefix="round-", dir=self._folder))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _start(self, folder: Path, stack: contextlib.ExitStack, told: Round) -> list[Server]:
        bases: list[Server] = []
        started: list[Server] = []
        stack.callback(processes.stop, bases, grace=30.0)  # the last to be called: a database outlives the server that uses it
        stack.callback(processes.stop, started)
        for name in self._plan.names:
            if name == "direct":
                continue
            url = None
            if name == "postgres":
                base, url = contestants.database(folder)
                bases.append(base)
            began = time.perf_counter()
            server = self._launch(name, folder, url)
            started.append(server)
            told.put("start", name, contestants.first_answer(server, began))
            told.put("memory.before", name, server.rss())
        return [self._model, *started] if "direct" in self._plan.names else list(started)

    def _launch(self, name: str, folder: Path, url: str | None) -> Server:
        if name in ("bare", "durable") or self._plan.twin:
            return contestants.relay(name, self._model, folder, durable=name != "bare")
        return contestants.mnemon(name, self._model.port, folder, database_url=url)

    def _warm_up(self, servers: list[Server]) -> None:
        """Wait for what they load in the background, then give each some 400 turns: by then a new SQLite log no longer grows."""
        for server in servers:
            processes.settle(server)
        crews = [load.Crew(server.port, clients=16, cpu=server.cpu) for server in servers]
        load.run(load.alternate(crews, turns=25, slices=1))
        for server in servers:
            server.check()
            processes.settle(server)

    def _json(self, servers: list[Server], told: Round) -> None:
        for clients in CLIENTS:
            crews = [load.Crew(server.port, clients=clients, cpu=server.cpu) for server in servers]
            load.run(load.alternate(crews, turns=self._plan.turns[clients], slices=SLICES))
            for server, crew in zip(servers, crews, strict=True):
                server.check()
                self._tell_turns(crew.load, server.name, clients, told)
        for server in servers:
            if server is not self._model:
                told.put("memory.after", server.name, server.rss())

    def _tell_turns(self, seen: load.JsonLoad, name: str, clients: int, told: Round) -> None:
        if seen.failures or not seen.turns:
            told.notes.append(f"{name}, {clients} clients: {len(seen.failures)} turns failed, figures dropped ({seen.failures[:1]})")
            return
        told.put(f"json.p50@{clients}", name, seen.quantile(0.5) * 1000)
        told.put(f"json.p99@{clients}", name, seen.quantile(0.99) * 1000)
        told.put(f"json.cpu@{clients}", name, seen.cpu / seen.turns * 1000)
        told.put(f"json.rate@{clients}", name, seen.turns / seen.wall)

    def _streams(self, servers: list[Server], told: Round) -> None:
        alone = {}
        for server in servers:
            self._script(8, 0.01)
            alone[server.name] = load.run(load.streams(server.port, count=1, chunks=8, pace=0.01, cpu=server.cpu, rss=server.rss)).rss
            told.put("memory.1", server.name, alone[server.name])
        for count, pace in STREAMS:
            self._script(self._plan.chunks, pace)
            for server in servers:
                if server.name == "direct" and count == STREAMS[-1][0]:
                    continue  # tells nothing that the smaller ones do not, and takes as long as the others
                seen = load.run(load.streams(server.port, count=count, chunks=self._plan.chunks, pace=pace, cpu=server.cpu, rss=server.rss))
                server.check()
                self._tell_streams(seen, server.name, count, told)
                if count == STREAMS[-1][0]:
                    told.put("memory.1000", server.name, seen.rss)
                    told.put("memory.growth", server.name, seen.rss - alone[server.name])
            self._responses([server for server in servers if server.name == "mnemon"], count, pace, told)

    def _responses(self, servers: list[Server], count: int, pace: float, told: Round) -> None:
        """The same streams as responses, beside what the bare relay took to pass on chat completions."""
        for server in servers:
            work = load.streams(
                server.port, count=count, chunks=self._plan.chunks, pace=pace, cpu=server.cpu, rss=server.rss, responses=True
            )
            seen = load.run(work)
            server.check()
            self._tell_streams(seen, server.name, count, told, kind="response")
            for figure in ("cpu", "first", "gap"):
                bare = told.figures.get(f"stream.{figure}@{count}", {}).get("bare")
                if bare is not None:
                    told.put(f"response.{figure}@{count}", "bare", bare)

    def _tell_streams(self, seen: load.StreamLoad, name: str, count: int, told: Round, *, kind: str = "stream") -> None:
        told.put(f"{kind}.failed@{count}", name, len(seen.failures))
        if seen.failures:
            told.notes.append(f"{name}, {count} {kind}s: {len(seen.failures)} failed (first: {seen.failures[0]})")
        if seen.chunks:
            told.put(f"{kind}.cpu@{count}", name, seen.cpu / seen.chunks * 1e6)
        if seen.gaps:
            told.put(f"{kind}.first@{count}", name, statistics.median(seen.first) * 1000)
            told.put(f"{kind}.gap@{count}", name, statistics.quantiles(seen.gaps, n=20)[-1] * 1000)

    def _recall(self, told: Round) -> None:
        """Recall in scopes of many memories, which the first round fills."""
        seen = scopes.measured(self._folder / "scopes")
        smallest = seen[min(seen)]
        for size, times in seen.items():
            told.put(f"recall.median@{size}", "mnemon", times["median"] * 1000)
            told.put(f"recall.p95@{size}", "mnemon", times["p95"] * 1000)
            told.put(f"recall.opening@{size}", "mnemon", times["opening"] * 1000)
            told.put(f"recall.growth@{size}", "mnemon", times["median"] / smallest["median"])

    def _jobs(self, told: Round) -> None:
        """A server at rest with jobs that are not due."""
        with self._scratch() as folder:
            seen = jobs.measured(folder, self._model)
        for count, (look, share) in seen.items():
            told.put(f"jobs.look@{count}", "mnemon", look * 1e6)
            told.put(f"jobs.idle@{count}", "mnemon", share * 100)
        told.put("jobs.growth", "mnemon", seen[max(seen)][0] / seen[min(seen)][0])

    def _script(self, chunks: int, pace: float) -> None:
        load.run(client.ask(self._model.port, messages.get(f"/bench/script/{chunks}/{pace * 1000:g}")))

    def _long(self, turns: int, told: Round) -> None:
        with self._scratch() as folder, contextlib.ExitStack() as stack:
            started: list[Server] = []
            stack.callback(lambda: processes.stop(started))
            started.append(contestants.mnemon("mnemon", self._model.port, folder, budget=LONG_BUDGET))
            started.append(contestants.relay("durable", self._model, folder, durable=True))
            for server in started:
                contestants.first_answer(server, time.perf_counter())
            subject, companion = started
            try:
                self._warm_up(started)
                seen = load.run(load.long_session(subject.port, turns=turns, upstream_port=self._model.port, companion_port=companion.port))
            except (OSError, TimeoutError) as error:
                subject.check()
                raise BenchError(f"the long session broke: {error!r}") from error
        told.put("long.largest", "mnemon", max(seen.prompt))
        if seen.compacted_at is None or seen.compacted_at + 100 > turns:
            told.notes.append(f"long session: no compaction early enough in {turns} turns (first: {seen.compacted_at})")
            return
        told.put("long.compacted", "mnemon", seen.compacted_at + 1)
        for turn in sorted({turn for turn in (1000, 10_000, turns) if turn <= turns}):
            told.put(f"long.time@{turn}", "mnemon", load.late_over_early(seen.seconds, seen.compacted_at, turn))
            told.put(f"long.prompt@{turn}", "mnemon", load.late_over_early(seen.prompt, seen.compacted_at, turn))
            told.put(f"long.time@{turn}", "durable", load.late_over_early(seen.companion, seen.compacted_at, turn))
