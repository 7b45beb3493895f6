"""One writer per session.

A lease is a row that names its owner (a process) and carries a token. It holds for as long as the owner lives: a dead owner's lease
is taken over at once, and the token fences the old holder off, should it only have been thought dead.
"""

from __future__ import annotations

from collections.abc import Container

from mnemon.core import errors
from mnemon.store.base import Tx


class Leases:
    """Leases of one tenant."""

    def __init__(self, tx: Tx, tenant: str) -> None:
        self.tx = tx
        self.tenant = tenant

    def take(self, name: str, *, owner: int, token: str, ours: Container[str]) -> bool:
        """Try to become the one writer; False if a living process is. `ours` are the tokens of turns that run in this process."""
        if self.tx.run("leases_take", tenant=self.tenant, name=name, owner=owner, token=token):
            return True
        held = self.tx.one("leases_find", tenant=self.tenant, name=name)
        if held is None:
            return bool(self.tx.run("leases_take", tenant=self.tenant, name=name, owner=owner, token=token))
        if held["token"] in ours if held["owner"] == owner else self.tx.alive(held["owner"]):
            return False
        return bool(self.tx.run("leases_steal", tenant=self.tenant, name=name, owner=owner, token=token, old=held["token"]))

    def give_up(self, name: str, token: str) -> None:
        """Release, if it is still ours."""
        self.tx.run("leases_drop", tenant=self.tenant, name=name, token=token)

    def end(self, name: str, token: str) -> None:
        """Release as part of a commit. Raises `LeaseLost` if somebody else holds it by now: then nothing may be written."""
        if not self.tx.run("leases_drop", tenant=self.tenant, name=name, token=token):
            message = "another process took this session over while the turn was running; send the request again"
            raise errors.LeaseLost(message)
