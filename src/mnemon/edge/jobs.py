"""`/api/jobs`: prompts that run on a schedule. What may be done with them is said elsewhere; here it is read, and answered."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from starlette.requests import Request
from starlette.responses import Response

from mnemon.core import errors
from mnemon.core.records import Identity, Json
from mnemon.edge import identity as identities
from mnemon.edge import schemas
from mnemon.edge.body import read_object
from mnemon.edge.idempotency import once
from mnemon.edge.render import JsonResponse
from mnemon.edge.services import services

NAME = re.compile(r"[0-9a-f]{12}")
MOST_JOBS = 1000


async def index(request: Request) -> Response:
    app, query, tenant = services(request), request.query_params, request.state.tenant
    schemas.query_only(query, "include_disabled", "limit", "offset")
    everything = schemas.query_flag(query, "include_disabled")
    limit = schemas.query_integer(query, "limit", default=MOST_JOBS, low=1, high=MOST_JOBS)
    offset = schemas.query_integer(query, "offset", default=0, low=0, high=10**12)
    now = app.clock()
    found = await app.driver.read(
        lambda tx: app.jobs.page(tx, tenant, everything=everything, limit=limit + 1, offset=offset, now=now),
    )
    return JsonResponse({"jobs": found[:limit], "has_more": len(found) > limit})


async def create(request: Request) -> Response:
    app, tenant = services(request), request.state.tenant
    body = await read_object(request)
    identity = identity_of(request, body)
    now, origin = app.clock(), origin_of(request)
    given = {name: value for name, value in body.items() if name not in ("session_id", "session_key")}
    made, again = await once(app, request, body, lambda tx: app.jobs.add(tx, tenant, given, identity=identity, origin=origin, now=now))
    return JsonResponse({"job": made}, headers=identities.echo(identity, replayed=again))


def identity_of(request: Request, body: Json) -> Identity:
    """The conversation a job is to run in, by header or in the body. Raises `Invalid` if the two differ."""
    identity = identities.read(request, open_webui=services(request).open_webui)
    for field in ("session_id", "session_key"):
        value, sent = identities.from_body(body, field), getattr(identity, field)
        if value is not None and sent not in (None, value):
            raise schemas.wrong(field, f"is another one than {identities.HEADERS[field]} says", code=identities.CODES[field])
        identity = replace(identity, **{field: value or sent})
    return identity


def origin_of(request: Request) -> dict[str, str]:
    """Where a job was made, as Hermes tells it."""
    peer = request.client.host if request.client else ""
    agent = request.headers.get("user-agent", "")[: identities.LONGEST]
    return {"platform": "api_server", "chat_id": "api", "source_ip": peer, "peer_ip": peer, "user_agent": agent}


async def get(request: Request) -> Response:
    app, tenant, name = services(request), request.state.tenant, name_of(request)
    now = app.clock()
    return JsonResponse({"job": await app.driver.read(lambda tx: app.jobs.get(tx, tenant, name, now=now))})


async def update(request: Request) -> Response:
    app, tenant, name = services(request), request.state.tenant, name_of(request)
    body, now = await read_object(request), app.clock()
    return JsonResponse({"job": await app.driver.write(lambda tx: app.jobs.change(tx, tenant, name, body, now=now))})


async def delete(request: Request) -> Response:
    app, tenant, name = services(request), request.state.tenant, name_of(request)
    await app.driver.write(lambda tx: app.jobs.delete(tx, tenant, name))
    return JsonResponse({"ok": True})


async def pause(request: Request) -> Response:
    return await done(request, services(request).jobs.pause)


async def resume(request: Request) -> Response:
    return await done(request, services(request).jobs.resume)


async def run(request: Request) -> Response:
    return await done(request, services(request).jobs.run)


async def done(request: Request, work: Callable[..., Json]) -> Response:
    """Do something to a job; with an `Idempotency-Key`, once."""
    app, tenant, name = services(request), request.state.tenant, name_of(request)
    body, now = await read_object(request, may_be_empty=True), app.clock()
    for field in body:
        raise schemas.wrong(field, "is not a field of this request, which has none", code="unsupported_parameter")
    made, again = await once(app, request, body, lambda tx: work(tx, tenant, name, now=now))
    app.call_worker()
    return JsonResponse({"job": made}, headers={identities.REPLAYED: "true"} if again else {})


async def runs(request: Request) -> Response:
    app, query, tenant, name = services(request), request.query_params, request.state.tenant, name_of(request)
    schemas.query_only(query, "limit", "offset")
    limit = schemas.query_integer(query, "limit", default=50, low=1, high=200)
    offset = schemas.query_integer(query, "offset", default=0, low=0, high=10**12)
    found = await app.driver.read(lambda tx: app.jobs.runs(tx, tenant, name, limit=limit + 1, offset=offset))
    body = {"object": "list", "data": found[:limit], "limit": limit, "offset": offset, "has_more": len(found) > limit}
    return JsonResponse(body)


def name_of(request: Request) -> str:
    """The job a path names. Raises `Invalid` for what can be no job's id."""
    name = str(request.path_params["job_id"])
    if not NAME.fullmatch(name):
        raise errors.Invalid("a job's id is 12 hexadecimal digits", code="invalid_job_id", param="job_id")
    return name
