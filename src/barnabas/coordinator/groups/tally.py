"""What the groups of all shards here did, in numbers: offsets committed, expired and deleted, and rebalances.

The shards count as they decide; the broker's metrics show it. It belongs to the broker and not to a shard, since what
is counted must not fall when a shard moves away.
"""

from __future__ import annotations

from collections.abc import Callable

from barnabas.observe.meter import Meter


class GroupTally:
    def __init__(self, now_ns: Callable[[], int]) -> None:
        self.offset_commits = Meter(now_ns)
        self.offset_expirations = Meter(now_ns)
        self.offset_deletions = Meter(now_ns)  # because somebody said so
        self.classic_rebalances = Meter(now_ns)  # completed: the leader's assignment was taken
        self.consumer_rebalances = Meter(now_ns)  # begun: the group has a new epoch
        self.share_rebalances = Meter(now_ns)  # as of consumer groups
