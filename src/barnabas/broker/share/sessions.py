"""Share sessions: the partitions that a member of a share group fetches from this broker, kept between its requests.

As fetch sessions do, a session spares the member from naming its partitions again. Every request carries the next
epoch; 0 opens a session, -1 closes it. A session ends with its connection, and what the member has acquired is
released then.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from barnabas.coordinator.share_state.records import SharePartitionKey
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.model.ids import Uuid
from barnabas.transport.connection import Connection

INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
EPOCH_MAX: Final = 2**31 - 1


class SessionKey(NamedTuple):
    group_id: str
    member_id: str


class ShareSession:
    __slots__ = ("connection", "epoch", "key", "partitions")

    def __init__(self, key: SessionKey, connection: Connection) -> None:
        self.key = key
        self.connection = connection
        self.epoch = 1  # epoch of the next request
        self.partitions: dict[SharePartitionKey, None] = {}  # in the order in which they were added

    def advance(self) -> None:
        self.epoch = 1 if self.epoch == EPOCH_MAX else self.epoch + 1

    def share_partition(self, topic_id: Uuid, index: int) -> SharePartitionKey:
        return SharePartitionKey(self.key.group_id, topic_id, index)


class ShareSessions:
    def __init__(self) -> None:
        self._sessions: dict[SessionKey, ShareSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def partition_count(self) -> int:
        return sum(len(session.partitions) for session in self._sessions.values())

    def open(self, key: SessionKey, connection: Connection, *, sessions_max: int) -> ShareSession:
        """A new session, which takes the place of an earlier one of the member."""
        if key not in self._sessions and len(self._sessions) >= sessions_max:
            raise ApiError(errors.SHARE_SESSION_LIMIT_REACHED)
        session = self._sessions[key] = ShareSession(key, connection)
        return session

    def get(self, key: SessionKey) -> ShareSession:
        found = self._sessions.get(key)
        if found is None:
            raise ApiError(errors.SHARE_SESSION_NOT_FOUND)
        return found

    def find(self, key: SessionKey) -> ShareSession | None:
        return self._sessions.get(key)

    def next(self, key: SessionKey, epoch: int) -> ShareSession:
        """The session of a member, if this is its next epoch."""
        session = self.get(key)
        if session.epoch != epoch:
            raise ApiError(errors.INVALID_SHARE_SESSION_EPOCH)
        session.advance()
        return session

    def close(self, session: ShareSession) -> Iterable[SharePartitionKey]:
        """Forget a session; the answer has its share-partitions, or nothing if another one has taken its place."""
        if self._sessions.get(session.key) is not session:
            return ()
        del self._sessions[session.key]
        return tuple(session.partitions)
