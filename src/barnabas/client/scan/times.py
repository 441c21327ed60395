"""Times of ISO 8601 as milliseconds, without a clock or a time zone database: pure arithmetic."""

from __future__ import annotations

import re
from typing import Final

_TIME: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?(?:(Z)|([+-])(\d\d):?(\d\d))?)?"
)
_DAYS: Final = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def parse_time_ms(text: str) -> int | None:
    """Milliseconds since 1970 of a date or time; without an offset it is UTC. None if the text is no time."""
    found = _TIME.fullmatch(text.strip())
    if found is None:
        return None
    year, month, day = int(found[1]), int(found[2]), int(found[3])
    hour, minute, second = (int(found[number] or 0) for number in (4, 5, 6))
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if not 1 <= month <= 12 or not 1 <= day <= _DAYS[month - 1] + (month == 2 and is_leap):
        return None
    if hour > 23 or minute > 59 or second > 59:
        return None
    # Days of a proleptic Gregorian calendar, with years that begin in March, so that the leap day is the last one.
    shifted = year - (month <= 2)
    era, year_of_era = divmod(shifted, 400)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    days = era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468
    milliseconds = int((found[7] or "").ljust(3, "0")[:3])
    offset = (int(found[10] or 0) * 60 + int(found[11] or 0)) * (-1 if found[9] == "-" else 1)
    return ((days * 24 + hour) * 60 + minute - offset) * 60_000 + second * 1000 + milliseconds
