"""A broker in virtual time, a producer whose requests may come late or twice, and what was committed in the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from barnabas.broker.node.node import Node
from barnabas.broker.settings.broker import BrokerSettings
from barnabas.broker.settings.profile import DEVELOPMENT
from barnabas.model import errors
from barnabas.testing.loop import SimulatedLoop, simulate
from barnabas.testing.world import simulated_world
from barnabas.transport.channel import Channel
from barnabas.wire.batch import iterate
from barnabas.wire.message import Message
from barnabas.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.end_txn import EndTxnRequest
from barnabas.wire.messages.fetch import FetchRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from barnabas.wire.messages.offset_fetch import OffsetFetchRequest
from barnabas.wire.messages.produce import ProduceRequest, ProduceResponse
from barnabas.wire.messages.txn_offset_commit import TxnOffsetCommitRequest
from barnabas.wire.records import decode_batch, encode_batch

SETTINGS = {
    **DEVELOPMENT,
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "log.dirs": "/data",
    "transaction.state.log.num.partitions": "2",
    "offsets.topic.num.partitions": "2",
}
TOPIC, PARTITIONS, ID, GROUP = "t", 2, "the-id", "the-group"
NO_OFFSET = -1
RETRIES_MAX = 200
TIME_S_MAX = 3600.0


class Versions(NamedTuple):
    """What a producer of transactions version 2, or 1, sends."""

    produce: int
    offsets: int
    end: int
    is_adding: bool


V2 = Versions(produce=12, offsets=5, end=5, is_adding=False)
V1 = Versions(produce=11, offsets=4, end=4, is_adding=True)


class Peer:
    """A broker, and a client that can say anything on any connection."""

    def __init__(self, node: Node, main: Channel) -> None:
        self.node = node
        self.main = main

    async def ask(self, message: Message, version: int) -> Any:
        return await self.main.send(message, version)

    async def ask_elsewhere(self, message: Message, version: int) -> Any:
        """On a connection of its own."""
        channel = await Channel.connect("127.0.0.1", self.node.listeners[0].port, client_id="late")
        try:
            return await channel.send(message, version)
        finally:
            channel.close()

    def log(self, partition: int) -> Any:
        return self.node.services.replicas.leader(TOPIC, partition).log


@asynccontextmanager
async def broker(seed: int) -> AsyncIterator[Peer]:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimulatedLoop)
    node = Node(simulated_world(loop, seed), BrokerSettings.of(SETTINGS))
    await node.start()
    channel = await Channel.connect("127.0.0.1", node.listeners[0].port, client_id="producer")
    peer = Peer(node, channel)
    topic = CreateTopicsRequest.CreatableTopic(name=TOPIC, num_partitions=PARTITIONS, replication_factor=1)
    await peer.ask(CreateTopicsRequest(topics=[topic], timeout_ms=1000), 7)
    await peer.ask(FindCoordinatorRequest(key_type=1, coordinator_keys=[ID]), 6)
    await peer.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP]), 6)
    await node.services.transactions.runtime.until_loaded()
    await node.services.groups.runtime.until_loaded()
    try:
        yield peer
    finally:
        channel.close()
        await node.stop()


class Producer:
    """A transactional producer that numbers its batches and keeps to the protocol."""

    def __init__(self, peer: Peer, versions: Versions) -> None:
        self.peer = peer
        self.versions = versions
        self.id = self.epoch = -1
        self.sequences: dict[int, int] = {}
        self.added: set[int] = set()

    async def init(self) -> None:
        request = InitProducerIdRequest(
            transactional_id=ID, transaction_timeout_ms=60_000, producer_id=self.id, producer_epoch=self.epoch
        )
        answer = await self.until_not_concurrent(lambda: self.peer.ask(request, 5))
        self.move_to(answer.producer_id, answer.producer_epoch)

    def move_to(self, producer_id: int, epoch: int) -> None:
        assert (self.id, self.epoch) != (producer_id, epoch)
        self.id, self.epoch = producer_id, epoch
        self.sequences.clear()

    async def until_not_concurrent(self, ask: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        for _ in range(RETRIES_MAX):
            answer = await ask()
            if answer.error_code != errors.CONCURRENT_TRANSACTIONS.code:
                assert answer.error_code == 0, errors.error_of(answer.error_code)
                return answer
            await asyncio.sleep(0.02)
        raise AssertionError("the transaction before never ended")

    def produce(self, partition: int, values: list[bytes]) -> ProduceRequest:
        """The request for a batch; it takes its place in the sequence."""
        sequence = self.sequences.get(partition, 0)
        self.sequences[partition] = sequence + len(values)
        records = encode_batch(
            [(1_700_000_000_000, b"k", value, ()) for value in values],
            producer_id=self.id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
            is_transactional=True,
        )
        data = ProduceRequest.PartitionProduceData(index=partition, records=records)
        return ProduceRequest(
            transactional_id=ID,
            acks=-1,
            timeout_ms=1000,
            topic_data=[ProduceRequest.TopicProduceData(name=TOPIC, partition_data=[data])],
        )

    async def add(self, partition: int) -> None:
        """Version 1 announces a partition before it writes there."""
        if not self.versions.is_adding or partition in self.added:
            return
        topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=TOPIC, partitions=[partition])
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=ID,
            v3_and_below_producer_id=self.id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[topic],
        )
        for _ in range(RETRIES_MAX):
            answer = await self.peer.ask(request, 3)
            code = answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
            if code != errors.CONCURRENT_TRANSACTIONS.code:
                assert code == 0, errors.error_of(code)
                self.added.add(partition)
                return
            await asyncio.sleep(0.02)

    def commit_offset(self, offset: int) -> TxnOffsetCommitRequest:
        row = TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        return TxnOffsetCommitRequest(
            transactional_id=ID,
            group_id=GROUP,
            producer_id=self.id,
            producer_epoch=self.epoch,
            topics=[TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(name=TOPIC, partitions=[row])],
        )

    async def add_group(self) -> None:
        if not self.versions.is_adding:
            return
        request = AddOffsetsToTxnRequest(
            transactional_id=ID, producer_id=self.id, producer_epoch=self.epoch, group_id=GROUP
        )
        await self.until_not_concurrent(lambda: self.peer.ask(request, 4))
        self.added.add(NO_OFFSET)

    async def send(self, request: ProduceRequest | TxnOffsetCommitRequest) -> None:
        version = self.versions.produce if isinstance(request, ProduceRequest) else self.versions.offsets
        for _ in range(RETRIES_MAX):
            code = error_of(await self.peer.ask(request, version))
            if not errors.error_of(code).retriable:
                assert code == 0, errors.error_of(code)
                return
            await asyncio.sleep(0.02)

    def end_request(self, *, is_commit: bool) -> EndTxnRequest:
        return EndTxnRequest(transactional_id=ID, producer_id=self.id, producer_epoch=self.epoch, committed=is_commit)

    async def end(self, request: EndTxnRequest) -> None:
        answer = await self.until_not_concurrent(lambda: self.peer.ask(request, self.versions.end))
        self.added.clear()
        if not self.versions.is_adding:
            self.move_to(answer.producer_id, answer.producer_epoch)


def error_of(answer: Any) -> int:
    """Of the only partition that a Produce or a TxnOffsetCommit names."""
    if isinstance(answer, ProduceResponse):
        return answer.responses[0].partition_responses[0].error_code
    code: int = answer.topics[0].partitions[0].error_code
    return code


async def committed_offset(peer: Peer) -> int:
    topic = OffsetFetchRequest.OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[0])
    group = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=GROUP, topics=[topic])
    answer = await peer.ask(OffsetFetchRequest(groups=[group], require_stable=True), 9)
    row = answer.groups[0].topics[0].partitions[0]
    assert row.error_code == 0, errors.error_of(row.error_code)
    offset: int = row.committed_offset
    return offset


async def committed_values(peer: Peer, partition: int) -> list[bytes]:
    """What a read_committed consumer sees: it drops what the broker says was aborted."""
    found: list[bytes] = []
    offset = 0
    while True:
        asked = FetchRequest.FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20)
        request = FetchRequest(
            max_wait_ms=0,
            isolation_level=1,
            session_epoch=-1,
            topics=[FetchRequest.FetchTopic(topic=TOPIC, partitions=[asked])],
        )
        row = (await peer.ask(request, 12)).responses[0].partitions[0]
        assert row.error_code == 0
        assert row.last_stable_offset == row.high_watermark, "a transaction was left open"
        data = bytes(row.records or b"")
        if not data:
            return found
        aborted = sorted((each.first_offset, each.producer_id) for each in row.aborted_transactions or ())
        void: set[int] = set()
        for position, header in iterate(data):
            while aborted and aborted[0][0] <= header.last_offset:
                void.add(aborted.pop(0)[1])
            if header.is_control:
                void.discard(header.producer_id)
            elif header.producer_id not in void or not header.is_transactional:
                found += [record.value or b"" for record in decode_batch(data, position)]
            offset = header.next_offset


def put_coordinator_far_away(peer: Peer, delay_s: Callable[[], float]) -> None:
    """Let leaders wait for the coordinator's answers, as they do when it is another broker."""
    coordinator: Any = peer.node.services.transactions

    def far(near: Any) -> Any:
        async def ask(request: Any) -> Any:
            await asyncio.sleep(delay_s())
            answer = await near(request)
            await asyncio.sleep(delay_s())
            return answer

        return ask

    coordinator.add_partitions, coordinator.verify = far(coordinator.add_partitions), far(coordinator.verify)


def slow_down_markers(peer: Peer, delay_s: float) -> None:
    """Let the end of a transaction take its time, as it does on a broker with much to do."""
    delivery: Any = peer.node.services.transactions._delivery
    quick = delivery._sender.send

    async def send(*arguments: Any) -> Any:
        await asyncio.sleep(delay_s)
        return await quick(*arguments)

    delivery._sender.send = send


def run(story: Callable[[Peer], Coroutine[Any, Any, None]], seed: int = 0) -> None:
    async def whole() -> None:
        async with broker(seed) as peer:
            await story(peer)

    simulate(whole, seed=seed, time_s_max=TIME_S_MAX)
