"""Which replica a consumer should read from (KIP-392): one in its own rack, if that is as good as the leader.

A pure choice. The leader's fetch handler asks, when ``replica.selector.class`` names the rack-aware selector.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.metadata.brokers_image import BrokerImage
from barnabas.model.ids import NO_BROKER
from barnabas.replication.partition import Partition


def preferred_replica(partition: Partition, brokers: Mapping[int, BrokerImage], *, rack: str, offset: int) -> int:
    """The follower to read from, or −1 to stay with the leader.

    It must be in sync, alive and have the offset; of several the one that is furthest, then the freshest.
    """
    if partition.in_sync is None or _rack(brokers, partition.broker_id) == rack:
        return NO_BROKER
    candidates = [
        follower
        for follower in partition.in_sync.followers.values()
        if follower.id in partition.in_sync.isr
        and follower.log_start_offset <= offset <= follower.end_offset
        and _rack(brokers, follower.id) == rack
    ]
    if not candidates:
        return NO_BROKER
    return max(candidates, key=lambda follower: (follower.end_offset, follower.caught_up_ms, -follower.id)).id


def _rack(brokers: Mapping[int, BrokerImage], broker_id: int) -> str | None:
    broker = brokers.get(broker_id)
    return broker.rack if broker is not None and not broker.is_fenced else None
