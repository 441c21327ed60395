"""The settings of quotas: over which time a rate is taken, and how fast connections may come; declared once.

``broker/settings/broker.py`` takes them into its table and into its typed values. The quotas themselves are metadata,
set with AlterClientQuotas.
"""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.model.declared import Declared, named
from barnabas.model.settings import INT32_MAX, Kind, Update


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaSettings(Declared):
    windows: int = named(
        "quota.window.num",
        Kind.INT,
        11,
        "Over how many windows a client's rate is taken, the current one too.",
        minimum=1,
    )
    window_ms: int = named(
        "quota.window.size.seconds",
        Kind.INT,
        1,
        "How long one of them is.",
        minimum=1,
        convert=lambda seconds: seconds * 1000,
    )
    mutation_windows: int = named(
        "controller.quota.window.num",
        Kind.INT,
        11,
        "How many windows of changes to topics a client may make at once.",
        minimum=1,
    )
    mutation_window_ms: int = named(
        "controller.quota.window.size.seconds",
        Kind.INT,
        1,
        "How long one of them is.",
        minimum=1,
        convert=lambda seconds: seconds * 1000,
    )
    connections_per_second_max: int = named(
        "max.connection.creation.rate",
        Kind.INT,
        INT32_MAX,
        "How many connections are taken in a second; those beyond wait.",
        minimum=0,
        update=Update.CLUSTER_WIDE,
    )
