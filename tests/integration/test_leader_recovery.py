"""A broker that was killed leads its partitions again, and the metadata do not say for ever that it is recovering."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from talk import Talk, batch

from barnabas.metadata.partition_image import LeaderRecoveryState, PartitionImage
from barnabas.testing import Broker

SECONDS_MAX = 10


def partitions(broker: Broker, topic: str) -> tuple[PartitionImage, ...]:
    return broker.node.services.image.topics.by_name[topic].partitions


def test_a_leader_that_came_back_from_a_crash_is_recovered(tmp_path: Path) -> None:
    with Broker(data_dir=tmp_path / "alive") as broker, Talk(broker.bootstrap_servers) as talk:
        talk.create("t", 3)
        talk.produce("t", batch(b"x"))
        before = partitions(broker, "t")[0].leader_epoch
        shutil.copytree(tmp_path / "alive", tmp_path / "crashed")  # as a kill would have left it
    with Broker(data_dir=tmp_path / "crashed") as broker, Talk(broker.bootstrap_servers) as talk:
        deadline = time.monotonic() + SECONDS_MAX
        while time.monotonic() < deadline:
            states = {each.leader_recovery_state for each in partitions(broker, "t")}
            if states == {LeaderRecoveryState.RECOVERED}:
                break
            time.sleep(0.01)
        assert states == {LeaderRecoveryState.RECOVERED}
        assert {(each.leader, each.isr, each.elr) for each in partitions(broker, "t")} == {(1, (1,), ())}
        assert partitions(broker, "t")[0].leader_epoch > before, "there was an election"
        assert [record.value for record in talk.read("t")] == [b"x"]
        assert talk.produce("t", batch(b"y")).base_offset == 1
