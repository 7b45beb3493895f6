"""Which model a client means."""

from __future__ import annotations

from mnemon.core import errors
from mnemon.core.records import Json
from mnemon.model.base import Model

OWN = "mnemon"
ALIASES = frozenset({OWN, "hermes", "hermes-agent"})


class Names:
    """Our own names stand for the configured model; any other goes upstream as it is, if there is an upstream."""

    def __init__(self, model: Model, *, upstream: bool, configured: str | None, shown: str | None) -> None:
        self.model = model
        self.has_upstream = upstream
        self.configured = configured
        self.own = ALIASES | ({shown} if shown else set())
        self.shown = shown or OWN

    def check(self, name: str) -> None:
        """Raises `NotFound` for a foreign name when there is no upstream."""
        if name not in self.own and not self.has_upstream:
            raise unknown(name)

    async def upstream(self, name: str) -> str:
        """The name to send upstream."""
        if name not in self.own:
            return name
        if self.configured is None and self.has_upstream:
            self.configured = await self._first()
        return self.configured or OWN

    async def _first(self) -> str | None:
        """No model was named in the settings: the first one on offer. An upstream that lists none gets our own name."""
        try:
            offered = await self.model.models()
        except errors.ModelRejected:
            return OWN  # it has no such list, and never will
        except errors.ModelError:
            return None
        return str(offered[0]["id"]) if offered and offered[0].get("id") else OWN

    async def listing(self, *, created: int) -> list[Json]:
        """Our own model first, then what the upstream offers."""
        own: Json = {
            "id": self.shown,
            "object": "model",
            "created": created,
            "owned_by": "mnemon",
            "permission": [],
            "root": self.configured or self.shown,
        }
        own["parent"] = None
        if not self.has_upstream:
            offered = await self.model.models()
            return [{**offered[0], **own, "root": "builtin"}] if offered else [own]
        try:
            offered = await self.model.models()
        except errors.ModelError:
            offered = []
        rest = [
            {"object": "model", "created": created, "owned_by": "upstream", **m} for m in offered if m.get("id") and m["id"] != self.shown
        ]
        return [own, *rest]


def unknown(name: str) -> errors.NotFound:
    message = f"there is no model {name!r}: without an upstream only {OWN!r} answers"
    return errors.NotFound(message, code="model_not_found", param="model")
