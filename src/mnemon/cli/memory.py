"""`mnemon memory`: what is remembered, read and changed on the database itself; the server may run beside it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec

from mnemon import app as composition
from mnemon.cli import options, proof
from mnemon.cli.keys import existing, opened
from mnemon.cli.tables import HIT, MEMORY, TIMELINE, short, tell
from mnemon.config import Settings
from mnemon.core import clock, errors
from mnemon.core.records import Identity, Json
from mnemon.memory import desk, erasure
from mnemon.memory.base import Memory
from mnemon.memory.language import LANGUAGE
from mnemon.memory.notes import Notes
from mnemon.store.base import Driver, Tx
from mnemon.store.memories import Filter
from mnemon.store.sqlite import Sqlite

F = TypeVar("F", bound=Callable[..., Any])

AT_ONCE = 500
SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """The memory that a command is about: an open database, a tenant, a key or a session."""

    settings: Settings
    driver: Driver
    memory: Memory
    tenant: str
    identity: Identity

    def scope(self, tx: Tx) -> int | None:
        found = desk.scope_of(tx, self.tenant, self.identity)
        return found.id if found else None


def whose(command: F) -> F:
    """The options that say whose memory it is, and where."""
    command = options.settings_options("data_dir", "database_url")(command)
    command = click.option(
        "--tenant", metavar="T", default=composition.TENANT, show_default=True, help="Tenant that the memory belongs to."
    )(command)
    command = click.option("--session", metavar="ID", help="Any session of a conversation; names its memory if it has no key.")(command)
    return click.option("--key", metavar="KEY", help="Session key (X-Hermes-Session-Key) that the memory belongs to.")(command)


def as_json(command: F) -> F:
    return click.option("--json", "plain", is_flag=True, help="Print JSON, one object on each line.")(command)


def chosen(command: F) -> F:
    """The options that say what is to be deleted."""
    for flag, name, kind, text in reversed(
        (
            ("--id", "memory", str, "This memory, and the words that state it."),
            ("--conversation", "conversation", str, "The conversation of this session, whole; with --position messages of it."),
            ("--position", "position", click.IntRange(1), "The message with this number (`id` in the list of messages)."),
            ("--to-position", "to_position", click.IntRange(1), "All messages from --position to this one."),
            ("--from", "since", click.DateTime(), "Everything said at or after this time (UTC)."),
            ("--to", "until", click.DateTime(), "Everything said before this time (UTC)."),
        )
    ):
        command = click.option(flag, name, type=kind, metavar="VALUE", help=text)(command)
    return click.option("--everything", is_flag=True, help="The whole memory, with all conversations it came from.")(command)


@contextlib.asynccontextmanager
async def shelf(key: str | None, session: str | None, tenant: str, flags: dict[str, Any]) -> AsyncIterator[Shelf]:
    if key is None and session is None:
        raise errors.Invalid("whose memory? Name it with --key, or with --session for a conversation without a key")
    settings = options.load(flags)
    driver = existing(composition.open_driver(settings))
    memory = composition.open_memory(settings, driver)
    async with opened(driver):
        identity = Identity(session_key=key, session_id=session)
        yield Shelf(settings=settings, driver=driver, memory=memory, tenant=tenant, identity=identity)


def run(work: Callable[[Shelf], Any], given: dict[str, Any]) -> Any:
    """Do something with a memory, or say in one line why it cannot be done."""

    async def inside() -> Any:
        flags = {name: given[name] for name in ("config", "data_dir", "database_url")}
        async with shelf(given["key"], given["session"], given["tenant"], flags) as found:
            return await work(found)

    with options.told():
        return asyncio.run(inside())


@click.group()
def memory() -> None:
    """Look at what is remembered, and change it.

    Works on the database itself, so run it with the server's settings; the server may run meanwhile. Name the memory with --key, the
    session key that clients send, or with --session for a conversation that has no key.
    """


@memory.command("list")
@click.option("--state", type=click.Choice(["active", "superseded", "retracted", "all"]), default="active", show_default=True)
@click.option("--text", default="", metavar="WORDS", help="Only memories with these words in them.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, metavar="N")
@as_json
@whose
def show(*, state: str, text: str, limit: int, plain: bool, **given: Any) -> None:
    """List memories, newest first."""
    wanted = Filter(state="" if state == "all" else state, text=text)

    async def work(shelf: Shelf) -> list[Json]:
        rows = await shelf.driver.read(lambda tx: desk.page(tx, shelf.tenant, shelf.scope(tx), wanted, limit=limit))
        return [desk.shown(m) for m in rows]

    tell(run(work, given), plain=plain, columns=MEMORY)


@memory.command()
@click.argument("words", nargs=-1, required=True)
@click.option("--limit", type=click.IntRange(1, 100), default=10, show_default=True, metavar="N")
@as_json
@whose
def search(words: Sequence[str], *, limit: int, plain: bool, **given: Any) -> None:
    """Show what a question with these WORDS would call up, best first."""

    async def work(shelf: Shelf) -> list[Json]:
        scope, found = await recalled(shelf, " ".join(words))
        return await shelf.driver.read(lambda tx: desk.hits(tx, shelf.tenant, scope, found[:limit])) if scope else []

    tell(run(work, given), plain=plain, columns=HIT)


@memory.command()
@click.argument("words", nargs=-1, required=True)
@as_json
@whose
def why(words: Sequence[str], *, plain: bool, **given: Any) -> None:
    """Show the reasons for a memory. WORDS are its id, or words about it."""

    async def work(shelf: Shelf) -> list[Json]:
        if len(words) == 1 and words[0].startswith("mem_"):
            scope, wanted = await shelf.driver.read(shelf.scope), list(words)
        else:
            scope, found = await recalled(shelf, " ".join(words))
            wanted = [name for line in found for name in line.memories]
        return await shelf.driver.read(lambda tx: desk.causes(tx, shelf.tenant, scope, wanted)) if scope else []

    found = run(work, given)
    if plain or not found:
        tell(found, plain=plain, columns=MEMORY)
        return
    for each in found:
        click.echo(each["memory"]["text"])
        for reason in [each["reason"]] if each["reason"] else []:
            click.echo(f"  because: {reason}")
        for cause in each["causes"]:
            click.echo(f"  because: {cause['text']}  ({cause['id']})")


@memory.command()
@click.argument("topic", nargs=-1, required=True)
@as_json
@whose
def timeline(topic: Sequence[str], *, plain: bool, **given: Any) -> None:
    """Show everything stated about TOPIC, in the order of time. TOPIC may be a slot, like `user/home city`."""
    words = " ".join(topic)

    async def work(shelf: Shelf) -> list[Json]:
        in_slot = await shelf.driver.read(lambda tx: desk.timeline(tx, shelf.tenant, shelf.scope(tx), slot=words))
        if in_slot:
            return in_slot
        _, found = await recalled(shelf, words)
        hits = [name for line in found for name in line.memories]
        return await shelf.driver.read(lambda tx: desk.timeline(tx, shelf.tenant, shelf.scope(tx), topic=words, hits=hits))

    tell(run(work, given), plain=plain, columns=TIMELINE)


@memory.command()
@click.option("--output", metavar="FILE", type=click.Path(path_type=Path), help="Write to this file.  [default: the standard output]")
@whose
def export(*, output: Path | None, **given: Any) -> None:
    """Write every memory as JSON, one on each line. `mnemon memory import` reads it."""

    async def work(shelf: Shelf) -> bytes:
        scope = await shelf.driver.read(shelf.scope)
        pieces: list[bytes] = []
        after = ""
        while scope is not None:
            found, after = await shelf.driver.read(
                lambda tx, after=after: desk.exported(tx, shelf.tenant, scope, limit=AT_ONCE, after=after)  # type: ignore[misc]
            )
            pieces += [msgspec.json.encode(line) + b"\n" for line in found]
            if not after:
                break
        return b"".join(pieces)

    data = run(work, given)
    if output is None:
        click.echo(data, nl=False)
        return
    with options.told():
        output.touch(mode=0o600)
        output.write_bytes(data)
    click.echo(f"{output}: {len(data.splitlines())} memories.")


@memory.command("import")
@click.argument("file", type=click.File("rb"))
@whose
def take_over(file: Any, **given: Any) -> None:
    """Add the memories of FILE, which `export` has written. A - is the standard input. Doing it again adds nothing."""
    rows, links = [], []
    with options.told():
        for number, line in enumerate(file.read().splitlines(), 1):
            try:
                row, found = desk.read_back(msgspec.json.decode(line))
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise errors.Invalid(f"line {number} is not a memory as `mnemon memory export` writes it: {error}") from error
            rows.append(row)
            links += found

    async def work(shelf: Shelf) -> tuple[list[str], int]:
        def unit(tx: Tx) -> tuple[list[str], int]:
            scope = desk.scope_to_write(tx, shelf.tenant, shelf.identity)
            return Notes(tx, shelf.tenant, scope, language=LANGUAGE, timezone=shelf.settings.timezone).take_over(rows, links)

        return await shelf.driver.write(unit)

    new, known = run(work, given)
    click.echo(f"{len(new)} memories added, {known} were there already.")


@memory.command()
@chosen
@click.option("--yes", is_flag=True, help="Delete without asking.")
@whose
def forget(*, yes: bool, **given: Any) -> None:
    """Delete, after showing what would go and asking.

    Say what with --id, --conversation (and --position), --from and --to, or --everything. A running server sweeps the words out of the
    database's files within a minute; `mnemon memory purge` does it at once and searches them.
    """

    async def work(shelf: Shelf) -> None:
        plan = await agreed(shelf, selector(given), yes=yes)
        if plan:
            click.echo(f"Deleted: {summary(plan)}.")

    run(work, given)


@memory.command()
@chosen
@click.option("--yes", is_flag=True, help="Delete without asking.")
@whose
def purge(*, yes: bool, **given: Any) -> None:
    """Delete at once, and search the files for what was deleted. It shows what would go and asks, as `forget` does.

    It says what was looked for and where. Without anything to delete, only what was deleted before is swept. On PostgreSQL the tables are
    vacuumed and their rows searched. Databases that `mnemon restore` kept are searched and named, not changed. Backups, and blocks that
    the disk does not use any more, are beyond its reach.
    """

    async def work(shelf: Shelf) -> None:
        plan = None
        if any(given[name] is not None and given[name] is not False for name in WAYS):
            plan = await agreed(shelf, selector(given), yes=yes)
            if plan is None:
                return
            click.echo(f"Deleted: {summary(plan)}.")
        if not await composition.scrubbed(shelf.driver, whole=True):
            raise errors.Unavailable(
                "deleted, but the files are in use and could not be swept; try `mnemon memory purge` again in a moment"
            )
        click.echo(f"Swept: {swept(shelf.driver)}.")
        for line in await proof.of(shelf.driver, plan.texts()) if plan else proof.unsearched(shelf.driver):
            click.echo(line)
        if plan:
            still = await shelf.driver.read(lambda tx: erasure.left(tx, shelf.tenant, shelf.scope(tx), plan.values()))
            for line in proof.elsewhere(still):
                click.echo(line)

    run(work, given)


def swept(driver: Driver) -> str:
    return "the database's files are rewritten" if isinstance(driver, Sqlite) else "the tables are vacuumed"


WIDE = ("scope", "time")
WAYS = ("memory", "conversation", "position", "to_position", "since", "until", "everything")


def selector(given: dict[str, Any]) -> erasure.Selector:
    """What is to be deleted. Raises `Invalid` unless it is said in one way."""
    since, until = (at.replace(tzinfo=UTC).timestamp() if at else None for at in (given["since"], given["until"]))
    ways = [given["memory"], given["conversation"] or given["position"], given["since"] or given["until"], given["everything"]]
    if sum(bool(way) for way in ways) != 1 or (given["position"] and not given["conversation"]):
        message = (
            "say what to delete in one way: --id; --conversation, with --position for messages of it; --from and --to; or --everything"
        )
        raise errors.Invalid(message)
    return erasure.Selector(
        memory=given["memory"] or "",
        session_id=given["conversation"] or "",
        position=given["position"] or 0,
        to_position=given["to_position"] or 0,
        since=since,
        until=until,
        scope=given["everything"],
    )


async def agreed(shelf: Shelf, wanted: erasure.Selector, *, yes: bool) -> erasure.Plan | None:
    """Show what would go, ask, delete; what went, or None if it was not wanted after all."""
    key = await shelf.driver.read(lambda tx: desk.widened(tx, shelf.tenant, shelf.identity)) if wanted.kind in WIDE else None
    if key is not None:
        message = (
            f"the session {shelf.identity.session_id!r} belongs to the key {key!r}, whose whole memory this would reach: name it with"
            f" --key to mean that, or delete the one conversation with --conversation {shelf.identity.session_id}"
        )
        raise errors.Invalid(message)
    plan = await shelf.driver.read(lambda tx: erasure.planned(tx, shelf.tenant, shelf.scope(tx), wanted))
    if not (plan.gone or plan.whole or plan.cut or plan.conversations):
        raise errors.NotFound("there is nothing to delete")
    for line in preview(plan):
        click.echo(line)
    if not yes and not click.confirm(f"Delete {summary(plan)}?"):
        click.echo("Nothing was deleted.")
        return None

    def unit(tx: Tx) -> erasure.Plan:
        scope = shelf.scope(tx)
        found = erasure.planned(tx, shelf.tenant, scope, wanted, hold=True)
        if scope is not None:
            erasure.carried_out(tx, shelf.tenant, scope, found, memory=shelf.memory, at=clock.system())
        return found

    return await shelf.driver.write(unit)


def preview(plan: erasure.Plan) -> list[str]:
    lines = [f"  memory   {m.id}  {short(m.text)}" for m in plan.gone.values()]
    lines += [f"  keeps    {m.id}  {short(m.text)}  (said elsewhere too)" for m in plan.kept.values()]
    lines += [f"  session  {root}, whole" for root in plan.conversations.values()]
    lines += [f"  message  {s.session_id} #{s.position}  {short(s.message.text)}" for s in plan.whole.values()]
    lines += [f"  words in {s.session_id} #{s.position}  {short(s.message.text)}" for s in plan.cut.values()]
    more = len(lines) - 2 * SHOWN
    return lines if more <= 0 else [*lines[: 2 * SHOWN], f"  … and {more} more"]


def summary(plan: erasure.Plan) -> str:
    parts = [
        (len(plan.gone), "memory", "memories"),
        (len(plan.conversations), "conversation", "conversations"),
        (len(plan.whole), "message", "messages"),
        (len(plan.cut), "message in part", "messages in part"),
    ]
    return ", ".join(f"{n} {one if n == 1 else many}" for n, one, many in parts if n) or "nothing"


async def recalled(shelf: Shelf, words: str) -> tuple[int | None, list[Any]]:
    scope, found = await desk.recalled(shelf.driver, shelf.memory, tenant=shelf.tenant, identity=shelf.identity, text=words)
    return (scope.id if scope else None), found
