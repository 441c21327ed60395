"""A broker killed without warning under load, again and again: what it acknowledged is there, in order, once."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic
from counting import PARTITIONS, TOPIC, Load, judge

from barnabas.testing import BrokerProcess

KILLS = int(os.environ.get("BARNABAS_KILLS", "3"))


def test_what_was_acknowledged_survives_every_kill(tmp_path: Path) -> None:
    chance = random.Random(20260101)
    broker = BrokerProcess(tmp_path / "data", settings={"log.segment.bytes": str(1024 * 1024)})
    broker.start()
    try:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(30)
        load = Load(broker.bootstrap_servers)
        load.start()
        for _ in range(KILLS):
            load.wait_for_progress()
            time.sleep(chance.uniform(0, 0.3))
            broker.kill()
            broker.start()
        load.wait_for_progress()
        load.stop()
        judge(load, broker.bootstrap_servers)
    finally:
        broker.stop()
    # The indexes of every segment that has seen a kill agree with its log: `dump` reads both by itself.
    command = [sys.executable, "-m", "barnabas", "dump", "--quiet", str(tmp_path / "data")]
    dumped = subprocess.run(command, capture_output=True, text=True, check=False)
    assert dumped.returncode == 0, dumped.stdout
    assert len(list((tmp_path / "data").rglob("*.index"))) > PARTITIONS
    print(f"{KILLS} kills, {load.sent} records acknowledged, none lost, doubled or out of order")
