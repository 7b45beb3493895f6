"""The port behind which every model stands."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, Protocol

Json = dict[str, Any]


class Model(Protocol):
    """Answers chat requests in OpenAI's shape.

    A request is the body of `POST /chat/completions` as it goes upstream: `model`, `messages`, and whatever else the client sent.
    Every failure is raised as a `core.errors.ModelError`; nothing else leaves a model.
    """

    async def complete(self, request: Json) -> Json:
        """One whole `chat.completion` object with at least one choice."""
        ...

    def stream(self, request: Json) -> AsyncGenerator[Json]:
        """The `chat.completion.chunk` objects as they come, usage chunk included.

        Raises before the first chunk if the model cannot begin, and afterwards if it breaks off: a stream that ends without a
        `finish_reason` is broken. Closing the iterator cancels the call.
        """
        ...

    async def models(self) -> list[Json]:
        """The model objects on offer, in OpenAI's shape."""
        ...

    async def close(self) -> None:
        """Give up connections. A closed model is not used again."""
        ...
