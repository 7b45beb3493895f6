"""Modules of routes that are loaded when one of their routes is first asked for, so that a start does not wait for them."""

from __future__ import annotations

import asyncio
import importlib
import sys
from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response

Endpoint = Callable[[Request], Awaitable[Response]]


class Later:
    """Stands for a module: its attributes are endpoints, which load it."""

    def __init__(self, module: str) -> None:
        self.module = module

    def __getattr__(self, name: str) -> Endpoint:
        async def endpoint(request: Request) -> Response:
            if self.module not in sys.modules:  # in a thread: other requests need not wait for it
                await asyncio.to_thread(importlib.import_module, self.module)
            found: Endpoint = getattr(importlib.import_module(self.module), name)
            return await found(request)

        return endpoint
