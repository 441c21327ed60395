"""A client that says exactly what it is told to: one connection, any message in any version, raw bytes if need be.

The tests of the wire use it, so that no client library stands between a claim and the broker.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Sequence
from typing import Any, Self, TypeVar

from barnabas.model.ids import Uuid
from barnabas.transport.channel import Channel
from barnabas.wire.message import Message
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse
from barnabas.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from barnabas.wire.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.wire.messages.produce import ProduceRequest, ProduceResponse
from barnabas.wire.records import Record, decode_all, encode_batch

SECONDS_MAX = 20.0
M = TypeVar("M", bound=Message)


def address_of(bootstrap_servers: str) -> tuple[str, int]:
    host, _, port = bootstrap_servers.rpartition(":")
    return host, int(port)


class Talk:
    """``talk.ask(request, version)`` gives the answer; ``talk.is_open`` says whether the broker has hung up."""

    def __init__(self, bootstrap_servers: str, *, client_id: str | None = "talk") -> None:
        self._runner = asyncio.Runner()
        host, port = address_of(bootstrap_servers)
        self._channel = self._runner.run(Channel.connect(host, port, client_id=client_id))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def is_open(self) -> bool:
        async def look() -> bool:
            await asyncio.sleep(0.01)
            return self._channel.is_open

        return self._runner.run(look())

    def close(self) -> None:
        async def end() -> None:
            self._channel.close()
            await self._channel.closed

        self._runner.run(end())
        self._runner.close()

    def ask(self, message: Message, version: int | None = None) -> Any:
        return self.ask_all((message, version))[0]

    def ask_all(self, *requests: tuple[Message, int | None]) -> list[Any]:
        """Send all of them before the first answer is read."""

        async def send() -> list[Any]:
            answers = [
                self._channel.post(message, message.versions[-1] if version is None else version)
                for message, version in requests
            ]
            return list(await asyncio.wait_for(asyncio.gather(*answers), SECONDS_MAX))

        return self._runner.run(send())

    def tell(self, message: Message, version: int | None = None) -> None:
        """Send a request that gets no answer."""
        sent = message.versions[-1] if version is None else version
        self._runner.run(self._channel.send_silent(message, sent))

    def until_closed(self) -> None:
        """Wait for the broker to hang up."""

        async def wait() -> None:
            await asyncio.wait_for(asyncio.shield(self._channel.closed), SECONDS_MAX)

        self._runner.run(wait())

    # --- the requests that most tests need ------------------------------------------------------------------------

    def create(self, name: str, partitions: int = 1, **configs: str) -> Uuid:
        """A topic; settings with underscores for dots."""
        answer = self.ask(CreateTopicsRequest(topics=[creatable(name, partitions, **configs)], timeout_ms=5000))
        (topic,) = answer.topics
        assert topic.error_code == 0, topic
        topic_id: Uuid = topic.topic_id
        return topic_id

    def topic_id(self, name: str) -> Uuid:
        topics = [MetadataRequest.MetadataRequestTopic(name=name)]
        answer: MetadataResponse = self.ask(MetadataRequest(topics=topics, allow_auto_topic_creation=False))
        assert answer.topics[0].error_code == 0, answer.topics[0]
        return answer.topics[0].topic_id

    def produce(
        self, topic: str, records: Any, *, partition: int = 0, acks: int = -1, version: int = 12
    ) -> ProduceResponse.PartitionProduceResponse:
        answer = self.ask(produce_request(topic, records, partition=partition, acks=acks), version)
        row: ProduceResponse.PartitionProduceResponse = answer.responses[0].partition_responses[0]
        return row

    def fetch(self, topic: str, offset: int = 0, *, partition: int = 0, **more: Any) -> FetchResponse.PartitionData:
        answer = self.ask(fetch_request(topic, offset, partition=partition, **more), 12)
        row: FetchResponse.PartitionData = answer.responses[0].partitions[0]
        return row

    def read(self, topic: str, offset: int = 0, *, partition: int = 0) -> list[Record]:
        row = self.fetch(topic, offset, partition=partition)
        assert row.error_code == 0, row
        return decode_all(row.records or b"")

    def offset(self, topic: str, timestamp: int, *, partition: int = 0, version: int = 11, **more: Any) -> Any:
        asked = ListOffsetsRequest.ListOffsetsPartition(partition_index=partition, timestamp=timestamp, **more)
        topics = [ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=[asked])]
        answer: ListOffsetsResponse = self.ask(ListOffsetsRequest(topics=topics), version)
        return answer.topics[0].partitions[0]


def creatable(
    name: str, partitions: int = 1, replication_factor: int = 1, **configs: str
) -> CreateTopicsRequest.CreatableTopic:
    return CreateTopicsRequest.CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication_factor,
        configs=[
            CreateTopicsRequest.CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ],
    )


def batch(*values: bytes, timestamp: int = 1_700_000_000_000, key: bytes | None = b"k", **more: Any) -> bytearray:
    """A batch of these values, a millisecond apart."""
    return encode_batch([(timestamp + number, key, value, ()) for number, value in enumerate(values)], **more)


def produce_request(
    topic: str, records: Any, *, partition: int = 0, acks: int = -1, topic_id: Uuid | None = None, **more: Any
) -> ProduceRequest:
    data = ProduceRequest.PartitionProduceData(index=partition, records=records)
    topics = ProduceRequest.TopicProduceData(name=topic, partition_data=[data])
    if topic_id is not None:
        topics.topic_id = topic_id
    return ProduceRequest(acks=acks, timeout_ms=5000, topic_data=[topics], **more)


def fetch_request(
    topic: str,
    offset: int = 0,
    *,
    partition: int = 0,
    max_wait_ms: int = 0,
    min_bytes: int = 0,
    max_bytes: int = 1 << 24,
    partition_max_bytes: int = 1 << 20,
    topic_id: Uuid | None = None,
    current_leader_epoch: int = -1,
    last_fetched_epoch: int = -1,
    session_epoch: int = -1,
    **more: Any,
) -> FetchRequest:
    asked = FetchRequest.FetchPartition(
        partition=partition,
        fetch_offset=offset,
        partition_max_bytes=partition_max_bytes,
        current_leader_epoch=current_leader_epoch,
        last_fetched_epoch=last_fetched_epoch,
    )
    wanted = FetchRequest.FetchTopic(topic=topic, partitions=[asked])
    if topic_id is not None:
        wanted.topic_id = topic_id
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        session_epoch=session_epoch,
        topics=[wanted],
        **more,
    )


class Raw:
    """A socket and no manners."""

    def __init__(self, bootstrap_servers: str, *, seconds: float = SECONDS_MAX) -> None:
        self.socket = socket.create_connection(address_of(bootstrap_servers), timeout=seconds)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def send_frame(self, body: bytes) -> None:
        self.send(struct.pack(">i", len(body)) + body)

    def receive_frame(self) -> bytes:
        (size,) = struct.unpack(">i", self._receive(4))
        return self._receive(size)

    def is_closed(self) -> bool:
        """Whether the broker hangs up without a word."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True

    def _receive(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            piece = self.socket.recv(size - len(data))
            if not piece:
                raise ConnectionError("the broker hung up")
            data += piece
        return bytes(data)


def joined(parts: Sequence[Any]) -> bytes:
    return b"".join(bytes(part) for part in parts)
