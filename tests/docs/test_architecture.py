"""``docs/ARCHITECTURE.md`` answers "where does a produce request go", and this keeps the answer true."""

from __future__ import annotations

import re
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

import confluent_kafka

from barnabas.testing import Broker

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "barnabas"


def documented_hops() -> list[str]:
    text = (ROOT / "docs" / "ARCHITECTURE.md").read_text()
    life = text.split("## The life of a produce")[1].split("\n## ")[0]
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


def test_a_produce_takes_the_way_that_the_docs_describe() -> None:
    recorder = Recorder()
    # The broker's thread starts with the recorder installed; it is switched on for one produce only.
    threading.setprofile(recorder)
    try:
        broker = Broker()
        broker.start()
    finally:
        threading.setprofile(None)
    try:
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": broker.bootstrap_servers, "enable.idempotence": True, "log_level": 0}
        )
        producer.produce("seen", b"first: the topic is made and every codec compiled")
        assert producer.flush(30) == 0
        recorder.is_on = True
        producer.produce("seen", b"second: this one is watched")
        assert producer.flush(30) == 0
        recorder.is_on = False
    finally:
        broker.stop()
    wanted = documented_hops()
    assert len(wanted) >= 9
    position = 0
    for hop in wanted:
        assert hop in recorder.hops[position:], f"{hop} was not passed, or not in the documented order"
        position = recorder.hops.index(hop, position)
    assert sys.getprofile() is None


def test_every_file_that_the_docs_name_exists() -> None:
    for page in sorted((ROOT / "docs").rglob("*.md")):
        for name in re.findall(r"`((?:src/barnabas/)?[a-z_]+/[a-z_/]+\.py)", page.read_text()):
            assert (SOURCE / name.removeprefix("src/barnabas/")).exists() or (ROOT / name).exists(), (
                f"{page.name} names {name}"
            )
