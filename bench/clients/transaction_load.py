"""Transactional producers, as a program: each writes one record, commits, and begins again.

They speak version 2 of transactions (KIP-890): one Produce and one EndTxn make a transaction. Run by
`coordination.py`; prints a line of JSON.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time

from barnabas.model import errors
from barnabas.transport.channel import Channel
from barnabas.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.wire.messages.produce import ProduceRequest, ProduceResponse
from barnabas.wire.records import encode_batch

VALUE = bytes(100)
TIMEOUT_MS = 60_000
PRODUCE_VERSION = 12
END_VERSION = 5
PASSING = (
    errors.COORDINATOR_LOAD_IN_PROGRESS.code,
    errors.COORDINATOR_NOT_AVAILABLE.code,
    errors.NOT_COORDINATOR.code,
    errors.CONCURRENT_TRANSACTIONS.code,
)
RETRY_SECONDS = 0.005  # clients wait longer; this is about the broker


class Producer:
    def __init__(self, channel: Channel, name: str, topic: str, partition: int) -> None:
        self._channel = channel
        self._name = name
        self._topic = topic
        self._partition = partition
        self._id = self._epoch = -1

    async def init(self) -> None:
        while True:
            request = InitProducerIdRequest(transactional_id=self._name, transaction_timeout_ms=TIMEOUT_MS)
            answer = await self._channel.send(request, 4)
            assert isinstance(answer, InitProducerIdResponse)
            if answer.error_code == errors.NONE.code:
                self._id, self._epoch = answer.producer_id, answer.producer_epoch
                return
            await self._pause("InitProducerId", answer.error_code)

    async def transact(self) -> None:
        batch = encode_batch(
            [(time.time_ns() // 1_000_000, None, VALUE, ())],
            producer_id=self._id,
            producer_epoch=self._epoch,
            base_sequence=0,
            is_transactional=True,
        )
        data = ProduceRequest.PartitionProduceData(index=self._partition, records=batch)
        topic = ProduceRequest.TopicProduceData(name=self._topic, partition_data=[data])
        produce = ProduceRequest(transactional_id=self._name, acks=-1, timeout_ms=TIMEOUT_MS, topic_data=[topic])
        while True:
            answer = await self._channel.send(produce, PRODUCE_VERSION)
            assert isinstance(answer, ProduceResponse)
            code = answer.responses[0].partition_responses[0].error_code
            if code == errors.NONE.code:
                break
            await self._pause("Produce", code)
        end = EndTxnRequest(
            transactional_id=self._name, producer_id=self._id, producer_epoch=self._epoch, committed=True
        )
        while True:
            ended = await self._channel.send(end, END_VERSION)
            assert isinstance(ended, EndTxnResponse)
            if ended.error_code == errors.NONE.code:
                self._id, self._epoch = ended.producer_id, ended.producer_epoch
                return
            await self._pause("EndTxn", ended.error_code)

    async def _pause(self, what: str, code: int) -> None:
        if code not in PASSING:
            raise SystemExit(f"{what}: {errors.error_of(code).name}")
        await asyncio.sleep(RETRY_SECONDS)


async def main(host: str, port: int, topic: str, partitions: int, count: int, seconds: float) -> dict[str, float]:
    asker = await Channel.connect(host, port, client_id="bench")
    while True:  # the topic of transactions is made when somebody asks for it
        found = await asker.send(FindCoordinatorRequest(key_type=1, coordinator_keys=["bench"]), 6)
        if found.coordinators[0].error_code == 0:  # type: ignore[attr-defined]
            break
        await asyncio.sleep(0.1)
    asker.close()
    channels = [await Channel.connect(host, port, client_id="bench") for _ in range(count)]
    producers = [
        Producer(channel, f"{topic}-{index}", topic, index % partitions) for index, channel in enumerate(channels)
    ]
    await asyncio.gather(*(producer.init() for producer in producers))
    times: list[float] = []
    begun = time.monotonic() + 1  # the second before it is for compilers that learn

    async def work(producer: Producer, deadline: float) -> None:
        while (started := time.monotonic()) < deadline:
            await producer.transact()
            times.append(time.monotonic() - started)

    await asyncio.gather(*(work(producer, begun) for producer in producers))
    times.clear()
    print("BEGINS", flush=True)
    started = time.monotonic()
    await asyncio.gather(*(work(producer, started + seconds) for producer in producers))
    took = time.monotonic() - started
    for channel in channels:
        channel.close()
    return {
        "transactions": float(len(times)),
        "transactions_per_second": len(times) / took,
        "p50_ms": statistics.median(times) * 1000,
        "p99_ms": statistics.quantiles(times, n=100)[98] * 1000,
    }


if __name__ == "__main__":
    _, host_, port_, topic_, partitions_, count_, seconds_ = sys.argv
    figures = asyncio.run(main(host_, int(port_), topic_, int(partitions_), int(count_), float(seconds_)))
    print(json.dumps(figures))
