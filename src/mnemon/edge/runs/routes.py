"""`/v1/runs`: start, look, follow, stop, steer."""

from __future__ import annotations

from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from mnemon.core import errors
from mnemon.core.records import Effective, Identity, Json, TurnRequest
from mnemon.edge import identity as identities
from mnemon.edge import render, schemas
from mnemon.edge.body import read_object
from mnemon.edge.chat import admitted
from mnemon.edge.idempotency import frame_number, idempotency_of, once
from mnemon.edge.runs import asked, wire
from mnemon.edge.services import path_value, services
from mnemon.runs.following import Stream
from mnemon.store.base import Tx
from mnemon.store.works import Work, Works

CHOICES = ("once", "session", "always", "deny", "approve", "approved", "allow")


async def start(request: Request) -> Response:
    """Write the run down, begin it, and say so: what happens to it from here on is seen elsewhere."""
    app = services(request)
    body = await read_object(request)
    wanted = asked.read(app, request, body)
    shown = wire.EventWire(model=wanted.turn.model, clock=app.clock)
    turns: list[TurnRequest] = []

    def work(tx: Tx) -> Json:
        turns.append(app.runs.prepare(tx, wanted.turn, shown, previous=wanted.previous))
        return {"run_id": shown.run_id, "status": "started"}

    made, again = await once(app, request, body, work)
    if again:
        made = {**made, "replayed": True}
    else:
        running = app.runs.start(turns[-1], shown)
        request.state.visit.turn = running
        if wanted.turn.reject_if_busy:
            await admitted(running, partial(app.runs.refused, turns[-1], shown.run_id, idempotency_of(request, body)))
    effective = Effective(session_id=turns[-1].identity.session_id) if turns else None
    return render.JsonResponse(made, 202, identities.echo(wanted.turn.identity, effective, replayed=again))


async def get(request: Request) -> Response:
    run_id = path_value(request, "run_id")
    schemas.query_only(request.query_params)
    seen = await services(request).runs.get(request.state.tenant, run_id)
    return render.JsonResponse(wire.shown(seen), headers=echo(seen.work))


async def events(request: Request) -> Response:
    """What happened and happens, from the first event or behind one; a run that has ended shows at least how."""
    run_id, tenant, query = path_value(request, "run_id"), request.state.tenant, request.query_params
    schemas.query_only(query, "after")
    after = frame_number(request) or schemas.query_integer(query, "after", default=0, low=0, high=10**12)
    retell = partial(retold, tenant=tenant)
    work, follow = await services(request).following.open(Stream(tenant=tenant, name=run_id, kind="run", retell=retell), after=after)
    return render.Events(follow, echo(work))


def retold(tx: Tx, work: Work, logged: list[tuple[int, bytes]], *, tenant: str) -> list[tuple[int, bytes]]:
    return wire.retold(tx, tenant, work, logged)


async def stop(request: Request) -> Response:
    run_id = path_value(request, "run_id")
    await read_object(request, may_be_empty=True)
    work = await services(request).runs.stop(request.state.tenant, run_id)
    return render.JsonResponse({"run_id": run_id, "status": work.status}, headers=echo(work))


async def approval(request: Request) -> Response:
    """Nothing here ever waits for an approval."""
    run_id, tenant = path_value(request, "run_id"), request.state.tenant
    body = await read_object(request, may_be_empty=True)
    await services(request).driver.read(lambda tx: Works(tx, tenant).get(run_id, "run"))
    if body.get("choice") not in CHOICES:
        raise schemas.wrong("choice", f"must be one of {', '.join(CHOICES)}", code="invalid_approval_choice")
    message = "no approval is asked for by this run"
    raise errors.Conflict(message, code="approval_not_active", param="run_id")


async def steer(request: Request) -> Response:
    run_id = path_value(request, "run_id")
    app, tenant, body = services(request), request.state.tenant, await read_object(request)
    text = asked.steer(body)

    def work(tx: Tx) -> Json:
        app.runs.steer(tx, tenant, run_id, text)
        return {"object": "hermes.run.steer", "run_id": run_id, "accepted": True}

    made, again = await once(app, request, body, work)
    await app.runs.hear()
    return render.JsonResponse(made, headers=identities.echo(Identity(), replayed=again))


def echo(work: Work) -> dict[str, Any]:
    """The session of a run, in the headers."""
    hermes = work.body.get("hermes") or {}
    effective = Effective(session_id=work.session_id, session_key=hermes.get("session_key"), receipt_id=hermes.get("receipt_id"))
    return identities.echo(Identity(), effective)
