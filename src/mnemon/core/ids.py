"""Opaque random ids. Nothing may be read from one but its prefix."""

from __future__ import annotations

import secrets


def completion() -> str:
    return "chatcmpl-" + secrets.token_hex(14)


def call() -> str:
    return "call_" + secrets.token_hex(12)


def session() -> str:
    return "sess_" + secrets.token_hex(12)


def receipt() -> str:
    return "rcpt_" + secrets.token_hex(12)


def turn() -> str:
    return "turn_" + secrets.token_hex(12)


def run() -> str:
    return "run_" + secrets.token_hex(16)


def message() -> str:
    return "msg_" + secrets.token_hex(12)


def memory() -> str:
    return "mem_" + secrets.token_hex(12)


def deletion() -> str:
    return "del_" + secrets.token_hex(12)


def request() -> str:
    return "req_" + secrets.token_hex(8)


def owner() -> int:
    """Names one process among those that share a database: a positive 63-bit number."""
    return secrets.randbits(62) + 1


def api_key() -> str:
    return "mn-" + secrets.token_urlsafe(32)
