"""What the server is and whether it is well: models, capabilities, health, metrics, receipts."""

from __future__ import annotations

import os
import shutil
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from mnemon.core import errors
from mnemon.core.records import Json
from mnemon.edge import identity, schemas
from mnemon.edge.render import JsonResponse
from mnemon.edge.services import path_value, services
from mnemon.store.receipts import Receipts, missing

ENDPOINTS = {
    "root": ("GET", "/"),
    "health": ("GET", "/health"),
    "health_detailed": ("GET", "/health/detailed"),
    "models": ("GET", "/v1/models"),
    "model": ("GET", "/v1/models/{model_id}"),
    "capabilities": ("GET", "/v1/capabilities"),
    "metrics": ("GET", "/metrics"),
    "chat_completions": ("POST", "/v1/chat/completions"),
    "responses": ("POST", "/v1/responses"),
    "response_input_tokens": ("POST", "/v1/responses/input_tokens"),
    "response": ("GET", "/v1/responses/{response_id}"),
    "response_delete": ("DELETE", "/v1/responses/{response_id}"),
    "response_cancel": ("POST", "/v1/responses/{response_id}/cancel"),
    "response_input_items": ("GET", "/v1/responses/{response_id}/input_items"),
    "conversations": ("POST", "/v1/conversations"),
    "conversation": ("GET", "/v1/conversations/{conversation_id}"),
    "conversation_update": ("POST", "/v1/conversations/{conversation_id}"),
    "conversation_delete": ("DELETE", "/v1/conversations/{conversation_id}"),
    "conversation_items": ("GET", "/v1/conversations/{conversation_id}/items"),
    "conversation_items_create": ("POST", "/v1/conversations/{conversation_id}/items"),
    "conversation_item": ("GET", "/v1/conversations/{conversation_id}/items/{item_id}"),
    "conversation_item_delete": ("DELETE", "/v1/conversations/{conversation_id}/items/{item_id}"),
    "runs": ("POST", "/v1/runs"),
    "run_status": ("GET", "/v1/runs/{run_id}"),
    "run_events": ("GET", "/v1/runs/{run_id}/events"),
    "run_stop": ("POST", "/v1/runs/{run_id}/stop"),
    "run_steer": ("POST", "/v1/runs/{run_id}/steer"),
    "run_approval": ("POST", "/v1/runs/{run_id}/approval"),
    "context_preview": ("POST", "/v1/context/preview"),
    "receipt": ("GET", "/v1/receipts/{receipt_id}"),
    "memories": ("GET", "/v1/memory"),
    "memory_add": ("POST", "/v1/memory"),
    "memory_search": ("POST", "/v1/memory/search"),
    "memory_search_by_url": ("GET", "/v1/memory/search"),
    "memory_timeline": ("GET", "/v1/memory/timeline"),
    "memory_reversals": ("GET", "/v1/memory/reversals"),
    "memory_why": ("GET", "/v1/memory/why"),
    "memory_export": ("GET", "/v1/memory/export"),
    "memory_import": ("POST", "/v1/memory/import"),
    "memory_delete": ("POST", "/v1/memory/delete"),
    "memory": ("GET", "/v1/memory/{memory_id}"),
    "memory_correct": ("PATCH", "/v1/memory/{memory_id}"),
    "memory_delete_one": ("DELETE", "/v1/memory/{memory_id}"),
    "memory_pin": ("POST", "/v1/memory/{memory_id}/pin"),
    "memory_unpin": ("POST", "/v1/memory/{memory_id}/unpin"),
    "memory_reopen": ("POST", "/v1/memory/{memory_id}/reopen"),
    "sessions": ("GET", "/api/sessions"),
    "session_create": ("POST", "/api/sessions"),
    "session": ("GET", "/api/sessions/{session_id}"),
    "session_update": ("PATCH", "/api/sessions/{session_id}"),
    "session_delete": ("DELETE", "/api/sessions/{session_id}"),
    "session_messages": ("GET", "/api/sessions/{session_id}/messages"),
    "session_fork": ("POST", "/api/sessions/{session_id}/fork"),
    "session_chat": ("POST", "/api/sessions/{session_id}/chat"),
    "session_chat_stream": ("POST", "/api/sessions/{session_id}/chat/stream"),
    "jobs": ("GET", "/api/jobs"),
    "job_create": ("POST", "/api/jobs"),
    "job": ("GET", "/api/jobs/{job_id}"),
    "job_update": ("PATCH", "/api/jobs/{job_id}"),
    "job_delete": ("DELETE", "/api/jobs/{job_id}"),
    "job_pause": ("POST", "/api/jobs/{job_id}/pause"),
    "job_resume": ("POST", "/api/jobs/{job_id}/resume"),
    "job_run": ("POST", "/api/jobs/{job_id}/run"),
    "job_runs": ("GET", "/api/jobs/{job_id}/runs"),
}


MEMORY = "/v1/memory"

