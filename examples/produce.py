"""Send records one by one and many at a time."""

import asyncio
import sys

from barnabas import Producer, ProducerSettings


async def main(servers: str) -> None:
    settings = ProducerSettings(bootstrap_servers=(servers,), compression_type="zstd")
    async with Producer(settings) as producer:
        metadata = await producer.send("orders", b"tea", key=b"alice", headers={"source": b"shop"})
        print(f"sent to partition {metadata.partition} at offset {metadata.offset}")
        deliveries = [await producer.send_soon("orders", b"cup %d" % number, key=b"bob") for number in range(100)]
        offsets = [(await delivery).offset for delivery in deliveries]
        print(f"{len(offsets)} more, the last at offset {offsets[-1]}")


asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9092"))
