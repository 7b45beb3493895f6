"""Receipts: what a reply was made from."""

from __future__ import annotations

from typing import Any

import msgspec

from mnemon.core import errors
from mnemon.core.records import text_of
from mnemon.store.base import Tx


class Receipts:
    """Receipts of one tenant."""

    def __init__(self, tx: Tx, tenant: str) -> None:
        self.tx = tx
        self.tenant = tenant

    def add(self, receipt_id: str, *, lineage: int, body: dict[str, Any], at: float) -> None:
        """Keep a receipt, in the transaction of the turn it explains."""
        text = msgspec.json.encode(body).decode()
        self.tx.run("receipts_add", tenant=self.tenant, id=receipt_id, lineage=lineage, body=text, at=at)

    def get(self, receipt_id: str) -> dict[str, Any]:
        """The receipt, with all texts as their messages or memories have them now; null where they were deleted. Raises `NotFound`."""
        row = self.tx.one("receipts_get", tenant=self.tenant, id=receipt_id)
        if row is None:
            raise missing(receipt_id)
        found: dict[str, Any] = msgspec.json.decode(row["body"])
        changes = found.get("memory", {})
        left_out = [line for part in found["prompt"].get("left_out", ()) for line in part.get("best", ())]
        for recalled in (*found["prompt"]["recalled"], *left_out):
            recalled["text"] = self._quote(recalled["evidence"]) if recalled["evidence"] else self._memory(recalled["memories"][0])
        for change in (c for name in ("added", "merged", "refused") for c in changes.get(name, ())):
            change["text"] = self._quote(change["evidence"])
        for change in (c for name in ("superseded", "retracted") for c in changes.get(name, ())):
            change["text"] = self._memory(change["id"])
        return found

    def _memory(self, memory: str) -> str | None:
        row = self.tx.one("memories_text", tenant=self.tenant, id=memory)
        return str(row["text"]) if row else None

    def _quote(self, evidence: dict[str, Any]) -> str | None:
        if not evidence["session_id"]:  # a receipt of an earlier build: nowhere was said what stands there
            return None
        row = self.tx.one("messages_body", tenant=self.tenant, session_id=evidence["session_id"], position=evidence["position"])
        if row is None:
            return None
        text = text_of(msgspec.json.decode(row["body"]).get("content"))
        found = text[evidence["start"] : evidence["start"] + evidence["length"]]
        return found if found.strip() else None


def missing(receipt_id: str) -> errors.NotFound:
    return errors.NotFound(f"there is no receipt {receipt_id!r}", code="receipt_not_found", param="receipt_id")
