"""The disk in memory under a broker of this process, which tests fill, break and slow down."""

from __future__ import annotations

from barnabas.testing import Broker
from barnabas.world.memory import MemoryDisk


def disk_of(broker: Broker) -> MemoryDisk:
    disk = broker.node.world.disk
    assert isinstance(disk, MemoryDisk)
    return disk
