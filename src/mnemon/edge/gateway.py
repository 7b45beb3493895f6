"""What happens to every request around its route: raw path, credential, limits, errors, counting."""

from __future__ import annotations

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mnemon.core.metrics import Metrics
from mnemon.edge import errors as edge_errors
from mnemon.edge.auth import Keyring

OPEN_PATHS = frozenset({"/health", "/v1/health"})


class Gateway:
    """ASGI middleware around the router."""

    def __init__(self, app: ASGIApp, *, keyring: Keyring, metrics: Metrics) -> None:
        self.app = app
        self.keyring = keyring
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        # Routes match the path as it was sent: an id in it may hold an encoded slash.
        scope["path"] = scope.get("raw_path", scope["path"].encode()).decode("latin-1")
        # A stream's frames need nothing of what middleware does to a response: they go straight to the server.
        scope.setdefault("state", {})["send"] = send
        status = 0

        async def counted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._admit(scope, receive, counted)
        except Exception as error:  # here and not further out, where the CORS headers would be missing
            if status:
                raise
            await edge_errors.answer(error, Request(scope))(scope, receive, counted)
        finally:
            endpoint = scope.get("endpoint")
            self.metrics.add("mnemon_requests_total", 1, route=getattr(endpoint, "__name__", "none"), status=str(status or 500))

    async def _admit(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] in OPEN_PATHS:
            await self.app(scope, receive, send)
            return
        key = await self.keyring.find(authorization(scope))
        scope["state"]["tenant"] = key.tenant
        with self.keyring.admitted(key) as visit:
            scope["state"]["visit"] = visit
            await self.app(scope, receive, send)


def authorization(scope: Scope) -> str | None:
    for name, value in scope["headers"]:
        if name == b"authorization":
            text: str = value.decode("utf-8", "surrogateescape")
            return text
    return None
