"""The snippets of the article that the session header is known from, as they stand there, against the server with its built-in model.

Only the port may be another one, where 11434 is taken: ARTICLE_PORT.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from openai import AsyncOpenAI

from tests import servers
from tests.servers import Server

PORT = os.environ.get("ARTICLE_PORT", "11434")


@pytest.fixture(scope="module")
def hermes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The server of the article: key `hermes`, its port, no upstream."""
    folder: Path = tmp_path_factory.mktemp("article")
    with servers.running(data_dir=folder, env={"MNEMON_API_KEY": "hermes", "MNEMON_PORT": PORT}) as server:
        yield server


@pytest.fixture
async def client(hermes: Server) -> AsyncIterator[Any]:
    """The client of the article."""
    async with AsyncOpenAI(base_url=f"http://localhost:{PORT}/v1", api_key="hermes") as found:
        yield found


async def test_turn_200_still_knows_turn_1(client: Any) -> None:
    """Two hundred turns about other things later, the tech stack of the first message is named."""

    async def chat(message: str) -> str:
        response = await client.chat.completions.create(
            model="hermes",
            messages=[{"role": "user", "content": message}],
            extra_headers={"X-Hermes-Session-Id": "user:alex"},
        )
        return str(response.choices[0].message.content)

    # Turn 1 — explicitly stated
    await chat("My name is Alex. I'm building a distributed cache in Rust.")

    for number in range(200):
        await chat(OTHER_THINGS[number % len(OTHER_THINGS)].format(number=number))

    # Turn 200 — two months and 199 interactions later
    # No history sent. No RAG lookup. Just the session ID.
    answer = await chat("What tech stack are we using again?")
    assert "Rust" in answer
    assert "Alex" in await chat("What is my name?")


async def test_sessions_are_isolated_brains(client: Any) -> None:
    """Each repository's session knows its own decisions and nothing of the other's."""

    async def chat(message: str, session_id: str) -> str:
        response = await client.chat.completions.create(
            model="hermes",
            messages=[{"role": "user", "content": message}],
            extra_headers={"X-Hermes-Session-Id": session_id},
        )
        return str(response.choices[0].message.content)

    # These sessions are completely isolated brains
    await chat("Commit: removed Redis cache, caused 3 outages", "repo:acme/backend")
    await chat("Commit: added Redis cache layer for performance", "repo:widgets/frontend")

    # Each query draws only from its own session
    result = await chat("What cache decisions were made?", "repo:acme/backend")
    # Knows about the Redis removal — knows nothing about widgets/frontend
    assert "removed Redis" in result
    assert "added" not in result
    assert "performance" not in result
    assert "widgets" not in result
    other = await chat("What cache decisions were made?", "repo:widgets/frontend")
    assert "added Redis cache layer" in other
    assert "outages" not in other


async def test_streaming_via_sse(client: Any) -> None:
    """The article's generator puts the answer together from the deltas and ends with `[DONE]`."""

    async def generate_sse(session_id: str, question: str) -> AsyncIterator[str]:
        stream = await client.chat.completions.create(
            model="hermes",
            messages=[{"role": "user", "content": question}],
            stream=True,
            extra_headers={"X-Hermes-Session-Id": session_id},
        )
        async for chunk in stream:
            delta = chunk.choices[0].delta.content
            if delta:
                # Escape newlines for SSE wire format
                yield f"data: {delta.replace(chr(10), chr(92) + 'n')}\n\n"
        yield "data: [DONE]\n\n"

    told = [event async for event in generate_sse("project:42:v1", "We use PostgreSQL 15 on RDS with read replicas in us-east-1.")]
    assert told[-1] == "data: [DONE]\n\n"
    events = [event async for event in generate_sse("project:42:v1", "Which database do we use?")]
    assert len(events) > 3
    assert events[-1] == "data: [DONE]\n\n"
    assert "PostgreSQL 15" in "".join(event.removeprefix("data: ").removesuffix("\n\n") for event in events)


async def test_the_openai_client_with_only_the_newest_message(client: Any) -> None:
    """From stateless to persistent: no history, one header."""
    user_session_id = "support:4711"
    for latest_message in ("My order number is A-1009.", "It has not arrived yet.", "What is my order number?"):
        response = await client.chat.completions.create(
            model="hermes",
            messages=[{"role": "user", "content": latest_message}],  # just the new message
            extra_headers={"X-Hermes-Session-Id": user_session_id},  # Hermes handles the rest
        )
    assert "A-1009" in response.choices[0].message.content


OTHER_THINGS = [
    "The weather in Lisbon was sunny on day {number}.",
    "I read a novel about lighthouses, chapter {number}.",
    "My neighbour's dog barked {number} times this morning.",
    "What do you think about gardening?",
    "We had pasta with mushrooms for dinner.",
    "The train to the coast left {number} minutes late.",
    "Remind me to water the tomatoes.",
    "A friend told me about a museum of clocks.",
    "The football match ended in a draw.",
    "I cannot decide between the blue and the green curtains.",
    "Yesterday I walked {number} steps along the river.",
    "How long does it take to boil an egg?",
    "The choir rehearses on Thursdays.",
    "My bicycle needs a new chain.",
    "There was a concert in the park with {number} people.",
    "Thanks, that was helpful.",
]
