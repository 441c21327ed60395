"""The broker that looks after a group or a transactional id: found once, and again when it says that it no longer is.

What was found is kept with the cluster, for the next one who asks for the same key. One attempt for each call; who
retries, and what an error of the answer means, is the caller's.
"""

from __future__ import annotations

import enum
from typing import TypeVar

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.errors import TimedOut
from barnabas.model import errors
from barnabas.model.errors import ApiError, error_of
from barnabas.transport.channel import PeerGone
from barnabas.transport.versions import NO_LIMIT, Shaped
from barnabas.wire.message import Message
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

R = TypeVar("R", bound=Message)

KEYS_SINCE = 4  # from this version on FindCoordinator asks for several keys
COORDINATORS_MAX = 1000  # that a cluster remembers; the oldest is asked for again


class KeyKind(enum.IntEnum):
    GROUP = 0
    TRANSACTION = 1


class Coordinator:
    def __init__(self, cluster: Cluster, kind: KeyKind, key: str) -> None:
        self._cluster = cluster
        self._kind = kind
        self._key = key

    @property
    def broker(self) -> int | None:
        """Who it was when it was last asked for, unless that broker has left the cluster since."""
        broker = self._cluster.coordinators.get((self._kind, self._key))
        return broker if broker in self._cluster.metadata.brokers else None

    def forget(self) -> None:
        self._cluster.coordinators.pop((self._kind, self._key), None)

    async def find(self) -> int:
        broker = self.broker
        if broker is None:
            broker = await self._ask()
            known = self._cluster.coordinators
            while len(known) >= COORDINATORS_MAX:
                del known[next(iter(known))]
            known[self._kind, self._key] = broker
        return broker

    async def call(
        self,
        message: Message | Shaped,
        response: type[R],
        *,
        lane: str,
        timeout_ms: int | None = None,
        version_max: int = NO_LIMIT,
    ) -> R:
        broker = await self.find()
        try:
            return await self._cluster.call(
                broker, message, response, lane=lane, timeout_ms=timeout_ms, version_max=version_max
            )
        except (PeerGone, TimedOut):
            self.forget()
            raise

    async def _ask(self) -> int:
        answer = await self._cluster.call_any(Shaped(FindCoordinatorRequest, self._request), FindCoordinatorResponse)
        found = answer.coordinators[0] if answer.coordinators else answer
        row = error_of(found.error_code)
        if row is not errors.NONE:
            what = self._kind.name.lower()
            raise ApiError(row, found.error_message or f"The coordinator of {what} {self._key!r}: {row.text}")
        if found.node_id not in self._cluster.metadata.brokers:
            await self._cluster.refresh()
        return found.node_id

    def _request(self, version: int) -> FindCoordinatorRequest:
        if version < KEYS_SINCE:
            return FindCoordinatorRequest(key=self._key, key_type=self._kind)
        return FindCoordinatorRequest(key_type=self._kind, coordinator_keys=[self._key])
