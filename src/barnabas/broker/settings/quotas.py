"""The settings of quotas: over which time a rate is taken, and how fast connections may come; declared once.

``broker/settings/broker.py`` takes them into its table and into its typed values. The quotas themselves are metadata,
set with AlterClientQuotas.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from barnabas.model.settings import INT32_MAX, Kind, Setting, SettingTable, Update, setting


def _settings() -> Iterator[Setting]:
    yield setting(
        "quota.window.num", Kind.INT, 11, "Over how many windows a client's rate is taken, the current one too.",
        minimum=1,
    )  # fmt: skip
    yield setting("quota.window.size.seconds", Kind.INT, 1, "How long one of them is.", minimum=1)
    yield setting(
        "controller.quota.window.num",
        Kind.INT,
        11,
        "How many windows of changes to topics a client may make at once.",
        minimum=1,
    )
    yield setting("controller.quota.window.size.seconds", Kind.INT, 1, "How long one of them is.", minimum=1)
    yield setting(
        "max.connection.creation.rate",
        Kind.INT,
        INT32_MAX,
        "How many connections are taken in a second; those beyond wait.",
        minimum=0,
        update=Update.CLUSTER_WIDE,
    )


QUOTA_SETTINGS: Final = SettingTable(_settings())


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaSettings:
    windows: int
    window_ms: int
    mutation_windows: int
    mutation_window_ms: int
    connections_per_second_max: int

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> QuotaSettings:
        found = QUOTA_SETTINGS.filled(values)
        return cls(
            windows=found["quota.window.num"],
            window_ms=found["quota.window.size.seconds"] * 1000,
            mutation_windows=found["controller.quota.window.num"],
            mutation_window_ms=found["controller.quota.window.size.seconds"] * 1000,
            connections_per_second_max=found["max.connection.creation.rate"],
        )
