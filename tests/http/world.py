"""The app in process with a scripted model behind it: what the tests of this folder stand on."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import httpx2
from starlette.applications import Starlette

from mnemon.app import create_app
from mnemon.config import Settings
from mnemon.context import tokens
from mnemon.core import clock as clocks
from mnemon.core.clock import Clock
from mnemon.model.scripted import Reply, Scripted
from mnemon.store import keys
from mnemon.store.keys import ApiKey

Json = dict[str, Any]
T = TypeVar("T")

KEY = "the-key-of-the-first-tenant"
OTHER_KEY = "the-key-of-another-tenant"
ID, CHANNEL, RECEIPT, REPLAYED = "X-Hermes-Session-Id", "X-Hermes-Session-Key", "X-Mnemon-Receipt", "Idempotency-Replayed"


class Double(Scripted):
    """The shipped double with a script that a test may write on as it goes; where it is empty, the n-th reply is "Reply n."."""

    def __init__(self) -> None:
        super().__init__(self._written)
        self.script: deque[Reply] = deque()
        self.extra: Json = {}
        """Fields that this model adds to every chunk and completion."""

    def _written(self, _request: Json) -> Reply:
        return self.script.popleft() if self.script else f"Reply {len(self.requests)}."

    async def stream(self, request: Json) -> AsyncGenerator[Json]:
        """As the script says."""
        async with contextlib.aclosing(super().stream(request)) as chunks:
            async for chunk in chunks:
                yield chunk | self.extra

    @property
    def prompt(self) -> list[Json]:
        """The messages it was asked with last."""
        found: list[Json] = self.requests[-1]["messages"]
        return found

    @property
    def seen(self) -> str:
        """All text of the last prompt."""
        return "\n".join(text_of(m) for m in self.prompt)


def text_of(message: Json) -> str:
    """The words of a message on its way to the model."""
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(part.get("text", "") for part in content)
    return content or ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One server-sent event."""

    data: str
    id: int | None = None
    event: str | None = None

    @property
    def json(self) -> Json:
        """Its data."""
        found: Json = json.loads(self.data)
        return found


def frames(body: bytes) -> list[Frame]:
    """The events of a stream; anything that is not a well-formed event or comment is an error."""
    text = body.decode()
    assert text.endswith("\n\n") or not text
    found = []
    for piece in text.split("\n\n")[:-1]:
        if piece.startswith(":"):
            continue
        fields = dict(line.split(": ", 1) for line in piece.split("\n"))
        assert set(fields) <= {"id", "event", "data"}, piece
        found.append(Frame(data=fields["data"], id=int(fields["id"]) if "id" in fields else None, event=fields.get("event")))
    return found


@dataclass(frozen=True, slots=True)
class Streamed:
    """A whole stream of chat completions."""

    response: httpx2.Response
    frames: list[Frame] = field(init=False)

    def __post_init__(self) -> None:
        assert self.response.status_code == 200, self.response.text
        assert self.response.headers["content-type"].startswith("text/event-stream")
        object.__setattr__(self, "frames", frames(self.response.content))

    @property
    def chunks(self) -> list[Json]:
        """Every frame but `[DONE]`, which is the last."""
        assert self.frames[-1].data == "[DONE]"
        return [frame.json for frame in self.frames[:-1]]

    @property
    def text(self) -> str:
        """What the SDK's loop puts together."""
        return "".join(c["choices"][0]["delta"].get("content") or "" for c in self.chunks if c["choices"])

    @property
    def end(self) -> Json:
        """The one chunk with `finish_reason`."""
        (found,) = [c for c in self.chunks if c["choices"] and c["choices"][0]["finish_reason"]]
        return found


