"""Schedules: what is understood, what is refused, and when it fires, also where the clock is changed."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemon.core import errors
from mnemon.jobs.schedule import LATE_SECONDS, NAMES, Schedule, iso, parsed

NOW = datetime(2026, 11, 18, 20, 30, 15, 250_000, tzinfo=UTC).timestamp()
BERLIN, LORD_HOWE, NEW_YORK = "Europe/Berlin", "Australia/Lord_Howe", "America/New_York"


def at(text: str, zone: str = "UTC") -> float:
    """An instant, as the clock of a zone shows it unless it says otherwise."""
    found = datetime.fromisoformat(text)
    return (found if found.tzinfo else found.replace(tzinfo=ZoneInfo(zone))).timestamp()


def fires(text: str, zone: str, after: str, count: int = 4) -> list[str | None]:
    """The next instants after a time on the clock of a zone."""
    start = at(after, zone)
    return [iso(each, zone) for each in parsed(text, zone=zone, now=start).upcoming(start, count)]


@pytest.mark.parametrize(
    ("text", "kind", "first"),
    [
        ("every 30m", "interval", NOW + 1800),
        ("EVERY 2 hours", "interval", NOW + 7200),
        ("every 1d", "interval", NOW + 86400),
        ("30m", "once", NOW + 1800),
        ("1 day", "once", NOW + 86400),
        ("0 9 * * 1", "cron", at("2026-11-23T09:00")),
        ("0 9 * * mon", "cron", at("2026-11-23T09:00")),
        ("*/15 8-18 * * MON-FRI", "cron", at("2026-11-19T08:00")),
        ("0 0 1 JAN *", "cron", at("2027-01-01T00:00")),
        ("5,35 * * * *", "cron", at("2026-11-18T20:35")),
        ("0 0 * * 7", "cron", at("2026-11-22T00:00")),
        ("0 0 L * *", "cron", at("2026-11-30T00:00")),
        ("0 0 29 2 *", "cron", at("2028-02-29T00:00")),
        ("@hourly", "cron", at("2026-11-18T21:00")),
        ("@Daily", "cron", at("2026-11-19T00:00")),
        ("@weekly", "cron", at("2026-11-22T00:00")),
        ("@monthly", "cron", at("2026-12-01T00:00")),
        ("@yearly", "cron", at("2027-01-01T00:00")),
        ("2026-11-18T21:00:00Z", "once", at("2026-11-18T21:00")),
        ("2026-11-18T22:00:00+01:00", "once", at("2026-11-18T21:00")),
        ("2026-11-18 21:00", "once", at("2026-11-18T21:00")),
    ],
)
def test_a_schedule_is_understood(text: str, kind: str, first: float) -> None:
    """Cron with names, @names, intervals, times to wait and instants are taken, each with its first instant."""
    found = parsed(f"  {text} ", zone="UTC", now=NOW)
    assert (found.kind, found.next(NOW), found.display) == (kind, first, " ".join(text.split()))


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "whenever", "every 0m", "every -5m", "every 30s", "30 seconds", "0m", "every 1", "every 99999999d"),
        *("61 * * * *", "* 25 * * *", "0 9 * * FOO", "0 9 * *", "*/0 * * * *", "*/10 * * * * *", "5-1 * * * *", "0 0 * * 8"),
        *("0 0 31 2 *", "0 0 30 2 *", "0 0 31 4,6,9,11 *", "@sometimes", "@reboot", "L L L L L", "* * * * 1#6", "١ * * * *"),
        *("2001-01-01T00:00:00Z", "2027-13-01T00:00", "2027-02-30T00:00", "9999-12-31T23:59", "2026-11-18", "9" * 400),
        *(5, None, [], {"kind": "cron"}, True),
    ],
)
def test_a_schedule_is_refused(text: object) -> None:
    """What is not understood, goes by seconds or never fires is refused by the name of the field."""
    with pytest.raises(errors.Invalid) as caught:
        parsed(text, zone=BERLIN, now=NOW)
    assert (caught.value.param, caught.value.code) == ("schedule", "invalid_schedule")


def test_an_instant_just_past_is_now() -> None:
    """Who asks for an instant that went by on the way is not told that it is over."""
    assert parsed(iso(NOW - 60, "UTC"), zone="UTC", now=NOW).at == pytest.approx(NOW - 60, abs=0.001)


def test_a_time_that_does_not_exist() -> None:
    """Where the clock is set forward over a time, the job fires once, at the first moment after the gap."""
    assert fires("30 2 * * *", BERLIN, "2026-03-28T12:00", 2) == ["2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"]
    assert fires("0,30 2 * * *", BERLIN, "2026-03-28T12:00", 2) == ["2026-03-29T03:00:00+02:00", "2026-03-30T02:00:00+02:00"]
    assert fires("2026-03-29T02:30", BERLIN, "2026-03-28T12:00") == ["2026-03-29T03:00:00+02:00"]


def test_a_time_that_exists_twice() -> None:
    """Where the clock is set back over a time, the job fires at the first of the two, and not at the second."""
    assert fires("30 2 * * *", BERLIN, "2026-10-24T12:00", 2) == ["2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"]
    assert fires("2026-10-25T02:30", BERLIN, "2026-10-24T12:00") == ["2026-10-25T02:30:00+02:00"]
    second = at("2026-10-25T02:10:00+01:00")  # in the hour that is there for the second time
    assert iso(parsed("30 2 * * *", zone=BERLIN, now=second).next(second), BERLIN) == "2026-10-26T02:30:00+01:00"


def test_a_star_goes_by_time_that_passes() -> None:
    """A rule for every hour or every so many minutes fires in both of the doubled hours, and not in the missing one."""
    assert fires("0 * * * *", BERLIN, "2026-10-25T01:10", 3) == [f"2026-10-25T0{h}:00:00+0{o}:00" for h, o in ((2, 2), (2, 1), (3, 1))]
    assert fires("*/30 * * * *", BERLIN, "2026-03-29T01:10", 3) == [
        *("2026-03-29T01:30:00+01:00", "2026-03-29T03:00:00+02:00", "2026-03-29T03:30:00+02:00"),
    ]


def test_a_clock_that_is_set_by_half_an_hour() -> None:
    """The same rules hold where the clock is set by thirty minutes."""
    assert fires("15 2 * * *", LORD_HOWE, "2026-10-03T12:00", 1) == ["2026-10-04T02:30:00+11:00"]
    assert fires("45 1 * * *", LORD_HOWE, "2026-04-04T12:00", 2) == ["2026-04-05T01:45:00+11:00", "2026-04-06T01:45:00+10:30"]


def test_an_interval_is_counted_from_when_it_was_set() -> None:
    """However late somebody looks, the instants of an interval stay where they are, also over a change of the clock."""
    rule = parsed("every 90m", zone=NEW_YORK, now=NOW)
    assert rule.next(NOW + 3 * 5400 + 17) == NOW + 4 * 5400
    assert rule.next(NOW - 10**6) == NOW + 5400


def test_what_is_shown() -> None:
    """A rule is shown by its kind, with what it says."""
    assert parsed("@daily", zone="UTC", now=NOW).shown() == {"kind": "cron", "expr": NAMES["@daily"], "display": "@daily"}
    assert parsed("every 2h", zone="UTC", now=NOW).shown() == {"kind": "interval", "minutes": 120, "display": "every 2h"}
    assert parsed("2027-01-01T00:00:00Z", zone=BERLIN, now=NOW).shown()["run_at"] == "2027-01-01T01:00:00+01:00"


FIELDS = st.sampled_from("* 0 1 5 59 */7 1-5 2,30 L LW 1#2 5L MON JAN mon-fri 0-23/3 7 31 29".split())
ZONES = st.sampled_from(["UTC", BERLIN, LORD_HOWE, NEW_YORK, "Africa/Casablanca", "Pacific/Apia"])
INSTANTS = st.datetimes(datetime(2026, 1, 1), datetime(2027, 12, 31)).map(lambda d: d.replace(tzinfo=UTC).timestamp())  # noqa: DTZ001 - the bounds of a strategy have none


@given(st.lists(FIELDS, min_size=5, max_size=5).map(" ".join), ZONES, INSTANTS)
def test_instants_come_in_order_and_do_not_depend_on_who_asks(text: str, zone: str, now: float) -> None:
    """Instants rise, whoever stands between two of them sees the second next, and each is a whole minute of its zone's clock."""
    try:
        rule = parsed(text, zone=zone, now=now)
    except errors.Invalid:
        return
    found = rule.upcoming(now, 4)
    assert found == sorted(set(found))
    assert all(each > now for each in found)
    assert [rule.next(before) for before in found[:-1]] == found[1:]
    assert [rule.next((a + b) / 2) for a, b in zip([now, *found], found, strict=False)] == found
    assert all(datetime.fromtimestamp(each, ZoneInfo(zone)).second == 0 for each in found)


@given(st.text(max_size=40))
def test_no_text_breaks_the_reader(text: str) -> None:
    """Whatever is sent, it is a schedule that fires, or it is refused."""
    try:
        found: Schedule | None = parsed(text, zone="UTC", now=NOW)
    except errors.Invalid:
        found = None
    assert found is None or found.next(NOW) is not None or NOW - LATE_SECONDS <= found.at <= NOW


@given(ZONES, INSTANTS, st.integers(0, 23), st.integers(0, 59))
def test_a_daily_job_fires_once_a_day(zone: str, now: float, hour: int, minute: int) -> None:
    """Over any change of the clock, each day of the zone's calendar has one instant, at its time or where the gap over it ends."""
    found = parsed(f"{minute} {hour} * * *", zone=zone, now=now).upcoming(now, 6)
    days = [datetime.fromtimestamp(each, ZoneInfo(zone)) for each in found]
    assert len({d.date() for d in days}) == len(days)
    assert all((b.date() - a.date()) <= timedelta(days=2) for a, b in itertools.pairwise(days))
    assert all((d.hour, d.minute) >= (hour, minute) for d in days)
