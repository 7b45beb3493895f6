"""Who is measured, and how each is started: always as a process of its own, on a free port, with an empty folder for its data."""

import http.client
import importlib.util
import json
import re
import time
from pathlib import Path

from bench import messages, processes
from bench.processes import BenchError, Server

ORDER = ("direct", "bare", "durable", "mnemon", "no-memory", "postgres")
POSTGRES_SCRIPT = processes.ROOT / "tests" / "postgres.py"


def upstream(folder: Path) -> Server:
    """The scripted upstream; as a contestant, the direct call."""
    port = processes.free_port()
    return processes.spawn("direct", ["-m", "bench.upstream", "--port", str(port)], port=port, folder=folder)


def relay(name: str, model: Server, folder: Path, *, durable: bool) -> Server:
    """One of the two relays."""
    port = processes.free_port()
    arguments = ["-m", "bench.relays", "--port", str(port), "--upstream-url", f"http://127.0.0.1:{model.port}/v1"]
    if durable:
        arguments += ["--journal", str(folder / f"{name}.db")]
    return processes.spawn(name, arguments, port=port, folder=folder)


def mnemon(name: str, upstream_port: int, folder: Path, *, database_url: str | None = None, budget: int | None = None) -> Server:
    """Mnemon, on its SQLite file or on the PostgreSQL database given; under the name `no-memory`, without its memory."""
    port = processes.free_port()
    env = {"MNEMON_API_KEY": messages.KEY}
    if name == "no-memory":
        env["MNEMON_MEMORY_PROVIDER"] = "none"
    if database_url:
        env["MNEMON_DATABASE_URL"] = database_url
    if budget:
        env["MNEMON_CONTEXT_BUDGET"] = str(budget)
    arguments = ["-m", "mnemon", "serve", "--host", "127.0.0.1", "--port", str(port), "--data-dir", str(folder / f"{name}-data")]
    arguments += ["--upstream-url", f"http://127.0.0.1:{upstream_port}/v1"]
    return processes.spawn(name, arguments, port=port, folder=folder, env=env)


def database(folder: Path, limit: float = 60.0) -> tuple[Server, str]:
    """A PostgreSQL server of its own, and the URL of its database."""
    server = processes.spawn("postgresql", [str(POSTGRES_SCRIPT)], port=0, folder=folder)
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        found = re.search(r"postgresql://\S+(?=\s)", server.log.read_text(errors="replace"))
        if found:
            return server, found[0]
        if server.process.poll() is not None:
            break
        time.sleep(0.05)
    processes.stop([server], grace=30.0)
    raise BenchError(f"tests/postgres.py gave no URL:\n{server.log_tail()}")


def missing(name: str) -> str | None:
    """Why this contestant cannot take part, as far as can be told without starting it."""
    if name in ("mnemon", "no-memory", "postgres") and not (processes.ROOT / "src" / "mnemon" / "__main__.py").exists():
        return "`python -m mnemon` does not exist yet"
    if name == "postgres" and not POSTGRES_SCRIPT.exists():
        return "tests/postgres.py does not exist"
    if name == "postgres" and importlib.util.find_spec("psycopg") is None:
        return "psycopg is not installed"
    return None


def first_answer(server: Server, began: float, limit: float = 60.0) -> float:
    """Seconds from `began` to the first chat answer with status 200; a refusal by the server is an error at once."""
    session = f"start-{time.time_ns()}"
    head, _, body = messages.chat(0, session).partition(b"\r\n\r\n")
    headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
    last = ""
    while time.perf_counter() - began < limit:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=limit)
        try:
            connection.request("POST", "/v1/chat/completions", body, headers)
            reply = connection.getresponse()
            answer = reply.read()
        except (OSError, http.client.HTTPException):
            server.check()
            time.sleep(0.003)
            continue
        finally:
            connection.close()
        if reply.status == 200:
            json.loads(answer)
            return time.perf_counter() - began
        last = f"{reply.status} {answer[:300].decode(errors='replace')}"
        if reply.status < 500:
            raise BenchError(f"{server.name} refused the first turn: {last}")
        time.sleep(0.003)
    raise BenchError(f"{server.name} gave no answer within {limit:.0f} s {last}:\n{server.log_tail()}")
