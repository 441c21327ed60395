"""All share-partitions whose partitions this broker leads, while members of their groups have sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from barnabas.broker.share.leader import ShareLeader
from barnabas.broker.share.persister import Persister
from barnabas.broker.share.tally import ShareTally
from barnabas.coordinator.share.settings import ShareGroupSettings
from barnabas.coordinator.share_state.records import SharePartitionKey
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.observe.log import logger
from barnabas.replication.partition import Partition
from barnabas.replication.replicas import Replicas
from barnabas.world.clock import Clock
from barnabas.world.tasks import Tasks
from barnabas.world.timers import Timers

log = logger("share")


class ShareLeaders:
    def __init__(
        self,
        *,
        replicas: Replicas,
        persister: Persister,
        clock: Clock,
        timers: Timers,
        settings_of: Callable[[str], ShareGroupSettings],
    ) -> None:
        self._replicas = replicas
        self._persister = persister
        self._clock = clock
        self._timers = timers
        self._settings_of = settings_of
        self._tasks = Tasks()
        self._leaders: dict[SharePartitionKey, ShareLeader] = {}
        self._draining: dict[SharePartitionKey, ShareLeader] = {}  # dropped ones whose writes have not ended
        self.tally = ShareTally()
        self._forget_leadership = replicas.on_leadership(self._on_leadership)

    def __iter__(self) -> Iterator[ShareLeader]:
        return iter(tuple(self._leaders.values()))

    def __len__(self) -> int:
        return len(self._leaders)

    async def stop(self) -> None:
        self._forget_leadership()
        for leader in self:
            self._drop(leader)
        await self._tasks.done()

    def find(self, key: SharePartitionKey) -> ShareLeader | None:
        return self._leaders.get(key)

    def lead(self, key: SharePartitionKey) -> ShareLeader:
        """The leader of a share-partition, made if it does not exist; ApiError if this broker does not lead it."""
        found = self._leaders.get(key)
        if found is not None and found.failure is not None:
            self._drop(found)  # the next fetch tries again
            raise found.failure
        if found is not None and found.is_current:
            return found
        if found is not None:
            self._drop(found)
        partition = self._replicas.leader_by_id(key.topic_id, key.partition)
        if partition.is_internal:
            raise ApiError(errors.INVALID_TOPIC_EXCEPTION, f"{partition.id.topic} is an internal topic")
        leader = self._leaders[key] = ShareLeader(
            key,
            partition,
            persister=self._persister,
            clock=self._clock,
            timers=self._timers,
            tasks=self._tasks,
            settings=lambda: self._settings_of(key.group_id),
            tally=self.tally,
            on_over=self._drop,
            predecessor=self._draining.pop(key, None),
        )
        return leader

    async def leave(self, key: SharePartitionKey, member_id: str) -> None:
        """A session of a member no longer includes a share-partition: release what the member has acquired there."""
        leader = self._leaders.get(key)
        if leader is None:
            return
        leader.members.discard(member_id)
        try:
            await leader.release(member_id)
        except ApiError as error:
            log.info("records were not released", share_partition=key.coordinator_key, reason=error)
        if not leader.members and self._leaders.get(key) is leader:
            self._drop(leader)

    def start_leaving(self, key: SharePartitionKey, member_id: str) -> None:
        self._tasks.start(self.leave(key, member_id), f"share-leave:{key.coordinator_key}")

    def _drop(self, leader: ShareLeader) -> None:
        if self._leaders.get(leader.key) is leader:
            del self._leaders[leader.key]
        if not leader.is_over:
            leader.close()
            if leader.is_writing:
                self._draining[leader.key] = leader
                self._tasks.start(self._drain(leader), f"share-drain:{leader.key.coordinator_key}")

    async def _drain(self, leader: ShareLeader) -> None:
        await leader.settled()
        if self._draining.get(leader.key) is leader:
            del self._draining[leader.key]

    def _on_leadership(self, partition: Partition, is_leader: bool) -> None:
        for leader in self:
            if leader.partition is partition and not (is_leader and leader.is_current):
                self._drop(leader)
