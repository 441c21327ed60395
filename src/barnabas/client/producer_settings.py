"""What a producer can be told, beyond what any client can: see ``settings.py`` for how settings work."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from barnabas.client.settings import Settings, facts, milliseconds, setting
from barnabas.model.settings import INT32_MAX, INT64_MAX, InvalidSetting, Kind

Acks = Literal[0, 1, -1]
CodecName = Literal["none", "gzip", "snappy", "lz4", "zstd"]


def _parse_acks(value: Any) -> str | None:
    return None if value in (0, 1, -1) else "must be 0, 1 or -1 (all)"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerSettings(Settings):
    acks: Acks = field(
        default=-1,
        metadata=facts(Kind.SHORT, "Who must have a batch: nobody (0), the leader (1), all (-1).", check=_parse_acks),
    )
    enable_idempotence: bool = setting(Kind.BOOLEAN, True, "Retries neither double nor reorder what was sent.")
    batch_size: int = setting(Kind.INT, 16_384, "Bytes after which a batch leaves without lingering.", minimum=0)
    linger_ms: int = milliseconds(5, "How long a batch waits for more records.")
    buffer_memory: int = setting(
        Kind.LONG, 32 * 1024 * 1024, "Bytes of records that may wait here.", minimum=1, maximum=INT64_MAX
    )
    max_request_size: int = setting(Kind.INT, 1024 * 1024, "Bytes of records in one request.", minimum=0)
    max_in_flight_requests_per_connection: int = setting(
        Kind.INT, 5, "Requests that a broker may owe us answers to.", minimum=1, maximum=INT32_MAX
    )
    delivery_timeout_ms: int = milliseconds(120_000, "How long until an unanswered record counts as failed.")
    max_block_ms: int = milliseconds(60_000, "How long a send may wait for room or for the topic's partitions.")
    compression_type: CodecName = field(
        default="none",
        metadata=facts(Kind.STRING, "How batches are compressed.", choices=("none", "gzip", "snappy", "lz4", "zstd")),
    )

    transactional_id: str | None = setting(
        Kind.STRING, None, "The name under which transactions are made; a newer producer of that name fences this one."
    )
    transaction_timeout_ms: int = milliseconds(60_000, "How long a transaction may stay open.", minimum=1)

    def __post_init__(self) -> None:
        # Without the arguments: slots make the class anew, and the implicit cell still points to the old one.
        Settings.__post_init__(self)
        if self.enable_idempotence and self.acks != -1:
            # Java's producer switches idempotence off too when acks alone was given.
            object.__setattr__(self, "enable_idempotence", False)
        if self.transactional_id is not None and not self.enable_idempotence:
            raise InvalidSetting("transactional.id needs enable.idempotence and acks=all")
        if self.enable_idempotence and self.max_in_flight_requests_per_connection > 5:
            raise InvalidSetting(
                "max.in.flight.requests.per.connection must be at most 5 with enable.idempotence: "
                "a broker remembers five batches of a producer"
            )
