"""The broker's settings for its cleaner, each declared once, and their values as one typed object.

What a topic says about its own compaction is among the topic settings. The broker puts these into its table and hands
the values to the cleaner, which asks for them again before every round.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from barnabas.model.declared import Declared, named
from barnabas.model.settings import Kind, Update

MIB: Final = 1024 * 1024
UNLIMITED: Final = 1.7976931348623157e308  # Kafka's way of saying it: the largest double


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanerSettings(Declared):
    is_enabled: bool = named(
        "log.cleaner.enable",
        Kind.BOOLEAN,
        True,
        "Whether compacted topics are cleaned; without it they, group offsets included, only ever grow.",
    )
    backoff_ms: int = named(
        "log.cleaner.backoff.ms",
        Kind.LONG,
        15_000,
        "How long the cleaner rests when no log needs it.",
        minimum=0,
        update=Update.CLUSTER_WIDE,
    )
    dedupe_buffer_bytes: int = named(
        "log.cleaner.dedupe.buffer.size",
        Kind.LONG,
        128 * MIB,
        "The most memory for the keys of one round, at 24 bytes a key; what does not fit waits for the next.",
        minimum=MIB,
        update=Update.CLUSTER_WIDE,
    )
    io_bytes_per_second_max: float = named(
        "log.cleaner.io.max.bytes.per.second",
        Kind.DOUBLE,
        UNLIMITED,
        "How much the cleaner may read and write in a second, on average.",
        minimum=1,
        update=Update.CLUSTER_WIDE,
    )
