"""The settings of a topic, each declared once, and their values as one typed, frozen object.

How a value is inherited from the broker is decided by whoever holds both (``broker/settings/broker.py``): a setting
here only names the broker settings that give its default. The log, the validator and retention read
:class:`TopicSettings`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from barnabas.model.declared import Declared, named
from barnabas.model.settings import INT64_MAX, Kind, Update

DAY_MS: Final = 24 * 60 * 60 * 1000
WEEK_MS: Final = 7 * DAY_MS
MIB: Final = 1024 * 1024
GZIP_LEVEL_DEFAULT: Final = -1
GZIP_LEVEL_MAX: Final = 9
LOCAL_AS_WHOLE: Final = -2


def _gzip_level_problem(value: Any) -> str | None:
    if value == GZIP_LEVEL_DEFAULT or 1 <= value <= GZIP_LEVEL_MAX:
        return None
    return f"{value} must be from 1 to {GZIP_LEVEL_MAX}, or {GZIP_LEVEL_DEFAULT} for the default"


def _throttled_replicas_problem(value: Any) -> str | None:
    if tuple(value) in ((), ("*",), ("none",)):
        return None
    for pair in value:
        partition, colon, broker = pair.partition(":")
        if not (colon and partition.isascii() and partition.isdigit() and broker.isascii() and broker.isdigit()):
            return f"{pair!r} must be partition:broker, or the whole list * or none"
    return None


def _not_offered(value: Any) -> str | None:
    return "this is not offered, so it can only be false" if value else None


def _no_tiers(value: Any) -> str | None:
    return "tiered storage is not offered, so it can only be -2" if value != LOCAL_AS_WHOLE else None


def _long(name: str, default: int, doc: str, *synonyms: str, minimum: int | None = None, **more: Any) -> Any:
    return _topic(name, Kind.LONG, default, doc, *synonyms, minimum=minimum, **more)


def _int(name: str, default: int, doc: str, *synonyms: str, minimum: int | None = None, **more: Any) -> Any:
    return _topic(name, Kind.INT, default, doc, *synonyms, minimum=minimum, **more)


def _topic(name: str, kind: Kind, default: Any, doc: str, *synonyms: str, **more: Any) -> Any:
    # A topic's settings take effect at once wherever the topic lives, hence cluster-wide.
    return named(name, kind, default, doc, synonyms=synonyms, update=Update.CLUSTER_WIDE, **more)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSettings(Declared):
    """One value for every setting of a topic."""

    cleanup_policy: tuple[str, ...] = _topic(
        "cleanup.policy",
        Kind.LIST,
        ("delete",),
        "How old records leave: delete drops whole segments by age or size, compact keeps the last of each key; "
        "both may be given, and none at all keeps everything.",
        "log.cleanup.policy",
        choices=("compact", "delete"),
    )
    compression_type: str = _topic(
        "compression.type",
        Kind.STRING,
        "producer",
        "How batches are stored: as the producer sent them, or compressed anew with the codec named here.",
        "compression.type",
        choices=("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
    )
    compression_gzip_level: int = _int(
        "compression.gzip.level",
        GZIP_LEVEL_DEFAULT,
        "The gzip level when the broker compresses.",
        "compression.gzip.level",
        check=_gzip_level_problem,
    )
    compression_lz4_level: int = _int(
        "compression.lz4.level",
        9,
        "The lz4 level when the broker compresses.",
        "compression.lz4.level",
        minimum=1,
        maximum=17,
    )
    compression_zstd_level: int = _int(
        "compression.zstd.level",
        3,
        "The zstd level when the broker compresses.",
        "compression.zstd.level",
        minimum=-131072,
        maximum=22,
    )
    delete_retention_ms: int = _long(
        "delete.retention.ms",
        DAY_MS,
        "How long a compacted topic keeps tombstones and transaction markers.",
        "log.cleaner.delete.retention.ms",
        minimum=0,
    )
    file_delete_delay_ms: int = _long(
        "file.delete.delay.ms",
        60000,
        "How long a dropped file stays on disk for readers that still use it.",
        "log.segment.delete.delay.ms",
        minimum=0,
    )
    flush_messages: int = _long(
        "flush.messages",
        INT64_MAX,
        "After how many records the log is synced to the disk; 1 lets no acknowledged record depend on the page cache.",
        "log.flush.interval.messages",
        minimum=1,
    )
    flush_ms: int = _long(
        "flush.ms",
        INT64_MAX,
        "After what time unsynced records are synced to the disk.",
        "log.flush.interval.ms",
        "log.flush.scheduler.interval.ms",
        minimum=0,
    )
    follower_replication_throttled_replicas: tuple[str, ...] = _topic(
        "follower.replication.throttled.replicas",
        Kind.LIST,
        (),
        "Followers whose replication is throttled, as partition:broker pairs, or * for all.",
        check=_throttled_replicas_problem,
    )
    index_interval_bytes: int = _int(
        "index.interval.bytes",
        4096,
        "How many bytes of records lie between two entries of the indexes.",
        "log.index.interval.bytes",
        minimum=0,
    )
    leader_replication_throttled_replicas: tuple[str, ...] = _topic(
        "leader.replication.throttled.replicas",
        Kind.LIST,
        (),
        "Leaders whose replication is throttled, as partition:broker pairs, or * for all.",
        check=_throttled_replicas_problem,
    )
    local_retention_bytes: int = _long(
        "local.retention.bytes",
        LOCAL_AS_WHOLE,
        "Not offered, as there are no tiers: all is kept on this disk, by retention.bytes.",
        "log.local.retention.bytes",
        check=_no_tiers,
    )
    local_retention_ms: int = _long(
        "local.retention.ms",
        LOCAL_AS_WHOLE,
        "Not offered, as there are no tiers: all is kept on this disk, by retention.ms.",
        "log.local.retention.ms",
        check=_no_tiers,
    )
    max_compaction_lag_ms: int = _long(
        "max.compaction.lag.ms",
        INT64_MAX,
        "After what time a record is compacted however little of the log is dirty.",
        "log.cleaner.max.compaction.lag.ms",
        minimum=1,
    )
    max_message_bytes: int = _int(
        "max.message.bytes",
        MIB + 12,
        "The largest batch, as it is stored, that a producer may send.",
        "message.max.bytes",
        minimum=0,
    )
    message_timestamp_after_max_ms: int = _long(
        "message.timestamp.after.max.ms",
        60 * 60 * 1000,
        "How far ahead of the broker's clock a record's timestamp may be.",
        "log.message.timestamp.after.max.ms",
        minimum=0,
    )
    message_timestamp_before_max_ms: int = _long(
        "message.timestamp.before.max.ms",
        INT64_MAX,
        "How far behind the broker's clock a record's timestamp may be.",
        "log.message.timestamp.before.max.ms",
        minimum=0,
    )
    message_timestamp_type: str = _topic(
        "message.timestamp.type",
        Kind.STRING,
        "CreateTime",
        "Whose clock stamps the records: the producer's or, when they are appended, the broker's.",
        "log.message.timestamp.type",
        choices=("CreateTime", "LogAppendTime"),
    )
    min_cleanable_dirty_ratio: float = _topic(
        "min.cleanable.dirty.ratio",
        Kind.DOUBLE,
        0.5,
        "How much of a compacted log must be dirty before it is compacted again.",
        "log.cleaner.min.cleanable.ratio",
        minimum=0,
        maximum=1,
    )
    min_compaction_lag_ms: int = _long(
        "min.compaction.lag.ms",
        0,
        "How long a record is safe from compaction.",
        "log.cleaner.min.compaction.lag.ms",
        minimum=0,
    )
    min_insync_replicas: int = _int(
        "min.insync.replicas",
        1,
        "How many replicas must be in sync for a write with acks=all to be accepted.",
        "min.insync.replicas",
        minimum=1,
    )
    preallocate: bool = _topic(
        "preallocate",
        Kind.BOOLEAN,
        False,
        "Not offered: segments grow as they are written.",
        "log.preallocate",
        check=_not_offered,
    )
    remote_log_copy_disable: bool = _topic(
        "remote.log.copy.disable",
        Kind.BOOLEAN,
        False,
        "Stop copying segments of a tiered topic. Not offered.",
        check=_not_offered,
    )
    remote_log_delete_on_disable: bool = _topic(
        "remote.log.delete.on.disable",
        Kind.BOOLEAN,
        False,
        "Delete tiered data when tiering is switched off. Not offered.",
        check=_not_offered,
    )
    remote_storage_enable: bool = _topic(
        "remote.storage.enable",
        Kind.BOOLEAN,
        False,
        "Whether segments are copied to tiered storage. Not offered.",
        check=_not_offered,
    )
    retention_bytes: int = _long(
        "retention.bytes",
        -1,
        "How large a partition may grow before its oldest segments go; -1 means no limit.",
        "log.retention.bytes",
    )
    retention_ms: int = _long(
        "retention.ms",
        WEEK_MS,
        "How old a segment's newest record may become before the segment goes; -1 means no limit.",
        "log.retention.ms",
        "log.retention.minutes",
        "log.retention.hours",
        minimum=-1,
    )
    segment_bytes: int = _int(
        "segment.bytes",
        1024 * MIB,
        "How large a segment grows before the next one begins.",
        "log.segment.bytes",
        minimum=MIB,
    )
    segment_index_bytes: int = _int(
        "segment.index.bytes",
        10 * MIB,
        "How large an index grows before the next segment begins.",
        "log.index.size.max.bytes",
        minimum=4,
    )
    segment_jitter_ms: int = _long(
        "segment.jitter.ms",
        0,
        "A random part of segment.ms, so that not all partitions roll at once.",
        "log.roll.jitter.ms",
        "log.roll.jitter.hours",
        minimum=0,
    )
    segment_ms: int = _long(
        "segment.ms",
        WEEK_MS,
        "What time the records of one segment may span before the next one begins.",
        "log.roll.ms",
        "log.roll.hours",
        minimum=1,
    )
    unclean_leader_election_enable: bool = _topic(
        "unclean.leader.election.enable",
        Kind.BOOLEAN,
        False,
        "Whether a replica that is not in sync may lead when no other is left, at the price of lost records.",
        "unclean.leader.election.enable",
    )

    @property
    def is_compacted(self) -> bool:
        return "compact" in self.cleanup_policy

    @property
    def is_deleted(self) -> bool:
        return "delete" in self.cleanup_policy


TOPIC_SETTINGS: Final = TopicSettings.table()
