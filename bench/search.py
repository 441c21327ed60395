"""How fast a search reads a topic: ``python -m bench.search --records 200000``.

Three ways to find the records of one key among records of 1 KB: a plain fetch that decodes nothing (the ceiling), every
record decoded and checked (as without a probe), and the search of ``barnabas.client.scan``, which skips batches whose
bytes cannot match. Prints MB/s of each and the ratios.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import time
from collections.abc import Awaitable, Callable
from tempfile import TemporaryDirectory

from barnabas import Consumer, ConsumerSettings, Producer, ProducerSettings, TopicPartition
from barnabas.client.scan.expression import compile_expression
from barnabas.client.scan.needles import Probe
from barnabas.client.scan.table import TableSearch
from barnabas.testing import BrokerProcess

TOPIC = "searched"
VALUE_BYTES = 1000
PARTITIONS = 4


async def fill(servers: str, records: int) -> None:
    settings = ProducerSettings.of({"bootstrap.servers": servers, "linger.ms": "20", "batch.size": "200000"})
    async with Producer(settings) as producer:
        for number in range(records):
            value = json.dumps({"id": number, "pad": os.urandom(VALUE_BYTES // 2).hex()}).encode()
            await producer.send_soon(TOPIC, key=b"key-%d" % number, value=value)
        await producer.flush()


async def assigned(consumer: Consumer, probe: Probe | None = None) -> None:
    topic = await consumer.cluster.topic(TOPIC)
    places = [TopicPartition(TOPIC, part.partition) for part in topic.partitions]
    await consumer.assign(places, until_end=True, probe=probe)


async def fetched(servers: str, _: str) -> int:
    """Columns of everything: no object for a record."""
    count = 0
    async with Consumer(ConsumerSettings.of({"bootstrap.servers": servers})) as consumer:
        await assigned(consumer)
        while not consumer.is_at_end:
            count += (await consumer.poll_arrow()).num_rows
    return count


async def decoded(servers: str, where: str) -> int:
    holds = compile_expression(where).holds
    count = 0
    async with Consumer(ConsumerSettings.of({"bootstrap.servers": servers})) as consumer:
        await assigned(consumer)
        async for records in consumer.batches():
            count += sum(
                holds({"key": (each.key or b"").decode(), "value": (each.value or b"").decode(), "headers": {}})
                for each in records
            )
    return count


async def searched(servers: str, where: str) -> int:
    search = TableSearch(where, with_headers=False)
    async with Consumer(ConsumerSettings.of({"bootstrap.servers": servers})) as consumer:
        await assigned(consumer, search.probe)
        return (await search.read(consumer)).num_rows


async def seconds(way: Callable[[str, str], Awaitable[int]], servers: str, where: str) -> tuple[float, int]:
    began = time.perf_counter()
    found = await way(servers, where)
    return time.perf_counter() - began, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=200_000)
    arguments = parser.parse_args()
    where = f'key == "key-{arguments.records // 2}"'
    megabytes = arguments.records * VALUE_BYTES / 1e6
    with TemporaryDirectory() as folder, BrokerProcess(folder, settings={"num.partitions": str(PARTITIONS)}) as broker:
        servers = broker.bootstrap_servers
        asyncio.run(fill(servers, arguments.records))
        taken = {}
        for way in (fetched, decoded, searched):
            taken[way.__name__], found = asyncio.run(seconds(way, servers, where))
            print(f"{way.__name__:<10} {megabytes / taken[way.__name__]:8.0f} MB/s  {found} found")
    print(f"search / decode every record: {taken['decoded'] / taken['searched']:.1f}")
    print(f"search / plain fetch:         {taken['fetched'] / taken['searched']:.2f}")


if __name__ == "__main__":
    main()
