"""Workers of Connect for tests, with the driver of ``connect_driver.py``, and what every test does with them."""

from __future__ import annotations

import asyncio
import functools
import os
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx

from barnabas import Consumer, TopicPartition
from barnabas.client.settings.consumer import ConsumerSettings
from barnabas.connect.worker.settings import WorkerSettings
from barnabas.connect.worker.worker import Worker
from barnabas.testing import Broker

WAIT_SECONDS_MAX = 60


def in_a_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @functools.wraps(test)
    def run(*arguments: Any, **more: Any) -> None:
        asyncio.run(test(*arguments, **more))

    return run


@asynccontextmanager
async def worker(broker: Broker, tmp_path: Path, **settings: str) -> AsyncIterator[tuple[Worker, httpx.AsyncClient]]:
    given = {"bootstrap.servers": broker.bootstrap_servers, "port": "0", "plugins.directory": str(tmp_path)}
    given |= {"offset.storage.partitions": "3", "session.timeout.ms": "6000"}
    given |= {key.replace("_", "."): value for key, value in settings.items()}
    paths = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    found = {"PYTHONPATH": os.pathsep.join(path for path in paths if path)}  # children must find the driver
    with patch.dict(os.environ, found):
        made = Worker(WorkerSettings.read(given), driver="connect_driver")
        await made.start()
        try:
            async with httpx.AsyncClient(base_url=made.url, timeout=60) as client:
                yield made, client
        finally:
            await made.stop()


async def until(condition: Callable[[], Any]) -> Any:
    """Wait for a condition, which may be a coroutine function."""
    async with asyncio.timeout(WAIT_SECONDS_MAX):
        while True:
            found = condition()
            if asyncio.iscoroutine(found):
                found = await found
            if found:
                return found
            await asyncio.sleep(0.05)


async def state(client: httpx.AsyncClient, name: str) -> str:
    answer = await client.get(f"/connectors/{name}/status")
    if answer.status_code != 200:
        return ""
    shown = answer.json()
    states = {shown["connector"]["state"], *(task["state"] for task in shown["tasks"])}
    return " ".join(sorted(states))


async def reaches(client: httpx.AsyncClient, name: str, wanted: str) -> None:
    async def is_there() -> bool:
        return await state(client, name) == wanted

    await until(is_there)


async def records(broker: Broker, topic: str) -> dict[bytes, bytes | None]:
    settings = ConsumerSettings.of({"bootstrap.servers": broker.bootstrap_servers, "isolation.level": "read_committed"})
    found: dict[bytes, bytes | None] = {}
    async with Consumer(settings) as consumer:
        await consumer.assign([TopicPartition(topic, 0)], until_end=True)
        while not consumer.is_at_end:
            for record in await consumer.poll(timeout_ms=1000):
                assert record.key is not None
                found[record.key] = record.value
    return found
