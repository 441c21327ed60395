"""All fetchers of this broker: each partition that another broker leads belongs to one connection to that leader.

The metadata decides who leads; :mod:`barnabas.replication.replicas` calls ``update`` with every change of it. Fetching
itself is :mod:`barnabas.replication.fetcher`'s.
"""

from __future__ import annotations

import asyncio

from barnabas.model.ids import NO_BROKER
from barnabas.replication.fetcher import Fetcher, Fetching, Home
from barnabas.replication.follower import key_of
from barnabas.replication.partition import Partition
from barnabas.wire.fetch_session import Key


class Fetchers:
    def __init__(self, home: Home) -> None:
        self._home = home
        self._by_lane: dict[tuple[int, int], Fetcher] = {}
        self._of: dict[Key, Fetcher] = {}
        self._count = home.settings.fetchers
        self._is_stopped = False

    def __len__(self) -> int:
        return len(self._of)

    def update(self, partition: Partition) -> None:
        """The metadata has said something of a partition: fetch it, from somebody else or in another epoch, or not."""
        key = key_of(partition.topic_id, partition.id.partition)
        fetcher = self._of.get(key)
        if partition.is_gone or partition.is_leader or partition.leader_id == NO_BROKER or self._is_stopped:
            self.drop(partition)
            return
        target = self._fetcher(partition)
        if fetcher is target and target.partitions[key].leader_epoch == partition.leader_epoch:
            state = target.partitions[key]
            if not state.is_parked and state.partition is partition:
                return
        if fetcher is not None and fetcher is not target:
            fetcher.drop(key)
        self._of[key] = target
        target.put(partition)

    def drop(self, partition: Partition) -> None:
        key = key_of(partition.topic_id, partition.id.partition)
        fetcher = self._of.get(key)
        if fetcher is not None and fetcher.partitions[key].partition is partition:
            del self._of[key]
            fetcher.drop(key)

    def resize(self) -> None:
        """num.replica.fetchers may have changed: partitions move to the connections that are theirs now."""
        if self._home.settings.fetchers == self._count:
            return
        self._count = self._home.settings.fetchers
        for state in list(self.states()):
            self.update(state.partition)

    def states(self) -> list[Fetching]:
        return [fetcher.partitions[key] for key, fetcher in self._of.items()]

    async def stop(self) -> None:
        self._is_stopped = True
        self._of.clear()
        await asyncio.gather(*(fetcher.stop() for fetcher in self._by_lane.values()))

    def _fetcher(self, partition: Partition) -> Fetcher:
        number = (int.from_bytes(partition.topic_id[-4:]) + partition.id.partition) % self._count
        lane = (partition.leader_id, number)
        fetcher = self._by_lane.get(lane)
        if fetcher is None:
            fetcher = self._by_lane[lane] = Fetcher(*lane, self._home)
        return fetcher
