"""Read a topic from its beginning to where it ends now, without a group."""

import asyncio
import sys

from barnabas import Consumer, ConsumerSettings, TopicPartition


async def main(servers: str) -> None:
    async with Consumer(ConsumerSettings(bootstrap_servers=(servers,))) as consumer:
        topic = await consumer.cluster.topic("orders")
        places = [TopicPartition(topic.name, number) for number in range(len(topic.partitions))]
        await consumer.assign(places, until_end=True)
        count = 0
        async for record in consumer:
            count += 1
            if count <= 3:
                print(record.partition, record.offset, record.key, record.value)
        print(f"{count} records in all")


asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9092"))
