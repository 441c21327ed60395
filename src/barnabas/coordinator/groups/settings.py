"""The broker settings of classic groups and offsets, declared beside what they govern, and the limits that are none.

``broker/settings/broker.py`` adds them to its table and makes one :class:`GroupSettings` of the values in
force; the machines look at that. What groups of the consumer protocol follow is in ``consumer_group_settings``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from barnabas.model.declared import Declared, named
from barnabas.model.settings import INT32_MAX, Kind

NEW_MEMBER_JOIN_MS_MAX: Final = 300_000  # how long a new member's join waits before it is taken for gone
PROTOCOLS_PER_MEMBER_MAX: Final = 100  # clients offer one to four
PENDING_MEMBERS_MAX: Final = 10_000  # per group: ids that were given out and not used yet
GROUPS_MAX: Final = 100_000  # per shard, of which there are 50
EXPIRED_PER_STEP_MAX: Final = 5_000  # tombstones written in one step when offsets expire
BATCH_BYTES_SPARE: Final = 1_024  # of the topic's largest batch, for what is around a record

_MINUTE_MS: Final = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings(Declared):
    session_timeout_ms_min: int = named(
        "group.min.session.timeout.ms",
        Kind.INT,
        6_000,
        "The shortest session that a member of a group may ask for.",
        minimum=0,
    )
    session_timeout_ms_max: int = named(
        "group.max.session.timeout.ms",
        Kind.INT,
        1_800_000,
        "The longest session that a member of a group may ask for.",
        minimum=0,
    )
    initial_rebalance_delay_ms: int = named(
        "group.initial.rebalance.delay.ms",
        Kind.INT,
        3_000,
        "How long an empty group waits for more members when the first has come.",
        minimum=0,
    )
    members_max: int = named("group.max.size", Kind.INT, INT32_MAX, "The most members of a group.", minimum=1)
    metadata_bytes_max: int = named(
        "offset.metadata.max.bytes", Kind.INT, 4_096, "The most that may be noted beside a committed offset.", minimum=0
    )
    retention_ms: int = named(
        "offsets.retention.minutes",
        Kind.INT,
        7 * 24 * 60,
        "After what time the offsets of a group without members are forgotten.",
        minimum=1,
        convert=lambda minutes: minutes * _MINUTE_MS,
    )
    retention_check_ms: int = named(
        "offsets.retention.check.interval.ms",
        Kind.LONG,
        600_000,
        "How often offsets that are too old are looked for.",
        minimum=1,
    )
    record_bytes_max: int = 1_048_588 - BATCH_BYTES_SPARE  # what one step may write at once

    @classmethod
    def of(cls, values: Mapping[str, Any], *, message_bytes_max: int) -> Self:
        """From the values that were given, by name; ``message_bytes_max`` is that of the offsets topic."""
        return cls.of_values(values, record_bytes_max=max(message_bytes_max - BATCH_BYTES_SPARE, BATCH_BYTES_SPARE))
