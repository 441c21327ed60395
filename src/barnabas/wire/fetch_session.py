"""The fetching side of an incremental fetch session (KIP-227): after the first request only changes are sent.

Pure. A consumer keeps one session for each broker that it fetches from, a follower one for each connection to a leader.
They say which partitions they want, build a request from :meth:`FetchSession.plan`, and report the response or the
failure. After a failure the next request is a full one that names the old session, so that the broker drops it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple, TypeAlias

from barnabas.model import errors
from barnabas.model.errors import WireError, error_of
from barnabas.model.ids import NO_LEADER_EPOCH, NO_OFFSET, Uuid
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse

NO_SESSION: Final = 0
INITIAL_EPOCH: Final = 0  # of a full request that asks for a session
FINAL_EPOCH: Final = -1  # of a full request that asks for none, and ends the session that it names
EPOCH_MAX: Final = 2**31 - 1

# Name of the topic (empty where brokers only use ids), its id, and the number of the partition.
Key: TypeAlias = tuple[str, Uuid, int]


class Wanted(NamedTuple):
    """The fields of a fetch request for one partition."""

    fetch_offset: int
    leader_epoch: int
    size_bytes_max: int
    last_fetched_epoch: int = NO_LEADER_EPOCH
    log_start_offset: int = NO_OFFSET  # of a follower


class Plan(NamedTuple):
    """The part of a fetch request that the session determines."""

    session_id: int
    epoch: int
    wanted: Mapping[Key, Wanted]  # partitions that the request names
    forgotten: Collection[Key] = ()  # partitions that the request removes from the session

    def topics(self, *, has_epochs: bool = True) -> list[FetchRequest.FetchTopic]:
        """``has_epochs`` is false for versions that have no field for the epoch of the last record."""
        topics: dict[tuple[str, Uuid], FetchRequest.FetchTopic] = {}
        for (name, topic_id, index), want in self.wanted.items():
            topic = topics.get((name, topic_id))
            if topic is None:
                topic = FetchRequest.FetchTopic(topic=name, topic_id=topic_id)
                topics[name, topic_id] = topic
            topic.partitions.append(
                FetchRequest.FetchPartition(
                    partition=index,
                    current_leader_epoch=want.leader_epoch,
                    fetch_offset=want.fetch_offset,
                    last_fetched_epoch=want.last_fetched_epoch if has_epochs else NO_LEADER_EPOCH,
                    log_start_offset=want.log_start_offset,
                    partition_max_bytes=want.size_bytes_max,
                )
            )
        return list(topics.values())

    def forgotten_topics(self) -> list[FetchRequest.ForgottenTopic]:
        if not self.forgotten:
            return []
        topics: dict[tuple[str, Uuid], FetchRequest.ForgottenTopic] = {}
        for name, topic_id, index in self.forgotten:
            gone = topics.get((name, topic_id))
            if gone is None:
                gone = topics[name, topic_id] = FetchRequest.ForgottenTopic(topic=name, topic_id=topic_id)
            gone.partitions.append(index)
        return list(topics.values())


class FetchSession:
    __slots__ = ("_changed", "_epoch", "_forgotten", "_id", "_is_granted", "_wanted")

    def __init__(self) -> None:
        self._id = NO_SESSION
        self._epoch = INITIAL_EPOCH  # of the next request
        self._is_granted = True  # whether the broker had room for a session when it was last asked for one
        self._wanted: dict[Key, Wanted] = {}
        self._changed: dict[Key, None] = {}  # partitions of which the broker has not been told the newest
        self._forgotten: dict[Key, None] = {}  # partitions that the broker still has in the session

    def __len__(self) -> int:
        return len(self._wanted)

    @property
    def is_open(self) -> bool:
        """Whether another request may be sent before the last response."""
        return self._epoch != INITIAL_EPOCH

    def want(self, key: Key, wanted: Wanted) -> None:
        """Fetch this partition, from the next request on."""
        if self._wanted.get(key) != wanted:
            self._set(key, wanted)

    def unwant(self, key: Key) -> None:
        if key in self._wanted:
            self._remove(key)

    def _set(self, key: Key, wanted: Wanted) -> None:
        self._wanted[key] = wanted
        self._changed[key] = None
        self._forgotten.pop(key, None)

    def _remove(self, key: Key) -> None:
        del self._wanted[key]
        self._changed.pop(key, None)
        self._forgotten[key] = None

    def want_only(self, wanted: Mapping[Key, Wanted]) -> None:
        """Fetch these partitions and no others, from the next request on."""
        known = self._wanted
        if known.keys() != wanted.keys():
            for key in [key for key in known if key not in wanted]:
                self._remove(key)
        for key, want in wanted.items():
            if known.get(key) != want:
                self._set(key, want)

    def plan(self, *, is_full: bool = False) -> Plan:
        """Return the next request; ``answered`` or ``failed`` must be called with its result.

        With ``is_full`` all partitions are named again, within the same session.
        """
        epoch, wanted = self._epoch, self._wanted
        forgotten: tuple[Key, ...] = ()
        if epoch == INITIAL_EPOCH:
            named = wanted.copy()
        else:
            self._epoch = 1 if epoch == EPOCH_MAX else epoch + 1
            named = wanted.copy() if is_full else {key: wanted[key] for key in self._changed}
            forgotten = tuple(self._forgotten)
        self._changed.clear()
        self._forgotten.clear()
        return Plan(self._id, epoch, named, forgotten)

    def end(self) -> Plan | None:
        """Return the request that makes the broker drop the session; None if there is no session."""
        return None if self._id == NO_SESSION else Plan(self._id, FINAL_EPOCH, {})

    def answered(self, response: FetchResponse) -> WireError | None:
        """Return None if the partitions of the response count, else the error; the next request is a full one then."""
        if response.error_code:
            error = error_of(response.error_code)
            if error is errors.FETCH_SESSION_ID_NOT_FOUND:
                self._id = NO_SESSION
            self.failed()
            return error
        self._is_granted = response.session_id != NO_SESSION
        if not self._is_granted:
            self._id, self._epoch = NO_SESSION, INITIAL_EPOCH
        elif response.session_id != self._id or self._epoch == INITIAL_EPOCH:
            self._id, self._epoch = response.session_id, 1
        return None

    def failed(self) -> None:
        """No response arrived, so it is not known what the broker has in the session."""
        self._epoch = INITIAL_EPOCH


def sessionless(wanted: Mapping[Key, Wanted]) -> Plan:
    """A request that names all of its partitions and asks for no session."""
    return Plan(NO_SESSION, FINAL_EPOCH, wanted)
