"""Memories as tables for people, or as JSON for programs."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import UTC, datetime

import click
import msgspec

from mnemon.cli.keys import moment, table
from mnemon.core.records import Json

Column = tuple[str, Callable[[Json], str]]
MEMORY: list[Column] = [
    ("ID", lambda m: m["id"]),
    ("SINCE", lambda m: moment(m["valid_from"])[:10]),
    ("STATE", lambda m: m["state"] + (", pinned" if m["pinned"] else "")),
    ("KIND", lambda m: m["kind"]),
    ("MEMORY", lambda m: m["text"]),
]
HIT: list[Column] = [
    ("SCORE", lambda h: f"{h['score']:.2f}"),
    ("WHEN", lambda h: moment(h["at"])[:10]),
    ("WHERE", lambda h: f"{h['evidence']['session_id']} #{h['evidence']['position']}" if h["evidence"] else "by hand"),
    ("WORDS", lambda h: " ".join([h["text"], *h["notes"]])),
]
TIMELINE: list[Column] = [
    ("FROM", lambda m: day(m["happened"]["start"] if m["happened"] else m["valid_from"])),
    ("TO", lambda m: day(m["valid_to"]) if m["valid_to"] is not None else ""),
    ("STATE", lambda m: m["state"]),
    ("MEMORY", lambda m: m["text"]),
]


def tell(found: list[Json], *, plain: bool, columns: list[Column]) -> None:
    if plain:
        for each in found:
            click.echo(msgspec.json.encode(each).decode())
    elif not found:
        click.echo("There is nothing.")
    else:
        width = shutil.get_terminal_size((140, 24)).columns
        cells = [tuple(short(read(each), width) for _, read in columns) for each in found]
        for line in table([tuple(name for name, _ in columns), *cells]):
            click.echo(line)


def short(text: str, most: int = 100) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 1] + "…"


def day(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d")
