"""From what is known to what is sent: blocks with an allowance each, never more than the budget.

The order is that of stability, so that prompt caches of the model's server hit: system text and compressed state first, unchanged between
two compressions; then the live transcript, which only grows; recalled passages last, inside the newest user message.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mnemon.context import blocks, tokens
from mnemon.core import errors
from mnemon.core.records import Block, Json, Message, Prompt, Recalled, StateLine, StoredMessage

REPLY_PRIMING = 3
LINE_JOIN = 1
BLOCK_JOIN = 2
LABEL = 32  # what "- [#12345 2026-11-18 assistant] " costs at most, with any margin


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """Everything a prompt may be made from."""

    system_prompt: str | None = None
    system: Sequence[Message] = ()
    state: Sequence[StateLine] = ()
    history: Sequence[StoredMessage] = ()
    new: Sequence[Message] = ()
    recalled: Sequence[Recalled] = ()
    params: Json | None = None


def assemble(material: Material, *, counter: tokens.Counter, budget: int, recall_tokens: int) -> Prompt:
    """Fit the material into the budget. Raises `Invalid` if what the client itself sent does not fit: nothing of that is ever cut."""
    groups = exchanges(material.history)
    kept = [groups.pop()] if groups and continues(material.new) else []
    system = [m.body for m in material.system]
    if material.system_prompt:
        system.insert(0, {"role": "system", "content": material.system_prompt})
    cost = {
        "system": sum(tokens.message_tokens(counter, m) for m in system),
        "tools": tokens.tools_tokens(counter, material.params or {}),
        "new": sum(tokens.message_tokens(counter, m.body) for m in material.new),
        "history": sum(size(counter, m) for group in kept for m in group),
    }
    room = budget - REPLY_PRIMING - sum(cost.values())
    if room < 0:
        raise too_long(budget - room, budget)
    notes, cost["state"], notes_dropped = fit_state(material.state, counter=counter, room=room)
    room -= cost["state"]
    shown, cost["recall"] = fit_recall(material.recalled, counter=counter, room=min(recall_tokens, room))
    room -= cost["recall"]
    while groups and (price := sum(size(counter, m) for m in groups[-1])) <= room:
        kept.insert(0, groups.pop())
        cost["history"] += price
        room -= price
    history = [m for group in kept for m in group]
    messages = merged(system, notes) + [m.message.body for m in history] + [m.body for m in material.new]
    if shown:
        attach(messages, blocks.recall([blocks.recalled_line(r) for r in shown]))
    return Prompt(
        messages=messages,
        tokens=budget - room,
        budget=budget,
        blocks=accounts(cost, system=system, notes=notes, history=history, new=material.new, shown=shown),
        recalled=tuple(shown),
        left_out=left_out(groups, counter, notes_dropped, len(material.recalled) - len(shown)),
    )


def too_long(needed: int, budget: int) -> errors.Invalid:
    message = (
        f"this request needs {needed} tokens, the context budget is {budget} (MNEMON_CONTEXT_BUDGET): its own messages, system text and"
        " tools must fit; shorten them or raise the budget"
    )
    return errors.Invalid(message, code="context_length_exceeded", param="messages")


def exchanges(history: Sequence[StoredMessage]) -> list[list[StoredMessage]]:
    """The transcript in pieces that stay together: a user's message with all that answers it, tool calls and results included."""
    groups: list[list[StoredMessage]] = []
    for message in history:
        if not groups or message.role == "user":
            groups.append([])
        groups[-1].append(message)
    return groups


def continues(new: Sequence[Message]) -> bool:
    """Whether the newest messages make no sense without the exchange before them: tool results, or a reply made anew."""
    return not new or new[0].role == "tool"


def size(counter: tokens.Counter, message: StoredMessage) -> int:
    """What a stored message costs; counted anew if that was done by another counter, as when the model was changed."""
    if message.tokens is not None and message.counted_by == counter.name:
        return message.tokens
    return tokens.message_tokens(counter, message.message.body)


