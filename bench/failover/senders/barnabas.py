"""Sends with the producer of Barnabas, with its default settings."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import NamedTuple

from barnabas import BarnabasError, Producer, ProducerSettings
from barnabas.client.produce.batch import Delivery
from bench.failover.senders.voice import Task, Voice, task_of


class _Sent(NamedTuple):
    number: int
    sent_ns: int
    delivery: Delivery


async def send(task: Task, voice: Voice) -> None:
    settings = ProducerSettings(
        bootstrap_servers=tuple(task.bootstrap_servers.split(",")),
        linger_ms=1,
        delivery_timeout_ms=1_800_000,
        request_timeout_ms=task.request_timeout_ms,
    )
    queues: list[asyncio.Queue[_Sent | None]] = [asyncio.Queue() for _ in range(task.partitions)]
    sent = 0
    async with Producer(settings) as producer:
        listeners = [asyncio.create_task(_listen(queue, voice)) for queue in queues]
        while not voice.is_over:
            for partition, queue in enumerate(queues):
                sent_ns = time.monotonic_ns()
                delivery = await producer.send_soon(task.topic, b"%012d" % sent, partition=partition)
                queue.put_nowait(_Sent(sent, sent_ns, delivery))
                sent += 1
            await asyncio.sleep(task.pause_seconds)
        for queue in queues:
            queue.put_nowait(None)
        await asyncio.gather(*listeners)
    voice.ended(sent)


async def _listen(queue: asyncio.Queue[_Sent | None], voice: Voice) -> None:
    while (each := await queue.get()) is not None:
        try:
            metadata = await each.delivery
        except BarnabasError as error:
            voice.failed(error)
        else:
            voice.acknowledged(metadata.partition, metadata.offset, each.number, each.sent_ns)


if __name__ == "__main__":
    asyncio.run(send(task_of(sys.argv[1:]), Voice()))
