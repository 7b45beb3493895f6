"""The ASGI application: Starlette's routes and lifespan, without its nets for errors.

Starlette catches errors at three places, and at each of them every message of every response passes through a function more. The gateway
catches them all, so none of these is needed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send


class Application(Starlette):
    """Calls its middleware, then the route."""

    def build_middleware_stack(self) -> ASGIApp:
        for route in self.routes:
            if isinstance(route, Route):
                route.app = straight(route.endpoint)
        app: ASGIApp = self.router
        for each in reversed(self.user_middleware):
            app = each.cls(app, *each.args, **each.kwargs)
        return app


def straight(endpoint: Callable[[Request], Awaitable[Response]]) -> ASGIApp:
    """A handler as a route calls it."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        response = await endpoint(Request(scope, receive, send))
        await response(scope, receive, send)

    return app
