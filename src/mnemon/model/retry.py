"""What a model's failure means, and whether it is worth another try.

It knows statuses and error bodies in OpenAI's shape and how long to wait. It does not know how a request is sent.
"""

from __future__ import annotations

import email.utils
import re
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from mnemon.core import errors

Json = dict[str, Any]
T = TypeVar("T")

FIRST_WAIT = 0.2
LONGEST_WAIT = 2.0

PASSING = frozenset((408, 500, 502, 503, 504))  # may be gone the next moment

MESSAGE_LIMIT = 2000

# Error frames come with status 200; what they mean is said by their code or type.
STATUS_BY_NAME = {
    "authentication_error": 401,
    "invalid_api_key": 401,
    "permission_error": 403,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "not_found_error": 404,
    "model_not_found": 404,
    "invalid_request_error": 400,
    "context_length_exceeded": 400,
    "badrequesterror": 400,
}


class Again(Exception):
    """A failure that may be gone the next moment; `error` is what it means if it is not."""

    def __init__(self, error: errors.ModelError) -> None:
        super().__init__(error.message)
        self.error = error


class Rejected(errors.ModelRejected):
    """The model's own refusal of a request: its words, its `type` and its HTTP `status`, for the client to understand."""

    def __init__(self, message: str, *, status: int, type: str | None = None, code: str | None = None, param: str | None = None) -> None:  # noqa: A002
        super().__init__(message, code=code, param=param)
        self.status = status
        self.type = type


async def tried(
    attempt: Callable[[], Awaitable[T]], *, retries: int, sleep: Callable[[float], Awaitable[None]], random: Callable[[], float]
) -> T:
    """The result of `attempt`, which is made up to `retries` times more as long as it raises `Again`."""
    wait = FIRST_WAIT
    for _ in range(retries):
        try:
            return await attempt()
        except Again:
            await sleep(wait * (0.5 + random()))
            wait = min(wait * 2, LONGEST_WAIT)
    try:
        return await attempt()
    except Again as again:
        raise again.error from again.__cause__


def refusal(status: int, reply: Any, *, secret: str | None, retry_after: float | None = None) -> errors.ModelError:
    """What an HTTP status that is not a success means. Only the words of a refused request are passed on."""
    if status < 400:
        return errors.BadReply("The model's address points somewhere else: set the base URL to where it really is.")
    if status in (401, 403):
        return errors.ModelDenied("The model refused the server's credential.")
    if status == 408:
        return errors.ModelTimeout("The model gave up waiting for the request.")
    if status == 429:
        return errors.ModelBusy("The model is rate limited.", retry_after=retry_after)
    if status >= 500:
        return errors.ModelError(f"The model failed with status {status}.")
    told = details(reply)

    def word(name: str) -> str | None:
        value = told.get(name)
        if not isinstance(value, str) or not value:
            return None
        return (value.replace(secret, "[key]") if secret else value)[:MESSAGE_LIMIT]

    message = word("message") or f"The model refused the request with status {status}."
    return Rejected(message, status=status, type=word("type"), code=word("code"), param=word("param"))


def reported(reply: Json, *, secret: str | None) -> errors.ModelError:
    """What an error in a reply of status 200 means."""
    told = details(reply)
    names = [told.get("code"), told.get("status"), told.get("type")]
    statuses = [int(n) for n in names if isinstance(n, int) or (isinstance(n, str) and re.fullmatch(r"[45]\d\d", n))]
    statuses += [STATUS_BY_NAME[n.lower()] for n in names if isinstance(n, str) and n.lower() in STATUS_BY_NAME]
    status = next((s for s in statuses if 400 <= s <= 599), 500)
    return refusal(status, reply, secret=secret)


def details(reply: Any) -> Json:
    """The error object of a reply, in the shapes that servers in the wild give it."""
    if not isinstance(reply, dict):
        return {}
    error = reply.get("error")
    if isinstance(error, dict):
        return error
    if isinstance(error, str):
        return {**reply, "message": error}
    if isinstance(reply.get("detail"), str):
        return {"message": reply["detail"]}
    return reply


def seconds(header: str | None, *, now: float) -> float | None:
    """The value of a Retry-After header: a number as it is, a date as the seconds until then."""
    header = (header or "").strip()
    if re.fullmatch(r"[0-9]{1,9}", header):
        return int(header)
    if re.fullmatch(r"[0-9]{1,9}\.[0-9]{1,9}", header):
        return float(header)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(header).timestamp() - now)
    except (ValueError, OverflowError):
        return None
