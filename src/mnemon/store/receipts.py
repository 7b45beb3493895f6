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
        """The receipt, with recalled and learned texts as their messages have them now; null where they were deleted. Raises `NotFound`."""
        row = self.tx.one("receipts_get", tenant=self.tenant, id=receipt_id)
        if row is None:
            raise missing(receipt_id)
        found: dict[str, Any] = msgspec.json.decode(row["body"])
        for recalled in found["prompt"]["recalled"]:
            recalled["text"] = self._quote(recalled["evidence"])
        for name in ("added", "merged", "refused"):
            for change in found.get("memory", {}).get(name, ()):
                change["text"] = self._quote(change["evidence"])
        return found

    def _quote(self, evidence: dict[str, Any]) -> str | None:
        row = self.tx.one("messages_body", tenant=self.tenant, session_id=evidence["session_id"], position=evidence["position"])
        if row is None:
            return None
        text = text_of(msgspec.json.decode(row["body"]).get("content"))
        found = text[evidence["start"] : evidence["start"] + evidence["length"]]
        return found if found.strip() else None


def missing(receipt_id: str) -> errors.NotFound:
    return errors.NotFound(f"there is no receipt {receipt_id!r}", code="receipt_not_found", param="receipt_id")
