"""`mnemon jobs`: scheduled prompts, made and looked at on the database itself. Whatever server works on that database runs them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

import click

from mnemon import app as composition
from mnemon.cli import options
from mnemon.cli.keys import existing, opened
from mnemon.cli.tables import Column, short, tell
from mnemon.core import clock
from mnemon.core.records import Identity, Json
from mnemon.jobs.desk import Desk
from mnemon.jobs.wishes import Rules
from mnemon.store.base import Tx

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

Work = Callable[[Desk, Tx, str, float], T]

AT_ONCE = 10_000
JOB: list[Column] = [
    ("ID", lambda j: j["id"]),
    ("NAME", lambda j: short(j["name"], 30)),
    ("SCHEDULE", lambda j: j["schedule_display"]),
    ("NEXT", lambda j: j["next_run_at"] or ""),
    ("STATE", lambda j: j["state"]),
    ("LAST", lambda j: " ".join(filter(None, [j["last_status"], j["last_run_at"]]))),
    ("WHY", lambda j: j["paused_reason"] or j["last_error"] or ""),
]
RUN: list[Column] = [
    ("PLANNED", lambda r: r["planned_at"] or "by hand"),
    ("STATUS", lambda r: r["status"]),
    ("ENDED", lambda r: r["finished_at"] or ""),
    ("TOKENS", lambda r: str(r["usage"]["total_tokens"]) if r["usage"] else ""),
    ("SAID", lambda r: r["output"] or r["error"] or ""),
]
FLAGS = ("config", "data_dir", "database_url", "timezone", "webhook_private")


def where(command: F) -> F:
    """The options that say whose jobs they are, and where."""
    command = options.settings_options("data_dir", "database_url", "timezone", "webhook_private")(command)
    return click.option("--tenant", metavar="T", default=composition.TENANT, show_default=True, help="Tenant that the jobs belong to.")(
        command
    )


def as_json(command: F) -> F:
    return click.option("--json", "plain", is_flag=True, help="Print JSON, one object on each line.")(command)


def run(work: Work[T], given: dict[str, Any], *, writes: bool = True) -> T:
    """Do something with jobs, or say in one line why it cannot be done."""

    async def inside() -> T:
        settings = options.load({name: given[name] for name in FLAGS})
        rules = Rules(zone=settings.timezone, private=settings.webhook_private, check_model=lambda _name: None)
        async with opened(existing(composition.open_driver(settings))) as driver:
            carry_out = driver.write if writes else driver.read
            return await carry_out(lambda tx: work(Desk(rules), tx, given["tenant"], clock.system()))

    with options.told():
        return asyncio.run(inside())


@click.group()
def jobs() -> None:
    """Make scheduled prompts, run them, and read what became of them.

    Works on the database itself, so run it with the server's settings. Jobs are run by `mnemon serve`, or by `mnemon worker` alone.
    """


@jobs.command("list")
@click.option("--all", "everything", is_flag=True, help="Also those that are paused or over.")
@as_json
@where
def show(*, everything: bool, plain: bool, **given: Any) -> None:
    """List jobs, oldest first."""
    found = run(lambda desk, tx, t, now: desk.page(tx, t, everything=everything, limit=AT_ONCE, offset=0, now=now), given, writes=False)
    tell(found, plain=plain, columns=JOB)


@jobs.command()
@click.argument("name")
@click.argument("schedule")
@click.argument("prompt")
@click.option("--key", "session_key", metavar="KEY", help="Session key (X-Hermes-Session-Key) whose memory it has.")
@click.option("--session", "session_id", metavar="ID", help="Session it goes on in.  [default: one of its own]")
@click.option("--deliver", metavar="WHERE", help="local, or webhook:URL.  [default: local]")
@click.option("--repeat", type=int, metavar="N", help="Runs until it is over.  [default: for ever]")
@click.option("--memory", metavar="HOW", help="read_write, read or none.  [default: read_write]")
@click.option("--missed", metavar="HOW", help="once or skip: what becomes of instants nobody could run.  [default: once]")
@click.option("--model", metavar="NAME", help="Model to ask.  [default: the server's]")
@click.option("--instructions", metavar="TEXT", help="System text of every run.")
@click.option("--timeout", type=float, metavar="SECONDS", help="Longest time of a run.  [default: 600]")
@click.option("--max-tokens", type=int, metavar="N", help="Longest answer.")
@where
def add(*, session_key: str | None, session_id: str | None, **given: Any) -> None:
    """Make a job called NAME that asks PROMPT on a SCHEDULE. Its id is printed.

    SCHEDULE is cron ('0 9 * * 1', @daily), 'every 30m', '30m' for once, or an instant (2027-03-01T09:00:00Z). --timezone says whose clock
    cron goes by.
    """
    fields = ("name", "schedule", "prompt", "deliver", "repeat", "memory", "missed", "model", "instructions", "timeout", "max_tokens")
    wish: Json = {name: given[name] for name in fields if given[name] is not None}
    wish |= {"timezone": given["timezone"]} if given["timezone"] is not None else {}
    identity, origin = Identity(session_id=session_id, session_key=session_key), {"platform": "cli"}
    made = run(lambda desk, tx, t, now: desk.add(tx, t, wish, identity=identity, origin=origin, now=now), given)
    click.echo(made["id"])
    click.echo(f"Fires next at {made['next_run_at']}.", err=True)


@jobs.command("run")
@click.argument("job")
@where
def start(job: str, **given: Any) -> None:
    """Run JOB now, beside its schedule. A running server begins within a second."""
    run(lambda desk, tx, t, now: desk.run(tx, t, job, now=now), given)
    click.echo(f"It waits for a server, or `mnemon worker`; `mnemon jobs logs {job}` shows what it said.")


@jobs.command()
@click.argument("job")
@where
def pause(job: str, **given: Any) -> None:
    """Let JOB rest until it is resumed."""
    made = run(lambda desk, tx, t, now: desk.pause(tx, t, job, now=now), given)
    click.echo(f"{made['name']!r} is {made['state']}.")


@jobs.command()
@click.argument("job")
@where
def resume(job: str, **given: Any) -> None:
    """Let JOB fire again, from its next instant on."""
    made = run(lambda desk, tx, t, now: desk.resume(tx, t, job, now=now), given)
    click.echo(f"{made['name']!r} fires next at {made['next_run_at']}.")


@jobs.command()
@click.argument("job")
@click.option("--limit", type=click.IntRange(1, AT_ONCE), default=20, show_default=True, metavar="N")
@as_json
@where
def logs(job: str, *, limit: int, plain: bool, **given: Any) -> None:
    """Show what became of JOB's runs, newest first."""
    tell(run(lambda desk, tx, t, _now: desk.runs(tx, t, job, limit=limit, offset=0), given, writes=False), plain=plain, columns=RUN)
