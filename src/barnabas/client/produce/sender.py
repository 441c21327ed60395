"""Takes batches from the accumulator to the brokers that lead their partitions, and settles what comes of them.

One task looks at the queues whenever something changed or a time has come; each request in flight is a task of its
own. What may leave and in which order is the accumulator's; this module knows what an error means for a batch.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.cluster.moved_leaders import is_leader_found, learn_leaders
from barnabas.client.errors import CannotEncode, TimedOut, TransactionAborted
from barnabas.client.produce.accumulator import Accumulator, PartitionQueue
from barnabas.client.produce.batch import Batch, Identity
from barnabas.client.settings.producer import ProducerSettings
from barnabas.client.transactions import VERSION_1_PRODUCE_MAX, Transactions
from barnabas.model import errors
from barnabas.model.errors import ApiError, BarnabasError, error_of
from barnabas.model.ids import NO_OFFSET, ZERO_UUID, TopicPartition, Uuid
from barnabas.transport.channel import PeerGone, Unreachable
from barnabas.transport.versions import NO_LIMIT
from barnabas.wire.compression import Codec
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.wire.messages.produce import ProduceRequest, ProduceResponse

NAMED_VERSION_MAX: Final = 12  # from 13 on Produce speaks of topic ids
ACKS_NONE: Final = 0

# After these nobody knows whether the batch is in the log.
_DOUBTFUL: Final = frozenset({errors.REQUEST_TIMED_OUT, errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND})
# The sequence that the broker has seen is not ours any more.
_LOST_SEQUENCE: Final = frozenset({errors.OUT_OF_ORDER_SEQUENCE_NUMBER, errors.UNKNOWN_PRODUCER_ID})


class Sender:
    def __init__(
        self,
        cluster: Cluster,
        accumulator: Accumulator,
        settings: ProducerSettings,
        transactions: Transactions | None = None,
    ) -> None:
        self._transactions = transactions
        self._cluster = cluster
        self._accumulator = accumulator
        self._settings = settings
        self._codec = Codec[settings.compression_type.upper()]
        self._level = settings.compression_level
        self._backoff_ms = settings.retry_backoff_ms
        self._wake = asyncio.Event()
        self._room = asyncio.Event()
        self._requests: set[asyncio.Task[None]] = set()
        self._in_flight: Counter[int] = Counter()
        self._leaderless_until = 0.0

    def wake(self) -> None:
        self._wake.set()

    async def wait_for_change(self) -> None:
        """Until some batch was settled: there may be room now."""
        self.wake()  # what lingers may leave
        self._room.clear()
        await self._room.wait()

    async def run(self) -> None:
        """Until cancelled."""
        loop = asyncio.get_running_loop()
        try:
            while True:
                self._wake.clear()
                self._accumulator.expire(loop.time())
                await self._give_identities()
                look_at = self._send_what_may_go(loop.time())
                try:
                    async with asyncio.timeout_at(look_at):
                        await self._wake.wait()
                except TimeoutError:
                    continue
        finally:
            for task in sorted(self._requests, key=asyncio.Task.get_name):
                task.cancel()

    # --- what leaves ----------------------------------------------------------------------------------------------

    def _send_what_may_go(self, now: float) -> float | None:
        """Start requests; answers with the time of the next look, if time alone calls for one."""
        by_leader: dict[int, list[PartitionQueue]] = {}
        look_at: float | None = None
        for queue in self._accumulator.queues.values():
            at = self._accumulator.sendable_at(queue)
            if at is None:
                continue
            if at > now:
                look_at = at if look_at is None else min(look_at, at)
                continue
            if queue.needs_identity:
                # It came while an identity was asked for: without one a repetition would be written twice.
                self.wake()
                continue
            leader = self._cluster.leader_of(queue.partition)
            if leader is None:
                look_at = self._ask_for_leader(queue.partition, now, look_at)
            else:
                by_leader.setdefault(leader, []).append(queue)
        for leader in sorted(by_leader):
            if self._in_flight[leader] < self._settings.max_in_flight_requests_per_connection:
                self._send(leader, by_leader[leader])
        deadlines = [queue.waiting[0].deadline for queue in self._accumulator.queues.values() if queue.waiting]
        return min((at for at in (look_at, *deadlines) if at is not None), default=None)

    def _ask_for_leader(self, partition: TopicPartition, now: float, look_at: float | None) -> float:
        if now >= self._leaderless_until:
            self._leaderless_until = now + self._backoff_ms / 1000
            self._start(self._find_leader(partition.topic), "leader")
        return self._leaderless_until if look_at is None else min(look_at, self._leaderless_until)

    async def _find_leader(self, topic: str) -> None:
        try:
            self._cluster.invalidate()
            await self._cluster.topic(topic, auto_create=True, timeout_ms=0)
        except BarnabasError:
            return  # the queue's own deadline ends this; until then we ask again
        finally:
            self.wake()

    def _send(self, leader: int, queues: list[PartitionQueue]) -> None:
        """Start one request with a batch of each queue, as far as the request's size allows."""
        batches: list[Batch] = []
        size_bytes = 0
        for queue in queues:
            first = queue.retries[0] if queue.retries else queue.waiting[0]
            if batches and size_bytes + first.size_bytes > self._settings.max_request_size:
                self.wake()
                break
            size_bytes += first.size_bytes
            batches.append(queue.take())
        # A queue that was served may have another batch for the same leader.
        self.wake()
        self._in_flight[leader] += 1
        epochs = {batch.partition: self._cluster.metadata.leader_epoch(batch.partition) for batch in batches}
        self._start(self._request(leader, batches, epochs), f"produce:{leader}")

    def _start(self, work: object, name: str) -> None:
        assert asyncio.iscoroutine(work)
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._requests.add(task)
        task.add_done_callback(self._requests.discard)

    async def _request(self, leader: int, batches: list[Batch], epochs: Mapping[TopicPartition, int]) -> None:
        try:
            if self._transactions is not None:
                await self._transactions.join(batch.partition for batch in batches)
            try:
                request, version_max = self._produce_request(batches)
            except (ValueError, TypeError, NotImplementedError) as error:
                # Nothing was sent, and no second try would help: nobody may wait for it.
                raise CannotEncode(f"the records cannot be encoded: {error}") from error
            connection = self._cluster.connection(leader)
            if self._settings.acks == ACKS_NONE:
                await connection.cast(request, version_max=version_max)
                for batch in batches:
                    self._delivered(batch, NO_OFFSET, -1)
                return
            answer = await connection.call(request, ProduceResponse, version_max=version_max)
        except BarnabasError as error:
            for batch in batches:
                self._failed(batch, error)
        else:
            self._answered(batches, answer, epochs)
        finally:
            self._in_flight[leader] -= 1
            self._room.set()
            self.wake()

    def _produce_request(self, batches: list[Batch]) -> tuple[ProduceRequest, int]:
        topics: dict[str, list[ProduceRequest.PartitionProduceData]] = {}
        transactions = self._transactions
        for batch in batches:
            records = batch.encode(self._codec, level=self._level, is_transactional=transactions is not None)
            data = ProduceRequest.PartitionProduceData(index=batch.partition.partition, records=records)
            topics.setdefault(batch.partition.topic, []).append(data)
        ids = {topic: self._topic_id(topic) for topic in topics}
        request = ProduceRequest(
            transactional_id=None if transactions is None else transactions.transactional_id,
            acks=self._settings.acks,
            timeout_ms=self._settings.request_timeout_ms,
            topic_data=[
                ProduceRequest.TopicProduceData(name=topic, topic_id=ids[topic], partition_data=data)
                for topic, data in topics.items()
            ],
        )
        if transactions is not None and not transactions.is_implicit:
            return request, VERSION_1_PRODUCE_MAX
        return request, NAMED_VERSION_MAX if ZERO_UUID in ids.values() else NO_LIMIT

    def _topic_id(self, topic: str) -> Uuid:
        known = self._cluster.metadata.topics.get(topic)
        return known.id if known is not None else ZERO_UUID

    # --- what comes of it -----------------------------------------------------------------------------------------

    def _answered(self, batches: list[Batch], answer: ProduceResponse, epochs: Mapping[TopicPartition, int]) -> None:
        """``epochs`` are the leader epochs that were known when the request was made."""
        answered = list(self._parts(answer))
        learn_leaders(self._cluster, answered, answer.node_endpoints)
        by_place = {batch.partition: batch for batch in batches}
        for place, part in answered:
            batch = by_place.pop(place, None)
            if batch is None:
                continue
            error = error_of(part.error_code)
            if error in (errors.NONE, errors.DUPLICATE_SEQUENCE_NUMBER):
                self._delivered(batch, part.base_offset, part.log_append_time_ms)
            else:
                is_found = is_leader_found(self._cluster, place, error, asked_epoch=epochs[place])
                self._failed(batch, ApiError(error, _reason(batch, part)), is_leader_found=is_found)
        for batch in by_place.values():
            # The topic was deleted or made anew while the request was under way, or the broker forgot to answer.
            self._failed(
                batch, ApiError(errors.UNKNOWN_TOPIC_ID, f"{batch.partition}: the broker did not speak of it.")
            )

    def _parts(
        self, answer: ProduceResponse
    ) -> Iterator[tuple[TopicPartition, ProduceResponse.PartitionProduceResponse]]:
        for topic in answer.responses:
            name = topic.name or self._cluster.metadata.topic_name(topic.topic_id) or ""
            for part in topic.partition_responses:
                yield TopicPartition(name, part.index), part

    def _delivered(self, batch: Batch, base_offset: int, log_append_time_ms: int) -> None:
        self._accumulator.queues[batch.partition].settle(batch, is_written=True)
        batch.succeed(base_offset, log_append_time_ms)
        self._accumulator.settled(batch)

    def _failed(self, batch: Batch, error: BarnabasError, *, is_leader_found: bool = False) -> None:
        """With ``is_leader_found`` it may go to the new leader at once."""
        now = asyncio.get_running_loop().time()
        queue = self._accumulator.queues[batch.partition]
        row = error.error if isinstance(error, ApiError) else None
        if (
            row in _DOUBTFUL
            or isinstance(error, TimedOut)
            or (isinstance(error, PeerGone) and not isinstance(error, Unreachable))
        ):
            batch.is_doubtful = True
        batch.refusals += not isinstance(error, Unreachable)
        if row is errors.MESSAGE_TOO_LARGE and len(batch.records) > 1:
            self._accumulator.split(queue, batch)
        elif batch.refusals > self._settings.retries:
            self._give_up_on(queue, batch, error)
        elif row in _LOST_SEQUENCE and not queue.is_first(batch):
            batch.is_doubtful = False  # had it been written, the broker would have known it again
            queue.give_back(batch, not_before=now)
        elif row in _LOST_SEQUENCE and self._transactions is None and now < batch.deadline:
            # The broker refused it, so it goes again in a sequence of its own, as Java's does; but not if it was sent
            # before: a broker that has forgotten it refuses it too, as Kafka does after a restart.
            queue.needs_identity = True
            queue.give_back(batch, not_before=now + self._pause(batch))
        elif is_leader_found and now < batch.deadline:
            queue.give_back(batch, not_before=now)
        elif error.retriable and now < batch.deadline:
            self._cluster.invalidate()
            queue.give_back(batch, not_before=now + self._pause(batch))
        else:
            self._give_up_on(queue, batch, error)

    def _give_up_on(self, queue: PartitionQueue, batch: Batch, error: BarnabasError) -> None:
        queue.settle(batch, is_written=False)
        if isinstance(error, ApiError) and error.error in _LOST_SEQUENCE:
            queue.needs_identity = True
        batch.fail(error)
        self._accumulator.settled(batch)

    def _pause(self, batch: Batch) -> float:
        backoff = self._cluster.backoff()
        backoff.attempts = batch.attempts - 1
        return backoff.next_ms() / 1000

    # --- identities -----------------------------------------------------------------------------------------------

    async def _give_identities(self) -> None:
        """One identity for all queues that need one and have nothing in flight."""
        needy = [
            queue
            for queue in self._accumulator.queues.values()
            if queue.needs_identity and not queue.in_flight and not queue.is_empty
        ]
        if not needy:
            return
        if self._transactions is not None:
            self._give_transactional(needy, self._transactions)
            return
        try:
            identity = await self._cluster.retrying(self._init_producer_id)
        except BarnabasError as error:
            self._give_up(needy, error)
            return
        for queue in needy:
            self._accumulator.adopt(queue, identity)

    def _give_transactional(self, needy: list[PartitionQueue], transactions: Transactions) -> None:
        """All partitions share one identity; a sequence that breaks under it takes the transaction along."""
        broken = [queue for queue in needy if queue.identity == transactions.identity]
        for queue in needy:
            if queue not in broken:
                self._accumulator.adopt(queue, transactions.identity)
        if broken:
            self._give_up(broken, TransactionAborted("an earlier record of the partition was not written"))

    def _give_up(self, queues: list[PartitionQueue], error: BarnabasError) -> None:
        for queue in queues:
            for batch in (*queue.retries, *queue.waiting):
                batch.fail(error)
                self._accumulator.settled(batch)
            queue.retries.clear()
            queue.waiting.clear()
        self._room.set()

    async def _init_producer_id(self) -> Identity:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=2**31 - 1)
        answer = await self._cluster.call_any(request, InitProducerIdResponse)
        if answer.error_code != errors.NONE.code:
            raise ApiError(error_of(answer.error_code), "The cluster gave us no producer id.")
        return Identity(answer.producer_id, answer.producer_epoch)


def _reason(batch: Batch, part: ProduceResponse.PartitionProduceResponse) -> str:
    sentences = [part.error_message or error_of(part.error_code).text]
    sentences += [
        f"Record {entry.batch_index}: {entry.batch_index_error_message}"
        for entry in part.record_errors
        if entry.batch_index_error_message
    ]
    return f"{batch.partition}: {' '.join(sentences)}"
