"""When something happens, as people say it: one pattern finds it, arithmetic resolves it against the time of saying.

"Last month" is a month, not an instant: the answer is a stretch of time with a grain. What is not understood is left alone.
"""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from mnemon.memory.distil import patterns
from mnemon.memory.statements import Grain, When

MONTHS = {
    name: n
    for n, full in enumerate("january february march april may june july august september october november december".split(), 1)
    for name in (full, full[:3])
}
MONTHS["sept"] = 9
DAYS = {name: n for n, name in enumerate("monday tuesday wednesday thursday friday saturday sunday".split())}
SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
NUMBERS = {name: n for n, name in enumerate("zero one two three four five six seven eight nine ten eleven twelve".split())}
NUMBERS |= {"a": 1, "an": 1, "couple": 2, "few": 3}

MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)"
)
DAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
YEAR = r"(?:1[89]|20)\d\d"
TIME = patterns.pattern(
    rf"\b(?:(?P<iso>{YEAR}-\d\d-\d\d)|"
    rf"(?P<dm_day>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<dm_month>{MONTH})\b\.?(?:,?\s+(?P<dm_year>{YEAR}))?|"
    rf"(?P<md_month>{MONTH})\b\.?\s+(?P<md_day>\d{{1,2}})(?:st|nd|rd|th)?\b(?!:)(?:,?\s+(?P<md_year>{YEAR}))?|"
    rf"q(?P<quarter>[1-4])(?:\s+(?:of\s+)?(?P<q_year>{YEAR}))?\b|"
    rf"(?:(?P<season_which>last|this|next)|in|since|until|by|during)\s+(?:the\s+)?(?P<season>spring|summer|autumn|fall|winter)(?:\s+(?:of\s+)?(?P<season_year>{YEAR}))?\b|"
    rf"(?:(?:in|since|until|till|by|from|of|during|last|next|this|early|late|mid)[\s-]+)(?P<month>{MONTH})\b(?!\s+\d{{1,2}}\b)(?:,?\s+(?:of\s+)?(?P<m_year>{YEAR}))?|"
    rf"(?P<my_month>{MONTH})\b\s+(?P<my_year>{YEAR})|"
    rf"(?:in|since|until|till|by|from|during)\s+(?P<year>{YEAR})\b|"
    r"(?P<the_day>the\s+day\s+before\s+yesterday|the\s+day\s+after\s+tomorrow|yesterday|today|tonight|tomorrow|last\s+night|this\s+(?:morning|afternoon|evening))\b|"
    rf"(?:(?P<which>last|this|next|past)\s+)(?:(?P<unit>day|week|weekend|month|quarter|year)|(?P<weekday>{DAY}))\b|"
    rf"(?:on|until|by|since|from|this\s+coming)\s+(?P<on_day>{DAY})\b(?!s)|"
    r"(?P<count>\d{1,3}|an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|a\s+couple\s+of|a\s+few)\s+(?P<ago_unit>day|week|month|year)s?\s+ago\b|"
    r"in\s+(?P<in_count>\d{1,3}|an?|one|two|three|four|five|six|seven|eight|nine|ten|a\s+couple\s+of|a\s+few)\s+(?P<in_unit>day|week|month|year)s?(?:'\s+time)?\b)",
)
HINTS = frozenset(
    "last next this past ago yesterday today tonight tomorrow spring summer autumn fall winter q1 q2 q3 q4 day days week weeks"
    " month months year years".split()
)
HINTS |= MONTHS.keys() | DAYS.keys()

# Where none of these words stands by itself, something of this is part of whatever `TIME` finds: 3-June, 2026-06-17.
HINT = patterns.pattern(
    r"jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|day|week|month|quarter|year|spring|summer|autumn|fall|winter|night|morning|afternoon"
    r"|evening|tomorrow|q[1-4]|1[89]\d\d|20\d\d"
)
DIGIT = patterns.pattern(r"\d")


def happened(text: str, lows: frozenset[str], *, said_at: float, zone: ZoneInfo, past: bool) -> When | None:
    """The first time that a sentence names, or nothing; `past` says how it is told."""
    low = text.lower()
    if lows.isdisjoint(HINTS) and not (DIGIT.search(text) and HINT.search(" ".join([w for w in lows if not w.isalpha()]))):
        return None
    found = TIME.search(low)
    if found is None:
        return None
    today = datetime.fromtimestamp(said_at, zone).date()
    try:
        span = resolve(found, today, past=past)
    except (ValueError, OverflowError):  # 31 June, or a year that the calendar has not
        return None
    if span is None:
        return None
    start, end, grain = span
    return When(start=_instant(start, zone), end=_instant(end, zone), grain=grain)


@lru_cache(maxsize=64)
def zone_named(name: str) -> ZoneInfo:
    """The time zone of this name; UTC where there is none of it."""
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        return ZoneInfo("UTC")


def _instant(day: date, zone: ZoneInfo) -> float:
    return datetime(day.year, day.month, day.day, tzinfo=zone).timestamp()


Span = tuple[date, date, Grain]


