"""Schedules: a text to a rule, and a rule to its instants. Pure: no clock, no database.

Three kinds: `cron` (five fields, or an @name), `interval` (every so many minutes, counted from when it was set) and `once` (after so long,
or at an instant). Cron goes by the clock on the wall of a time zone, the other two by time that passes.

Where that clock is set forward, a time that does not exist is the first moment after the gap; where it is set back, a time that exists
twice is the first of the two. Cron rules with a `*` at minute or hour go by time that passes, as on Unix.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import islice
from typing import Literal
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from mnemon.core import errors
from mnemon.core.records import Json

Kind = Literal["cron", "interval", "once"]

LONGEST = 200  # characters
LONGEST_SPAN = 10 * 366 * 24 * 60  # minutes
FARTHEST = 10 * LONGEST_SPAN
LATE_SECONDS = 120.0  # an instant so far in the past is still taken for now
NAMES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
UNITS = {"m": 1, "min": 1, "mins": 1, "minute": 1, "minutes": 1, "h": 60, "hr": 60, "hrs": 60, "hour": 60, "hours": 60}
UNITS |= {"d": 1440, "day": 1440, "days": 1440}
SECONDS = {"s", "sec", "secs", "second", "seconds"}
SPAN = re.compile(r"(every\s+)?(\d{1,9})\s*([a-z]+)", re.IGNORECASE)
INSTANT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d.*")
CRON_FIELD = re.compile(r"[0-9A-Za-z*,/#-]+")
FIELDS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A rule. `start` is when it was set: what an interval is counted from. `at` is the instant of a `once`."""

    kind: Kind
    display: str
    zone: str
    start: float
    cron: str = ""
    minutes: int = 0
    at: float = 0.0

    def after(self, instant: float) -> Iterator[float]:
        """Every instant behind this one, in order."""
        if self.kind == "cron":
            yield from ringing(self.cron, self.zone, instant)
        elif self.kind == "once":
            if self.at > instant:
                yield self.at
        else:
            step = 60 * self.minutes
            passed = max(0, int((instant - self.start) // step))
            while True:
                passed += 1
                if (found := self.start + passed * step) > instant:
                    yield found

    def next(self, instant: float) -> float | None:
        """The first instant behind this one."""
        if self.kind == "cron":
            return ring(self.cron, self.zone, instant)
        return next(self.after(instant), None)

    def upcoming(self, instant: float, count: int) -> list[float]:
        """The first so many instants behind this one."""
        return list(islice(self.after(instant), count))

    def shown(self) -> Json:
        """As clients see it."""
        rule: dict[Kind, Json] = {
            "cron": {"expr": self.cron},
            "interval": {"minutes": self.minutes},
            "once": {"run_at": iso(self.at, self.zone)},
        }
        return {"kind": self.kind, **rule[self.kind], "display": self.display}


def parsed(text: object, *, zone: str, now: float) -> Schedule:
    """The rule that a text stands for. Raises `Invalid` for what cannot be understood, and for what would never fire."""
    if not isinstance(text, str) or not text.strip() or len(text) > LONGEST:
        raise wrong("must be a text such as 0 9 * * 1, @daily, every 30m, 30m or 2027-03-01T09:00:00+01:00")
    text = " ".join(text.split())
    if span := SPAN.fullmatch(text):
        return spanned(span, text, zone=zone, now=now)
    if INSTANT.fullmatch(text):
        return instant(text, zone=zone, now=now)
    expression = NAMES.get(text.lower(), text)
    if expression.startswith("@"):
        raise wrong(f"must be one of {', '.join(NAMES)} if it begins with @")
    fields = expression.split()
    if len(fields) == FIELDS + 1 and all(map(CRON_FIELD.fullmatch, fields)):
        raise wrong("has six fields: cron has five, minute, hour, day, month and weekday; there are no seconds")
    if len(fields) != FIELDS or not all(map(CRON_FIELD.fullmatch, fields)):
        raise wrong("is not understood; take five fields of cron (0 9 * * 1), @daily, every 30m, 30m, or an instant (2027-03-01T09:00:00Z)")
    try:
        found = ring(expression, zone, now)
    except CronSimError as error:
        raise wrong(f"is not a rule of cron: {str(error)[:1].lower()}{str(error)[1:]}") from error
    if found is None:
        raise wrong("would never fire")
    return Schedule(kind="cron", display=text, zone=zone, start=now, cron=expression)


def spanned(span: re.Match[str], text: str, *, zone: str, now: float) -> Schedule:
    """`every 30m`, or `30m` once."""
    every, amount, unit = bool(span[1]), int(span[2]), span[3].lower()
    if unit in SECONDS:
        raise wrong("is in seconds; the shortest time is a minute")
    if unit not in UNITS:
        raise wrong("must count in m, h or d")
    minutes = amount * UNITS[unit]
    if not 0 < minutes <= LONGEST_SPAN:
        raise wrong("must be between one minute and ten years")
    if every:
        return Schedule(kind="interval", display=text, zone=zone, start=now, minutes=minutes)
    return Schedule(kind="once", display=text, zone=zone, start=now, at=now + 60 * minutes)


def instant(text: str, *, zone: str, now: float) -> Schedule:
    """An instant; without an offset it is a time on the clock of the zone."""
    try:
        found = datetime.fromisoformat(text)
        at = found.timestamp() if found.tzinfo else on_the_wall(found, zone)
    except (ValueError, OverflowError) as error:
        raise wrong("is no instant; write it like 2027-03-01T09:00:00Z or 2027-03-01T09:00:00+01:00") from error
    if at < now - LATE_SECONDS:
        raise wrong("is in the past, so it would never fire")
    if at > now + 60 * FARTHEST:
        raise wrong("is more than a hundred years ahead")
    return Schedule(kind="once", display=text, zone=zone, start=now, at=at)


def on_the_wall(local: datetime, zone: str) -> float:
    """The instant of a time on the clock of a zone: the first of two, and of none the end of the gap."""
    early, late = (local.replace(tzinfo=zone_of(zone), fold=fold) for fold in (0, 1))
    if early.astimezone(UTC).astimezone(early.tzinfo).replace(tzinfo=None, fold=0) == local:
        return early.timestamp()
    low, high = int(late.timestamp()), int(early.timestamp())  # the clock is set somewhere between the two
    before = offset(low, zone)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if offset(middle, zone) == before else (low, middle)
    return float(high)


def offset(at: float, zone: str) -> timedelta | None:
    return datetime.fromtimestamp(at, zone_of(zone)).utcoffset()


def ringing(cron: str, zone: str, after: float) -> Iterator[float]:
    for found in CronSim(cron, datetime.fromtimestamp(after, zone_of(zone))):
        if (at := found.timestamp()) > after:  # a time of a repeated hour counts once
            yield at


@lru_cache(maxsize=4096)  # rules are asked for the same instant again and again: by listings, and by whoever waits for the next
def ring(cron: str, zone: str, after: float) -> float | None:
    return next(ringing(cron, zone, after), None)


@lru_cache(maxsize=256)
def zone_of(name: str) -> ZoneInfo:
    return ZoneInfo(name)


def known_zone(name: object) -> bool:
    """Whether there is such a time zone."""
    try:
        return isinstance(name, str) and bool(name) and bool(zone_of(name))
    except (KeyError, ValueError, OSError):
        return False


def iso(at: float | None, zone: str) -> str | None:
    """An instant as clients see it, with the offset of its zone."""
    if at is None:
        return None
    return datetime.fromtimestamp(at, zone_of(zone)).isoformat(timespec="seconds" if at == int(at) else "milliseconds")


def wrong(problem: str) -> errors.Invalid:
    return errors.Invalid(f"schedule {problem}", code="invalid_schedule", param="schedule")
