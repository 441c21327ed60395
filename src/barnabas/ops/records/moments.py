"""Where to start and stop reading, as people write it: start, end, 42, -5, +5, end-5, @2026-01-31, -10m, and START:END.

Pure: the present is an argument. ``consume`` turns the answer into offsets.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final, NamedTuple

from barnabas.client.offsets import EARLIEST, LATEST, Start
from barnabas.ops.failure import Failure

HELP: Final = (
    "where to start: start, end, an offset, +N or start+N after the start, -N or end-N before the end, @time (ms, s, "
    "2026-01-31 or 2026-01-31T12:00), "
    "-10m ago (s, m, h, d); START:END stops at END too, :end at the present end (default start)"
)
_UNITS_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_DURATION: Final = re.compile(r"-(\d+)(ms|s|m|h|d|w)")
_FROM_EDGE: Final = re.compile(r"start\+(\d+)|end-(\d+)")
_SECONDS_DIGITS_MAX: Final = 11  # a number of more digits counts milliseconds


class Window(NamedTuple):
    start: Start
    end: Start | None  # None: go on for ever


def parse_window(text: str, *, now_ms: int) -> Window:
    start, end = _split(text)
    return Window(
        _parse(start, now_ms=now_ms) if start else EARLIEST,
        _parse(end, now_ms=now_ms) if end else None,
    )


def _split(text: str) -> tuple[str, str]:
    """At the colon that is not part of a time of day."""
    if text.startswith(":"):
        return "", text[1:]
    if text.startswith("@"):
        start, separator, end = text[1:].partition(":@")
        if not separator and text.endswith(":end"):
            start, end = text[1:].removesuffix(":end"), "end"
            return f"@{start}", end
        return f"@{start}", f"@{end}" if separator else ""
    start, _, end = text.partition(":")
    return start, end


def _parse(text: str, *, now_ms: int) -> Start:
    if text in ("start", "earliest", "beginning", "oldest"):
        return EARLIEST
    if text in ("end", "latest", "newest"):
        return LATEST
    ago = _DURATION.fullmatch(text.removeprefix("@"))
    if ago:
        return Start.at_time(now_ms - int(ago[1]) * _UNITS_MS[ago[2]])
    if text.startswith("@"):
        return Start.at_time(_time(text[1:]))
    edge = _FROM_EDGE.fullmatch(text)
    if edge:
        return Start.after_first(int(edge[1])) if edge[1] else Start.before_last(int(edge[2]))
    try:
        number = int(text)
    except ValueError:
        raise Failure(f"{text!r} is no offset: say start, end, 42, +5, end-5, @2026-01-31T12:00 or -10m") from None
    if text.startswith("+"):
        return Start.after_first(number)
    return Start.before_last(-number) if text.startswith("-") else Start.at(number)


def _time(text: str) -> int:
    if text.isdecimal():
        return int(text) if len(text) > _SECONDS_DIGITS_MAX else int(text) * 1000
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise Failure(f"@{text}: say milliseconds, seconds, or a time such as 2026-01-31T12:00") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1000)
