"""The settings of the controller quorum, under Kafka's names and with Kafka's defaults.

Only the quorum reads them; where a node keeps its files and which node it is are settings of the broker.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from barnabas.model.settings import Kind, Setting, SettingTable

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
            doc="How long to wait for the answer of another member of the quorum.",
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
            default=False,
            doc="Whether a controller that is not a voter asks the leader to make it one.",
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
    fetch_wait_ms_max: int = 500  # how long a leader may hold a fetch that has nothing to bring

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> RaftSettings:
        """From parsed settings by name; what is missing takes its default."""
        prefix = "controller.quorum."
        given = {name: values.get(name, RAFT_SETTINGS[name].default) for name in (s.name for s in RAFT_SETTINGS)}
        return cls(**{name.removeprefix(prefix).replace(".", "_"): value for name, value in given.items()})
