"""Opaque random ids. Nothing may be read from one but its prefix."""

from __future__ import annotations

import base64
import os
import secrets


def chance(size: int) -> str:
    """So many random bytes in hexadecimal: what `secrets.token_hex` gives, without its detours, some of them at every turn."""
    return os.urandom(size).hex()


def completion() -> str:
    return "chatcmpl-" + chance(14)


def call() -> str:
    return "call_" + chance(12)


def session() -> str:
    return "sess_" + chance(12)


def receipt() -> str:
    return "rcpt_" + chance(12)


def turn() -> str:
    return "turn_" + chance(12)


def run() -> str:
    return "run_" + chance(16)


def response() -> str:
    return "resp_" + secrets.token_hex(24)


def conversation() -> str:
    return "conv_" + secrets.token_hex(24)


def message() -> str:
    return "msg_" + chance(12)


def memory() -> str:
    return "mem_" + chance(12)


def deletion() -> str:
    return "del_" + chance(12)


def request() -> str:
    return "req_" + chance(8)


def owner() -> int:
    """Names one process among those that share a database: a positive 63-bit number."""
    return secrets.randbits(62) + 1


def job() -> str:
    return chance(6)


def occurrence() -> str:
    return "jrun_" + chance(12)


def webhook_secret() -> str:
    return "whsec_" + base64.b64encode(secrets.token_bytes(24)).decode()


def api_key() -> str:
    return "mn-" + secrets.token_urlsafe(32)
