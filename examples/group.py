"""Two members of a group share a topic; offsets are stored once the work is done: at least once."""

import asyncio
import sys

from barnabas import Consumer, ConsumerSettings


async def member(servers: str, name: str) -> int:
    settings = ConsumerSettings(
        bootstrap_servers=(servers,), group_id="kitchen", auto_offset_reset="earliest", enable_auto_commit=False
    )
    done = 0
    async with Consumer(settings) as consumer:
        await consumer.subscribe(["orders"])
        while records := await consumer.poll(timeout_ms=1_000):
            done += len(records)
            await consumer.commit()
    print(f"{name} has done {done}")
    return done


async def main(servers: str) -> None:
    shares = await asyncio.gather(member(servers, "anna"), member(servers, "ben"))
    print(f"{sum(shares)} in all")


asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9092"))
