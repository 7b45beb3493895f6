"""One writer per session: a lease, held for as long as its turn runs and its process lives.

Where servers share a database the lease is a row. It names its owner (a process) and carries a token: a dead owner's lease is taken over at
once, and the token fences the old holder off, should it only have been thought dead. A database file has the kernel's own locks beside it,
which no living process can lose and no dead one keeps, and which cost a hundredth of a row.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import struct
import threading
from collections.abc import Callable, Container
from pathlib import Path

from mnemon.core import errors
from mnemon.store.base import Tx


def lost() -> errors.LeaseLost:
    return errors.LeaseLost("another process took this session over while the turn was running; send the request again")


class RowLeases:
    """Leases as rows. `running` are the tokens of the turns of this process: a lease with another one was forgotten.

    None is granted to a turn that has ended.
    """

    def __init__(self, tx: Tx, tenant: str, *, owner: int, running: Container[str]) -> None:
        self.tx = tx
        self.tenant = tenant
        self.owner = owner
        self.running = running

    def take(self, name: str, token: str) -> bool:
        if token not in self.running:
            return False
        wanted = {"tenant": self.tenant, "name": name, "owner": self.owner, "token": token}
        if self.tx.run("leases_take", **wanted):
            return True
        held = self.tx.one("leases_find", tenant=self.tenant, name=name)
        if held is None:
            return bool(self.tx.run("leases_take", **wanted))
        if held["token"] in self.running if held["owner"] == self.owner else self.tx.alive(held["owner"]):
            return False
        return bool(self.tx.run("leases_steal", **wanted, old=held["token"]))

    def give_up(self, name: str, token: str) -> None:
        self.tx.run("leases_drop", tenant=self.tenant, name=name, token=token)

    def end(self, name: str, token: str) -> Callable[[], None]:
        dropped = self.tx.run("leases_drop", tenant=self.tenant, name=name, token=token)

        def check() -> None:
            if not dropped:
                raise lost()

        return check


class Locks:
    """Locks of this process on single bytes of a file; each name has a byte of its own.

    A lock belongs to the open file, so another driver, in this process or elsewhere, is locked out; a table of our own tells the turns
    of this driver apart. The file stays empty.
    """

    def __init__(self, path: Path) -> None:
        self.file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        self.mutex = threading.Lock()
        self.holders: dict[int, str] = {}
        self.running: set[str] = set()

    def enter(self, token: str) -> None:
        """A turn begins: it may take locks until it leaves."""
        with self.mutex:
            self.running.add(token)

    def close(self) -> None:
        os.close(self.file)

    def take(self, byte: int, token: str) -> bool:
        with self.mutex:
            if byte in self.holders:
                return self.holders[byte] == token
            if token not in self.running:  # it was stopped while this waited to be carried out
                return False
            if not set_lock(self.file, fcntl.F_WRLCK, byte):
                return False
            self.holders[byte] = token
            return True

    def held(self, byte: int, token: str) -> bool:
        return self.holders.get(byte) == token

    def drop(self, byte: int, token: str) -> None:
        with self.mutex:
            if self.holders.get(byte) == token:
                del self.holders[byte]
                set_lock(self.file, fcntl.F_UNLCK, byte)

    def leave(self, token: str) -> None:
        """The turn has ended: what it holds is free."""
        with self.mutex:
            self.running.discard(token)
        for byte in [byte for byte, holder in self.holders.copy().items() if holder == token]:
            self.drop(byte, token)


class LockLeases:
    """Leases as locks. They are released when the turn leaves, which is after its commit: none is lost while its process lives."""

    def __init__(self, locks: Locks, tenant: str) -> None:
        self.locks = locks
        self.tenant = tenant

    def take(self, name: str, token: str) -> bool:
        return self.locks.take(self._byte(name), token)

    def give_up(self, name: str, token: str) -> None:
        self.locks.drop(self._byte(name), token)

    def end(self, name: str, token: str) -> Callable[[], None]:
        byte = self._byte(name)

        def check() -> None:
            if not self.locks.held(byte, token):
                raise lost()

        return check

    def _byte(self, name: str) -> int:
        digest = hashlib.blake2b(f"{self.tenant}\x00{name}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return int.from_bytes(digest, "big") >> 2  # within what a file's size may be


def set_lock(file: int, kind: int, byte: int) -> bool:
    """Set or free the lock on one byte without waiting; False if somebody else has it."""
    try:
        if hasattr(fcntl, "F_OFD_SETLK"):
            fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack("hhqqi", kind, os.SEEK_SET, byte, 1, 0))
        else:  # no locks of open files here: the process's own are as good while it opens the file once
            fcntl.lockf(file, fcntl.LOCK_UN if kind == fcntl.F_UNLCK else fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
    except (BlockingIOError, PermissionError):
        return False
    return True
