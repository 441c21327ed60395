"""The settings of the controller quorum, under Kafka's names and with Kafka's defaults.

Only the quorum reads them; where a node keeps its files and which node it is are settings of the broker.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from barnabas.model.settings import Kind, Setting, SettingTable

BATCH_BYTES_MAX: Final = 8 << 20  # the largest batch of the metadata log
GIB: Final = 1 << 30
WEEK_MS: Final = 7 * 24 * 60 * 60 * 1000

RAFT_SETTINGS: Final = SettingTable(
    (
        Setting(
            name="controller.quorum.election.timeout.ms",
            kind=Kind.INT,
            default=1000,
            minimum=0,
            doc="How long a voter without a leader waits, at least, before it starts an election.",
        ),
        Setting(
            name="controller.quorum.fetch.timeout.ms",
            kind=Kind.INT,
            default=2000,
            minimum=0,
            doc="How long a voter goes on without a successful fetch from its leader before it starts an election, "
            "and, times one and a half, how long a leader goes on without fetches from a majority before it resigns.",
        ),
        Setting(
            name="controller.quorum.election.backoff.max.ms",
            kind=Kind.INT,
            default=1000,
            minimum=0,
            doc="The longest a voter holds back after a resignation in favour of better placed ones.",
        ),
        Setting(
            name="controller.quorum.request.timeout.ms",
            kind=Kind.INT,
            default=2000,
            minimum=1,
            doc="The longest wait for the answer of another member of the quorum.",
        ),
        Setting(
            name="controller.quorum.retry.backoff.ms",
            kind=Kind.INT,
            default=20,
            minimum=1,
            doc="How long to wait before a member that did not answer is asked again.",
        ),
        Setting(
            name="controller.quorum.auto.join.enable",
            kind=Kind.BOOLEAN,
            default=True,
            doc="Whether a controller that is not a voter asks the leader to make it one.",
        ),
        Setting(
            name="metadata.log.segment.bytes",
            kind=Kind.INT,
            default=GIB,
            minimum=BATCH_BYTES_MAX,
            doc="The size of a file of the metadata log.",
        ),
        Setting(
            name="metadata.log.segment.ms",
            kind=Kind.LONG,
            default=WEEK_MS,
            minimum=1,
            doc="The time after which a new file of the metadata log is begun, even if the old one is not full.",
        ),
        Setting(
            name="metadata.max.retention.bytes",
            kind=Kind.LONG,
            default=100 << 20,
            doc="How large the metadata log and its snapshots together may be before the oldest go; -1 for no limit.",
        ),
        Setting(
            name="metadata.max.retention.ms",
            kind=Kind.LONG,
            default=WEEK_MS,
            doc="How old a snapshot of the metadata may be before it goes, unless it is the newest; -1 for no limit.",
        ),
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RaftSettings:
    election_timeout_ms: int = 1000
    fetch_timeout_ms: int = 2000
    election_backoff_max_ms: int = 1000
    request_timeout_ms: int = 2000
    retry_backoff_ms: int = 20
    auto_join_enable: bool = False
    log_segment_bytes: int = GIB
    log_segment_ms: int = WEEK_MS
    max_retention_bytes: int = 100 << 20
    max_retention_ms: int = WEEK_MS
    fetch_wait_ms_max: int = 500  # how long a leader may hold a fetch that has nothing to bring

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> RaftSettings:
        """From parsed settings by name; what is missing takes its default."""
        given = {}
        for setting in RAFT_SETTINGS:
            attribute = setting.attribute.removeprefix("controller_quorum_").removeprefix("metadata_")
            given[attribute] = values.get(setting.name, setting.default)
        return cls(**given)
