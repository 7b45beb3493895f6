"""Receipts: what a reply was made from can be read by its tenant, and by nobody else."""

from __future__ import annotations

import pytest

from mnemon.core import errors
from mnemon.store.receipts import Receipts
from tests.store import steps
from tests.store.steps import Store

BODY = {
    "id": "r",
    "prompt": {"blocks": [{"name": "system", "tokens": 3}], "recalled": [], "left_out": []},
    "text": "é \x00 你好",
    "at": 1.5,
    "none": None,
}

NO_RECALL: dict[str, object] = {"prompt": {"recalled": [], "left_out": []}}


async def test_a_receipt_is_read_as_it_was_written(store: Store) -> None:
    """Everything in a receipt comes back."""
    name = steps.unique("rcpt")

    def work(talk: steps.Talk) -> None:
        Receipts(talk.tx, talk.tenant).add(name, lineage=talk.begin("s").id, body=BODY, at=1.0)

    await store.write(work)
    assert await store.read(lambda talk: Receipts(talk.tx, talk.tenant).get(name)) == BODY


async def test_a_receipt_belongs_to_its_tenant(store: Store) -> None:
    """Another tenant's receipt is as unknown as one that never was, and its equal id is another receipt."""
    name, other = steps.unique("rcpt"), store.other()

    def add(about: str) -> object:
        return lambda talk: Receipts(talk.tx, talk.tenant).add(name, lineage=talk.begin("s").id, body={"about": about, **NO_RECALL}, at=1.0)

    await store.write(add("ours"))  # type: ignore[arg-type]
    with pytest.raises(errors.NotFound) as caught:
        await other.read(lambda talk: Receipts(talk.tx, talk.tenant).get(name))
    assert (caught.value.code, caught.value.param) == ("receipt_not_found", "receipt_id")
    await other.write(add("theirs"))  # type: ignore[arg-type]
    assert await store.read(lambda talk: Receipts(talk.tx, talk.tenant).get(name)) == {"about": "ours", **NO_RECALL}
    assert await other.read(lambda talk: Receipts(talk.tx, talk.tenant).get(name)) == {"about": "theirs", **NO_RECALL}


async def test_a_receipt_quotes_its_messages(store: Store) -> None:
    """Recalled texts are read from their messages; when a message is gone, its quotation is too, and another tenant's is never shown."""
    name, other = steps.unique("rcpt"), store.other()

    def work(talk: steps.Talk) -> None:
        lineage = talk.begin("s").id
        talk.begin("source")
        talk.say("source", "first words", "the zebra sleeps")
        evidence = [{"session_id": "source", "position": p, "start": s, "length": 5} for p, s in ((2, 4), (9, 0))]
        body = {"prompt": {"recalled": [{"score": 1.0, "evidence": e} for e in evidence], "left_out": []}}
        Receipts(talk.tx, talk.tenant).add(name, lineage=lineage, body=body, at=1.0)

    async def quoted(where: Store) -> list[str | None]:
        receipt = await where.read(lambda talk: Receipts(talk.tx, talk.tenant).get(name))
        return [r["text"] for r in receipt["prompt"]["recalled"]]

    def copied(talk: steps.Talk) -> None:
        evidence = {"session_id": "source", "position": 2, "start": 4, "length": 5}
        body = {"prompt": {"recalled": [{"score": 1.0, "evidence": evidence}], "left_out": []}}
        Receipts(talk.tx, talk.tenant).add(name, lineage=talk.begin("s").id, body=body, at=1.0)

    await store.write(work)
    await other.write(copied)
    assert await quoted(store) == ["zebra", None]
    assert await quoted(other) == [None]
    await store.write(lambda talk: talk.sessions.delete("source"))
    assert await quoted(store) == [None, None]
