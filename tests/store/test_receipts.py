"""Receipts: what a reply was made from can be read by its tenant, and by nobody else."""

from __future__ import annotations

import pytest

from mnemon.core import errors
from mnemon.store.receipts import Receipts
from tests.store import steps
from tests.store.steps import Store

BODY = {"id": "r", "prompt": {"blocks": [{"name": "system", "tokens": 3}], "left_out": []}, "text": "é \x00 你好", "at": 1.5, "none": None}


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
        return lambda talk: Receipts(talk.tx, talk.tenant).add(name, lineage=talk.begin("s").id, body={"about": about}, at=1.0)

    await store.write(add("ours"))  # type: ignore[arg-type]
    with pytest.raises(errors.NotFound) as caught:
        await other.read(lambda talk: Receipts(talk.tx, talk.tenant).get(name))
    assert (caught.value.code, caught.value.param) == ("receipt_not_found", "receipt_id")
    await other.write(add("theirs"))  # type: ignore[arg-type]
    assert await store.read(lambda talk: Receipts(talk.tx, talk.tenant).get(name)) == {"about": "ours"}
    assert await other.read(lambda talk: Receipts(talk.tx, talk.tenant).get(name)) == {"about": "theirs"}
