"""API keys. Only a hash is stored; each key belongs to one tenant. Whoever changes them touches their topic."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from mnemon.core import errors
from mnemon.store.base import Tx

TOPIC = "keys"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """A credential, without the secret itself."""

    name: str
    tenant: str
    hash: bytes
    requests_per_minute: int | None = None
    concurrency: int | None = None
    created_at: float = 0.0
    revoked_at: float | None = None


def hashed(secret: str) -> bytes:
    """Keys are long and random, so a fast hash is enough; it makes a stolen database useless as a list of keys."""
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()


def everyone(tx: Tx) -> list[ApiKey]:
    """Every key ever made, revoked ones included, oldest first."""
    return [ApiKey(**{name: row[name] for name in ApiKey.__dataclass_fields__}) for row in tx.all("keys_all")]


def add(tx: Tx, key: ApiKey) -> None:
    """Store a new key. Raises `Conflict` if the name is taken, by a revoked key too: a name never changes its meaning."""
    added = tx.run(
        "keys_add",
        tenant=key.tenant,
        name=key.name,
        hash=key.hash,
        requests_per_minute=key.requests_per_minute,
        concurrency=key.concurrency,
        at=key.created_at,
    )
    if not added:
        message = f"there is a key named {key.name!r} already"
        raise errors.Conflict(message, code="key_exists")
    tx.touch(TOPIC)


def revoke(tx: Tx, name: str, *, at: float) -> None:
    """End a key. Raises `NotFound` if no living key has that name."""
    if not tx.run("keys_revoke", name=name, at=at):
        message = f"there is no living key named {name!r}"
        raise errors.NotFound(message, code="key_not_found")
    tx.touch(TOPIC)
