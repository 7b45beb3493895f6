"""One table from our errors to HTTP, and one shape for all of them: `{"error": {message, type, param, code}}`."""

from __future__ import annotations

import contextlib
import logging
import math
import re
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from mnemon.core import errors, ids
from mnemon.edge import identity
from mnemon.edge.render import JsonResponse

log = logging.getLogger("mnemon.edge")

# The most specific class wins; order does not matter.
STATUS: dict[type[errors.MnemonError], tuple[int, str]] = {
    errors.MnemonError: (500, "server_error"),
    errors.Invalid: (400, "invalid_request_error"),
    errors.Denied: (401, "invalid_request_error"),
    errors.NotFound: (404, "invalid_request_error"),
    errors.Conflict: (409, "invalid_request_error"),
    errors.LimitReached: (429, "rate_limit_error"),
    errors.StoreError: (500, "server_error"),
    errors.Unavailable: (503, "server_error"),
    errors.LeaseLost: (503, "server_error"),
    errors.ModelError: (502, "upstream_error"),
    errors.ModelBusy: (429, "rate_limit_error"),
    errors.ModelRejected: (400, "invalid_request_error"),
    errors.ModelTimeout: (504, "upstream_error"),
    errors.Cancelled: (409, "invalid_request_error"),
    errors.Stopped: (503, "server_error"),
}
BY_CODE = {"body_too_large": 413, "request_timeout": 408, "uri_too_long": 414, "headers_too_large": 431}
LONGEST_PATH = 200  # of a wrong path that is repeated
PASSED_ON = (400, 404, 413, 422)


def status_of(error: errors.MnemonError) -> tuple[int, str]:
    """(HTTP status, type) of an error."""
    if error.code in BY_CODE:
        return BY_CODE[error.code], "invalid_request_error"
    status, kind = next(STATUS[cls] for cls in type(error).__mro__ if cls in STATUS)
    if isinstance(error, errors.ModelRejected):
        upstream = getattr(error, "status", 400)
        return (upstream if upstream in PASSED_ON else 502), kind
    return status, kind


def shape(error: errors.MnemonError) -> dict[str, Any]:
    """The inside of an error object."""
    return {"message": error.message, "type": status_of(error)[1], "param": error.param, "code": error.code}


def headers_of(error: errors.MnemonError, status: int) -> dict[str, str]:
    headers = {}
    if error.retry_after is not None:
        headers["Retry-After"] = str(math.ceil(error.retry_after))
    elif status in (429, 503):
        headers["Retry-After"] = "1"
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if status in (408, 413):
        headers["Connection"] = "close"
    return headers


def response(error: errors.MnemonError) -> Response:
    status, _ = status_of(error)
    return JsonResponse({"error": shape(error)}, status, headers_of(error, status))


def answer(error: Exception, request: Request) -> Response:
    """What is sent in place of a response. Behind a credential it echoes who was named, as every other answer does."""
    if isinstance(error, HTTPException):
        found = routing(error, request)
    elif isinstance(error, errors.MnemonError):
        found = known(error)
    else:
        found = failed(error)
    return echoing(found, request) if hasattr(request.state, "tenant") else found


def known(error: errors.MnemonError) -> Response:
    if isinstance(error, errors.StoreError):
        log.warning("the database failed: %s", error.__cause__ or error)
    return failed(error) if status_of(error)[0] == 500 else response(error)


def echoing(answer: Response, request: Request) -> Response:
    """The answer with the identity headers of its request, if they were valid."""
    with contextlib.suppress(errors.Invalid):
        answer.headers.update(identity.echo(identity.read(request)))
    return answer


def routing(error: HTTPException, request: Request) -> Response:
    """What the router says: no such route, no such method."""
    status = error.status_code
    code = {404: "route_not_found", 405: "method_not_allowed"}.get(status, "http_error")
    message = {404: missed(request), 405: "this route does not take that method"}.get(status, "the request cannot be served")
    body = {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}}
    return JsonResponse(body, status, error.headers)


def missed(request: Request) -> str:
    """What to say of a path that leads nowhere: the route that was meant, if only its prefix is wrong."""
    path, known = request.scope["path"], {getattr(route, "path", "") for route in request.app.router.routes}
    bare = re.sub(r"^(/v1|/api)+(?=/)", "", path.rstrip("/"))
    meant = next((prefix + bare for prefix in ("/v1", "/api") if prefix + bare in known), None)
    return f"there is no route {path[:LONGEST_PATH]!r}" + (f"; did you mean {meant}?" if meant else "")


def failed(error: Exception) -> Response:
    """For what should not have happened: the log gets the text, the client a number to ask for."""
    request_id = ids.request()
    log.error("request %s failed", request_id, exc_info=error)
    message = f"the server failed; its log says more under {request_id}"
    body = {"error": {"message": message, "type": "server_error", "param": None, "code": "internal_error"}}
    return JsonResponse(body, 500, {"X-Request-Id": request_id})
