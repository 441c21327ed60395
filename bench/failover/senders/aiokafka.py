"""Sends with aiokafka. It gives up on a record after ``request_timeout_ms``, so this is longer than its default."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from bench.failover.senders.voice import Task, Voice, task_of

REQUEST_TIMEOUT_MS = 120_000


async def send(task: Task, voice: Voice) -> None:
    producer = AIOKafkaProducer(
        bootstrap_servers=task.bootstrap_servers,
        enable_idempotence=True,
        acks="all",
        linger_ms=1,
        request_timeout_ms=REQUEST_TIMEOUT_MS,
    )
    queues: list[asyncio.Queue[Any]] = [asyncio.Queue() for _ in range(task.partitions)]
    sent = 0
    await producer.start()
    try:
        listeners = [asyncio.create_task(_listen(queue, voice)) for queue in queues]
        while not voice.is_over:
            for partition, queue in enumerate(queues):
                sent_ns = time.monotonic_ns()
                acknowledgement = await producer.send(task.topic, b"%012d" % sent, partition=partition)
                queue.put_nowait((sent, sent_ns, acknowledgement))
                sent += 1
            await asyncio.sleep(task.pause_seconds)
        for queue in queues:
            queue.put_nowait(None)
        await asyncio.gather(*listeners)
    finally:
        await producer.stop()
    voice.ended(sent)


async def _listen(queue: asyncio.Queue[Any], voice: Voice) -> None:
    while (each := await queue.get()) is not None:
        number, sent_ns, acknowledgement = each
        try:
            metadata = await acknowledgement
        except KafkaError as error:
            voice.failed(error)
        else:
            voice.acknowledged(metadata.partition, metadata.offset, number, sent_ns)


if __name__ == "__main__":
    asyncio.run(send(task_of(sys.argv[1:]), Voice()))
