"""What a producer can be told, beyond what any client can: see ``settings.py`` for how settings work."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Literal

from barnabas.client.partitions.partitioner import NAMES
from barnabas.client.settings.client import Settings, facts, milliseconds, setting
from barnabas.model.settings import INT32_MAX, INT64_MAX, InvalidSetting, Kind

ACKS_ALL: Final = -1
IN_FLIGHT_MAX: Final = 5  # with idempotence

Acks = Literal[0, 1, -1]
CodecName = Literal["none", "gzip", "snappy", "lz4", "zstd"]


def _parse_acks(value: Any) -> str | None:
    return None if value in (0, 1, -1) else "must be 0, 1 or -1 (all)"


def _gzip_problem(value: Any) -> str | None:
    return None if value == -1 or 1 <= value <= 9 else "must be 1 to 9, or -1 for gzip's own"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerSettings(Settings):
    acks: Acks = field(
        default=-1,
        metadata=facts(Kind.SHORT, "Who must have a batch: nobody (0), the leader (1), all (-1).", check=_parse_acks),
    )
    enable_idempotence: bool | None = setting(
        Kind.BOOLEAN,
        None,
        "Retries neither double nor reorder what was sent; on if nothing is said, unless acks or retries rule it out.",
    )
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
    retries: int = setting(
        Kind.INT, INT32_MAX, "How often a batch is sent again; delivery.timeout.ms ends it too.", minimum=0
    )
    partitioner_class: str = setting(
        Kind.CLASS, "", "Who chooses partitions: a class of Kafka's by its name, or a word of librdkafka's."
    )
    partitioner_ignore_keys: bool = setting(
        Kind.BOOLEAN, False, "Whether keys have no say in it, unless a partitioner is named or given."
    )
    partitioner_adaptive_partitioning_enable: bool = setting(
        Kind.BOOLEAN, True, "Whether keyless records rather go to partitions with few batches waiting."
    )
    compression_type: CodecName = field(
        default="none",
        metadata=facts(Kind.STRING, "How batches are compressed.", choices=("none", "gzip", "snappy", "lz4", "zstd")),
    )
    compression_gzip_level: int = setting(Kind.INT, -1, "How hard gzip tries: 1 to 9, or -1.", check=_gzip_problem)
    compression_lz4_level: int = setting(Kind.INT, 9, "How hard lz4 tries.", minimum=1, maximum=17)
    compression_zstd_level: int = setting(Kind.INT, 3, "How hard zstd tries.", minimum=-131_072, maximum=22)

    transactional_id: str | None = setting(
        Kind.STRING, None, "The name under which transactions are made; a newer producer of that name fences this one."
    )
    transaction_timeout_ms: int = milliseconds(60_000, "How long a transaction may stay open.", minimum=1)

    @property
    def compression_level(self) -> int | None:
        """That of the codec in use, if it has one."""
        levels = {
            "gzip": self.compression_gzip_level,
            "lz4": self.compression_lz4_level,
            "zstd": self.compression_zstd_level,
        }
        return levels.get(self.compression_type)

    @property
    def is_idempotent(self) -> bool:
        if self.enable_idempotence is None:
            return self.acks == ACKS_ALL and self.retries > 0
        return self.enable_idempotence

    def __post_init__(self) -> None:
        # Without the arguments: slots make the class anew, and the implicit cell still points to the old one.
        Settings.__post_init__(self)
        if self.partitioner_class and self.partitioner_class not in NAMES:
            raise InvalidSetting(
                f"partitioner.class={self.partitioner_class!r} is none of {', '.join(sorted(NAMES))}; "
                "a function of your own is given to the producer: Producer(settings, partitioner=...)"
            )
        if self.enable_idempotence and self.acks != ACKS_ALL:
            raise InvalidSetting(f"enable.idempotence=true needs acks=all, and acks={self.acks} was given")
        if self.enable_idempotence and self.retries == 0:
            raise InvalidSetting("enable.idempotence=true needs retries of at least 1, and retries=0 was given")
        if self.transactional_id is not None and not self.is_idempotent:
            raise InvalidSetting("transactional.id needs enable.idempotence, acks=all and retries")
        if self.is_idempotent and self.max_in_flight_requests_per_connection > IN_FLIGHT_MAX:
            raise InvalidSetting(
                f"max.in.flight.requests.per.connection={self.max_in_flight_requests_per_connection} must be at most "
                f"{IN_FLIGHT_MAX} with enable.idempotence=true: a broker remembers five batches of a producer"
            )