# What Hermes' clients look for. Those that are False are not there yet.
FEATURES: Json = {
    "chat_completions": True,
    "chat_completions_streaming": True,
    "responses_api": True,
    "responses_streaming": True,
    "responses_background": True,
    "conversations_api": True,
    "run_submission": True,
    "run_status": True,
    "run_events_sse": True,
    "run_stop": True,
    "run_steer": True,
    "runs_idempotency": {"supported": True, "durable": True, "retention_seconds": 86400},
    "reasoning_streaming": True,
    "run_approval_response": False,
    "tool_progress_events": False,
    "approval_events": False,
    "session_resources": True,
    "session_chat": True,
    "session_chat_streaming": True,
    "session_fork": True,
    "admin_config_rw": False,
    "jobs_admin": True,
    "memory_write_api": True,
    "skills_api": False,
    "audio_api": False,
    "realtime_voice": False,
    "session_continuity_header": identity.SESSION_ID,
    "session_key_header": identity.SESSION_KEY,
    "identity_headers": [name for field, name in identity.HEADERS.items() if field not in ("session_id", "session_key")],
    "receipt_header": identity.RECEIPT,
    "if_busy_header": "X-Mnemon-If-Busy",
    "idempotency": {"supported": True, "durable": True, "retention_seconds": 86400, "streams_resumable": True},
    "context_preview": True,
}


async def root(request: Request) -> Response:
    """The front door: what this is, and where to go on."""
    found = {
        "name": "mnemon",
        "version": services(request).version,
        "api": "/v1",
        "sessions": "/api/sessions",
        "capabilities": "/v1/capabilities",
        "health": "/health",
        "docs": "docs/ in the source of Mnemon; docs/reference/http.md lists every route",
    }
    return JsonResponse(found)


async def health(request: Request) -> Response:
    return JsonResponse({"status": "ok", "platform": "hermes-agent", "server": "mnemon", "version": services(request).version})


async def health_detailed(request: Request) -> Response:
    """Readiness: can the database be read, is there room on the disk, did the model answer when it was last asked."""
    app = services(request)
    checks: dict[str, Any] = {}
    try:
        await app.driver.read(lambda tx: tx.all("keys_all"))
        checks["state_db"] = {"status": "ok", "backend": app.driver.name}
    except errors.StoreError as error:
        checks["state_db"] = {"status": "error", "backend": app.driver.name, "message": error.message}
    usage = shutil.disk_usage(app.data_dir)
    used = 100 * usage.used / usage.total
    checks["disk"] = {"status": "ok" if usage.free > 100 * 2**20 else "low", "used_percent": round(used, 1), "free_bytes": usage.free}
    checks["model"] = {"kind": app.model_kind, **app.turns.pulse.shown()}
    checks["background_queues"] = {"active_api_runs": len(app.turns.running), "process_completions": 0, "active_delegations": 0}
    well = all(check.get("status", "ok") in ("ok", "unknown") for check in checks.values())
    body = {
        "status": "ok" if well else "degraded",
        "readiness": {"status": "ready" if well else "degraded", "checks": checks},
        "platform": "hermes-agent",
        "server": "mnemon",
        "version": app.version,
        "active_agents": len(app.turns.running),
        "gateway_busy": bool(app.turns.running),
        "updated_at": app.clock(),
        "started_at": app.started_at,
        "pid": os.getpid(),
    }
    return JsonResponse(body)


async def models(request: Request) -> Response:
    app = services(request)
    return JsonResponse({"object": "list", "data": await app.names.listing(created=int(app.started_at))})


async def model(request: Request) -> Response:
    app = services(request)
    wanted = path_value(request, "model_id")
    for offered in await app.names.listing(created=int(app.started_at)):
        if offered["id"] == wanted or (wanted in app.names.own and offered["id"] == app.names.shown):
            return JsonResponse({**offered, "id": wanted})
    message = f"there is no model {wanted!r}"
    raise errors.NotFound(message, code="model_not_found", param="model")


def listed(*, of_scope: bool) -> Json:
    """The routes; apart from the others those that read memory, and answer only whoever names a session key or a session."""
    found = {name: {"method": method, "path": path} for name, (method, path) in ENDPOINTS.items()}
    return {name: route for name, route in found.items() if (route["method"] == "GET" and route["path"].startswith(MEMORY)) is of_scope}


async def capabilities(request: Request) -> Response:
    """What a client may rely on. Hermes' keys, and our own beside them."""
    app = services(request)
    body = {
        "object": "hermes.api_server.capabilities",
        "platform": "hermes-agent",
        "server": "mnemon",
        "version": app.version,
        "model": app.names.shown,
        "auth": {"type": "bearer", "required": True},
        "runtime": {
            "mode": "server_agent",
            "tool_execution": "client",
            "split_runtime": False,
            "description": "Sessions and memory are kept here; the model is upstream or built in; tools run at the client.",
        },
        "features": {**FEATURES, "cors": app.cors},
        "endpoints": listed(of_scope=False),
        "endpoints_of_a_scope": listed(of_scope=True),
    }
    return JsonResponse(body)


async def metrics(request: Request) -> Response:
    return Response(services(request).metrics.text(), media_type="text/plain; version=0.0.4")


async def receipt(request: Request) -> Response:
    """What a reply was made from. Under a key, only the receipts of that key's sessions are there."""
    schemas.query_only(request.query_params)
    wanted, tenant = path_value(request, "receipt_id"), request.state.tenant
    found = await services(request).driver.read(lambda tx: Receipts(tx, tenant).get(wanted))
    key = identity.read(request).session_key
    if key is not None and found.get("session_key") != key:
        raise missing(wanted)
    return JsonResponse(found)
