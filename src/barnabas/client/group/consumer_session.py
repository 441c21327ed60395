"""A consumer's standing in a group of the consumer protocol, kept up in the background by heartbeats.

The same face as ``group_session.py`` has for classic groups. Performs what ``consumer_membership.py`` decides; what
the broker assigned is applied by ``group.py``, between two polls.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.group.commits import GROUP_LANE
from barnabas.client.group.consumer_membership import ConsumerMembership
from barnabas.client.group.membership import Outcome, Phase
from barnabas.client.group.standing import LEAVE_MS_MAX, Standing, Topics
from barnabas.client.settings.consumer import ConsumerSettings
from barnabas.model.errors import BarnabasError
from barnabas.model.ids import TopicPartition, Uuid
from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse


class ConsumerSession(Standing):
    membership: ConsumerMembership

    def __init__(
        self, cluster: Cluster, settings: ConsumerSettings, topics: Topics, *, on_change: Callable[[], None]
    ) -> None:
        super().__init__(cluster, settings, topics, on_change=on_change)
        self.membership = ConsumerMembership(
            group_id=settings.group_id or "",
            member_id=str(cluster.world.entropy.uuid()),  # since version 1 members choose their own
            instance_id=settings.group_instance_id,
            rebalance_timeout_ms=settings.max_poll_interval_ms,
            rack=settings.client_rack or None,
            assignor=settings.group_remote_assignor,
        )
        self.assigned: tuple[TopicPartition, ...] = ()
        self._wake = asyncio.Event()
        self._ids: dict[str, Uuid] = {}

    @property
    def is_joining(self) -> bool:
        return self.membership.phase is Phase.JOINING

    async def wait_for_join(self, deadline: float) -> None:
        """Nothing to wait for: a member of this protocol has its epoch from the answer that made it one."""

    def join(self) -> None:
        self.membership.join()
        self._wake.set()

    def applied(self, partitions: list[TopicPartition]) -> None:
        """The consumer has these now; the group waits to hear of it."""
        self.membership.applied(partitions)
        self._wake.set()

    async def _beat(self) -> None:
        backoff = self._cluster.backoff()
        while True:
            pause_ms = self.membership.heartbeat_interval_ms or self._settings.heartbeat_interval_ms
            try:
                if self.membership.phase in (Phase.JOINING, Phase.STABLE):
                    outcome = await self._once()
                    if outcome in (Outcome.RETRY, Outcome.FIND_COORDINATOR):
                        pause_ms = backoff.next_ms()
                    else:
                        backoff.reset()
                if self._is_overdue(asyncio.get_running_loop().time()):
                    await self.leave()
                    self.membership.left()
            except BarnabasError as error:
                self.membership.unanswered()
                pause_ms = backoff.next_ms()
                if not error.retriable:
                    self.failure = error
            self._on_change()
            if self._settings.enable_auto_commit:
                pause_ms = min(pause_ms, max(1, self._settings.auto_commit_interval_ms))
            try:
                async with asyncio.timeout(pause_ms / 1000):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def _once(self) -> Outcome:
        self._wake.clear()
        names, pattern = None, None
        if isinstance(self.topics, tuple):
            names = self.topics
            await self._cluster.look_up(names, auto_create=self._settings.allow_auto_create_topics)
        else:
            pattern = self.topics.pattern  # the broker's syntax is RE2's, of which most patterns are a part
        request = self.membership.heartbeat(names, pattern, self._ids)
        answer = await self.coordinator.call(request, ConsumerGroupHeartbeatResponse, lane=GROUP_LANE)
        outcome = self.membership.answered(answer)
        if outcome is Outcome.FIND_COORDINATOR:
            self.coordinator.forget()
        if self.membership.target is not None:
            await self._arrive()
        return outcome

    async def _arrive(self) -> None:
        """Name what the broker assigned by ids; topics that nobody knows yet are named later."""
        target = self.membership.target
        assert target is not None
        if any(self._cluster.metadata.topic_name(topic_id) is None for topic_id in target):
            await self._cluster.all_topics()
        places: list[TopicPartition] = []
        for topic_id, partitions in target.items():
            name = self._cluster.metadata.topic_name(topic_id)
            if name is None:
                return  # the next heartbeat finds the target still open
            self._ids[name] = topic_id
            places += [TopicPartition(name, partition) for partition in partitions]
        self.membership.target = None
        self.assigned = tuple(sorted(places))
        self.has_arrived = True

    async def leave(self) -> None:
        request = self.membership.leave()
        if request is not None and self.coordinator.broker is not None:
            await self.coordinator.call(
                request, ConsumerGroupHeartbeatResponse, lane=GROUP_LANE, timeout_ms=LEAVE_MS_MAX
            )
