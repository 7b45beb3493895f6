"""Asking for responses: what the tests of them share."""

from __future__ import annotations

from typing import Any

import httpx2
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from tests.http.world import Frame, Json, World, frames, until

AGAIN = {"Idempotency-Key": "try-1"}
TOOL = {"type": "function", "name": "weather", "parameters": {"type": "object", "properties": {}}}
CALL = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Oslo"}'}}
CALLED = {"role": "assistant", "content": None, "tool_calls": [CALL]}
ORPHAN = {"type": "function_call_output", "call_id": "c", "output": "x"}
SDK: TypeAdapter[Any] = TypeAdapter(Response)
SDK_EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)


async def ask(world: World, said: Any, headers: Json | None = None, **fields: Any) -> httpx2.Response:
    """A request as it is answered."""
    return await world.post("/v1/responses", {"input": said, **fields}, headers)


async def made(world: World, said: Any, headers: Json | None = None, **fields: Any) -> Json:
    """A response that must succeed, and fit the official types."""
    response = await ask(world, said, headers, **fields)
    assert response.status_code == 200, response.text
    found: Json = response.json()
    SDK.validate_python(found)
    return found


async def streamed(world: World, said: Any, headers: Json | None = None, **fields: Any) -> list[Frame]:
    """The events of a streamed response, which must fit the official types and be numbered without a gap."""
    response = await ask(world, said, headers, stream=True, **fields)
    assert response.status_code == 200, response.text
    return checked(response.content)


def checked(body: bytes) -> list[Frame]:
    """Well-formed events."""
    found = frames(body)
    for frame in found:
        SDK_EVENT.validate_python(frame.json)
        assert frame.event == frame.json["type"]
    return found


def said(part: Json) -> list[Json]:
    """A user's message with one part."""
    return [{"role": "user", "content": [part]}]


def words(response: Json) -> str:
    """The text of a response's output."""
    return "".join(p.get("text", "") for i in response["output"] if i["type"] == "message" for p in i["content"])


def deltas(found: list[Frame]) -> str:
    """The text that was streamed."""
    return "".join(f.json["delta"] for f in found if f.event == "response.output_text.delta")


async def ended(world: World, name: str) -> Json:
    """A response when it has ended."""
    found: Json = {}

    async def over() -> bool:
        nonlocal found
        found = await world.get(f"/v1/responses/{name}")
        return found["status"] not in ("queued", "in_progress")

    await until(over)
    return found