def resolve(found: re.Match[str], today: date, *, past: bool) -> Span | None:
    got = {name: value for name, value in found.groupdict().items() if value}
    if "iso" in got:
        return _days(date.fromisoformat(got["iso"]))
    if "dm_day" in got:
        return _named_day(got["dm_day"], got["dm_month"], got.get("dm_year"), today=today, past=past)
    if "md_day" in got:
        return _named_day(got["md_day"], got["md_month"], got.get("md_year"), today=today, past=past)
    if "quarter" in got:
        return _quarter(int(got["quarter"]), got.get("q_year"), today)
    if "season" in got:
        return _season(got, today)
    if "my_month" in got:
        return _month(int(got["my_year"]), _month_number(got["my_month"]))
    if "month" in got:
        return _named_month(found, got, today, past=past)
    if "year" in got:
        return date(int(got["year"]), 1, 1), date(int(got["year"]) + 1, 1, 1), "year"
    return _relative(got, today)


def _relative(got: dict[str, str], today: date) -> Span | None:
    if "the_day" in got:
        words = " ".join(got["the_day"].split())
        shift = {"the day before yesterday": -2, "yesterday": -1, "last night": -1, "tomorrow": 1, "the day after tomorrow": 2}.get(
            words, 0
        )
        return _days(today + timedelta(days=shift))
    if "unit" in got:
        return _unit(got["unit"], {"last": -1, "past": -1, "this": 0, "next": 1}[got["which"]], today)
    if "weekday" in got or "on_day" in got:
        return _weekday(got.get("weekday") or got["on_day"], got.get("which", "this"), today)
    if "ago_unit" in got:
        return _shifted(-_count(got["count"]), got["ago_unit"], today)
    if "in_unit" in got:
        return _shifted(_count(got["in_count"]), got["in_unit"], today)
    return None


def _count(words: str) -> int:
    return int(words) if words.isdigit() else NUMBERS[words.split()[1] if " " in words else words]


def _days(day: date) -> Span:
    return day, day + timedelta(days=1), "day"


def _month_number(name: str) -> int:
    return MONTHS[name.rstrip(".")] if name.rstrip(".") in MONTHS else MONTHS[name[:3]]


def _month(year: int, month: int) -> Span:
    return date(year, month, 1), _next_month(year, month), "month"


def _next_month(year: int, month: int) -> date:
    return date(year + month // 12, month % 12 + 1, 1)


def _named_day(day: str, month: str, year: str | None, *, today: date, past: bool) -> Span:
    """A day without a year is the one that comes, or in talk of the past the one that went by."""
    number = _month_number(month)
    if year:
        return _days(date(int(year), number, int(day)))
    if number == 2 and day == "29":
        return _days(date(next(y for y in range(today.year, today.year + 9) if y % 4 == 0), 2, 29))
    here = date(today.year, number, int(day))
    if past and here > today:
        here = date(today.year - 1, number, int(day))
    elif not past and here < today:
        here = date(today.year + 1, number, int(day))
    return _days(here)


def _named_month(found: re.Match[str], got: dict[str, str], today: date, *, past: bool) -> Span:
    month = _month_number(got["month"])
    if "m_year" in got:
        return _month(int(got["m_year"]), month)
    first = found.group().split()[0]
    back = first in ("since", "last") or (past and first not in ("until", "till", "by", "next"))
    if back:
        return _month(today.year if month <= today.month else today.year - 1, month)
    return _month(today.year if month >= today.month else today.year + 1, month)


def _quarter(quarter: int, year: str | None, today: date) -> Span:
    number = int(year) if year else today.year
    return date(number, 3 * quarter - 2, 1), _next_month(number, 3 * quarter), "quarter"


def _season(got: dict[str, str], today: date) -> Span:
    month = SEASONS[got["season"]]
    year = int(got["season_year"]) if "season_year" in got else today.year + {"last": -1, "next": 1}.get(got.get("season_which", "this"), 0)
    start = date(year, month, 1)
    return start, _next_month(year + (month + 1) // 12, (month + 1) % 12 + 1), "quarter"


def _weekday(name: str, which: str, today: date) -> Span:
    """On Friday: the next one, or today. Next Tuesday: that of the coming week. Last Tuesday: the one before today."""
    ahead = (DAYS[name] - today.weekday()) % 7
    if which in ("last", "past"):
        return _days(today - timedelta(days=(today.weekday() - DAYS[name]) % 7 or 7))
    if which == "next":
        return _days(today - timedelta(days=today.weekday()) + timedelta(days=7 + DAYS[name]))
    return _days(today + timedelta(days=ahead))


def _unit(unit: str, shift: int, today: date) -> Span:
    if unit == "day":
        return _days(today + timedelta(days=shift))
    if unit in ("week", "weekend"):
        monday = today - timedelta(days=today.weekday()) + timedelta(weeks=shift)
        return (
            (monday, monday + timedelta(days=7), "week")
            if unit == "week"
            else (monday + timedelta(days=5), monday + timedelta(days=7), "week")
        )
    if unit == "month":
        index = today.year * 12 + today.month - 1 + shift
        return _month(index // 12, index % 12 + 1)
    if unit == "quarter":
        index = today.year * 4 + (today.month - 1) // 3 + shift
        return _quarter(index % 4 + 1, str(index // 4), today)
    return date(today.year + shift, 1, 1), date(today.year + shift + 1, 1, 1), "year"


def _shifted(count: int, unit: str, today: date) -> Span:
    """So many days, weeks, months or years from today, to the day."""
    if unit in ("day", "week"):
        return _days(today + timedelta(days=count * (7 if unit == "week" else 1)))
    index = today.year * 12 + today.month - 1 + count * (12 if unit == "year" else 1)
    last = (_next_month(index // 12, index % 12 + 1) - timedelta(days=1)).day
    return _days(date(index // 12, index % 12 + 1, min(today.day, last)))
