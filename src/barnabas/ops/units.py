"""Durations and sizes as people read them."""

from __future__ import annotations

from typing import Final

UNKNOWN: Final = "-"  # a duration that is not known


def duration(milliseconds: int | None) -> str:
    """Return a duration such as ``1.5 s``, ``42 s``, ``3 h``, with about two digits."""
    if milliseconds is None:
        return UNKNOWN
    if milliseconds < 10_000:
        return f"{max(milliseconds, 0) / 1000:g} s"
    seconds = milliseconds // 1000
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def size(count: int) -> str:
    """Return a number of bytes such as ``1.5 MiB``."""
    amount = float(count)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(amount) < 1024 or unit == "TiB":
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    raise AssertionError("the last unit takes everything")
