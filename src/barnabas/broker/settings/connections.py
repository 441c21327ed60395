"""The settings that bound what clients may do to a broker by connecting and asking; declared once.

``broker/settings/broker.py`` takes them into its table and into its typed values; the listeners and the handlers keep
them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from barnabas.model.declared import Declared, named
from barnabas.model.settings import INT32_MAX, InvalidSetting, Kind, Update


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionSettings(Declared):
    """Base class of the broker's settings."""

    connections_max_idle_ms: int = named(
        "connections.max.idle.ms", Kind.LONG, 600_000, "After what time a silent connection is closed.", minimum=1
    )
    max_connections: int = named(
        "max.connections", Kind.INT, INT32_MAX, "The most connections at once.", minimum=0, update=Update.CLUSTER_WIDE
    )
    max_connections_per_ip: int = named(
        "max.connections.per.ip",
        Kind.INT,
        INT32_MAX,
        "The most connections from one address.",
        minimum=0,
        update=Update.CLUSTER_WIDE,
    )
    max_connections_per_ip_overrides: str = named(
        "max.connections.per.ip.overrides",
        Kind.STRING,
        "",
        "Addresses with a limit of their own, as address:count, separated by commas.",
        update=Update.CLUSTER_WIDE,
        check=_overrides_problem,
    )
    max_request_partition_size_limit: int = named(
        "max.request.partition.size.limit",
        Kind.INT,
        2000,
        "The most partitions in one answer about partitions.",
        minimum=1,
    )
