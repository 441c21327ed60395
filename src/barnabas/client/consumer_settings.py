"""What a consumer can be told, beyond what any client can: see ``settings.py`` for how settings work."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from barnabas.client.settings import Settings, facts, milliseconds, setting
from barnabas.model.settings import Kind

IsolationLevel = Literal["read_uncommitted", "read_committed"]
OffsetReset = Literal["earliest", "latest", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerSettings(Settings):
    fetch_min_bytes: int = setting(Kind.INT, 1, "Bytes that make a broker answer a fetch at once.", minimum=0)
    fetch_max_wait_ms: int = milliseconds(500, "How long a broker may wait for fetch.min.bytes.")
    fetch_max_bytes: int = setting(Kind.INT, 52_428_800, "Bytes in one answer, about.", minimum=0)
    max_partition_fetch_bytes: int = setting(Kind.INT, 1_048_576, "Bytes of one partition in one answer.", minimum=0)
    max_poll_records: int = setting(Kind.INT, 500, "Records handed out by one poll.", minimum=1)
    isolation_level: IsolationLevel = field(
        default="read_uncommitted",
        metadata=facts(
            Kind.STRING,
            "Whether records of open and aborted transactions are seen.",
            choices=("read_uncommitted", "read_committed"),
        ),
    )
    auto_offset_reset: OffsetReset = field(
        default="latest",
        metadata=facts(Kind.STRING, "Where to go when a position is gone.", choices=("earliest", "latest", "none")),
    )
    check_crcs: bool = setting(Kind.BOOLEAN, True, "Whether every batch's checksum is compared.")
    client_rack: str = setting(Kind.STRING, "", "Where this client runs, for reading from the closest replica.")
    decompressed_max_bytes: int = setting(
        Kind.INT, 128 * 1024 * 1024, "The largest batch after decompression that is accepted.", minimum=1
    )