class World:
    """A server, its model, and a client with a key."""

    def __init__(self, app: Starlette, model: Double, client: httpx2.AsyncClient) -> None:
        self.app = app
        self.model = model
        self.client = client

    def of(self, key: str) -> World:
        """The same server, as another key's holder sees it."""
        client = httpx2.AsyncClient(transport=self.client._transport, base_url="http://mnemon", headers={"Authorization": f"Bearer {key}"})
        return World(self.app, self.model, client)

    async def key(self, name: str, secret: str, **limits: Any) -> World:
        """Make another tenant, or with `tenant` another key of one; the server as that key's holder sees it."""
        driver = self.app.state.services.driver
        key = ApiKey(**{"name": name, "tenant": name, "hash": keys.hashed(secret), **limits})
        await driver.write(lambda tx: keys.add(tx, key))
        found = self.of(secret)

        async def known() -> bool:
            return (await found.client.get("/v1/capabilities")).status_code == 200

        await until(known)  # on PostgreSQL the news travels by NOTIFY
        return found

    async def revoke(self, name: str) -> None:
        """End a key, as `mnemon keys revoke` does."""
        driver = self.app.state.services.driver
        await driver.write(lambda tx: keys.revoke(tx, name, at=clocks.system()))

    async def post(self, path: str, body: Any = None, headers: Json | None = None) -> httpx2.Response:
        """A POST of JSON."""
        return await self.client.post(path, json=body, headers=headers)

    async def chat(
        self,
        said: str | list[Json],
        session: str | None = None,
        key: str | None = None,
        headers: Json | None = None,
        **params: Any,
    ) -> httpx2.Response:
        """A chat completion as it comes back. A text is one user message."""
        messages = [{"role": "user", "content": said}] if isinstance(said, str) else said
        names = {ID: session, CHANNEL: key}
        given = {name: value.encode() for name, value in names.items() if value is not None} | (headers or {})
        return await self.post("/v1/chat/completions", {"model": "mnemon", "messages": messages, **params}, given)

    async def say(self, said: str | list[Json], session: str | None = None, key: str | None = None, **rest: Any) -> httpx2.Response:
        """A chat completion that must succeed."""
        response = await self.chat(said, session, key, **rest)
        assert response.status_code == 200, response.text
        return response

    async def stream(self, said: str | list[Json], session: str | None = None, key: str | None = None, **rest: Any) -> Streamed:
        """A streamed chat completion that must succeed."""
        return Streamed(await self.chat(said, session, key, stream=True, **rest))

    async def preview(self, said: str, session: str | None = None, key: str | None = None, **params: Any) -> Json:
        """What would be sent upstream."""
        names = {ID: session, CHANNEL: key}
        given = {name: value.encode() for name, value in names.items() if value is not None}
        body = {"model": "mnemon", "messages": [{"role": "user", "content": said}], **params}
        response = await self.post("/v1/context/preview", body, given)
        assert response.status_code == 200, response.text
        found: Json = response.json()
        return found

    async def get(self, path: str, status: int = 200) -> Json:
        """A resource."""
        response = await self.client.get(path)
        assert response.status_code == status, response.text
        found: Json = response.json()
        return found

    async def session(self, session_id: str) -> Json:
        """A session as a resource."""
        found: Json = (await self.get(path_of(session_id)))["session"]
        return found

    async def messages(self, session_id: str, query: str = "limit=1000") -> list[tuple[str, Any]]:
        """(role, content) of every stored message."""
        body = await self.get(f"{path_of(session_id)}/messages?{query}")
        return [(m["role"], m["content"]) for m in body["data"]]

    async def listed(self, query: str = "") -> list[str]:
        """The ids that a listing shows."""
        return [row["id"] for row in (await self.get(f"/api/sessions?{query}"))["data"]]


def path_of(session_id: str) -> str:
    """The route of a session, whatever its name holds."""
    return "/api/sessions/" + quote(session_id, safe="")


def text(response: httpx2.Response) -> str:
    """What the model said."""
    found: str = response.json()["choices"][0]["message"]["content"]
    return found


def error(response: httpx2.Response, status: int, code: str | None = None, param: str | None = None) -> Json:
    """The error object of a response, which must have the one shape of all errors."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    body = response.json()
    assert list(body) == ["error"]
    assert set(body["error"]) == {"message", "type", "param", "code"}
    found: Json = body["error"]
    assert isinstance(found["message"], str)
    assert found["message"]
    assert code is None or found["code"] == code, found
    assert param is None or found["param"] == param, found
    return found


def size(request: Json) -> int:
    """Tokens of a request as a model of OpenAI's would count them: text, frames, tools."""
    counter = tokens.Counter(tokens.CL100K, exact=True)
    assert counter.ready()
    return sum(tokens.message_tokens(counter, m) for m in request["messages"]) + tokens.tools_tokens(counter, request)


@contextlib.asynccontextmanager
async def running(
    folder: Path, database_url: str | None = None, *, builtin: bool = False, clock: Clock = clocks.system, **settings: Any
) -> AsyncIterator[World]:
    """A server with these settings, for as long as the block lasts; behind it the double, or what the server brings along."""
    double = Double()
    chosen = Settings(**{"api_key": KEY, "data_dir": folder, "database_url": database_url, **settings})
    app = create_app(chosen, model=None if builtin else double, clock=clock)
    async with app.router.lifespan_context(app):
        transport = httpx2.ASGITransport(app=app, raise_app_exceptions=False)
        async with httpx2.AsyncClient(transport=transport, base_url="http://mnemon", headers={"Authorization": f"Bearer {KEY}"}) as client:
            yield World(app, double, client)


async def until(condition: Callable[[], Awaitable[bool]], patience: float = 5.0) -> None:
    """Wait for something that happens by itself."""
    async with asyncio.timeout(patience):
        while not await condition():  # noqa: ASYNC110 - another process, or a thread, makes it true
            await asyncio.sleep(0.005)


@contextlib.asynccontextmanager
async def background(request: Coroutine[Any, Any, T]) -> AsyncIterator[asyncio.Task[T]]:
    """A request on its way while the block runs; it is over when the block is left, and cancelled if the block failed."""
    task = asyncio.create_task(request)
    try:
        yield task
        await task
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
