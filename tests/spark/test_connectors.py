"""Connectors on Spark: a generator and a file into topics, a sink into files; a driver that is killed on the way."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from barnabas import Consumer, Producer, TopicPartition
from barnabas.client.settings.consumer import ConsumerSettings
from barnabas.client.settings.producer import ProducerSettings
from barnabas.connect.worker.settings import WorkerSettings
from barnabas.connect.worker.worker import Worker
from barnabas.testing import BrokerProcess

WAIT_SECONDS_MAX = 150
ORDERS = 300
LINES = 50
NUMBERS = 40
PLUGIN = """
from barnabas.connect.plugins import Config, Part, Record, Source, connector

class Keys(Config):
    topic: str
    count: int

@connector("numbers")
class Numbers(Source[Keys]):
    Config = Keys
    lane = "own"

    def latest(self, since, limit):
        return {"n": min(self.config.count, since.get("n", 0) + 15)}

    def split(self, since, until, tasks):
        bounds = range(since.get("n", 0), until["n"] + 1)
        middle = bounds[len(bounds) // 2]
        return [Part({"n": bounds[0]}, {"n": middle}), Part({"n": middle}, {"n": bounds[-1]})]

    def read(self, part):
        for number in range(part.since["n"], part.until["n"]):
            yield Record(self.config.topic, {"number": number})
"""


async def until(condition: Callable[[], Any]) -> Any:
    async with asyncio.timeout(WAIT_SECONDS_MAX):
        while True:
            found = condition()
            if asyncio.iscoroutine(found):
                found = await found
            if found:
                return found
            await asyncio.sleep(0.1)


async def status(client: httpx.AsyncClient, name: str) -> str:
    answer = await client.get(f"/connectors/{name}/status")
    if answer.status_code != 200:
        return ""
    shown = answer.json()
    assert "FAILED" not in answer.text, answer.text
    return " ".join(sorted({shown["connector"]["state"], *(task["state"] for task in shown["tasks"])}))


async def put(client: httpx.AsyncClient, name: str, **config: str) -> None:
    answer = await client.put(f"/connectors/{name}/config", json=config)
    assert answer.status_code in (200, 201), answer.text


def sunk(directory: Path) -> list[dict[str, Any]]:
    """Return everything that the sink has written."""
    lines = [line for path in directory.rglob("*.json") for line in path.read_text().splitlines()]
    return [json.loads(line) for line in lines]


async def send(broker: BrokerProcess, topic: str, value: bytes) -> None:
    async with Producer(ProducerSettings.of({"bootstrap.servers": broker.bootstrap_servers})) as producer:
        await producer.send(topic, value)


async def dead_letters(broker: BrokerProcess) -> bool:
    """Return whether the record that is not JSON has arrived, with the reason in its headers."""
    settings = {"bootstrap.servers": broker.bootstrap_servers, "isolation.level": "read_committed"}
    async with Consumer(ConsumerSettings.of(settings)) as consumer:
        await consumer.assign([TopicPartition("dead", 0)], until_end=True)
        found = await consumer.poll(timeout_ms=1000)
    assert {record.value for record in found} <= {b"not json"}
    return bool(found) and dict(found[0].headers)["__connect.errors.stage"] == b"VALUE_CONVERTER"


async def flow(broker: BrokerProcess, tmp_path: Path) -> None:
    source, target = tmp_path / "in.txt", tmp_path / "out"
    source.write_text("".join(f"line {number}\n" for number in range(LINES)))
    given = {"bootstrap.servers": broker.bootstrap_servers, "port": "0", "data.dir": str(tmp_path / "data")}
    plain = {"value.converter": "json", "value.converter.schemas.enable": "false", "key.converter": "string"}
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    (plugins / "numbers.py").write_text(PLUGIN)
    worker = Worker(WorkerSettings.read(given | {"plugins.directory": str(plugins)}))
    await worker.start()
    try:
        async with httpx.AsyncClient(base_url=worker.url, timeout=90) as client:
            await until(lambda: worker.is_leader)
            generator = {"connector.class": "datagen", "topic": "orders", "records.per.second": "100"}
            await put(client, "gen", **generator, **{"records.max": str(ORDERS)}, **plain)
            await put(
                client,
                "lines",
                **{"connector.class": "FileStreamSource", "file": str(source), "topic": "lines"},
                **{"transforms": "h", "transforms.h.type": "HoistField$Value", "transforms.h.field": "line"},
                **plain,
            )
            await put(
                client,
                "sink",
                **{"connector.class": "files-sink", "path": str(target), "topics": "orders,lines,numbers"},
                **{"errors.tolerance": "all", "errors.deadletterqueue.topic.name": "dead"},
                **{"errors.deadletterqueue.topic.replication.factor": "1"},
                **{"errors.deadletterqueue.context.headers.enable": "true"},
                **plain,
            )
            await put(
                client,
                "own",
                **{"connector.class": "numbers", "topic": "numbers", "count": str(NUMBERS)},
                **{"tasks.max": "2"},
                **plain,
            )
            await until(lambda: len(sunk(target)) >= LINES + ORDERS // 3)
            await send(broker, "lines", b"not json")
            assert worker.driver_pid is not None
            killed = worker.driver_pid
            os.kill(killed, signal.SIGKILL)
            await until(lambda: worker.driver_pid not in (None, killed))
            await until(lambda: len(sunk(target)) >= LINES + ORDERS + NUMBERS)
            await until(lambda: dead_letters(broker))
            await until(lambda: status(client, "sink"))
            found = sunk(target)
            assert sorted(each["line"] for each in found if "line" in each) == sorted(
                f"line {number}" for number in range(LINES)
            )
            assert sorted(each["number"] for each in found if "number" in each) == list(range(NUMBERS))
            numbers = sorted(each["order_id"] for each in found if "order_id" in each)
            assert numbers == [1_000_000 + number for number in range(ORDERS)]
            await until(lambda: _offsets(client, "gen", {"count": ORDERS}))
            await client.put("/connectors/gen/stop")
            await until(lambda: _is(client, "gen", "STOPPED"))
    finally:
        await worker.stop()


async def _offsets(client: httpx.AsyncClient, name: str, part: dict[str, Any]) -> bool:
    found = (await client.get(f"/connectors/{name}/offsets")).json()["offsets"]
    return any(part.items() <= each["offset"].items() for each in found)


async def _is(client: httpx.AsyncClient, name: str, state: str) -> bool:
    return await status(client, name) == state


def test_what_is_generated_and_read_arrives_once_though_the_driver_is_killed(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "broker") as broker:
        asyncio.run(flow(broker, tmp_path))
