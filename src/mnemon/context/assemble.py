"""From what is known to what is sent: blocks with an allowance each, never more than the budget.

The order is that of stability, so that prompt caches of the model's server hit: system text and compressed state first, unchanged between
two compressions; then the live transcript, which only grows; recalled passages last, inside the newest user message.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mnemon.context import blocks, recollection, tokens
from mnemon.context.exchanges import continues, exchanges, units
from mnemon.core import errors
from mnemon.core.records import Block, Json, Message, Prompt, Recalled, StateLine, StoredMessage

Unit = list[StoredMessage]

REPLY_PRIMING = 3
LEFT_OUT_TOLD = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """Everything a prompt may be made from, but what is recalled."""

    system_prompt: str | None = None
    system: Sequence[Message] = ()
    state: Sequence[StateLine] = ()
    history: Sequence[StoredMessage] = ()
    new: Sequence[Message] = ()
    params: Json | None = None


class Draft:
    """A prompt in the making: what cannot be left out is priced once, when it begins.

    Raises `Invalid` if what the client itself sent does not fit: nothing of that is ever cut.
    """

    def __init__(self, material: Material, *, counter: tokens.Counter, budget: int) -> None:
        self.material = material
        self.counter = counter
        self.budget = budget
        if not counter.exact and (length := sum(len(m.text) for m in material.new) // 4) > budget:
            raise too_long(length, budget)  # no estimate is below a quarter of the characters: there is no need to count
        self.past = Past(material, counter)
        self.system, self.cost = fixed_costs(material, counter)
        self.room = budget - REPLY_PRIMING - sum(self.cost.values()) - self.past.fixed
        if self.room < 0:
            raise too_long(budget - self.room, budget)

    def outside(self, recall_tokens: int) -> int:
        """The last position of the history that may not fit into the prompt, so that recall looks there; 0 if all of it fits."""
        _, price, _ = fit_state(self.material.state, counter=self.counter, room=self.budget)
        _, dropped = self.past.fitted(self.room - recall_tokens - price)
        return dropped[-1].position if dropped else 0

    def prompt(self, recalled: Sequence[Recalled], *, recall_tokens: int) -> Prompt:
        """Fit everything into the budget."""
        material, counter, cost, room = self.material, self.counter, dict(self.cost), self.room
        notes, cost["state"], notes_dropped = fit_state(material.state, counter=counter, room=room)
        room -= cost["state"]
        shown, cost["recall"] = recollection.fit(recalled, counter=counter, room=min(recall_tokens, room))
        room -= cost["recall"]
        history, dropped = self.past.fitted(room)
        cost["history"] = self.past.price - price(counter, dropped)
        room -= cost["history"] - self.past.fixed
        messages = merged(self.system, notes) + [m.message.body for m in history] + [m.body for m in material.new]
        if shown:
            attach(messages, recollection.block(shown))
        return Prompt(
            messages=messages,
            tokens=self.budget - room,
            budget=self.budget,
            blocks=accounts(cost, system=self.system, notes=notes, history=history, new=material.new, shown=shown),
            recalled=tuple(shown),
            left_out=left_out(dropped, counter, notes_dropped, unshown(recalled, shown)),
        )


def fixed_costs(material: Material, counter: tokens.Counter) -> tuple[list[Json], dict[str, int]]:
    """The system messages, and the price of what is not history and cannot be left out, by block."""
    system = [m.body for m in material.system]
    if material.system_prompt:
        system.insert(0, {"role": "system", "content": material.system_prompt})
    cost = {
        "system": sum(tokens.message_tokens(counter, m) for m in system),
        "tools": tokens.tools_tokens(counter, material.params or {}),
        "new": sum(tokens.message_tokens(counter, m.body) for m in material.new),
    }
    return system, cost


class Past:
    """The history, and the order in which it is given up: older exchanges first, then what stands between a question and its newest step.

    `question` and `newest` stay: a tool's result needs its call, and the question that led to it. `fixed` is their price.
    """

    def __init__(self, material: Material, counter: tokens.Counter) -> None:
        self.counter = counter
        self.history = list(material.history)
        self.price = price(counter, self.history)
        self.question: Unit = []
        self.middle: list[Unit] = []
        self.newest: Unit = []
        if self.history and continues(material.new):
            last = units(exchanges(self.history)[-1])
            self.question = last.pop(0) if last[0][0].role == "user" else []
            self.newest = last.pop() if last else []
            self.middle = last
        self.fixed = price(counter, self.question) + price(counter, self.newest)

    def fitted(self, room: int) -> tuple[list[StoredMessage], list[StoredMessage]]:
        """(what stays, what goes), each in order, for so much room beside what is fixed.

        Of the exchange at the edge the question and the newest steps stay, if any fit: a long run of tool calls does not vanish at once.
        """
        if self.price - self.fixed <= room:
            return self.history, []
        counter = self.counter
        steps, room = newest_that_fit(self.middle, counter=counter, room=room)
        kept: list[Unit] = []
        gone = self.middle[: len(self.middle) - len(steps)]
        older = self._older()
        for index in range(len(older) - 1, -1, -1):
            exchange = older[index]
            if gone or price(counter, flat(exchange)) > room:
                edge = [] if gone else at_the_edge(exchange, counter=counter, room=room)
                gone = [*flat_exchanges(older[:index]), *(u for u in exchange if u not in edge), *gone]
                kept = [*edge, *kept]
                break
            room -= price(counter, flat(exchange))
            kept = [*exchange, *kept]
        return [*flat(kept), *self.question, *flat(steps), *self.newest], flat(gone)

    def _older(self) -> list[list[Unit]]:
        """The exchanges before the one that is still going on."""
        going_on = len(self.question) + len(self.newest) + sum(map(len, self.middle))
        return [units(exchange) for exchange in exchanges(self.history[: len(self.history) - going_on])]


def newest_that_fit(steps: list[Unit], *, counter: tokens.Counter, room: int) -> tuple[list[Unit], int]:
    """The newest of these units that fit, and the room that is left."""
    first = len(steps)
    while first and (cost := price(counter, steps[first - 1])) <= room:
        room -= cost
        first -= 1
    return steps[first:], room


def at_the_edge(exchange: list[Unit], *, counter: tokens.Counter, room: int) -> list[Unit]:
    """What stays of an exchange that does not fit as a whole: its question and the newest steps, or nothing."""
    question = exchange[:1] if exchange[0][0].role == "user" else []
    steps, _ = newest_that_fit(exchange[len(question) :], counter=counter, room=room - price(counter, flat(question)))
    return [*question, *steps] if steps else []


def flat(pieces: Sequence[Unit]) -> list[StoredMessage]:
    return [message for unit in pieces for message in unit]


def flat_exchanges(groups: Sequence[list[Unit]]) -> list[Unit]:
    return [unit for exchange in groups for unit in exchange]


def price(counter: tokens.Counter, messages: Sequence[StoredMessage]) -> int:
    name = counter.name  # a turn asks for the price of its whole history more than once
    return sum([m.tokens if m.tokens is not None and m.counted_by == name else size(counter, m) for m in messages])


def too_long(needed: int, budget: int) -> errors.Invalid:
    message = (
        f"this request needs {needed} tokens, the context budget is {budget} (MNEMON_CONTEXT_BUDGET): its own messages, system text and"
        " tools must fit; shorten them or raise the budget"
    )
    return errors.Invalid(message, code="context_length_exceeded", param="messages")


def size(counter: tokens.Counter, message: StoredMessage) -> int:
    """What a stored message costs; counted anew if that was done by another counter, as when the model was changed."""
    if message.tokens is not None and message.counted_by == counter.name:
        return message.tokens
    return tokens.message_tokens(counter, message.message.body)


def fit_state(state: Sequence[StateLine], *, counter: tokens.Counter, room: int) -> tuple[list[StateLine], int, int]:
    """The notes that fit, their price, and how many were dropped; the least telling go first."""
    notes = list(state)
    while notes:
        cost = tokens.MESSAGE + counter.count(blocks.state(tuple(notes)))
        if cost <= room:
            return notes, cost, len(state) - len(notes)
        weakest = sorted(notes, key=lambda n: n.score)[: 1 + len(notes) // 4]
        notes = [n for n in notes if n not in weakest]
    return [], 0, len(state)


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


def left_out(messages: list[StoredMessage], counter: tokens.Counter, notes: int, passages: Sequence[Recalled]) -> tuple[Json, ...]:
    found: list[Json] = []
    if messages:
        found.append(
            {
                "block": "history",
                "messages": len(messages),
                "tokens": price(counter, messages),
                "from_position": messages[0].position,
                "to_position": messages[-1].position,
                "reason": "the budget is full",
            }
        )
    if notes:
        found.append({"block": "state", "lines": notes, "reason": "the budget is full"})
    if passages:
        best = [line.account() for line in passages[:LEFT_OUT_TOLD]]
        found.append({"block": "recall", "passages": len(passages), "reason": "the allowance is full", "best": best})
    return tuple(found)


def unshown(recalled: Sequence[Recalled], shown: Sequence[Recalled]) -> list[Recalled]:
    """What was found and had no room, or needed what had none; best first."""
    if len(recalled) == len(shown):
        return []
    there = {line.key for line in shown}
    return [line for line in recalled if line.key not in there]


def roughly(material: Material) -> int:
    """An upper bound of the tokens of everything, without a tokenizer: no token is shorter than a byte."""
    bodies = [m.body for m in (*material.system, *material.new)] + [m.message.body for m in material.history]
    texts = [material.system_prompt or "", *map(tokens.compact, bodies), tokens.compact(material.params or {})]
    texts += [n.text + n.mark for n in material.state]
    return sum(len(t.encode()) + 16 for t in texts)
