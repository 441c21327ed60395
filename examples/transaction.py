"""Read, transform, write, exactly once: records and offsets are committed together or not at all."""

import asyncio
import sys

from barnabas import Consumer, ConsumerSettings, Producer, ProducerSettings


async def main(servers: str) -> None:
    reading = ConsumerSettings(
        bootstrap_servers=(servers,), group_id="bills", auto_offset_reset="earliest", enable_auto_commit=False
    )
    writing = ProducerSettings(bootstrap_servers=(servers,), transactional_id="bills-1")
    async with Consumer(reading) as consumer, Producer(writing) as producer:
        await consumer.subscribe(["orders"])
        while records := await consumer.poll(timeout_ms=2_000):
            async with producer.transaction():
                for record in records:
                    await producer.send_soon("bills", b"bill for " + (record.value or b""), key=record.key)
                await producer.send_offsets(consumer.positions, consumer.group_metadata)
            print(f"{len(records)} bills committed")


asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9092"))
