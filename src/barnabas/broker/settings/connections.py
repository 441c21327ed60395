"""The settings that bound what clients may do to a broker by connecting and asking; declared once.

``broker/settings/broker.py`` takes them into its table and into its typed values; the listeners and the handlers keep
them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from barnabas.model.settings import INT32_MAX, InvalidSetting, Kind, Setting, SettingTable, Update, setting


def parse_overrides(text: str) -> dict[str, int]:
    """The limits of single addresses."""
    found: dict[str, int] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        address, colon, count = part.rpartition(":")
        if not (address and colon and count.isascii() and count.isdigit()):
            raise InvalidSetting(f"{part!r} is not address:count")
        found[address.removeprefix("[").removesuffix("]")] = int(count)
    return found


def _overrides_problem(value: Any) -> str | None:
    try:
        parse_overrides(value)
    except InvalidSetting as error:
        return str(error)
    return None


def _connections() -> Iterator[Setting]:
    everywhere = Update.CLUSTER_WIDE
    yield setting(
        "connections.max.idle.ms", Kind.LONG, 600_000, "After what time a silent connection is closed.", minimum=1
    )
    yield setting("max.connections", Kind.INT, INT32_MAX, "The most connections at once.", minimum=0, update=everywhere)
    yield setting(
        "max.connections.per.ip",
        Kind.INT,
        INT32_MAX,
        "The most connections from one address.",
        minimum=0,
        update=everywhere,
    )
    yield setting(
        "max.connections.per.ip.overrides",
        Kind.STRING,
        "",
        "Addresses with a limit of their own, as address:count, separated by commas.",
        update=everywhere,
        check=_overrides_problem,
    )
    yield setting(
        "max.request.partition.size.limit",
        Kind.INT,
        2000,
        "The most partitions in one answer about partitions.",
        minimum=1,
    )


CONNECTION_SETTINGS: Final = SettingTable(_connections())
