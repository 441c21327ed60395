"""Values of PostgreSQL in its text format, as Debezium represents them. Pure.

The session must use DateStyle ISO, IntervalStyle iso_8601, TimeZone UTC and bytea_output hex; see ``sessions.py``.
"""

from __future__ import annotations

import datetime as dt
import decimal
import re
import struct
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from barnabas.connect.errors import DataError

Parse = Callable[[str], Any]
DAY_US: Final = 86_400_000_000
MONTH_DAYS: Final = 365.25 / 12  # Debezium's average month
# Debezium's numbers for PostgreSQL's infinity: those of the JDBC driver, in milliseconds.
INFINITY_MS: Final = {"infinity": 9_223_372_036_825_200_000, "-infinity": -9_223_372_036_832_400_000}
INFINITY_DAYS: Final = {"infinity": -(1 << 31), "-infinity": -(1 << 31) + 1}
_INTERVAL: Final = re.compile(
    r"P(?:(-?\d+)Y)?(?:(-?\d+)M)?(?:(-?\d+)D)?(?:T(?:(-?\d+)H)?(?:(-?\d+)M)?(?:(-?[\d.]+)S)?)?"
)
_ZONED: Final = re.compile(r"(\d+)-(\d\d)-(\d\d) (\d\d:\d\d:\d\d)(?:\.(\d+))?\+00( BC)?")
_NUMBER: Final = r"\s*([-+.\deE]+|-?Infinity|NaN)\s*"
_POINT: Final = re.compile(rf"\({_NUMBER},{_NUMBER}\)")
_HSTORE: Final = re.compile(r'"((?:[^"\\]|\\.)*)"=>(?:(NULL)|"((?:[^"\\]|\\.)*)")', re.DOTALL)
_EPOCH_DAY: Final = 719_163  # ordinal of 1970-01-01


def boolean(text: str) -> bool:
    """Return a bool."""
    return text == "t"


def days(text: str) -> int:
    """Return days since 1970, also before Christ."""
    if text in INFINITY_DAYS:
        return INFINITY_DAYS[text]
    year, month, day, is_bc = _date(text)
    return _days(1 - year if is_bc else year, month, day)


def _date(text: str) -> tuple[int, int, int, bool]:
    plain = text.removesuffix(" BC")
    try:
        year, month, day = plain.split("-")
        return int(year), int(month), int(day), plain is not text
    except ValueError as error:
        raise DataError(f"{text!r} is not a date") from error


def _days(year: int, month: int, day: int) -> int:
    """Return days since 1970 in the proleptic Gregorian calendar; Python's own ends at the years 1 and 9999."""
    cycles, within = divmod(year - 1, 400)
    return dt.date(within + 1, month, day).toordinal() + cycles * 146_097 - _EPOCH_DAY


def time_us(text: str) -> int:
    """Return microseconds since midnight; 24:00:00 is a valid time."""
    hours, minutes, seconds = text.split(":")
    whole, _, fraction = seconds.partition(".")
    return ((int(hours) * 60 + int(minutes)) * 60 + int(whole)) * 1_000_000 + int(fraction.ljust(6, "0")[:6] or 0)


def time_ms(text: str) -> int:
    """Return milliseconds since midnight."""
    return time_us(text) // 1000


def timestamp_us(text: str) -> int:
    """Return microseconds since 1970 of a timestamp without zone."""
    if text in INFINITY_MS:
        return INFINITY_MS[text]
    day, _, rest = text.partition(" ")
    time, _, era = rest.partition(" ")
    return days(f"{day} BC" if era else day) * DAY_US + time_us(time)


def timestamp_ms(text: str) -> int:
    """Return milliseconds since 1970 of a timestamp without zone."""
    return INFINITY_MS[text] if text in INFINITY_MS else timestamp_us(text) // 1000


def zoned_timestamp(text: str, digits: int) -> str:
    """Return a timestamp with zone in ISO 8601, in UTC, with so many digits of a second; 0: as many as needed."""
    if text in INFINITY_MS:
        return text
    match = _ZONED.fullmatch(text)
    if match is None:
        raise DataError(f"{text!r} is not a timestamp in UTC")
    year, month, day, time, fraction, era = match.groups()
    number = 1 - int(year) if era else int(year)
    shown = f"{number:04d}" if 0 <= number <= 9999 else f"{number:+05d}"
    return f"{shown}-{month}-{day}T{time}{_fraction(fraction, digits)}Z"


def zoned_time(text: str) -> str:
    """Return a time with zone in ISO 8601, in UTC."""
    match = re.fullmatch(r"(\d\d:\d\d:\d\d(?:\.\d+)?)([+-])(\d\d)(?::(\d\d))?(?::(\d\d))?", text)
    if match is None:
        raise DataError(f"{text!r} is not a time with zone")
    time, sign, *offset = match.groups()
    hours, minutes, seconds = (int(each or 0) for each in offset)
    ahead = ((hours * 60 + minutes) * 60 + seconds) * 1_000_000 * (1 if sign == "+" else -1)
    micros = (time_us(time) - ahead) % DAY_US
    rest, fraction = divmod(micros, 1_000_000)
    return f"{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}{_fraction(f'{fraction:06d}')}Z"


