"""What is wanted of a job: read from what a client or the command line gives, field by field. Pure; what is wrong names its field."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

import msgspec

from mnemon.core import errors
from mnemon.core.records import Identity, Json
from mnemon.jobs import schedule as schedules
from mnemon.jobs.schedule import Schedule
from mnemon.model import address
from mnemon.turn.commands import COMMANDS

T = TypeVar("T")

Memory = Literal["read_write", "read", "none"]
Missed = Literal["once", "skip"]

LONGEST_NAME = 200
LONGEST_PROMPT = 100_000
LONGEST_MODEL = 256
LONGEST_URL = 2000
MOST_REPEATS = 1_000_000
LONGEST_TIMEOUT = 86_400
TIMEOUT = 600.0
WEBHOOK = "webhook:"
FIXED = ("session_id", "session_key")
FIELDS = (
    "name", "schedule", "prompt", "deliver", "skills", "skill", "repeat", "enabled", "timezone", "memory", "model", "instructions",
    "missed", "timeout", "max_tokens",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a job is to do. `who` are the identity headers it was made with, `origin` is where it was made."""

    name: str
    prompt: str
    schedule: Schedule
    deliver: str = "local"
    memory: Memory = "read_write"
    missed: Missed = "once"
    model: str = ""
    instructions: str = ""
    timeout: float = TIMEOUT
    max_tokens: int | None = None
    session_id: str | None = None
    session_key: str | None = None
    who: dict[str, str | None] = field(default_factory=dict)
    origin: dict[str, str] = field(default_factory=dict)
    secret: str = ""

    @property
    def webhook(self) -> str:
        """Where runs are delivered to, if anywhere."""
        return self.deliver.removeprefix(WEBHOOK) if self.deliver.startswith(WEBHOOK) else ""

    def identity(self, job: str) -> Identity:
        """The conversation it runs in: the one it was given, or one of its own."""
        return Identity(session_id=self.session_id or own_session(job), session_key=self.session_key, **self.who)

    def stored(self) -> str:
        return msgspec.json.encode(self).decode()


def own_session(job: str) -> str:
    """The session of a job that was given none."""
    return f"job:{job}"


DECODER = msgspec.json.Decoder(Wish)


def restored(body: str) -> Wish:
    return DECODER.decode(body)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What a wish is measured by: the server's time zone, whether private addresses may be delivered to, which models there are."""

    zone: str
    private: bool
    check_model: Callable[[str], None]


def wished(given: Json, identity: Identity, *, rules: Rules, origin: dict[str, str], now: float) -> tuple[Wish, int | None, bool]:
    """A new job: what is wanted, how often it is to run (None: for ever), and whether it is to fire yet. Raises `Invalid`."""
    only(given, *FIELDS, *FIXED)
    for name in ("name", "schedule", "prompt"):
        if name not in given:
            raise wrong(name, "is missing")
    zone = timezone(given.get("timezone"), rules.zone)
    rule = schedules.parsed(given["schedule"], zone=zone, now=now)
    blank = Wish(name="", prompt="", schedule=rule, session_id=identity.session_id, session_key=identity.session_key)
    wish = read(replace(blank, who=identity.where(), origin=origin), given, rules)
    return wish, times(given, rule), enabled(given, otherwise=True)


def changed(old: Wish, given: Json, *, rules: Rules, now: float) -> Wish:
    """The same job with other wishes. A new time zone moves its plan, a new schedule begins it anew. Raises `Invalid`."""
    for name in FIXED:
        if name in given:
            raise wrong(name, "cannot be changed; make another job", code="unsupported_parameter")
    only(given, *FIELDS)
    if not given:
        raise errors.Invalid(f"the body names nothing to change; it may hold {', '.join(FIELDS)}", param=None)
    zone = timezone(given.get("timezone"), old.schedule.zone)
    rule = replace(old.schedule, zone=zone)
    if "schedule" in given:
        rule = schedules.parsed(given["schedule"], zone=zone, now=now)
    wish = read(replace(old, schedule=rule), given, rules)
    times(given, rule)
    enabled(given, otherwise=True)
    return wish


def read(base: Wish, given: Json, rules: Rules) -> Wish:
    """The fields that are the same for a new job and for a change; null takes a field back to what it is without it."""
    found: dict[str, Any] = {}
    for name, check in READERS.items():
        if name in given:
            default = Wish.__dataclass_fields__[name].default
            required = name in ("name", "prompt")
            found[name] = check(given[name], name) if required or given[name] is not None else default
    for name in ("skills", "skill"):
        if given.get(name) not in (None, [], ""):
            raise wrong(name, "are not supported; leave them out, or empty", code="unsupported_parameter")
    wish = replace(base, **found)
    if wish.deliver != "local":
        reachable(wish.webhook, private=rules.private)
    if wish.model:
        rules.check_model(wish.model)
    return wish


