"""A consumer's standing in its group, kept up in the background: joining, heartbeats, leaving.

Performs what ``membership.py`` decides. Nothing that the user can see happens here: what a join brought is applied by
``group.py``, between two polls.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.group.commits import GROUP_LANE
from barnabas.client.group.membership import Membership, Outcome, Phase
from barnabas.client.group.standing import LEAVE_MS_MAX, Standing, Topics
from barnabas.client.partitions.assignors import ASSIGNORS
from barnabas.client.settings.consumer import ConsumerSettings
from barnabas.model.errors import BarnabasError, error_of
from barnabas.model.ids import TopicPartition
from barnabas.transport.lane import retrieved
from barnabas.transport.versions import Shaped
from barnabas.wire.messages.heartbeat import HeartbeatResponse
from barnabas.wire.messages.join_group import JoinGroupResponse
from barnabas.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from barnabas.wire.messages.sync_group import SyncGroupResponse

JOIN_LANE: Final = "join"  # a join waits for all others; heartbeats and commits must not wait behind it
JOIN_GRACE_MS: Final = 5_000
LEAVERS_SINCE: Final = 3  # from this version on LeaveGroup names several members


class GroupSession(Standing):
    membership: Membership

    def __init__(
        self, cluster: Cluster, settings: ConsumerSettings, topics: Topics, *, on_change: Callable[[], None]
    ) -> None:
        super().__init__(cluster, settings, topics, on_change=on_change)
        self.membership = Membership(
            group_id=settings.group_id or "",
            instance_id=settings.group_instance_id,
            session_timeout_ms=settings.session_timeout_ms,
            rebalance_timeout_ms=settings.max_poll_interval_ms,
            assignors=[ASSIGNORS[name] for name in settings.partition_assignment_strategy],
        )
        self._joining: asyncio.Task[None] | None = None
        self._beat_at = 0.0
        self._looked_at = float("-inf")  # when all topics were last compared with a pattern
        self._matched: tuple[str, ...] = ()
        self._joined_topics: tuple[str, ...] = ()
        self._counts: Mapping[str, int] = {}

    @property
    def is_joining(self) -> bool:
        return self._joining is not None and not self._joining.done()

    @property
    def assigned(self) -> tuple[TopicPartition, ...]:
        """What the last join brought."""
        return self.membership.owned

    def applied(self, partitions: list[TopicPartition]) -> None:
        """The consumer has these now; a classic group hears of it with the next join."""

    async def stop(self) -> None:
        if self._joining is not None and not self._joining.done():
            self._joining.cancel()
            await asyncio.wait([self._joining])
        await super().stop()

    # --- joining --------------------------------------------------------------------------------------------------

    def join(self) -> None:
        assert not self.is_joining
        self._joining = asyncio.get_running_loop().create_task(self._join(), name="join")
        self._joining.add_done_callback(retrieved)

    async def wait_for_join(self, deadline: float) -> None:
        """Until the join that is under way is over, or the time is up."""
        if self._joining is not None and not self._joining.done():
            await asyncio.wait([self._joining], timeout=max(0.0, deadline - asyncio.get_running_loop().time()))

    async def _join(self) -> None:
        """Until there is an assignment, or the user must hear of something first."""
        backoff = self._cluster.backoff()
        while True:
            try:
                outcome = await self._round()
            except BarnabasError as error:
                self.membership.interrupted()
                if not error.retriable:
                    self.failure = error
                    break
                outcome = Outcome.RETRY
            if outcome is Outcome.GO_ON:
                self.has_arrived = True
                self._beat_at = asyncio.get_running_loop().time() + self._settings.heartbeat_interval_ms / 1000
                break
            if self.membership.is_lost:
                break
            if outcome is Outcome.FIND_COORDINATOR:
                self.coordinator.forget()
            if outcome is not Outcome.JOIN_AGAIN:
                await asyncio.sleep(backoff.next_ms() / 1000)
        self._on_change()

    async def _round(self) -> Outcome:
        self._joined_topics = await self._wanted()
        timeout_ms = max(self._settings.request_timeout_ms, self._settings.max_poll_interval_ms + JOIN_GRACE_MS)
        await self.coordinator.find()
        request = self.membership.join(self._joined_topics, rack=self._settings.client_rack or None)
        answer = await self.coordinator.call(request, JoinGroupResponse, lane=JOIN_LANE, timeout_ms=timeout_ms)
        outcome = self.membership.joined(answer)
        if outcome is not Outcome.GO_ON:
            return outcome
        self._counts = {}
        if self.membership.is_leader:
            names = {topic for member in self.membership.candidates(answer) for topic in member.subscription.topics}
            self._counts = await self._sizes(names)
        sync = self.membership.sync(self.membership.assignments(answer, self._counts))
        return self.membership.synced(
            await self.coordinator.call(sync, SyncGroupResponse, lane=JOIN_LANE, timeout_ms=timeout_ms)
        )

    async def _wanted(self) -> tuple[str, ...]:
        """The topics to subscribe to: those named, or those that exist and match."""
        if isinstance(self.topics, tuple):
            await self._cluster.look_up(self.topics, auto_create=self._settings.allow_auto_create_topics)
            return self.topics
        now = asyncio.get_running_loop().time()
        if now >= self._looked_at + self._settings.metadata_max_age_ms / 1000 or not self._matched:
            known = await self._cluster.all_topics()
            self._matched = tuple(
                topic.name
                for topic in known
                if self.topics.fullmatch(topic.name)
                and not (topic.is_internal and self._settings.exclude_internal_topics)
            )
            self._looked_at = now
        return self._matched

    async def _sizes(self, names: set[str]) -> dict[str, int]:
        known = await self._cluster.look_up(names)
        return {name: len(topic.partitions) for name, topic in known.items()}

    # --- staying --------------------------------------------------------------------------------------------------

    async def _beat(self) -> None:
        settings = self._settings
        tick_ms = settings.heartbeat_interval_ms
        if settings.enable_auto_commit:
            tick_ms = max(1, min(tick_ms, settings.auto_commit_interval_ms))
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(tick_ms / 1000)
            try:
                if self.membership.is_member and loop.time() >= self._beat_at:
                    await self._heartbeat()
                    self._beat_at = loop.time() + settings.heartbeat_interval_ms / 1000
                if self.membership.phase is Phase.STABLE:
                    await self._compare_topics()
                if self._is_overdue(loop.time()):
                    await self.leave()
                    self.membership.left()
            except BarnabasError as error:
                if not error.retriable:
                    self.failure = error
            self._on_change()

    async def _heartbeat(self) -> None:
        generation = self.membership.generation
        answer = await self.coordinator.call(
            self.membership.heartbeat(),
            HeartbeatResponse,
            lane=GROUP_LANE,
            timeout_ms=min(self._settings.request_timeout_ms, self._settings.session_timeout_ms),
        )
        self.told(error_of(answer.error_code), generation)

    async def _compare_topics(self) -> None:
        """Join again if there are other topics than at the last join, or, as the leader, other partitions."""
        if await self._wanted() != self._joined_topics:
            self.membership.rejoin("the subscription changed")
        elif self.membership.is_leader and self._counts != await self._sizes(set(self._counts)):
            self.membership.rejoin("topics of the group changed")

    async def leave(self) -> None:
        """Say good-bye, if the group knows us; nobody waits long for it."""
        identity = self.membership.leave()
        if identity is None or self.coordinator.broker is None:
            return

        def request(version: int) -> LeaveGroupRequest:
            if version < LEAVERS_SINCE:
                return LeaveGroupRequest(group_id=self.membership.group_id, member_id=identity.member_id)
            return LeaveGroupRequest(group_id=self.membership.group_id, members=[identity])

        await self.coordinator.call(
            Shaped(LeaveGroupRequest, request), LeaveGroupResponse, lane=GROUP_LANE, timeout_ms=LEAVE_MS_MAX
        )
