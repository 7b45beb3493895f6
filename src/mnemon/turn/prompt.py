"""The second step: recall what may help, and assemble the prompt. Reads only."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from mnemon.context import assemble
from mnemon.context.exchanges import completed
from mnemon.core.records import Prompt, Recalled
from mnemon.memory.base import Query
from mnemon.turn.parts import Parts
from mnemon.turn.resolve import Begun

COUNTED_IN_A_THREAD = 50_000  # characters that take too long to count beside other requests


async def prompt_for(parts: Parts, begun: Begun) -> Prompt:
    """What is sent for this turn. Raises `Invalid` if the client's own words do not fit the budget."""
    counter, budget = parts.counter, parts.limits.budget
    allowance = parts.limits.recall(counter)
    replaced = begun.request.history is not None
    material = assemble.Material(
        system_prompt=begun.lineage.system_prompt if begun.lineage else None,
        system=begun.request.system(),
        state=() if replaced else begun.state,
        history=() if replaced else completed(begun.history, begun.new),
        new=(*(begun.request.history or ()), *begun.new),
        params=begun.request.params,
    )
    if not counter.loaded and assemble.roughly(material) > (budget - allowance) // 2:
        await asyncio.to_thread(counter.ready)
    drafting = partial(assemble.Draft, material, counter=counter, budget=budget)
    draft = await asyncio.to_thread(drafting) if sum(len(m.text) for m in begun.new) > COUNTED_IN_A_THREAD else drafting()
    found: list[Recalled] = []
    if begun.scopes and begun.request.recalls:
        found = await recall(parts, begun, live=max(begun.compacted_to, draft.outside(allowance)))
    return draft.prompt(found, recall_tokens=allowance)


async def recall(parts: Parts, begun: Begun, *, live: int) -> list[Recalled]:
    """What was said up to position `live` of this conversation, or elsewhere in its scope, and may help now."""
    found: list[Recalled] = []
    asked = newest_user_text(begun)
    for place in begun.scopes if asked else ():
        if place.only_this and not live:
            continue  # the prompt holds all there is
        query = Query(
            tenant=begun.request.tenant,
            scope=place.scope,
            size=place.size,
            memories=place.memories,
            erasures=place.erasures,
            changes=place.changes,
            lineage=begun.lineage.id if begun.lineage else 0,
            live=live,
            text=asked,
            identity=begun.request.identity,
            at=parts.clock(),
        )
        found += await parts.memory.recall(query)
    if not found:
        return found
    return once(found, shown={m.text.strip() for m in begun.history if m.position > live} | {m.text.strip() for m in begun.new})


def once(found: Sequence[Recalled], *, shown: set[str]) -> list[Recalled]:
    """Without what stands in the prompt or was found already, as when a fork copied messages; but all that is spoken of stays."""
    needed = {key for line in found for key in line.needs}
    kept = []
    for line in found:
        if line.marks or line.key in needed or line.text not in shown:
            kept.append(line)
            shown.add(line.text)
    return kept


def newest_user_text(begun: Begun) -> str:
    """What recall is asked for. While tools are at work, that is still the user's question before them."""
    said = [m.text for m in begun.new if m.role == "user"] or [m.text for m in begun.history if m.role == "user"]
    return said[-1] if said else ""
