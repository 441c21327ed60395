"""The broker's settings for its cleaner, each declared once, and their values as one typed object.

What a topic says about its own compaction is among the topic settings. The broker puts these into its table and hands
the values to the cleaner, which asks for them again before every round.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from barnabas.model.settings import Kind, Setting, SettingTable, Update

MIB: Final = 1024 * 1024
UNLIMITED: Final = 1.7976931348623157e308  # Kafka's way of saying it: the largest double

CLEANER_SETTINGS: Final = SettingTable(
    (
        Setting(
            name="log.cleaner.enable",
            kind=Kind.BOOLEAN,
            default=True,
            doc="Whether compacted topics are cleaned; without it they, group offsets included, only ever grow.",
        ),
        Setting(
            name="log.cleaner.backoff.ms",
            kind=Kind.LONG,
            default=15_000,
            doc="How long the cleaner rests when no log needs it.",
            minimum=0,
            update=Update.CLUSTER_WIDE,
        ),
        Setting(
            name="log.cleaner.dedupe.buffer.size",
            kind=Kind.LONG,
            default=128 * MIB,
            doc="The most memory for the keys of one round, at 24 bytes a key; what does not fit waits for the next.",
            minimum=MIB,
            update=Update.CLUSTER_WIDE,
        ),
        Setting(
            name="log.cleaner.io.max.bytes.per.second",
            kind=Kind.DOUBLE,
            default=UNLIMITED,
            doc="How much the cleaner may read and write in a second, on average.",
            minimum=1,
            update=Update.CLUSTER_WIDE,
        ),
    )
)


class CleanerSettings(NamedTuple):
    is_enabled: bool = True
    backoff_ms: int = 15_000
    dedupe_buffer_bytes: int = 128 * MIB
    io_bytes_per_second_max: float = UNLIMITED

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> CleanerSettings:
        """The settings with these values, by name, and the defaults for the rest."""

        def value(name: str) -> Any:
            return values.get(name, CLEANER_SETTINGS[name].default)

        return cls(
            is_enabled=value("log.cleaner.enable"),
            backoff_ms=value("log.cleaner.backoff.ms"),
            dedupe_buffer_bytes=value("log.cleaner.dedupe.buffer.size"),
            io_bytes_per_second_max=value("log.cleaner.io.max.bytes.per.second"),
        )
