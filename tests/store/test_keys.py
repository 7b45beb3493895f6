"""API keys: only a hash is stored, a name is used once, a revocation stays."""

from __future__ import annotations

from typing import Any

import pytest

from mnemon.core import errors
from mnemon.store import keys
from mnemon.store.base import Driver
from mnemon.store.keys import ApiKey


def key(name: str, secret: str, **more: Any) -> ApiKey:
    """A key of a tenant of its name."""
    return ApiKey(name=name, tenant=more.pop("tenant", name), hash=keys.hashed(secret), **more)


async def test_keys_are_read_as_they_were_made(driver: Driver) -> None:
    """Every field of a key comes back, oldest first, and the secret is in none of them."""
    one = key("first", "secret-one", requests_per_minute=60, concurrency=4, created_at=5.5)
    two = key("zweiter ☕", "secret-two", tenant="first", created_at=1.0)
    await driver.write(lambda tx: keys.add(tx, one))
    await driver.write(lambda tx: keys.add(tx, two))
    found = await driver.read(keys.everyone)
    assert found == [one, two]
    assert "secret" not in repr(found)


async def test_a_name_is_used_once(driver: Driver) -> None:
    """A taken name is refused and changes nothing, a revoked key's name too."""
    await driver.write(lambda tx: keys.add(tx, key("name", "one")))
    with pytest.raises(errors.Conflict, match="'name' already") as caught:
        await driver.write(lambda tx: keys.add(tx, key("name", "two")))
    assert caught.value.code == "key_exists"
    await driver.write(lambda tx: keys.revoke(tx, "name", at=2.0))
    with pytest.raises(errors.Conflict):
        await driver.write(lambda tx: keys.add(tx, key("name", "three")))
    assert [k.hash for k in await driver.read(keys.everyone)] == [keys.hashed("one")]


async def test_a_revocation_is_kept(driver: Driver) -> None:
    """A revoked key stays listed with the time of its end; what is not a living key cannot be revoked."""
    await driver.write(lambda tx: keys.add(tx, key("gone", "one")))
    await driver.write(lambda tx: keys.add(tx, key("stays", "two")))
    await driver.write(lambda tx: keys.revoke(tx, "gone", at=2.5))
    assert [(k.name, k.revoked_at) for k in await driver.read(keys.everyone)] == [("gone", 2.5), ("stays", None)]
    for name in ("gone", "nobody"):
        with pytest.raises(errors.NotFound, match=f"no living key named '{name}'") as caught:
            await driver.write(lambda tx, name=name: keys.revoke(tx, name, at=3.0))  # type: ignore[misc]
        assert caught.value.code == "key_not_found"
    assert [k.revoked_at for k in await driver.read(keys.everyone)] == [2.5, None]


def test_hashes_tell_secrets_apart() -> None:
    """Equal secrets have equal hashes, others do not, and bytes that are no text can be hashed too."""
    secrets = ["a", "A", "a ", "", "ä", "\udcff"]
    assert len({keys.hashed(s) for s in secrets}) == len(secrets)
    assert keys.hashed("a") == keys.hashed("a")
    assert len(keys.hashed("a")) == 32
