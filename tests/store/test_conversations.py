"""Conversations: what a client says about them, and their messages from any place on."""

from __future__ import annotations

import pytest

from mnemon.core import errors
from mnemon.core.records import Message, StoredMessage, chained
from mnemon.store.base import Tx
from mnemon.store.conversations import Conversations
from mnemon.store.messages import FAR, Messages
from mnemon.store.sessions import NewSession, Sessions
from tests.store import steps
from tests.store.steps import Store


async def begun(store: Store, messages: int = 0) -> tuple[str, int]:
    """(name, lineage) of a conversation with so many messages."""
    name = steps.unique("conv")

    def work(tx: Tx) -> int:
        lineage = Sessions(tx, store.tenant).begin(NewSession(id=name, source="test"), at=7.0)
        rows, chain = [], b""
        for position in range(1, messages + 1):
            message = Message({"role": "user", "content": f"No {position}."})
            chain = chained(chain, message.digest())
            rows.append((StoredMessage(message=message, position=position, at=7.0, session_id=name), message.digest(), chain))
        Messages(tx, store.tenant, lineage.id).add(rows)
        return lineage.id

    return name, await store.driver.write(work)


async def test_metadata_is_kept_and_replaced(store: Store) -> None:
    """A conversation has none at first; what is said takes the place of the old; a system prompt stays until another is given."""
    name, lineage = await begun(store)
    found = await store.driver.read(lambda tx: Conversations(tx, store.tenant).get(name))
    assert (found.lineage, found.root, found.metadata, found.started_at) == (lineage, name, {}, 7.0)
    await store.driver.write(lambda tx: Conversations(tx, store.tenant).describe(lineage, {"a": "b"}, system_prompt="Be brief."))
    await store.driver.write(lambda tx: Conversations(tx, store.tenant).describe(lineage, {"c": "d"}))
    assert (await store.driver.read(lambda tx: Conversations(tx, store.tenant).get(name))).metadata == {"c": "d"}
    known = await store.driver.read(lambda tx: Sessions(tx, store.tenant).lineage_of(name))
    assert known is not None
    assert known.system_prompt == "Be brief."


async def test_another_tenants_conversation_is_unknown(store: Store) -> None:
    """It can neither be read nor described."""
    name, lineage = await begun(store)
    other = store.tenant + "-other"
    with pytest.raises(errors.NotFound) as refused:
        await store.driver.read(lambda tx: Conversations(tx, other).get(name))
    assert refused.value.code == "conversation_not_found"
    await store.driver.write(lambda tx: Conversations(tx, other).describe(lineage, {"a": "b"}))
    assert (await store.driver.read(lambda tx: Conversations(tx, store.tenant).get(name))).metadata == {}


async def test_messages_are_read_from_any_place_on(store: Store) -> None:
    """Forwards and backwards, the place itself included, at most so many."""
    _, lineage = await begun(store, messages=5)

    async def positions(start: int, limit: int, *, backwards: bool) -> list[int]:
        found = await store.driver.read(lambda tx: Messages(tx, store.tenant, lineage).following(start, limit=limit, backwards=backwards))
        return [m.position for m in found]

    assert await positions(0, 2, backwards=False) == [1, 2]
    assert await positions(3, 9, backwards=False) == [3, 4, 5]
    assert await positions(FAR, 2, backwards=True) == [5, 4]
    assert await positions(2, 9, backwards=True) == [2, 1]
