"""`python -m bench.memory`: what memory keeps and finds again, by tools that are not part of this repository.

The variable ACCEPTANCE names their folder: `seed_suite.py` plays the promises one by one, `memory_bench.py` public conversations. Each
brings an upstream of its own and reads the prompts that reach it; here they are only given servers.
"""

import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench import contestants, messages, processes

SEEDS = (1, 2, 3)
ALLOWANCES = (1000, 2000, 4000)
BUDGET = 16384


def tools() -> Path | str:
    """The folder with the tools, or why there is none."""
    named = os.environ.get("ACCEPTANCE")
    if not named:
        return "set ACCEPTANCE to the folder that holds seed_suite.py and memory_bench.py; they are not part of this repository"
    folder = Path(named).resolve()
    lacking = [name for name in ("seed_suite.py", "memory_bench.py") if not (folder / name).is_file()]
    if lacking:
        return f"ACCEPTANCE names {folder}, where there is no {' and no '.join(lacking)}"
    if importlib.util.find_spec("httpx") is None:
        return f"the tools need httpx: {sys.executable} -m pip install httpx"
    return folder


def seed_suite(folder: Path, seed: int, scratch: Path) -> int:
    """The promises with the values of one seed, on a server of their own."""
    upstream = processes.free_port()
    server = contestants.mnemon(f"seed-{seed}", upstream, scratch, budget=BUDGET)
    try:
        ready(server)
        return run(folder, "seed_suite.py", *connection(server.port, upstream), "--seed", str(seed))
    finally:
        processes.stop([server])


def conversations(folder: Path, scratch: Path) -> int:
    """Evidence recall at each allowance; the tool starts the servers itself."""
    port = processes.free_port()
    serve = f"{sys.executable} -m mnemon serve --host 127.0.0.1 --port {port} --data-dir {{dir}} 2>>{scratch / 'conversations.log'}"
    allowances = [str(allowance) for allowance in ALLOWANCES]
    return run(
        folder, "memory_bench.py", "run", *connection(port, processes.free_port()), "--no-dense", "--recall", *allowances, "--serve", serve
    )


def connection(port: int, upstream: int) -> list[str]:
    server = ["--server", f"http://127.0.0.1:{port}", "--api-key", messages.KEY]
    return [*server, "--upstream-port", str(upstream), "--budget", str(BUDGET)]


def ready(server: processes.Server, limit: float = 60.0) -> None:
    """Wait until the server listens; its upstream comes only with the tool."""
    deadline = time.monotonic() + limit
    while not processes.listening(server.port):
        server.check()
        if time.monotonic() > deadline:
            raise processes.BenchError(f"{server.name} does not listen:\n{server.log_tail()}")
        time.sleep(0.05)


def run(folder: Path, tool: str, *arguments: str) -> int:
    print(f"\n== {tool} {' '.join(arguments)}", flush=True)
    env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [str(processes.ROOT / "src"), os.environ.get("PYTHONPATH", "")]))}
    return subprocess.run([sys.executable, str(folder / tool), *arguments], env=env, check=False).returncode


def main() -> int:
    """Run the tools one after the other; 0 if all of them were content."""
    folder = tools()
    if isinstance(folder, str):
        print(folder, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="mnemon-memory-") as scratch:
        codes = [seed_suite(folder, seed, Path(scratch)) for seed in SEEDS]
        codes.append(conversations(folder, Path(scratch)))
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
