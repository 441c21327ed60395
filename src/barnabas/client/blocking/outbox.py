"""Records on their way from the caller's thread to the loop's: whole bundles cross over, in their order.

A record that needs nobody's decision goes straight into an open batch, unless something that came before is still on
its way. The others go into bundles: the caller fills the newest, the loop takes the oldest; a bundle that was taken is
filled no more. When the caller is far ahead it waits.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections import deque
from collections.abc import Mapping
from typing import Any, Final, Generic, NamedTuple

from barnabas.client.blocking.loop import LoopThread
from barnabas.client.errors import ProducerClosed
from barnabas.client.produce.batch import Batch, Delivery, Headers, RecordMetadata
from barnabas.client.produce.intake import Run
from barnabas.client.producer import Producer
from barnabas.client.serdes.serde import K, V
from barnabas.model.errors import BarnabasError
from barnabas.wire.record_builder import COMPILED, OpenBatches

BUNDLE_RECORDS_MAX: Final = 2_000
BYTES_MAX: Final = 4 << 20  # on their way at any time
RECORD_BYTES: Final = 64  # what a record takes here besides its value
OBJECT_BYTES: Final = 256  # what an object will take is not known yet
STRAIGHT_RECORDS_MIN: Final = 64  # a batch of fewer is not worth waiting for


class Bundle:
    """Records of a topic that are alike in everything but key and value."""

    __slots__ = (
        "_starts",
        "failures",
        "headers",
        "outbox",
        "pairs",
        "partition",
        "runs",
        "size_bytes",
        "timestamp_ms",
        "topic",
    )

    def __init__(
        self,
        outbox: Outbox[Any, Any],
        topic: str,
        headers: Headers | Mapping[str, bytes | None],
        partition: int | None,
        timestamp_ms: int | None,
    ) -> None:
        self.outbox = outbox
        self.topic = topic
        self.headers = headers
        self.partition = partition
        self.timestamp_ms = timestamp_ms
        self.pairs: list[tuple[Any, Any]] = []
        self.size_bytes = 0
        self.runs: list[tuple[Batch, int, int]] = []  # where the records are by now: a batch, the first index, how many
        self._starts: list[int] = []
        self.failures: dict[int, BarnabasError] = {}

    def carried(self, index: int, batch: Batch, first: int, count: int) -> None:
        """The records from ``index`` on are in a batch."""
        self._starts.append(index)
        self.runs.append((batch, first, count))

    def delivery(self, index: int) -> Delivery | None:
        """The promise of the producer for a record, once it has it."""
        position = bisect_right(self._starts, index) - 1
        if position < 0:
            return None
        batch, first, count = self.runs[position]
        distance = index - self._starts[position]
        return Delivery(batch, first + distance) if distance < count else None


class Promise(NamedTuple):
    """What becomes of a record that was sent; ``result`` waits for it."""

    place: Bundle | Run
    number: int  # of the record there

    @property
    def is_done(self) -> bool:
        if isinstance(self.place, Bundle) and self.number in self.place.failures:
            return True
        delivery = self._delivery()
        return delivery is not None and delivery.is_done

    def result(self, timeout_ms: int | None = None) -> RecordMetadata:
        """Where the record went; raises why it did not go, or TimeoutError."""
        outbox = self.place.outbox
        assert isinstance(outbox, Outbox)
        return outbox.thread.run(self._wait(timeout_ms))

    def _delivery(self) -> Delivery | None:
        place = self.place
        return place.delivery(self.number) if isinstance(place, Bundle) else Delivery(place.batch, self.number)

    async def _wait(self, timeout_ms: int | None) -> RecordMetadata:
        async with asyncio.timeout(None if timeout_ms is None else timeout_ms / 1000):
            delivery = self._delivery()
            if delivery is None:
                assert isinstance(self.place, Bundle)
                if self.number not in self.place.failures:
                    await self.place.outbox.carried()
                delivery = self._delivery()
                if delivery is None:
                    raise self.place.failures[self.number]
            return await delivery


class Outbox(Generic[K, V]):
    def __init__(self, thread: LoopThread, producer: Producer[K, V]) -> None:
        self.thread = thread
        self._producer = producer
        producer.intake.outbox = self
        # What the caller's thread may append to: only what is compiled does so in one step for all threads.
        self.straight = OpenBatches(Promise, producer.cluster.world.clock.wall_ns)
        producer.intake.straight = self.straight if COMPILED and producer.is_plain else None
        self._lock = thread.new_lock()  # around the bundles, which both threads may want
        self.bundles: deque[Bundle] = deque()
        self._newest: Bundle | None = None
        self.is_carrying = False  # the loop is asked to carry bundles over, or is at it
        self._put_bytes = 0  # counted by the caller's thread alone
        self._taken_bytes = 0  # and this by the loop's
        self._draining: asyncio.Task[None] | None = None
        self._failure: BarnabasError | None = None

    def put(
        self,
        topic: str,
        value: V | None,
        key: K | None,
        headers: Headers | Mapping[str, bytes | None],
        partition: int | None,
        timestamp_ms: int | None,
    ) -> Promise:
        """From the caller's thread; waits while too much is on its way, and for the next of the batches in a row."""
        is_waited_for = False
        is_bare = type(value) is bytes and key is None and partition is None and timestamp_ms is None and not headers
        if is_bare and not self.is_busy:
            promise = self.straight.promise(topic, value, None, (), None, None)
            if promise is not None:
                return promise  # type: ignore[no-any-return]  # what it had to wait for has arrived meanwhile
            is_waited_for = self._is_next_in_a_row(topic)
        size_bytes = RECORD_BYTES + (len(value) if type(value) is bytes else OBJECT_BYTES)
        with self._lock:
            if not self.is_carrying:
                # In this order, and before anything is put: wherever Ctrl-C ends this, whatever lies here is carried
                # by the loop that was called, or nothing says that it was, and the next who comes calls it.
                self.straight.hold()
                self.thread.call_soon(self._called)
                self.is_carrying = True
            promise = self._put_in(topic, headers, partition, timestamp_ms, (key, value), size_bytes)
        if is_waited_for or self._put_bytes - self._taken_bytes > BYTES_MAX:
            self.thread.run(self.carried())
        return promise

    def _put_in(
        self,
        topic: str,
        headers: Headers | Mapping[str, bytes | None],
        partition: int | None,
        timestamp_ms: int | None,
        pair: tuple[K | None, V | None],
        size_bytes: int,
    ) -> Promise:
        """Into the newest bundle, or a new one."""
        bundle = self._newest
        if (
            bundle is None
            or bundle.topic != topic
            or bundle.partition != partition
            or headers
            or bundle.headers
            or timestamp_ms is not None
            or bundle.timestamp_ms is not None
            or len(bundle.pairs) >= BUNDLE_RECORDS_MAX
        ):
            bundle = self._newest = Bundle(self, topic, headers, partition, timestamp_ms)
            self.bundles.append(bundle)
        bundle.pairs.append(pair)
        bundle.size_bytes += size_bytes
        self._put_bytes += size_bytes
        return Promise(bundle, len(bundle.pairs) - 1)

    def _is_next_in_a_row(self, topic: str) -> bool:
        """The batch that many went straight into is full: those behind this one had better find the next."""
        intake = self._producer.intake
        run = intake.runs.get(topic)
        if intake.straight is None or run is None or not run.fresh:
            return False
        return len(run.batch.records) >= STRAIGHT_RECORDS_MIN

    def _called(self) -> None:
        if self._draining is None or self._draining.done():
            self._draining = asyncio.get_running_loop().create_task(self._drain(), name="outbox")

    async def _drain(self) -> None:
        try:
            while not self._is_drained():
                with self._lock:
                    bundle = self.bundles.popleft()
                    if bundle is self._newest:
                        self._newest = None
                try:
                    await self._carry(bundle)
                finally:
                    self._taken_bytes += bundle.size_bytes
        except BaseException:
            with self._lock:
                self.is_carrying = False  # and what is left waits for the next who calls
            raise

    def _is_drained(self) -> bool:
        with self._lock:
            if not self.bundles:  # whoever puts one after this calls again
                self.is_carrying = False
                self.straight.let_go()
            return not self.bundles

    async def _carry(self, bundle: Bundle) -> None:
        producer, pairs, topic = self._producer, bundle.pairs, bundle.topic
        is_bare = bundle.partition is None and bundle.timestamp_ms is None and not bundle.headers and producer.is_plain
        index = 0
        try:
            while index < len(pairs):
                run = producer.intake.quick_run(topic, pairs, index) if is_bare else None
                if run is None:
                    delivery = await self._carry_one(bundle, index)
                    if delivery is None:
                        index += 1
                        continue
                    run = (*delivery, 1)
                elif producer.intake.has_news:
                    await producer.tell_sender(topic)
                bundle.carried(index, *run)
                index += run[2]
        except asyncio.CancelledError:
            gone = ProducerClosed("the producer was closed before the record was sent")
            bundle.failures |= dict.fromkeys(range(index, len(pairs)), gone)
            raise

    async def _carry_one(self, bundle: Bundle, index: int) -> Delivery | None:
        key, value = bundle.pairs[index]
        try:
            return await self._producer.send_soon(
                bundle.topic,
                value,
                key=key,
                headers=bundle.headers,
                partition=bundle.partition,
                timestamp_ms=bundle.timestamp_ms,
            )
        except BarnabasError as error:
            bundle.failures[index] = error
            self._failure = self._failure or error
            return None

    @property
    def is_busy(self) -> bool:
        """Something that this thread has put may not be with the producer yet.

        In this order: what was taken out before the first look is with the producer if the second finds nobody at work.
        """
        return bool(self.bundles) or self.is_carrying

    async def carried(self) -> None:
        """Until all that was put is with the producer, or could not be brought to it."""
        while self.bundles or (self._draining is not None and not self._draining.done()):
            self._called()
            assert self._draining is not None
            await asyncio.wait([self._draining])

    async def empty(self) -> None:
        """The same. A failure on the way over is raised here, once."""
        await self.carried()
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
