"""What a consumer's standing in a group is made of in either protocol: who it is, and how it hears that it is not.

``group_session.py`` keeps it up in classic groups, ``consumer_session.py`` in those of the consumer protocol;
``group.py`` uses either.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.cluster.coordinators import Coordinator, KeyKind
from barnabas.client.errors import NoGroup
from barnabas.client.group.commits import GroupMetadata
from barnabas.client.group.membership import Outcome
from barnabas.client.settings.consumer import ConsumerSettings
from barnabas.model.errors import BarnabasError, WireError
from barnabas.transport.lane import retrieved

if TYPE_CHECKING:
    from barnabas.client.group.consumer_membership import ConsumerMembership
    from barnabas.client.group.membership import Membership

Topics: TypeAlias = "tuple[str, ...] | re.Pattern[str]"

LEAVE_MS_MAX: Final = 5_000


class Standing:
    membership: Membership | ConsumerMembership

    def __init__(
        self, cluster: Cluster, settings: ConsumerSettings, topics: Topics, *, on_change: Callable[[], None]
    ) -> None:
        if not settings.group_id:
            raise NoGroup("a subscription needs group.id: it is the group that shares the partitions")
        self.coordinator = Coordinator(cluster, KeyKind.GROUP, settings.group_id)
        self.topics = topics
        self.has_arrived = False  # there is an assignment that is not applied yet
        self.failure: BarnabasError | None = None
        self.is_polling = False
        self.polled_at = asyncio.get_running_loop().time()
        self._cluster = cluster
        self._settings = settings
        self._on_change = on_change
        self._beating: asyncio.Task[None] | None = None

    @property
    def member(self) -> GroupMetadata:
        """Who commits what was handed out.

        A member that the group has given up speaks as who it was until the user has heard of it, and is refused: as
        nobody it could store offsets in a transaction, as programs from before there was a check may.
        """
        known = self.membership
        generation, member_id = known.former if known.is_lost else (known.generation, known.member_id)
        return GroupMetadata(known.group_id, generation, member_id, known.instance_id)

    def start(self) -> None:
        self._beating = asyncio.get_running_loop().create_task(self._beat(), name="heartbeats")
        self._beating.add_done_callback(retrieved)

    async def stop(self) -> None:
        if self._beating is not None and not self._beating.done():
            self._beating.cancel()
            await asyncio.wait([self._beating])

    async def _beat(self) -> None:
        """Until cancelled. The consumer is told at every turn: it may have positions to store."""
        raise NotImplementedError

    def told(self, row: WireError, generation: int) -> None:
        """A heartbeat or a commit was answered with this error."""
        try:
            if self.membership.told(row, generation=generation) is Outcome.FIND_COORDINATOR:
                self.coordinator.forget()
        except BarnabasError as error:
            self.failure = error
        self._on_change()

    def _is_overdue(self, now: float) -> bool:
        """A member whose user does not come back must not keep its partitions from others."""
        if self.is_polling or not self.membership.is_member:
            return False
        return now >= self.polled_at + self._settings.max_poll_interval_ms / 1000