def _fraction(found: str | None, width: int = 0) -> str:
    kept = (found or "").rstrip("0").ljust(width, "0")
    return f".{kept}" if kept else ""


def interval_parts(text: str) -> tuple[int, int, int, int, int, decimal.Decimal]:
    """Return years, months, days, hours, minutes and seconds."""
    match = _INTERVAL.fullmatch(text)
    if match is None:
        raise DataError(f"{text!r} is not an interval in ISO 8601")
    years, months, count, hours, minutes = (int(each or 0) for each in match.groups()[:5])
    return years, months, count, hours, minutes, decimal.Decimal(match[6] or 0)


def interval_us(text: str) -> int:
    """Return an interval as microseconds, with an average length of months."""
    years, months, count, hours, minutes, seconds = interval_parts(text)
    whole_days = (years * 12 + months) * MONTH_DAYS + count
    return int(whole_days * DAY_US) + (hours * 60 + minutes) * 60_000_000 + int(seconds * 1_000_000)


def interval_iso(text: str) -> str:
    """Return an interval in ISO 8601 with all of its parts."""
    years, months, count, hours, minutes, seconds = interval_parts(text)
    return f"P{years}Y{months}M{count}DT{hours}H{minutes}M{seconds.normalize():f}S"


def binary(text: str) -> bytes:
    """Return the bytes of a ``bytea`` in hex format."""
    if not text.startswith("\\x"):
        raise DataError("a bytea value is not in hex format; bytea_output must be hex")
    return bytes.fromhex(text[2:])


def bits(text: str) -> bytes:
    """Return a bit string as little-endian bytes, without the zero bytes at its end."""
    number = int(text or "0", 2)
    return number.to_bytes((number.bit_length() + 7) // 8, "little")


def bit(text: str) -> bool:
    """Return a single bit."""
    return text == "1"


def number(text: str) -> decimal.Decimal | None:
    """Return a finite decimal; None for NaN and infinity, which no decimal can be."""
    value = decimal.Decimal(text)
    return value if value.is_finite() else None


def money(text: str) -> decimal.Decimal:
    """Return an amount whatever the currency sign: a decimal comma or point, negative in brackets or with a sign."""
    is_negative = "-" in text or "(" in text
    digits = re.sub(r"[^\d.,]", "", text)
    mark = max(digits.rfind("."), digits.rfind(","))
    if mark >= 0 and len(digits) - mark == 3:
        digits = re.sub(r"[.,]", "", digits[:mark]) + "." + digits[mark + 1 :]
    else:
        digits = re.sub(r"[.,]", "", digits)
    return decimal.Decimal(digits) * (-1 if is_negative else 1)


def hstore(text: str) -> dict[str, str | None]:
    """Return the pairs of an hstore."""
    return {_unescaped(m[1]): None if m[2] else _unescaped(m[3]) for m in _HSTORE.finditer(text)}


def hstore_json(text: str) -> str:
    """Return an hstore as a JSON object."""
    return msgspec.json.encode(hstore(text)).decode()


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL)


def point(text: str) -> dict[str, Any]:
    """Return a point with its well-known binary."""
    ((x, y),) = _points(text)
    return {"x": x, "y": y, "wkb": struct.pack("<BIdd", 1, 1, x, y), "srid": None}


def _points(text: str) -> list[tuple[float, float]]:
    found = [(float(match[1]), float(match[2])) for match in _POINT.finditer(text)]
    if not found:
        raise DataError(f"{text!r} has no point")
    return found


def ewkb(text: str) -> dict[str, Any]:
    """Return a geometry of PostGIS: plain well-known binary, and its reference system."""
    data = bytes.fromhex(text)
    order = "<" if data[0] == 1 else ">"
    (kind,) = struct.unpack_from(order + "I", data, 1)
    if not kind & 0x20000000:
        return {"wkb": data, "srid": None}
    (srid,) = struct.unpack_from(order + "I", data, 5)
    return {"wkb": data[:1] + struct.pack(order + "I", kind & ~0x20000000) + data[9:], "srid": srid}


def array(text: str, element: Parse) -> list[Any]:
    """Return the elements of an array; those of more than one dimension are nested lists."""
    start = text.index("{")  # bounds such as [0:2]= may stand before it
    tokens = _tokens(text, start)
    if next(tokens) != ("{", False):
        raise DataError(f"{text!r} is not an array")
    return _items(tokens, element)


def _items(tokens: Iterator[tuple[str, bool]], element: Parse) -> list[Any]:
    made: list[Any] = []
    for text, is_quoted in tokens:
        if is_quoted:
            made.append(element(text))
        elif text == "{":
            made.append(_items(tokens, element))
        elif text == "}":
            return made
        else:
            made.append(None if text.upper() == "NULL" else element(text))
    raise DataError("an array value is not complete")


_TOKEN: Final = re.compile(r'([{}])|"((?:[^"\\]|\\.)*)"|([^{},"]+)|,', re.DOTALL)


def _tokens(text: str, start: int) -> Iterator[tuple[str, bool]]:
    position = start
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise DataError("an array value is malformed")
        position = match.end()
        brace, quoted, plain = match.groups()
        if brace is not None:
            yield brace, False
        elif quoted is not None:
            yield _unescaped(quoted), True
        elif plain is not None:
            yield plain, False
