"""The second step: recall what may help, and assemble the prompt. Reads only."""

from __future__ import annotations

import asyncio

from mnemon.context import assemble
from mnemon.core.records import Prompt, Recalled
from mnemon.memory.base import Query
from mnemon.turn.parts import Parts
from mnemon.turn.resolve import Begun


async def prompt_for(parts: Parts, begun: Begun) -> Prompt:
    """What is sent for this turn. Raises `Invalid` if the client's own words do not fit the budget."""
    material = assemble.Material(
        system_prompt=begun.lineage.system_prompt if begun.lineage else None,
        system=begun.request.system(),
        state=begun.state,
        history=begun.history,
        new=begun.new,
        recalled=await recall(parts, begun),
        params=begun.request.params,
    )
    limits = parts.limits
    if not parts.counter.loaded and assemble.roughly(material) > limits.budget // 2:
        await asyncio.to_thread(parts.counter.ready)
    return assemble.assemble(material, counter=parts.counter, budget=limits.budget, recall_tokens=limits.recall_tokens)


async def recall(parts: Parts, begun: Begun) -> list[Recalled]:
    found: list[Recalled] = []
    asked = newest_user_text(begun)
    for scope, size in begun.scopes if asked else ():
        query = Query(
            tenant=begun.request.tenant,
            scope=scope,
            size=size,
            lineage=begun.lineage.id if begun.lineage else 0,
            live=begun.compacted_to,
            text=asked,
            identity=begun.request.identity,
        )
        found += await parts.memory.recall(query)
    if not found:
        return found
    # A fork copies messages: what stands in the prompt, or was found already, is not shown a second time.
    shown = {m.text.strip() for m in begun.history} | {m.text.strip() for m in begun.new}
    return list({r.text: r for r in found if r.text not in shown}.values())


def newest_user_text(begun: Begun) -> str:
    """What recall is asked for. While tools are at work, that is still the user's question before them."""
    said = [m.text for m in begun.new if m.role == "user"] or [m.text for m in begun.history if m.role == "user"]
    return said[-1] if said else ""
