"""Fifty connectors in one worker: one that fails and one that hangs disturb no other."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from bench.connect.many import FAILS, HANGS, connectors, started, write_plugins

from barnabas import Settings, TopicPartition, blocking
from barnabas.client.offsets import LATEST_TIMESTAMP
from barnabas.testing import BrokerProcess

COUNT = 50
WAIT_SECONDS_MAX = 300.0


def ends(admin: blocking.Admin) -> dict[str, int]:
    """The end of each topic that is there."""
    names = [topic.name for topic in admin.list_topics() if topic.name.startswith("many-")]
    wanted = {TopicPartition(name, 0): LATEST_TIMESTAMP for name in names if name.removeprefix("many-").isdecimal()}
    return {place.topic: entry.offset for place, entry in admin.list_offsets(wanted).items()}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_source_that_fails_and_one_that_hangs_disturb_no_other(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "broker") as broker:
        worker = started(broker.bootstrap_servers, tmp_path, write_plugins(tmp_path))
        try:
            configs = connectors(COUNT)
            for name in (FAILS, HANGS, *configs):  # the bad ones first
                worker.put(name, configs[name])
            deadline = time.monotonic() + WAIT_SECONDS_MAX
            while "this source always fails" not in worker.request("GET", f"/connectors/{FAILS}/status").text:
                assert time.monotonic() < deadline
                time.sleep(0.5)
            worker.reaches(HANGS, "RUNNING")
            with blocking.Admin(Settings.of({"bootstrap.servers": broker.bootstrap_servers})) as admin:
                while len(before := ends(admin)) < COUNT - 2 or min(before.values()) == 0:
                    assert time.monotonic() < deadline, before
                    time.sleep(0.5)
                while not all(end > before[topic] for topic, end in ends(admin).items()):
                    assert time.monotonic() < deadline, "not all go on"
                    time.sleep(0.5)
            for name in configs:
                if name not in (FAILS, HANGS):
                    worker.reaches(name, "RUNNING")
            worker.request("DELETE", f"/connectors/{HANGS}")
            assert HANGS not in worker.request("GET", "/connectors").json()
        finally:
            worker.stop()
