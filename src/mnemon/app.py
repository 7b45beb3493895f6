"""The composition root: picks the backends, builds the parts, owns their lifetime."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

from starlette.applications import Starlette
from starlette.middleware import Middleware

from mnemon.config import SettingError, Settings
from mnemon.context.tokens import Counter
from mnemon.core import clock as clocks
from mnemon.core import errors, ids
from mnemon.core.clock import Clock
from mnemon.core.metrics import Metrics
from mnemon.core.version import __version__
from mnemon.edge.application import Application
from mnemon.edge.auth import Keyring
from mnemon.edge.cors import EXPOSED, METHODS, Cors
from mnemon.edge.gateway import Gateway
from mnemon.edge.routes import routes
from mnemon.edge.services import Services
from mnemon.jobs.desk import Desk
from mnemon.jobs.wishes import Rules
from mnemon.jobs.worker import Worker
from mnemon.memory.base import Memory
from mnemon.memory.builtin import Builtin, Nothing
from mnemon.memory.fulltext import FullText
from mnemon.memory.language import LANGUAGE
from mnemon.model.base import Model
from mnemon.model.upstream import Upstream
from mnemon.runs.following import Following
from mnemon.runs.service import Runs
from mnemon.store import erasures, frames, idempotency, keys, works
from mnemon.store.base import Driver, Tx
from mnemon.turn.naming import Names
from mnemon.turn.parts import Limits, Parts
from mnemon.turn.pipeline import Turns

log = logging.getLogger("mnemon")

STOP_PATIENCE = 8.0
SWEEP_SECONDS = 600
DAY = 86400.0
SCRUB_SECONDS = 20  # a deletion is out of the database's files within a minute
KEY_FILE = "api_key"
TENANT = "default"


def open_driver(settings: Settings) -> Driver:
    """The driver for the configured database; its module is loaded only now, so that one that is not installed costs nothing."""
    url = settings.database()
    owner = ids.owner()
    if url.startswith("sqlite:///"):
        sqlite = importlib.import_module("mnemon.store.sqlite")
        return cast("Driver", sqlite.Sqlite(Path(url.removeprefix("sqlite:///")), owner=owner))
    try:
        postgres = importlib.import_module("mnemon.store.postgres")
    except ImportError:
        message = "MNEMON_DATABASE_URL names PostgreSQL, whose driver is not installed: pip install '.[postgres]'"
        raise SettingError(message) from None
    return cast("Driver", postgres.Postgres(url, owner=owner))


def open_model(settings: Settings) -> Model:
    if settings.upstream_url is None:
        return cast("Model", importlib.import_module("mnemon.model.builtin").BuiltinModel())
    return Upstream(base_url=settings.upstream_url, api_key=settings.upstream_key, timeout=settings.upstream_timeout)


def open_memory(settings: Settings, driver: Driver) -> Memory:
    if settings.memory_provider == "none":
        return Nothing()
    passages = FullText(driver, embeddings=settings.embeddings == "builtin", recall_tokens=settings.recall_tokens)
    return Builtin(driver, passages, LANGUAGE, timezone=settings.timezone)


def first_key(data_dir: Path) -> str:
    """The key kept in the data directory, made if it is not there."""
    path = data_dir / KEY_FILE
    with contextlib.suppress(FileNotFoundError):
        kept = path.read_text().strip()
        if kept:  # else a start was killed while it wrote it
            return kept
    data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    secret = ids.api_key()
    new = path.with_suffix(".new")
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(secret + "\n")
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    return secret


async def fixed_keys(settings: Settings, driver: Driver) -> list[keys.ApiKey]:
    """The credentials that are not in the database: the configured one, or the one made at the first start if there is no other."""
    secret = settings.api_key
    if secret is None:
        made = (settings.data_dir / KEY_FILE).exists()
        known = await driver.read(keys.everyone)
        if made or not any(key.revoked_at is None for key in known):
            secret = first_key(settings.data_dir)
    return [keys.ApiKey(name=TENANT, tenant=TENANT, hash=keys.hashed(secret))] if secret else []


def create_app(settings: Settings, *, model: Model | None = None, clock: Clock = clocks.system) -> Starlette:
    """The server as an ASGI application. `model` and `clock` stand in for the real ones in tests."""
    upstream = settings.upstream_url is not None or model is not None
    parts = open_parts(settings, model or open_model(settings), upstream=upstream, clock=clock)
    turns = Turns(parts)
    jobs = open_worker(settings, parts, turns)
    services = Services(
        driver=parts.driver,
        turns=turns,
        runs=Runs(turns),
        following=Following(turns),
        memory=parts.memory,
        jobs=Desk(rules(settings, parts.names)),
        call_worker=jobs.call,
        timezone=settings.timezone,
        names=parts.names,
        keyring=Keyring(parts.driver, fixed=[]),
        metrics=parts.metrics,
        clock=clock,
        version=__version__,
        started_at=clock(),
        open_webui=settings.openwebui_headers,
        data_dir=str(settings.data_dir),
        cors=bool(settings.cors_origins),
        model_kind="upstream" if upstream else "builtin",
    )
    app = Application(
        routes=routes(),
        middleware=middleware(settings, services.keyring, parts.metrics),
        lifespan=lambda _app: alive(settings, services, parts, jobs),
    )
    app.router.redirect_slashes = False
    app.state.services = services
    return app


def rules(settings: Settings, names: Names) -> Rules:
    """What the wishes of a job are measured by."""
    return Rules(zone=settings.timezone, private=settings.webhook_private, check_model=names.check)


def open_parts(settings: Settings, model: Model, *, upstream: bool, clock: Clock) -> Parts:
    driver = open_driver(settings)
    return Parts(
        driver=driver,
        model=model,
        memory=open_memory(settings, driver),
        counter=Counter.for_model(settings.upstream_model),
        names=Names(model, upstream=upstream, configured=settings.upstream_model, shown=settings.model_name),
        limits=Limits(budget=settings.context_budget, recall_tokens=settings.recall_tokens, compress_at=settings.compress_at),
        clock=clock,
        metrics=Metrics(),
    )


@contextlib.asynccontextmanager
async def alive(settings: Settings, services: Services, parts: Parts, jobs: Worker) -> AsyncIterator[None]:
    """The life of a server: what is opened is closed in the opposite order, however it ends."""
    async with contextlib.AsyncExitStack() as stack:
        await opened(stack, settings, parts)
        services.keyring.fixed = await fixed_keys(settings, parts.driver)
        await busy(stack, settings, parts, jobs)
        await services.runs.open()
        stack.callback(services.runs.close)
        yield


@contextlib.asynccontextmanager
async def at_work(settings: Settings) -> AsyncIterator[None]:
    """The life of a worker: all of a server but its door."""
    parts = open_parts(settings, open_model(settings), upstream=settings.upstream_url is not None, clock=clocks.system)
    async with contextlib.AsyncExitStack() as stack:
        await opened(stack, settings, parts)
        await busy(stack, settings, parts, open_worker(settings, parts, Turns(parts)))
        yield


async def opened(stack: contextlib.AsyncExitStack, settings: Settings, parts: Parts) -> None:
    settings.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    stack.push_async_callback(parts.model.close)
    await parts.driver.open()
    stack.push_async_callback(parts.driver.close)


def open_worker(settings: Settings, parts: Parts, turns: Turns) -> Worker:
    return Worker(
        driver=parts.driver,
        turns=turns,
        metrics=parts.metrics,
        clock=parts.clock,
        model=parts.names.shown,
        private=settings.webhook_private,
    )


async def busy(stack: contextlib.AsyncExitStack, settings: Settings, parts: Parts, jobs: Worker) -> None:
    """Begin with turns, jobs and what is swept up beside them."""
    turns = jobs.turns
    await turns.open()
    stack.push_async_callback(jobs.gather)
    stack.push_async_callback(turns.close, STOP_PATIENCE)
    jobs.open()
    stack.push_async_callback(jobs.close)
    chores = (sweep(parts.driver, turns, parts.clock, runs_kept=settings.runs_kept_days * DAY), scrub(parts.driver))
    for chore in chores:
        stack.callback(asyncio.create_task(chore).cancel)


def middleware(settings: Settings, keyring: Keyring, metrics: Metrics) -> list[Middleware]:
    gateway = Middleware(Gateway, keyring=keyring, metrics=metrics)
    if not settings.cors_origins:
        return [gateway]
    cors = Middleware(
        Cors, allow_origins=list(settings.cors_origins), allow_methods=METHODS, allow_headers=["*"], expose_headers=EXPOSED, max_age=600
    )
    return [cors, gateway]


async def sweep(driver: Driver, turns: Turns, clock: Clock, *, runs_kept: float) -> None:
    """Now and then, see to what has come to its end."""
    while True:
        await asyncio.sleep(SWEEP_SECONDS)
        try:
            await swept(driver, turns, clock(), runs_kept=runs_kept)
        except errors.StoreError:
            log.warning("what is too old could not be cleared away", exc_info=True)


async def swept(driver: Driver, turns: Turns, now: float, *, runs_kept: float) -> None:
    """Forget what was kept long enough: idempotency records, frames, runs. Write down which works were interrupted."""

    def work(tx: Tx) -> None:
        idempotency.expire(tx, now=now)
        frames.expire(tx, now=now)
        works.expire(tx, kind="run", before=now - runs_kept)

    await driver.write(work)
    await turns.settle()


async def scrub(driver: Driver) -> None:
    """Sweep deleted words out of the database's files, once for all deletions since the last time."""
    while True:
        await asyncio.sleep(SCRUB_SECONDS)
        try:
            await scrubbed(driver, whole=False)
        except errors.StoreError:
            log.warning("deleted words could not be swept out of the database's files yet", exc_info=True)


async def scrubbed(driver: Driver, *, whole: bool) -> bool:
    """Do the sweep that deletions asked for, if any did (with `whole`, in any case); whether it is done."""
    waiting = await driver.read(erasures.waiting)
    if waiting is None and not whole:
        return True
    if not await driver.scrub(whole=whole):
        return False
    if waiting is not None:
        await driver.write(lambda tx: erasures.swept(tx, waiting))
    return True
