"""Durations as users write them: a ``timedelta`` or a text such as ``"5m"``; milliseconds inside."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final, TypeAlias

from barnabas.streams.errors import TopologyError

__all__ = ["Duration", "milliseconds"]

Duration: TypeAlias = timedelta | str

_UNITS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_PART: Final = re.compile(r"(\d+)(ms|s|m|h|d)")
_MILLISECOND: Final = timedelta(milliseconds=1)


def milliseconds(duration: Duration) -> int:
    """Convert a duration to milliseconds.

    ``duration`` is a ``timedelta`` or a text of numbers with units, for example ``"500ms"``, ``"30s"``, ``"1h30m"`` or
    ``"7d"``. Raises :class:`TopologyError` if it is neither, or negative.
    """
    if isinstance(duration, timedelta):
        if duration < timedelta(0):
            raise TopologyError(f"a duration is negative: {duration}")
        return duration // _MILLISECOND
    parts = _PART.findall(str(duration))
    if not parts or "".join(number + unit for number, unit in parts) != duration:
        raise TopologyError(
            f"{duration!r} is not a duration; pass a timedelta, or a text such as '500ms', '30s', '5m', '1h30m' or '7d'"
        )
    return sum(int(number) * _UNITS[unit] for number, unit in parts)
