"""Delayed requests never touch the next transaction: whole brokers in virtual time, a story for each seed.

A producer runs transactions; copies of its requests, and requests that it has given up on, arrive later on other
connections. At the end exactly the committed transactions may be seen, and none may be left open.
``BARNABAS_SIM_SEEDS`` says how many stories are told.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from random import Random
from typing import Any, NamedTuple

import pytest

from barnabas.broker.node import Node
from barnabas.broker.profile import DEVELOPMENT
from barnabas.broker.settings import BrokerSettings
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

SEEDS = int(os.environ.get("BARNABAS_SIM_SEEDS", "200"))
CHUNK = 25  # stories in one test
SETTINGS = {
    **DEVELOPMENT,
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "log.dirs": "/data",
    "transaction.state.log.num.partitions": "2",
    "offsets.topic.num.partitions": "2",
}
TOPIC, PARTITIONS, ID, GROUP = "t", 2, "the-id", "the-group"
NO_OFFSET = -1
TRANSACTIONS = 6
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


# --- one of each ------------------------------------------------------------------------------------------------------


def test_a_delayed_produce_of_an_ended_transaction_is_refused() -> None:
    async def story(peer: Peer) -> None:
        producer = Producer(peer, V2)
        await producer.init()
        await producer.send(producer.produce(0, [b"first"]))
        late = producer.produce(0, [b"late"])  # the producer gives up on this one
        elsewhere = producer.produce(1, [b"late"])  # and on this, in a partition that the coordinator never heard of
        await producer.end(producer.end_request(is_commit=False))
        for request in (late, elsewhere):
            answer = await peer.ask_elsewhere(request, V2.produce)
            assert error_of(answer) == errors.INVALID_PRODUCER_EPOCH.code
        await producer.send(producer.produce(0, [b"second"]))
        for request in (late, elsewhere):
            answer = await peer.ask_elsewhere(request, V2.produce)
            assert error_of(answer) == errors.INVALID_PRODUCER_EPOCH.code
        await producer.end(producer.end_request(is_commit=True))
        assert await committed_values(peer, 0) == [b"second"]
        assert await committed_values(peer, 1) == []

    run(story)


def test_a_delayed_offset_commit_of_an_ended_transaction_is_refused() -> None:
    async def story(peer: Peer) -> None:
        producer = Producer(peer, V2)
        await producer.init()
        late = producer.commit_offset(100)
        await producer.send(producer.commit_offset(1))
        await producer.end(producer.end_request(is_commit=True))
        answer = await peer.ask_elsewhere(late, V2.offsets)
        assert error_of(answer) == errors.INVALID_PRODUCER_EPOCH.code
        await producer.send(producer.commit_offset(2))
        answer = await peer.ask_elsewhere(late, V2.offsets)
        assert error_of(answer) == errors.INVALID_PRODUCER_EPOCH.code
        await producer.end(producer.end_request(is_commit=True))
        assert await committed_offset(peer) == 2

    run(story)


def test_an_offset_commit_that_comes_late_in_version_1_is_not_left_pending() -> None:
    async def story(peer: Peer) -> None:
        producer = Producer(peer, V1)
        await producer.init()
        await producer.add_group()
        await producer.send(producer.commit_offset(1))
        late = producer.commit_offset(100)
        await producer.end(producer.end_request(is_commit=True))
        answer = await peer.ask_elsewhere(late, V1.offsets)
        assert error_of(answer) == errors.TRANSACTION_ABORTABLE.code
        answer = await peer.ask_elsewhere(late, 3)
        assert error_of(answer) == errors.INVALID_TXN_STATE.code
        assert await committed_offset(peer) == 1

    run(story)


@pytest.mark.parametrize("is_commit", [True, False])
def test_a_delayed_end_of_an_ended_transaction_leaves_the_next_one_open(is_commit: bool) -> None:
    async def story(peer: Peer) -> None:
        producer = Producer(peer, V2)
        await producer.init()
        await producer.send(producer.produce(0, [b"first"]))
        late = producer.end_request(is_commit=is_commit)
        await producer.end(producer.end_request(is_commit=True))
        await producer.send(producer.produce(0, [b"second"]))
        answer = await peer.ask_elsewhere(late, V2.end)
        assert answer.error_code == errors.PRODUCER_FENCED.code
        await producer.send(producer.produce(0, [b"third"]))
        await producer.end(producer.end_request(is_commit=not is_commit))
        expected = [b"first"] if is_commit else [b"first", b"second", b"third"]
        assert await committed_values(peer, 0) == expected

    run(story)


def test_a_produce_that_comes_late_in_version_1_opens_no_transaction_that_nobody_ends() -> None:
    async def story(peer: Peer) -> None:
        producer = Producer(peer, V1)
        await producer.init()
        await producer.add(0)
        await producer.send(producer.produce(0, [b"first"]))
        late = producer.produce(0, [b"late"])
        await producer.end(producer.end_request(is_commit=True))
        answer = await peer.ask_elsewhere(late, V1.produce)
        assert error_of(answer) == errors.TRANSACTION_ABORTABLE.code
        answer = await peer.ask_elsewhere(late, 10)
        assert error_of(answer) == errors.INVALID_TXN_STATE.code
        assert await committed_values(peer, 0) == [b"first"]

    run(story)


def test_a_marker_between_the_question_and_the_append_is_noticed() -> None:
    async def story(peer: Peer) -> None:
        producer = Producer(peer, V1)
        await producer.init()
        await producer.add(0)
        end = producer.end_request(is_commit=True)
        request = producer.produce(0, [b"late"])
        put_coordinator_far_away(peer, lambda: 1.0)
        late = asyncio.get_running_loop().create_task(peer.ask_elsewhere(request, V1.produce))
        await asyncio.sleep(1.5)  # the coordinator has said yes, and its answer is on the way
        await producer.end(end)
        assert error_of(await late) == errors.INVALID_TXN_STATE.code
        assert await committed_values(peer, 0) == []

    run(story)


@pytest.mark.parametrize("distance_s", [0.0, 0.1])
def test_the_next_transaction_may_begin_while_the_last_one_is_being_ended(distance_s: float) -> None:
    async def story(peer: Peer) -> None:
        producer = Producer(peer, V2)
        await producer.init()
        slow_down_markers(peer, 0.05 + distance_s / 2)
        put_coordinator_far_away(peer, lambda: distance_s)
        for number in range(5):
            # Markers of the last transaction arrive while the coordinator is asked about this one.
            await producer.send(producer.produce(0, [b"%d" % number]))
            await producer.send(producer.commit_offset(number))
            await producer.end(producer.end_request(is_commit=True))
        await asyncio.sleep(1)
        assert await committed_values(peer, 0) == [b"0", b"1", b"2", b"3", b"4"]
        assert await committed_offset(peer) == 4

    run(story)


# --- all of them, shuffled ------------------------------------------------------------------------------------------


class Shuffle:
    """A producer whose requests are copied, delayed and given up on, as the seed says."""

    def __init__(self, peer: Peer, versions: Versions, random: Random) -> None:
        self.peer = peer
        self.versions = versions
        self.random = random
        self.producer = Producer(peer, versions)
        self.late: list[asyncio.Task[Any]] = []
        self.expected: dict[int, list[bytes]] = {partition: [] for partition in range(PARTITIONS)}
        self.expected_offset = NO_OFFSET

    def send_late(self, message: Message, version: int) -> None:
        delay_s = self.random.choice((0.0, 0.0, 0.01, 0.03, 0.1, 1.0)) * self.random.random()

        async def send() -> Any:
            await asyncio.sleep(delay_s)
            return await self.peer.ask_elsewhere(message, version)

        self.late.append(asyncio.get_running_loop().create_task(send()))

    async def transaction(self, number: int) -> None:
        producer, random = self.producer, self.random
        written: dict[int, list[bytes]] = {}
        is_commit = random.random() < 0.6
        for step in range(random.randrange(4)):
            partition = random.randrange(PARTITIONS)
            values = [b"%d.%d.%d" % (number, step, each) for each in range(random.randrange(1, 4))]
            await producer.add(partition)
            request = producer.produce(partition, values)
            if random.random() < 0.2:
                # No answer comes, so the producer gives up: what it sent may arrive at any time, or has arrived.
                self.send_late(request, self.versions.produce)
                await asyncio.sleep(random.choice((0.0, 0.01, 0.03)) * random.random())
                is_commit = False
                break
            await producer.send(request)
            written.setdefault(partition, []).extend(values)
            if random.random() < 0.3:
                self.send_late(request, self.versions.produce)
        offset = NO_OFFSET
        if random.random() < 0.5:
            await producer.add_group()
            offset = number
            commit = producer.commit_offset(offset)
            if random.random() < 0.2:
                self.send_late(commit, self.versions.offsets)
                await asyncio.sleep(random.choice((0.0, 0.01, 0.03)) * random.random())
                is_commit = False
            else:
                await producer.send(commit)
                # In version 1 nothing tells a commit of one transaction from a commit of the next either.
                if random.random() < 0.3 and not self.versions.is_adding:
                    self.send_late(commit, self.versions.offsets)
        is_begun = bool(written) or offset != NO_OFFSET or not is_commit
        if not is_begun or (self.versions.is_adding and not producer.added):
            return
        end = producer.end_request(is_commit=is_commit)
        await producer.end(end)
        if not self.versions.is_adding:
            # In version 1 nothing tells the end of one transaction from the end of the next: hence version 2.
            if random.random() < 0.4:
                self.send_late(end, self.versions.end)
            if random.random() < 0.2:
                wrong = EndTxnRequest(
                    transactional_id=ID,
                    producer_id=end.producer_id,
                    producer_epoch=end.producer_epoch,
                    committed=not is_commit,
                )
                self.send_late(wrong, self.versions.end)
        elif not is_commit:
            await producer.init()  # as the clients do: after an error the sequence begins anew
        if is_commit:
            for partition, values in written.items():
                self.expected[partition] += values
            self.expected_offset = max(offset, self.expected_offset)
        if random.random() < 0.3:
            await asyncio.sleep(random.random() * 0.1)

    async def play(self) -> None:
        if self.random.random() < 0.7:
            put_coordinator_far_away(self.peer, lambda: 0.02 * self.random.random())
        await self.producer.init()
        for number in range(TRANSACTIONS):
            await self.transaction(number)
        await asyncio.gather(*self.late)
        for partition in range(PARTITIONS):
            assert await committed_values(self.peer, partition) == self.expected[partition]
            assert self.peer.log(partition).producers.first_unstable_offset == -1
        assert await committed_offset(self.peer) == self.expected_offset


def tell(versions: Versions, seeds: range) -> None:
    for seed in seeds:

        async def story(peer: Peer, seed: int = seed) -> None:
            await Shuffle(peer, versions, Random(seed)).play()

        run(story, seed)


@pytest.mark.parametrize("first_seed", range(0, SEEDS, CHUNK))
def test_shuffled_requests_commit_what_was_committed_and_leave_nothing_open(first_seed: int) -> None:
    tell(V2, range(first_seed, min(first_seed + CHUNK, SEEDS)))


@pytest.mark.parametrize("first_seed", range(0, SEEDS // 4, CHUNK))
def test_in_version_1_shuffled_writes_leave_nothing_open_either(first_seed: int) -> None:
    tell(V1, range(first_seed, first_seed + CHUNK))
