"""What the routes work with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, cast
from urllib.parse import unquote_to_bytes

from starlette.requests import Request

from mnemon.core import errors
from mnemon.core.clock import Clock
from mnemon.core.metrics import Metrics
from mnemon.core.records import Identity, Json
from mnemon.edge.auth import Keyring
from mnemon.edge.identity import checked
from mnemon.memory.base import Memory
from mnemon.runs.following import Following
from mnemon.runs.service import Runs
from mnemon.store.base import Driver, Tx
from mnemon.turn.naming import Names
from mnemon.turn.pipeline import Turns


class Jobs(Protocol):
    """What the routes ask about jobs, inside a transaction; each answers with what clients see."""

    def add(self, tx: Tx, tenant: str, given: Json, *, identity: Identity, origin: dict[str, str], now: float) -> Json: ...

    def get(self, tx: Tx, tenant: str, name: str, *, now: float) -> Json: ...

    def page(self, tx: Tx, tenant: str, *, everything: bool, limit: int, offset: int, now: float) -> list[Json]: ...

    def change(self, tx: Tx, tenant: str, name: str, given: Json, *, now: float) -> Json: ...

    def delete(self, tx: Tx, tenant: str, name: str) -> None: ...

    def pause(self, tx: Tx, tenant: str, name: str, *, now: float) -> Json: ...

    def resume(self, tx: Tx, tenant: str, name: str, *, now: float) -> Json: ...

    def run(self, tx: Tx, tenant: str, name: str, *, now: float) -> Json: ...

    def runs(self, tx: Tx, tenant: str, name: str, *, limit: int, offset: int) -> list[Json]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The parts of a running server, as the composition root built them."""

    driver: Driver
    turns: Turns
    runs: Runs
    following: Following
    memory: Memory
    jobs: Jobs
    call_worker: Callable[[], None]
    timezone: str
    names: Names
    keyring: Keyring
    metrics: Metrics
    clock: Clock
    version: str
    started_at: float
    open_webui: bool
    data_dir: str
    cors: bool
    model_kind: str


def services(request: Request) -> Services:
    return cast("Services", request.app.state.services)


def path_value(request: Request, name: str) -> str:
    """A name in the path, percent-decoded here and not by the router, since an id may hold a slash. Raises `Invalid`."""
    try:
        text = unquote_to_bytes(request.path_params[name]).decode()
    except UnicodeDecodeError:
        message = f"{name} in the path is not valid UTF-8"
        raise errors.Invalid(message, code="invalid_session_id", param=name) from None
    found = checked(text, code="invalid_session_id" if name == "session_id" else "invalid_request", param=name)
    if found is None:
        message = f"{name} in the path is empty"
        raise errors.Invalid(message, code="invalid_request", param=name)
    return found
