"""A transcript in pieces that may be dropped or kept: exchanges, and the units inside one.

An exchange is a user's message with all that answers it. Its units are the assistant's messages, each with the results of its tool calls:
a call and its result never part.
"""

from __future__ import annotations

from collections.abc import Sequence

from mnemon.core.records import Message, StoredMessage

NO_RESULT = "(no result was given)"


def exchanges(history: Sequence[StoredMessage]) -> list[list[StoredMessage]]:
    groups: list[list[StoredMessage]] = []
    for message in history:
        if not groups or message.role == "user":
            groups.append([])
        groups[-1].append(message)
    return groups


def units(exchange: Sequence[StoredMessage]) -> list[list[StoredMessage]]:
    """The user's message, if it is there, and then one unit for each message of the assistant."""
    found: list[list[StoredMessage]] = []
    for message in exchange:
        if not found or message.role != "tool":
            found.append([])
        found[-1].append(message)
    return found


def told(history: Sequence[StoredMessage]) -> list[StoredMessage]:
    """A transcript without what was deleted: an answer makes no sense without its question, nor a result without its call."""
    if not any(m.erased for m in history):
        return list(history)
    kept = [units(exchange) for exchange in exchanges(history) if not exchange[0].erased]
    return [m for exchange in kept for unit in exchange if not unit[0].erased for m in unit if not m.erased]


def continues(new: Sequence[Message]) -> bool:
    """Whether the newest messages make no sense without the exchange before them: tool results, or a reply made anew."""
    return not new or new[0].role == "tool"


def completed(history: Sequence[StoredMessage], new: Sequence[Message]) -> list[StoredMessage]:
    """The history with a result for every tool call: a client may drop a call and say something else, but models refuse half of a pair."""
    if not [m for m in history if m.message.body.get("tool_calls")]:
        return list(history)
    given = {m.message.body.get("tool_call_id") for m in history if m.role == "tool"}
    given |= {m.body.get("tool_call_id") for m in new if m.role == "tool"}
    found: list[StoredMessage] = []
    open_calls: list[StoredMessage] = []
    for message in history:
        if message.role != "tool":
            found += open_calls
            open_calls = [stand_in(message, call["id"]) for call in message.message.calls if call.get("id") not in given]
        found.append(message)
    return found + open_calls


def stand_in(message: StoredMessage, call_id: str) -> StoredMessage:
    body = {"role": "tool", "tool_call_id": call_id, "content": NO_RESULT}
    return StoredMessage(message=Message(body), position=message.position, at=message.at, session_id=message.session_id)
