"""What a consumer can be told, beyond what any client can: see ``settings.py`` for how settings work."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

from barnabas.client.partitions.assignors import ASSIGNORS
from barnabas.client.settings.client import Settings, facts, milliseconds, setting
from barnabas.model.settings import InvalidSetting, Kind

IsolationLevel = Literal["read_uncommitted", "read_committed"]
GroupProtocol = Literal["classic", "consumer"]
OffsetReset = Literal["earliest", "latest", "none"]


ASSIGNOR_CLASSES: Final = {  # what configurations of Java's clients say
    "org.apache.kafka.clients.consumer.RangeAssignor": "range",
    "org.apache.kafka.clients.consumer.RoundRobinAssignor": "roundrobin",
    "org.apache.kafka.clients.consumer.StickyAssignor": "sticky",
    "org.apache.kafka.clients.consumer.CooperativeStickyAssignor": "cooperative-sticky",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerSettings(Settings):
    group_id: str | None = setting(Kind.STRING, None, "The group that shares the work and keeps the offsets.")
    group_instance_id: str | None = setting(
        Kind.STRING, None, "The name of a static member: a restart under it moves no partitions."
    )
    group_protocol: GroupProtocol = field(
        default="classic",
        metadata=facts(
            Kind.STRING,
            "Who assigns partitions: a member (classic) or the broker (consumer, KIP-848).",
            choices=("classic", "consumer"),
        ),
    )
    session_timeout_ms: int = milliseconds(45_000, "How long the group waits for a heartbeat.", minimum=1)
    heartbeat_interval_ms: int = milliseconds(3_000, "How often to say that we are alive.", minimum=1)
    max_poll_interval_ms: int = milliseconds(300_000, "How long between two polls before we leave.", minimum=1)
    group_remote_assignor: str | None = setting(
        Kind.STRING, None, "How the broker shares partitions, in groups of the consumer protocol; else as it likes."
    )
    partition_assignment_strategy: tuple[str, ...] = setting(
        Kind.LIST, ("range", "cooperative-sticky"), "How the group shares partitions, the favourite first."
    )
    enable_auto_commit: bool = setting(Kind.BOOLEAN, True, "Whether positions are stored without being asked to.")
    auto_commit_interval_ms: int = milliseconds(5_000, "How often positions are stored.")
    exclude_internal_topics: bool = setting(
        Kind.BOOLEAN, True, "Whether a pattern leaves out the cluster's own topics, in classic groups."
    )
    allow_auto_create_topics: bool = setting(Kind.BOOLEAN, True, "Whether a subscription may create its topics.")
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

    def __post_init__(self) -> None:
        Settings.__post_init__(self)  # without arguments: slots make the class anew
        named: object = self.partition_assignment_strategy
        names = named.split(",") if isinstance(named, str) else self.partition_assignment_strategy
        strategies = tuple(ASSIGNOR_CLASSES.get(name.strip(), name.strip()) for name in names)
        object.__setattr__(self, "partition_assignment_strategy", strategies)
        for name in strategies:
            if name not in ASSIGNORS:
                known = ", ".join(ASSIGNORS)
                raise InvalidSetting(f"partition.assignment.strategy: {name!r} is none of {known}")
        if not strategies:
            raise InvalidSetting("partition.assignment.strategy is empty: name at least one")
        if self.group_remote_assignor is not None and self.group_protocol == "classic":
            raise InvalidSetting("group.remote.assignor needs group.protocol=consumer")
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise InvalidSetting("heartbeat.interval.ms must be below session.timeout.ms")
