"""Records on their way from the caller's thread to the loop's: many cross over at a time, in their order.

The caller appends, the loop takes; each counts only its own side, so neither waits for a lock. When the caller is far
ahead it waits. ``blocking_producer.py`` is the only user.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from typing import Any, Final, Generic, TypeAlias

from barnabas.client.batch import Delivery, Headers, RecordMetadata
from barnabas.client.blocking_loop import LoopThread
from barnabas.client.errors import ProducerClosed
from barnabas.client.producer import Producer
from barnabas.client.serdes.serde import K, V
from barnabas.model.errors import BarnabasError

RECORDS_MAX: Final = 20_000
BYTES_MAX: Final = 4 << 20

Letter: TypeAlias = "tuple[Promise, str, Any, Any, Headers | Mapping[str, bytes | None], int | None, int | None]"


class Promise:
    """What becomes of a record that was sent; ``result`` waits for it."""

    __slots__ = ("_outbox", "delivery", "failure")

    def __init__(self, outbox: Outbox[Any, Any]) -> None:
        self._outbox = outbox
        self.delivery: Delivery | None = None
        self.failure: BaseException | None = None

    @property
    def is_done(self) -> bool:
        return self.failure is not None or (self.delivery is not None and self.delivery.is_done)

    def result(self, timeout_ms: int | None = None) -> RecordMetadata:
        """Where the record went; raises why it did not go, or TimeoutError."""
        return self._outbox.thread.run(self._wait(timeout_ms))

    async def _wait(self, timeout_ms: int | None) -> RecordMetadata:
        async with asyncio.timeout(None if timeout_ms is None else timeout_ms / 1000):
            if self.delivery is None and self.failure is None:
                await self._outbox.carried()
            if self.failure is not None:
                raise self.failure
            assert self.delivery is not None
            return await self.delivery


class Outbox(Generic[K, V]):
    def __init__(self, thread: LoopThread, producer: Producer[K, V]) -> None:
        self.thread = thread
        self._producer = producer
        self._letters: deque[Letter] = deque()
        self._is_called = False
        self._put_bytes = 0  # counted by the caller's thread alone
        self._taken_bytes = 0  # and this by the loop's
        self._draining: asyncio.Task[None] | None = None
        self._failure: BarnabasError | None = None

    def put(self, letter: Letter) -> None:
        """From the caller's thread; waits while too many are on their way."""
        self._put_bytes += _size(letter)
        self._letters.append(letter)
        if not self._is_called:
            self._is_called = True
            self.thread.call_soon(self._called)
        if len(self._letters) > RECORDS_MAX or self._put_bytes - self._taken_bytes > BYTES_MAX:
            self.thread.run(self.carried())

    def _called(self) -> None:
        if self._draining is None or self._draining.done():
            self._draining = asyncio.get_running_loop().create_task(self._drain(), name="outbox")

    async def _drain(self) -> None:
        letters, post, intake = self._letters, self._producer.post, self._producer.intake
        while True:
            while letters:
                letter = letters.popleft()
                promise, topic, value, key, headers, partition, timestamp_ms = letter
                try:
                    promise.delivery = post(topic, value, key, headers, partition, timestamp_ms)
                    if promise.delivery is None or intake.has_news:
                        await self._carry(letter)
                except BarnabasError as error:
                    promise.failure = error
                    self._failure = self._failure or error
                except asyncio.CancelledError:
                    promise.failure = ProducerClosed("the producer was closed before the record was sent")
                    raise
                self._taken_bytes += _size(letter)
            self._is_called = False
            if not letters:  # looked at after the flag: whoever puts one now calls again
                return
            self._is_called = True

    async def _carry(self, letter: Letter) -> None:
        """What a plain call could not do: wait, or tell the sender."""
        promise, topic, value, key, headers, partition, timestamp_ms = letter
        if promise.delivery is None:
            promise.delivery = await self._producer.send_soon(
                topic, value, key=key, headers=headers, partition=partition, timestamp_ms=timestamp_ms
            )
        else:
            await self._producer.tell_sender(topic)

    async def carried(self) -> None:
        """Until all that was put is with the producer, or could not be brought to it."""
        while self._letters or (self._draining is not None and not self._draining.done()):
            self._called()
            assert self._draining is not None
            await asyncio.wait([self._draining])

    async def empty(self) -> None:
        """The same. A failure on the way over is raised here, once."""
        await self.carried()
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure


def _size(letter: Letter) -> int:
    value = letter[2]
    return len(value) if type(value) is bytes else 256  # what an object will take is not known yet
