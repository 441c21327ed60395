"""The settings of the controller quorum, under Kafka's names and with Kafka's defaults.

Only the quorum reads them; where a node keeps its files and which node it is are settings of the broker.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from barnabas.model.declared import Declared, named
from barnabas.model.settings import Kind

BATCH_BYTES_MAX: Final = 8 << 20  # the largest batch of the metadata log
GIB: Final = 1 << 30
WEEK_MS: Final = 7 * 24 * 60 * 60 * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class RaftSettings(Declared):
    election_timeout_ms: int = named(
        "controller.quorum.election.timeout.ms",
        Kind.INT,
        1000,
        "How long a voter without a leader waits, at least, before it starts an election.",
        minimum=0,
    )
    fetch_timeout_ms: int = named(
        "controller.quorum.fetch.timeout.ms",
        Kind.INT,
        2000,
        "How long a voter goes on without a successful fetch from its leader before it starts an election, "
        "and, times one and a half, how long a leader goes on without fetches from a majority before it resigns.",
        minimum=0,
    )
    election_backoff_max_ms: int = named(
        "controller.quorum.election.backoff.max.ms",
        Kind.INT,
        1000,
        "The longest a voter holds back after a resignation in favour of better placed ones.",
        minimum=0,
    )
    request_timeout_ms: int = named(
        "controller.quorum.request.timeout.ms",
        Kind.INT,
        2000,
        "The longest wait for the answer of another member of the quorum.",
        minimum=1,
    )
    retry_backoff_ms: int = named(
        "controller.quorum.retry.backoff.ms",
        Kind.INT,
        20,
        "How long to wait before a member that did not answer is asked again.",
        minimum=1,
    )
    auto_join_enable: bool = named(
        "controller.quorum.auto.join.enable",
        Kind.BOOLEAN,
        True,
        "Whether a controller that is not a voter asks the leader to make it one.",
    )
    log_segment_bytes: int = named(
        "metadata.log.segment.bytes", Kind.INT, GIB, "The size of a file of the metadata log.", minimum=BATCH_BYTES_MAX
    )
    log_segment_ms: int = named(
        "metadata.log.segment.ms",
        Kind.LONG,
        WEEK_MS,
        "The time after which a new file of the metadata log is begun, even if the old one is not full.",
        minimum=1,
    )
    max_retention_bytes: int = named(
        "metadata.max.retention.bytes",
        Kind.LONG,
        100 << 20,
        "How large the metadata log and its snapshots together may be before the oldest go; -1 for no limit.",
    )
    max_retention_ms: int = named(
        "metadata.max.retention.ms",
        Kind.LONG,
        WEEK_MS,
        "How old a snapshot of the metadata may be before it goes, unless it is the newest; -1 for no limit.",
    )
    fetch_wait_ms_max: int = 500  # how long a leader may hold a fetch that has nothing to bring
