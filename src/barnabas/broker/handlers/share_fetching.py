"""A ShareFetch under way: its session, the records it acquires, and the wait for records if there are none."""

from __future__ import annotations

import asyncio
from typing import Final

from barnabas.broker.handlers.share_acknowledgements import check_read
from barnabas.broker.requests.request import Request
from barnabas.broker.share.leader import Fetched, ShareLeader, Wanted
from barnabas.broker.share.sessions import FINAL_EPOCH, INITIAL_EPOCH, SessionKey, ShareSession
from barnabas.coordinator.share_state.records import SharePartitionKey
from barnabas.model import errors
from barnabas.model.errors import ApiError, CorruptBatch
from barnabas.model.ids import Uuid
from barnabas.wire.messages.share_fetch import ShareFetchRequest
from barnabas.world.disk import DiskFailure, FileClosed

WAIT_MS_MAX: Final = 10 * 60 * 1000
RECORD_LIMIT: Final = 1  # share acquire mode; 0 acquires whole batches

Results = dict[tuple[Uuid, int], Fetched | ApiError]


def open_session(request: Request, message: ShareFetchRequest) -> ShareSession:
    """The session of a request, with the partitions that the request adds and without those that it forgets."""
    broker, leaders = request.broker, request.broker.share_leaders
    key = SessionKey(message.group_id or "", message.member_id or "")
    epoch = message.share_session_epoch
    if epoch == FINAL_EPOCH:
        return broker.share_sessions.get(key)
    if epoch == INITIAL_EPOCH:
        if any(row.acknowledgement_batches for topic in message.topics for row in topic.partitions):
            raise ApiError(errors.INVALID_REQUEST, "the first request of a share session has acknowledgements")
        previous = broker.share_sessions.find(key)
        sessions_max = broker.groups.share_settings_of(key.group_id).sessions_max
        session = broker.share_sessions.open(key, request.connection, sessions_max=sessions_max)
        request.connection.when_lost.append(lambda: _lost(request, session))
        for share_partition in previous.partitions if previous is not None else ():
            leaders.start_leaving(share_partition, key.member_id)
    else:
        session = broker.share_sessions.next(key, epoch)
    for topic in message.topics:
        for row in topic.partitions:
            session.partitions[session.share_partition(Uuid(topic.topic_id), row.partition_index)] = None
    for forgotten in message.forgotten_topics_data:
        for index in forgotten.partitions:
            gone = session.share_partition(Uuid(forgotten.topic_id), index)
            if gone in session.partitions:
                del session.partitions[gone]
                leader = leaders.find(gone)
                if leader is not None:
                    leader.members.discard(key.member_id)
    return session


async def close_session(request: Request, session: ShareSession) -> None:
    """End a session and release what its member has acquired."""
    broker = request.broker
    partitions = broker.share_sessions.close(session)
    await asyncio.gather(*(broker.share_leaders.leave(each, session.key.member_id) for each in partitions))


def _lost(request: Request, session: ShareSession) -> None:
    for share_partition in request.broker.share_sessions.close(session):
        request.broker.share_leaders.start_leaving(share_partition, session.key.member_id)


class ShareFetch:
    def __init__(self, request: Request, message: ShareFetchRequest, session: ShareSession) -> None:
        self._request = request
        self._session = session
        self._member_id = session.key.member_id
        self._records_max = max(0, message.max_records)
        self._size_bytes_max = max(0, min(message.max_bytes, request.broker.settings.fetch_max_bytes))
        self._batch_size = max(1, message.batch_size)
        self._is_record_limit = message.share_acquire_mode == RECORD_LIMIT
        self._wait_ms = max(0, min(message.max_wait_ms, WAIT_MS_MAX))
        self._is_wanted = True
        self._woken = asyncio.Event()

    async def run(self) -> Results:
        """Acquire records, as soon as there are some or until the wait is over."""
        if not self._session.partitions or not self._records_max or not self._size_bytes_max:
            return {}
        broker = self._request.broker
        broker.share_leaders.tally.fetches += 1
        results: Results = {}
        timer = broker.timers.after(self._wait_ms, self._stop)
        waiting: list[ShareLeader] = []
        try:
            while True:
                self._woken.clear()
                waiting = await self._pass(results)
                if results or not self._is_wanted or not waiting:
                    break
                for leader in waiting:
                    leader.wait(self._woken.set)
                for leader in waiting:
                    leader.notify()  # records may have come while other partitions were looked at
                await self._woken.wait()
        finally:
            timer.cancel()
            for leader in waiting:
                leader.stop_waiting(self._woken.set)
                leader.notify()  # this fetch may have been woken for records that it has not taken
        if not waiting and not results and self._is_wanted:
            await broker.timers.sleep(min(self._wait_ms, 1))
        return results

    def _stop(self) -> None:
        self._is_wanted = False
        self._woken.set()

    def _may_acquire(self) -> bool:
        return self._request.connection.is_open

    async def _pass(self, results: Results) -> list[ShareLeader]:
        """Look at each partition once, another one first each time; the answer has those that are worth waiting for."""
        waiting: list[ShareLeader] = []
        keys = list(self._session.partitions)
        turn = self._session.epoch % len(keys) if keys else 0
        count, size_bytes = 0, 0
        for key in keys[turn:] + keys[:turn]:
            if count >= self._records_max or (size_bytes and size_bytes >= self._size_bytes_max):
                break
            pair = (key.topic_id, key.partition)
            try:
                leader = self._leader(key)
                fetched = await leader.fetch(
                    Wanted(
                        self._member_id,
                        self._records_max - count,
                        self._size_bytes_max - size_bytes,
                        self._batch_size,
                        self._is_record_limit,
                    ),
                    self._may_acquire,
                )
            except ApiError as error:
                results[pair] = error
                continue
            except (DiskFailure, CorruptBatch, FileClosed) as error:
                results[pair] = ApiError(errors.KAFKA_STORAGE_ERROR, str(error))
                continue
            waiting.append(leader)
            if fetched is not None:
                results[pair] = fetched
                count += fetched.record_count
                size_bytes += len(fetched.data)
        self._request.broker.share_leaders.tally.records_acquired += count
        return waiting

    def _leader(self, key: SharePartitionKey) -> ShareLeader:
        check_read(self._request, key.topic_id)
        leader = self._request.broker.share_leaders.lead(key)
        leader.members.add(self._member_id)
        leader.check()
        return leader
