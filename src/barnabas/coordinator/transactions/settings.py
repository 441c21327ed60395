"""The broker settings of transactions, declared beside what they govern.

``broker/settings/broker.py`` adds them to its table and makes one :class:`TransactionSettings` of the values in
force.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from barnabas.coordinator.transactions.shard import TransactionRules
from barnabas.model.declared import Declared, named
from barnabas.model.settings import Kind, Update

_DAY_MS: Final = 86_400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionSettings(Declared):
    partition_count: int = named(
        "transaction.state.log.num.partitions",
        Kind.INT,
        50,
        "Partitions of the topic that keeps the state of transactions.",
        minimum=1,
    )
    replication_factor: int = named(
        "transaction.state.log.replication.factor",
        Kind.SHORT,
        3,
        "Replicas of the topic that keeps the state of transactions.",
        minimum=1,
    )
    min_insync_replicas: int = named(
        "transaction.state.log.min.isr",
        Kind.INT,
        2,
        "How many replicas of that topic must have what a transaction's producer is told.",
        minimum=1,
    )
    segment_bytes: int = named(
        "transaction.state.log.segment.bytes",
        Kind.INT,
        100 * 1024 * 1024,
        "The segment size of that topic: small, so that it is compacted and loaded soon.",
        minimum=1,
    )
    timeout_ms_max: int = named(
        "transaction.max.timeout.ms",
        Kind.INT,
        900_000,
        "The longest time that a producer may leave a transaction open.",
        minimum=1,
    )
    expiration_ms: int = named(
        "transactional.id.expiration.ms",
        Kind.INT,
        7 * _DAY_MS,
        "After what time an unused transactional id is forgotten.",
        minimum=1,
    )
    time_out_check_ms: int = named(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        Kind.INT,
        10_000,
        "How often transactions whose time is up are looked for.",
        minimum=1,
    )
    expiry_check_ms: int = named(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        Kind.INT,
        3_600_000,
        "How often expired transactional ids are looked for.",
        minimum=1,
    )
    is_verifying: bool = named(
        "transaction.partition.verification.enable",
        Kind.BOOLEAN,
        True,
        "Whether a leader asks the coordinator before it takes the first batch of a transaction of version 1.",
        update=Update.CLUSTER_WIDE,
    )
    retry_ms: int = named(
        "add.partitions.to.txn.retry.backoff.ms",
        Kind.INT,
        20,
        "How long a leader waits before it asks the coordinator again, while the last transaction is being ended.",
        minimum=1,
    )
    retry_ms_max: int = named(
        "add.partitions.to.txn.retry.backoff.max.ms",
        Kind.INT,
        100,
        "How long a leader goes on asking before it leaves that to the producer.",
        minimum=0,
    )

    @property
    def topic_configs(self) -> dict[str, str]:
        """What the topic of transactions is made with: Kafka enforces the same."""
        return {
            "unclean.leader.election.enable": "false",
            "compression.type": "uncompressed",
            "cleanup.policy": "compact",
            "min.insync.replicas": str(self.min_insync_replicas),
            "segment.bytes": str(self.segment_bytes),
        }

    def rules(self, *, feature_level: int) -> TransactionRules:
        return TransactionRules(
            timeout_ms_max=self.timeout_ms_max,
            expiration_ms=self.expiration_ms,
            time_out_check_ms=self.time_out_check_ms,
            expiry_check_ms=self.expiry_check_ms,
            feature_level=feature_level,
        )