def timezone(value: Any, default: str) -> str:
    if value is None:
        return default
    if not schedules.known_zone(value):
        raise wrong("timezone", "must be an IANA time zone such as Europe/Berlin")
    return str(value)


def times(given: Json, rule: Schedule) -> int | None:
    """How often a job is to run: what `repeat` says, or once for a schedule that fires once."""
    value = given.get("repeat")
    if value is not None:
        value = whole(1, MOST_REPEATS)(value, "repeat")
    if rule.kind == "once" and value not in (None, 1):
        raise wrong("repeat", "must be 1, or left out, for a schedule that fires once")
    return 1 if rule.kind == "once" else value


def enabled(given: Json, *, otherwise: bool) -> bool:
    value = given.get("enabled")
    if value is not None and not isinstance(value, bool):
        raise wrong("enabled", "must be true or false")
    return otherwise if value is None else value


# -- single fields ---------------------------------------------------------------------------------------------------------------


def text(most: int, *, lines: bool = True) -> Callable[[Any, str], str]:
    def check(value: Any, name: str) -> str:
        fits = isinstance(value, str) and value.strip() and len(value) <= most and "\x00" not in value
        if not fits or not (lines or value.strip().replace(" ", "x").isprintable()):
            raise wrong(name, f"must be a text of 1 to {most} {'' if lines else 'printable '}characters")
        return str(value) if lines else value.strip()

    return check


def prompt(value: Any, name: str) -> str:
    found = text(LONGEST_PROMPT)(value, name)
    if found.strip() in COMMANDS:
        raise wrong(name, "is a command that begins a new conversation; a job keeps its own")
    return found


def whole(low: int, high: int) -> Callable[[Any, str], int]:
    def check(value: Any, name: str) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise wrong(name, f"must be a whole number from {low} to {high}")
        return value

    return check


def seconds(value: Any, name: str) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 1 <= value <= LONGEST_TIMEOUT:
        raise wrong(name, f"must be a number of seconds from 1 to {LONGEST_TIMEOUT}")
    return float(value)


def one_of(*allowed: str) -> Callable[[Any, str], str]:
    def check(value: Any, name: str) -> str:
        if value not in allowed:
            raise wrong(name, f"must be one of {', '.join(allowed)}")
        return str(value)

    return check


def destination(value: Any, name: str) -> str:
    if value == "local":
        return "local"
    if not isinstance(value, str) or not value.startswith(WEBHOOK) or len(value) > LONGEST_URL:
        raise wrong(name, "must be local, or webhook: and an http(s) address", code="invalid_deliver")
    return value


def reachable(url: str, *, private: bool) -> address.Address:
    """The parts of an address that may be delivered to, as far as the address itself says. Raises `Invalid`."""
    try:
        if not url.isprintable() or " " in url:
            raise wrong("url", "holds a blank")
        found = address.parsed(url)
    except errors.Invalid as error:
        raise wrong("deliver", "must name an http:// or https:// address without a user name", code="invalid_deliver") from error
    named = found.host.rstrip(".").lower()
    if not private and (named == "localhost" or named.endswith(".localhost") or forbidden(named)):
        raise wrong("deliver", "names a private address, which MNEMON_WEBHOOK_PRIVATE does not allow", code="private_address")
    return found


def forbidden(host: str) -> bool:
    """Whether this is the number of an address that is not one of the public network."""
    found = number(host.partition("%")[0])
    if found is None:
        return False
    if isinstance(found, ipaddress.IPv6Address):
        inner = found.ipv4_mapped or found.sixtofour or (found.teredo[1] if found.teredo else None) or translated(found)
        if inner is not None:
            found = inner
    return not found.is_global or found.is_multicast or found.is_reserved


def number(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address that a host is the number of, in any of the ways in which it can be written: 127.1 is one, and so is 0x7f000001."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        pass
    try:
        return ipaddress.IPv4Address(socket.inet_aton(host))
    except OSError:
        return None


def translated(found: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The address behind one of the prefix that networks without IPv4 use for it."""
    return ipaddress.IPv4Address(int(found) & 0xFFFFFFFF) if found in NAT64 else None


NAT64 = ipaddress.IPv6Network("64:ff9b::/96")

READERS: dict[str, Callable[[Any, str], Any]] = {
    "name": text(LONGEST_NAME, lines=False),
    "prompt": prompt,
    "instructions": text(LONGEST_PROMPT),
    "model": text(LONGEST_MODEL, lines=False),
    "memory": one_of("read_write", "read", "none"),
    "missed": one_of("once", "skip"),
    "timeout": seconds,
    "max_tokens": whole(1, 2**53),
    "deliver": destination,
}


def only(given: Json, *allowed: str) -> None:
    for name in given:
        if name not in allowed:
            raise wrong(name[:LONGEST_NAME], f"is not a field of a job, which takes {', '.join(allowed)}", code="unsupported_parameter")


def wrong(name: str, problem: str, *, code: str = "invalid_request") -> errors.Invalid:
    return errors.Invalid(f"{name} {problem}", code=code, param=name)
