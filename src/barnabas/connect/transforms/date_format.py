"""Java's SimpleDateFormat in English and UTC: the letters that timestamps of records use, to format and to parse."""

from __future__ import annotations

import datetime as dt
import re
from typing import Final, NamedTuple

from barnabas.connect.errors import ConfigError, DataError

_MONTHS: Final = (
    "January February March April May June July August September October November December".split()  # noqa: SIM905
)
_DAYS: Final = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()  # noqa: SIM905
_LETTERS: Final = "yMdHhkKmsSaEuDZXz"
_TWO_DIGIT_WINDOW: Final = 20  # years into the future that a year of two digits may mean


class _Token(NamedTuple):
    letter: str  # "" for text
    text: str

    @property
    def width(self) -> int:
        return len(self.text)


class DateFormat:
    """A pattern such as ``yyyy-MM-dd'T'HH:mm:ss.SSSXXX``. Raises ``ConfigError`` for letters that are not supported."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self._tokens = _tokens(pattern)

    def format(self, moment: dt.datetime) -> str:
        """Return the text of a point in time."""
        utc = moment.astimezone(dt.UTC)
        return "".join(token.text if not token.letter else _formatted(token, utc) for token in self._tokens)

    def parse(self, text: str) -> dt.datetime:
        """Return the point in time of a text; raise ``DataError`` if it does not fit the pattern."""
        found: dict[str, str] = {}
        position = 0
        for index, token in enumerate(self._tokens):
            following = self._tokens[index + 1] if index + 1 < len(self._tokens) else None
            match = re.compile(_regex(token, following)).match(text, position)
            if match is None:
                raise DataError(f"the timestamp {text!r} does not fit the format {self.pattern!r}")
            position = match.end()
            if token.letter:
                found[token.letter] = match[0]
        return _moment(found, text, self.pattern)


def format_problems(key: str, pattern: str) -> list[str]:
    """Return a message if a pattern is not supported."""
    try:
        DateFormat(pattern)
    except ConfigError as error:
        return [f"Invalid value {pattern} for configuration {key}: {error}"]
    return []


def _tokens(pattern: str) -> list[_Token]:
    made: list[_Token] = []
    position = 0
    while position < len(pattern):
        char = pattern[position]
        if char == "'":
            end = pattern.find("'", position + 1)
            if end < 0:
                raise ConfigError("a quote in the format is not closed")
            made.append(_Token("", pattern[position + 1 : end] or "'"))
            position = end + 1
        elif char.isascii() and char.isalpha():
            if char not in _LETTERS:
                raise ConfigError(f"the letter {char!r} of the format is not supported")
            end = position
            while end < len(pattern) and pattern[end] == char:
                end += 1
            made.append(_Token(char, pattern[position:end]))
            position = end
        else:
            made.append(_Token("", char))
            position += 1
    return made


def _formatted(token: _Token, at: dt.datetime) -> str:
    letter, width = token.letter, token.width
    match letter:
        case "y":
            return f"{at.year % 100:02}" if width == 2 else f"{at.year:0{width}}"
        case "M" if width >= 3:
            name = _MONTHS[at.month - 1]
            return name if width > 3 else name[:3]
        case "E":
            name = _DAYS[at.weekday()]
            return name if width > 3 else name[:3]
        case "a":
            return "AM" if at.hour < 12 else "PM"
        case "Z":
            return "+0000"
        case "X":
            return "Z"
        case "z":
            return "UTC" if width < 4 else "Coordinated Universal Time"
    number = {
        "M": at.month,
        "d": at.day,
        "H": at.hour,
        "k": at.hour or 24,
        "K": at.hour % 12,
        "h": at.hour % 12 or 12,
        "m": at.minute,
        "s": at.second,
        "S": at.microsecond // 1000,
        "u": at.isoweekday(),
        "D": at.timetuple().tm_yday,
    }[letter]
    return f"{number:0{width}}"


def _regex(token: _Token, following: _Token | None) -> str:
    if not token.letter:
        return re.escape(token.text)
    match token.letter:
        case "M" if token.width >= 3:
            return "(?i:" + "|".join(sorted({n for m in _MONTHS for n in (m, m[:3])}, key=len, reverse=True)) + ")"
        case "E":
            return "(?i:" + "|".join(sorted({n for d in _DAYS for n in (d, d[:3])}, key=len, reverse=True)) + ")"
        case "a":
            return "(?i:AM|PM)"
        case "Z" | "X":
            return r"(?:Z|[+-]\d{2}:?(?:\d{2})?)"
        case "z":
            return r"(?:UTC|GMT|Z|[+-]\d{2}:?\d{2})"
    # Numbers without anything between them have a fixed width.
    is_adjacent = following is not None and following.letter in "yMdHhkKmsSuD" and following.letter != ""
    return rf"\d{{{token.width}}}" if is_adjacent else r"-?\d+" if token.letter == "y" else r"\d+"


def _moment(found: dict[str, str], text: str, pattern: str) -> dt.datetime:
    year = _year(found.get("y", "1970"), pattern)
    month = _month(found.get("M", "1"))
    hour = int(found.get("H", found.get("k", "0"))) % 24
    if "h" in found or "K" in found:
        hour = int(found.get("h", found.get("K", "0"))) % 12 + (12 if found.get("a", "AM").upper() == "PM" else 0)
    try:
        start = dt.datetime(year, month, 1, tzinfo=dt.UTC)
        if "D" in found:
            start = dt.datetime(year, 1, 1, tzinfo=dt.UTC) + dt.timedelta(days=int(found["D"]) - 1)
        # Java is lenient: the 32nd of January is the 1st of February.
        return (
            start
            + dt.timedelta(
                days=int(found.get("d", "1")) - 1,
                hours=hour,
                minutes=int(found.get("m", "0")),
                seconds=int(found.get("s", "0")),
                milliseconds=int(found.get("S", "0")),
            )
            - _zone(found.get("X") or found.get("Z") or found.get("z") or "Z")
        )
    except (ValueError, OverflowError) as error:
        raise DataError(f"the timestamp {text!r} does not fit the format {pattern!r}: {error}") from error


def _year(text: str, pattern: str) -> int:
    if re.search(r"(?<!y)yy(?!y)", pattern) and len(text) == 2:
        now = dt.datetime.now(dt.UTC).year
        year = now - now % 100 + int(text)
        return year - 100 if year > now + _TWO_DIGIT_WINDOW else year
    return int(text)


def _month(text: str) -> int:
    if text.isdigit():
        return int(text)
    return next(number for number, name in enumerate(_MONTHS, 1) if name[:3].lower() == text[:3].lower())


def _zone(text: str) -> dt.timedelta:
    match = re.fullmatch(r"([+-])(\d{2}):?(\d{2})?", text)
    if match is None:
        return dt.timedelta()
    offset = dt.timedelta(hours=int(match[2]), minutes=int(match[3] or 0))
    return -offset if match[1] == "-" else offset