def fit_state(state: Sequence[StateLine], *, counter: tokens.Counter, room: int) -> tuple[list[StateLine], int, int]:
    """The notes that fit, their price, and how many were dropped; the least telling go first."""
    notes = list(state)
    while notes:
        price = tokens.MESSAGE + counter.count(blocks.state(tuple(notes)))
        if price <= room:
            return notes, price, len(state) - len(notes)
        weakest = sorted(notes, key=lambda n: n.score)[: 1 + len(notes) // 4]
        notes = [n for n in notes if n not in weakest]
    return [], 0, len(state)


def fit_recall(found: Sequence[Recalled], *, counter: tokens.Counter, room: int) -> tuple[list[Recalled], int]:
    """The best passages that fit, in the order in which they were said."""
    spent = counter.count(blocks.recall([])) + BLOCK_JOIN
    shown: list[Recalled] = []
    for passage in found:
        price = recalled_price(passage, counter)
        if spent + price <= room:
            shown.append(passage)
            spent += price
    if not shown:
        return [], 0
    return sorted(shown, key=lambda r: (r.at, r.position)), spent


def recalled_price(passage: Recalled, counter: tokens.Counter) -> int:
    """The count of a passage's line; where the text alone was counted before and is shown as it is, only its label is counted."""
    known = passage.tokens is not None and passage.counted_by == counter.name
    if known and passage.text.isprintable() and "<" not in passage.text:
        return int(passage.tokens or 0) + LABEL
    return counter.count(blocks.recalled_line(passage)) + LINE_JOIN


def merged(system: list[Json], notes: list[StateLine]) -> list[Json]:
    """System text, then the compressed state; neighbours are one message, since many chat templates allow no second one."""
    result: list[Json] = []
    state = [{"role": "system", "content": blocks.state(tuple(notes))}] if notes else []
    for message in [*system, *state]:
        last = result[-1] if result else None
        plain = isinstance(message.get("content"), str) and set(message) == {"role", "content"}
        if (
            last
            and plain
            and last["role"] == message["role"] == "system"
            and isinstance(last["content"], str)
            and set(last) == {"role", "content"}
        ):
            result[-1] = {"role": "system", "content": last["content"] + "\n\n" + message["content"]}
        else:
            result.append(message)
    return result


def attach(messages: list[Json], block: str) -> None:
    """Put recalled passages in front of the newest user message's own words."""
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message["role"] == "user":
            content = message["content"]
            if isinstance(content, str):
                messages[index] = {**message, "content": f"{block}\n\n{content}"}
            else:
                messages[index] = {**message, "content": [{"type": "text", "text": f"{block}\n\n"}, *content]}
            return


def accounts(
    cost: dict[str, int],
    *,
    system: list[Json],
    notes: list[StateLine],
    history: list[StoredMessage],
    new: Sequence[Message],
    shown: list[Recalled],
) -> tuple[Block, ...]:
    positions: dict[str, Any] = {"from_position": history[0].position, "to_position": history[-1].position} if history else {}
    return (
        Block(name="system", tokens=cost["system"], messages=len(system)),
        Block(name="tools", tokens=cost["tools"]),
        Block(name="state", tokens=cost["state"], detail={"lines": len(notes)}),
        Block(name="history", tokens=cost["history"], messages=len(history), detail=positions),
        Block(name="recall", tokens=cost["recall"], detail={"passages": len(shown)}),
        Block(name="new", tokens=cost["new"], messages=len(new)),
    )


def left_out(groups: list[list[StoredMessage]], counter: tokens.Counter, notes: int, passages: int) -> tuple[Json, ...]:
    found: list[Json] = []
    if groups:
        messages = [m for group in groups for m in group]
        found.append(
            {
                "block": "history",
                "messages": len(messages),
                "tokens": sum(size(counter, m) for m in messages),
                "from_position": messages[0].position,
                "to_position": messages[-1].position,
                "reason": "the budget is full",
            }
        )
    if notes:
        found.append({"block": "state", "lines": notes, "reason": "the budget is full"})
    if passages:
        found.append({"block": "recall", "passages": passages, "reason": "the allowance is full"})
    return tuple(found)


def roughly(material: Material) -> int:
    """An upper bound of the tokens of everything, without a tokenizer: no token is shorter than a byte."""
    bodies = [m.body for m in (*material.system, *material.new)] + [m.message.body for m in material.history]
    texts = [material.system_prompt or "", *map(tokens.compact, bodies), tokens.compact(material.params or {})]
    texts += [n.text for n in material.state] + [r.text for r in material.recalled]
    return sum(len(t.encode()) + 16 for t in texts)
