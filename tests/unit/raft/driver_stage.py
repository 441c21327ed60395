"""A voter, a listener that remembers, and a driver that is alone in its quorum. Shared by the tests of the driver."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

from barnabas.model.ids import METADATA_TOPIC, Uuid
from barnabas.raft.driver import LeaderAndEpoch, RaftDriver
from barnabas.raft.log_view import OffsetAndEpoch
from barnabas.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet
from barnabas.world.timers import Timers
from barnabas.world.world import World

CLUSTER = "cluster-of-tests"


def voter(number: int) -> Voter:
    return Voter(
        ReplicaKey(number, Uuid(bytes([number]) * 16)), (Endpoint("CONTROLLER", f"host{number}", 9090 + number),)
    )


class Log:
    """A listener that remembers."""

    def __init__(self) -> None:
        self.records: list[bytes] = []
        self.batches: list[tuple[int, int, int]] = []
        self.snapshots: list[OffsetAndEpoch] = []
        self.leaders: list[LeaderAndEpoch] = []
        self.changed = asyncio.Event()

    def on_commit(self, base_offset: int, epoch: int, append_time_ms: int, records: list[bytes]) -> None:
        self.batches.append((base_offset, epoch, len(records)))
        self.records += records
        self.changed.set()

    def on_snapshot(self, snapshot_id: OffsetAndEpoch, records: Iterator[bytes]) -> None:
        self.snapshots.append(snapshot_id)
        self.records = list(records)
        self.changed.set()

    def on_leader(self, leader: LeaderAndEpoch) -> None:
        self.leaders.append(leader)
        self.changed.set()

    async def until(self, condition: Any) -> None:
        async with asyncio.timeout(10):
            while not condition():
                self.changed.clear()
                await self.changed.wait()


def play(scene: Coroutine[Any, Any, None]) -> None:
    asyncio.run(scene)


def alone(tmp_path: Path, world: World, **options: Any) -> tuple[RaftDriver, Log]:
    listener = Log()
    driver = RaftDriver(
        world,
        options.pop("timers", None) or Timers(world.clock),
        f"{tmp_path}/{METADATA_TOPIC}-0",
        local=options.pop("local", voter(1)),
        cluster_id=CLUSTER,
        listener=listener,
        initial_voters=VoterSet.of(voter(1)),
        **options,
    )
    return driver, listener


async def lead(driver: RaftDriver, listener: Log) -> int:
    await driver.start()
    await listener.until(lambda: listener.leaders and listener.leaders[-1].leader_id == 1)
    return listener.leaders[-1].epoch
