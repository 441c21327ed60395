"""What the group machines are told of the broker's settings, and the limits that are no settings.

The broker makes one of these of its own settings whenever they change (``broker/groups.py``); the machines look at the
one in force. Kafka's names are in the comments.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from barnabas.model.settings import INT32_MAX

NEW_MEMBER_JOIN_MS_MAX: Final = 300_000  # how long a new member's join waits before it is taken for gone
PENDING_MEMBERS_MAX: Final = 10_000  # per group: ids that were given out and not used yet
GROUPS_MAX: Final = 100_000  # per shard, of which there are 50
GROUP_ID_LENGTH_MAX: Final = 32_767  # as long as the wire allows
EXPIRED_PER_STEP_MAX: Final = 5_000  # tombstones written in one step when offsets expire


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    session_timeout_ms_min: int = 6_000  # group.min.session.timeout.ms
    session_timeout_ms_max: int = 1_800_000  # group.max.session.timeout.ms
    initial_rebalance_delay_ms: int = 3_000  # group.initial.rebalance.delay.ms
    members_max: int = INT32_MAX  # group.max.size
    metadata_bytes_max: int = 4_096  # offset.metadata.max.bytes
    retention_ms: int = 7 * 24 * 3_600_000  # offsets.retention.minutes
    retention_check_ms: int = 600_000  # offsets.retention.check.interval.ms
    record_bytes_max: int = 1_048_588 - 1_024  # what one record may take of the topic's max.message.bytes
