"""CORS: which web pages may call the server. Off unless origins are configured."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response

from mnemon.edge import identity
from mnemon.edge.render import JsonResponse

METHODS = ("GET", "POST", "PATCH", "DELETE", "OPTIONS")
EXPOSED = (*identity.HEADERS.values(), identity.RECEIPT, identity.REPLAYED, "Retry-After", "X-Request-Id")


class Cors(CORSMiddleware):
    """Starlette's, which allows a listed origin every header it asks for (the OpenAI SDK sends many), and refuses in JSON."""

    def preflight_response(self, request_headers: Headers) -> Response:
        answer = super().preflight_response(request_headers)
        if answer.status_code < 400:
            return answer
        message = "this origin or method is not allowed; MNEMON_CORS_ORIGINS lists the origins that are"
        error = {"message": message, "type": "invalid_request_error", "param": "Origin", "code": "cors_refused"}
        return JsonResponse({"error": error}, answer.status_code, {"Vary": "Origin"})
