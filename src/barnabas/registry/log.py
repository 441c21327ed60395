"""The topic ``_schemas``: one task reads it into the state, and the leader appends to it in transactions.

A transactional id belongs to the registry, so a new leader fences the one before it: a process that was frozen and
wakes up cannot write. A write is answered when its records have been read back.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import fields
from typing import Any, Final

from barnabas.client.admin.client import Admin
from barnabas.client.admin.topics import NewTopic
from barnabas.client.consumer import Consumer
from barnabas.client.errors import OffsetGone, ProducerFenced, RecordTooLarge, TransactionAborted
from barnabas.client.producer import Producer
from barnabas.client.settings.client import Settings
from barnabas.client.settings.consumer import ConsumerSettings
from barnabas.client.settings.producer import ProducerSettings
from barnabas.model import errors as codes
from barnabas.model.errors import ApiError, BarnabasError
from barnabas.model.ids import TopicPartition
from barnabas.observe.log import logger
from barnabas.registry import errors
from barnabas.registry.records import TOPIC, encode_key, encode_value
from barnabas.registry.state import State
from barnabas.registry.writes import Record

_log: Final = logger("registry")
WRITER_ID: Final = f"barnabas-registry-{TOPIC}"  # one for the topic: groups of other names fence each other too
PLACE: Final = TopicPartition(TOPIC, 0)
POLL_MS: Final = 200
RETRY_SECONDS: Final = 0.5
WRITE_SECONDS_MAX: Final = 20.0
POLL_RECORDS_MAX: Final = 5000


class NotLeader(BarnabasError):
    """Another process has become the leader; nothing was written."""

    retriable = True


class SchemaLog:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.cluster_id = ""
        self.state = State()
        self.is_read = asyncio.Event()  # everything that was there at the start
        self._position = 0
        self._news = asyncio.Condition()
        self._reading: asyncio.Task[None] | None = None
        self._consumer: Consumer | None = None
        self._producer: Producer | None = None

    async def exists(self) -> bool:
        """Whether there is the topic; raises if no broker answers."""
        async with Admin(self._settings) as admin:
            self.cluster_id = (await admin.describe_cluster()).cluster_id
            return not isinstance((await admin.describe_topics([TOPIC]))[TOPIC], ApiError)

    async def start(self) -> None:
        """Create the topic if there is none, and begin to read it."""
        async with Admin(self._settings) as admin:
            await _ensure_topic(admin)
        self._reading = asyncio.get_running_loop().create_task(self._read(), name="registry-reader")

    async def close(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading])
        await self.resign()

    # --- reading --------------------------------------------------------------------------------------------------

    async def _read(self) -> None:
        while True:
            try:
                await self._read_once()
            except OffsetGone:
                _log.warning("topic_truncated", topic=TOPIC)
            except BarnabasError as error:
                _log.warning("topic_unreadable", topic=TOPIC, reason=error)
            await asyncio.sleep(RETRY_SECONDS)

    async def _read_once(self) -> None:
        """Read from the beginning into a new state, which takes the old one's place when it has caught up."""
        state = State()
        settings = client_settings(
            ConsumerSettings,
            self._settings,
            isolation_level="read_committed",
            auto_offset_reset="none",
            max_poll_records=POLL_RECORDS_MAX,
        )
        async with Consumer(settings) as consumer:
            end = (await consumer.end_offsets([PLACE]))[PLACE]
            await consumer.assign([PLACE])
            self._consumer = consumer
            while True:
                for record in await consumer.poll(timeout_ms=POLL_MS):
                    state.apply(record.key, record.value)
                    state.next_offset = record.offset + 1
                position = consumer.position(PLACE)
                if position >= end or state is self.state:
                    self.state = state
                    self.is_read.set()
                    async with self._news:
                        self._position = position
                        self._news.notify_all()

    async def _wait_for(self, offset: int) -> None:
        """Until everything before the offset has been read; raises RestError when that takes too long."""
        try:
            async with asyncio.timeout(WRITE_SECONDS_MAX), self._news:
                await self._news.wait_for(lambda: max(self._position, self.state.next_offset) >= offset)
        except TimeoutError:
            raise errors.timed_out("the topic _schemas could not be read in time") from None

    async def catch_up(self) -> None:
        """Until everything that is committed by now has been read."""
        await self.is_read.wait()
        assert self._consumer is not None
        await self._wait_for((await self._consumer.end_offsets([PLACE]))[PLACE])

    # --- writing --------------------------------------------------------------------------------------------------

    async def lead(self) -> None:
        """Take the right to write from every other process, then read what they have written."""
        await self.resign()
        settings = client_settings(ProducerSettings, self._settings, transactional_id=WRITER_ID, linger_ms=0)
        producer: Producer = Producer(settings)
        try:
            await producer.begin_transaction()
            await producer.commit_transaction()
        except BaseException:
            await producer.close(flush=False)
            raise
        self._producer = producer
        await self.catch_up()

    async def resign(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            with suppress(BarnabasError):
                await producer.close(flush=False)

    async def write(self, records: list[Record]) -> None:
        """Append records together and read them back; raises NotLeader, or RestError with the reason.

        After an error the outcome is not known; the caller takes the lead again before the next write.
        """
        producer = self._producer
        if producer is None:
            raise NotLeader("this process does not lead the registry")
        if not records:
            return
        try:
            async with asyncio.timeout(WRITE_SECONDS_MAX):
                offset = await _append(producer, records)
        except (ProducerFenced, TransactionAborted) as error:  # nothing was written
            await self.resign()
            raise NotLeader(f"another process has taken the lead ({error})") from None
        except RecordTooLarge as error:
            raise errors.store_failed(f"the topic {TOPIC} does not accept the record: {error}") from error
        except TimeoutError:
            await self.resign()
            raise errors.timed_out(f"writing to {TOPIC} took too long") from None
        except BarnabasError as error:
            await self.resign()
            raise errors.store_failed(f"writing to {TOPIC} failed: {error}") from error
        await self._wait_for(offset + 1)


async def _append(producer: Producer, records: list[Record]) -> int:
    """The offset of the last record."""
    async with producer.transaction():
        sent = [
            await producer.send_soon(TOPIC, encode_value(value), key=encode_key(key), partition=PLACE.partition)
            for key, value in records
        ]
    return max([(await each).offset for each in sent])


async def _ensure_topic(admin: Admin) -> None:
    described = (await admin.describe_topics([TOPIC]))[TOPIC]
    if isinstance(described, ApiError):
        try:
            await admin.create_topic(NewTopic(TOPIC, 1, -1, {"cleanup.policy": "compact"}))
        except ApiError as error:
            if error.error is not codes.TOPIC_ALREADY_EXISTS:
                raise
    elif len(described.partitions) != 1:
        raise BarnabasError(f"the topic {TOPIC} has {len(described.partitions)} partitions and must have 1")


def client_settings(kind: type[Any], settings: Settings, **others: Any) -> Any:
    """The settings of a client as those of another kind of client."""
    shared = {each.name: getattr(settings, each.name) for each in fields(Settings)}
    return kind(**{**shared, **others})
