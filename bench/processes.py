"""Processes of the bench: started in groups of their own, asked for CPU time and memory, and ended for certain.

Linux only. CPU is user and system time of the process and its descendants. It is read from the kernel's CPU clock of the process,
which counts nanoseconds; /proc/PID/stat holds the same number but in steps of 10 ms, as much as ten turns take.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_FOREIGN = ("MNEMON_", "API_SERVER_", "OPENAI_")
_TICK = os.sysconf("SC_CLK_TCK")


class BenchError(Exception):
    """The bench cannot go on as asked; the text says why."""


@dataclass(frozen=True, kw_only=True)
class Server:
    """A running process that listens on a port of this machine."""

    name: str
    port: int
    process: subprocess.Popen[bytes]
    log: Path

    def cpu(self) -> float:
        """Seconds of CPU used so far, descendants included."""
        return sum(_cpu_clock(pid) + _reaped(pid) for pid in _family(self.process.pid))

    def rss(self) -> float:
        """Megabytes resident now, descendants included."""
        return sum(_resident(pid) for pid in _family(self.process.pid))

    def check(self) -> None:
        """Raise with the end of the log if the process is gone."""
        code = self.process.poll()
        if code is not None:
            raise BenchError(f"{self.name} ended with status {code}:\n{self.log_tail()}")

    def log_tail(self) -> str:
        """The last lines it printed."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-15:])


def spawn(name: str, arguments: list[str], *, port: int, folder: Path, env: dict[str, str] | None = None) -> Server:
    """Start a Python process in a session of its own, its output in a file of the folder, settings of ours in the environment removed."""
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / f"{name}.log"
    clean = {key: value for key, value in os.environ.items() if not key.startswith(_FOREIGN)}
    clean["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=clean | (env or {}),
            start_new_session=True,
        )
    return Server(name=name, port=port, process=process, log=log)


def stop(servers: list[Server], grace: float = 5.0) -> None:
    """End the processes: asked first, all at once; killed when the grace is over. Of their groups nothing is left in either case."""
    for server in servers:
        server.process.terminate()
    deadline = time.monotonic() + grace
    for server in servers:
        try:
            server.process.wait(max(0.05, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            server.process.kill()
            server.process.wait()
        _kill_group(server)


def settle(server: Server, limit: float = 15.0) -> None:
    """Wait until the process has nothing left to do (a tokenizer loading in the background, say), but no longer than the limit."""
    deadline = time.monotonic() + limit
    before = server.cpu()
    while time.monotonic() < deadline:
        time.sleep(0.2)
        now = server.cpu()
        if now - before < 0.005:
            return
        before = now


def free_port() -> int:
    """A port nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def listening(port: int) -> bool:
    """Whether somebody listens on a port of this machine."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _kill_group(server: Server) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(server.process.pid, signal.SIGKILL)


def _family(pid: int) -> list[int]:
    pids = [pid]
    for parent in pids:
        for children in Path(f"/proc/{parent}/task").glob("*/children"):
            try:
                pids += [int(child) for child in children.read_text().split()]
            except (FileNotFoundError, ProcessLookupError):
                continue  # a thread that ended while we looked
    return pids


def _cpu_clock(pid: int) -> float:
    try:
        return time.clock_gettime((~pid << 3) | 2)  # what clock_getcpuclockid(3) gives for the process
    except OSError:
        return 0.0


def _reaped(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return (int(fields[13]) + int(fields[14])) / _TICK


def _resident(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS:")), 0.0)
