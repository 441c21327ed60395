"""``docs/ARCHITECTURE.md`` answers "where does a request go", and this keeps the answers true."""

from __future__ import annotations

import ast
import asyncio
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import confluent_kafka

from barnabas.client.producer import Producer
from barnabas.client.settings.producer import ProducerSettings
from barnabas.testing import Broker

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "barnabas"


def documented_hops(what: str) -> list[str]:
    text = (ROOT / "docs" / "ARCHITECTURE.md").read_text()
    life = text.split(f"## The path of a {what}\n")[1].split("\n## ")[0]
    steps = re.findall(r"^\d+\. (.*?)(?=^\d+\. |\Z)", life, re.DOTALL | re.MULTILINE)
    return [hop for step in steps for hop in re.findall(r"`([\w/]+\.py::[\w.]+)`", step)]


class Recorder:
    """Notes every function of ours that is entered, in order."""

    def __init__(self) -> None:
        self.hops: list[str] = []
        self.is_on = False

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and self.is_on:
            path = Path(frame.f_code.co_filename)
            if SOURCE in path.parents:
                self.hops.append(f"{path.relative_to(SOURCE).as_posix()}::{frame.f_code.co_qualname}")


@contextmanager
def recorded_broker() -> Iterator[tuple[Broker, Recorder]]:
    recorder = Recorder()
    # The broker's thread starts with the recorder installed; it is switched on for what is watched only.
    threading.setprofile(recorder)
    try:
        broker = Broker()
        broker.start()
    finally:
        threading.setprofile(None)
    try:
        yield broker, recorder
    finally:
        recorder.is_on = False
        broker.stop()
    assert sys.getprofile() is None


def check_hops(recorder: Recorder, what: str) -> None:
    wanted = documented_hops(what)
    assert len(wanted) >= 9
    position = 0
    for hop in wanted:
        assert hop in recorder.hops[position:], f"{hop} was not passed, or not in the documented order"
        position = recorder.hops.index(hop, position)


def test_a_produce_takes_the_way_that_the_docs_describe() -> None:
    with recorded_broker() as (broker, recorder):
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": broker.bootstrap_servers, "enable.idempotence": True, "log_level": 0}
        )
        producer.produce("seen", b"first: the topic is made and every codec compiled")
        assert producer.flush(30) == 0
        recorder.is_on = True
        producer.produce("seen", b"second: this one is watched")
        assert producer.flush(30) == 0
    check_hops(recorder, "produce")


def test_a_join_takes_the_way_that_the_docs_describe() -> None:
    with recorded_broker() as (broker, recorder):
        settings = {"bootstrap.servers": broker.bootstrap_servers, "log_level": 0}
        producer = confluent_kafka.Producer(settings)
        producer.produce("seen", b"v")
        assert producer.flush(30) == 0
        recorder.is_on = True
        consumer = confluent_kafka.Consumer({**settings, "group.id": "g", "auto.offset.reset": "earliest"})
        consumer.subscribe(["seen"])
        assert consumer.poll(30) is not None
        recorder.is_on = False
        consumer.close()
    check_hops(recorder, "join")


def test_a_transaction_takes_the_way_that_the_docs_describe() -> None:
    async def transact(bootstrap_servers: str) -> None:
        # Version 2, which not every other client speaks yet.
        settings = ProducerSettings(bootstrap_servers=(bootstrap_servers,), transactional_id="id")
        async with Producer(settings) as producer:
            for _ in range(2):  # the first one is over when something of the second is written
                async with producer.transaction():
                    await producer.send("seen", b"v")

    with recorded_broker() as (broker, recorder):
        recorder.is_on = True
        asyncio.run(transact(broker.bootstrap_servers))
    check_hops(recorder, "transaction")


def test_a_fetch_takes_the_way_that_the_docs_describe() -> None:
    with recorded_broker() as (broker, recorder):
        settings = {"bootstrap.servers": broker.bootstrap_servers, "log_level": 0}
        producer = confluent_kafka.Producer(settings)
        producer.produce("seen", b"v")
        assert producer.flush(30) == 0
        consumer = confluent_kafka.Consumer({**settings, "group.id": "g"})
        consumer.assign([confluent_kafka.TopicPartition("seen", 0, 0)])
        recorder.is_on = True
        assert consumer.poll(30) is not None
        recorder.is_on = False
        consumer.close()
    check_hops(recorder, "fetch")


def test_every_function_that_the_page_names_exists() -> None:
    text = (ROOT / "docs" / "ARCHITECTURE.md").read_text()
    for name, function in re.findall(r"`([\w/]+\.py)::([\w.]+)`", text):
        found: list[ast.stmt] = ast.parse((SOURCE / name).read_text()).body
        for part in function.split("."):
            inner = [node for node in found if getattr(node, "name", None) == part]
            assert inner, f"{name} has no {function}"
            found = getattr(inner[0], "body", [])


def test_every_file_that_the_docs_name_exists() -> None:
    for page in sorted((ROOT / "docs").rglob("*.md")):
        for name in re.findall(r"`((?:src/barnabas/)?[a-z_]+/[a-z_/]+\.py)", page.read_text()):
            assert (SOURCE / name.removeprefix("src/barnabas/")).exists() or (ROOT / name).exists(), (
                f"{page.name} names {name}"
            )
