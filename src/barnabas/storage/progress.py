"""How far the recovery of logs has come, for whoever waits for a broker to start.

The store counts here what its scans have read; how that is shown is the command line's business. After a clean shutdown
nothing is read, and nothing is told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from barnabas.model.ids import TopicPartition
from barnabas.storage.batch_file import LOG
from barnabas.world.disk import Disk


@dataclass(slots=True)
class RecoveryProgress:
    """One directory's recovery; the numbers grow until the last log is open."""

    directory: str
    logs_total: int
    bytes_total: int
    logs_done: int = 0
    bytes_done: int = 0
    log: str = ""  # the one that is being read

    @property
    def share(self) -> float:
        if self.bytes_total:
            return min(1.0, self.bytes_done / self.bytes_total)
        return self.logs_done / self.logs_total if self.logs_total else 1.0

    @property
    def is_done(self) -> bool:
        return self.logs_done == self.logs_total


OnProgress: TypeAlias = Callable[[RecoveryProgress], None]


def progress_of(
    disk: Disk, directory: str, partitions: Mapping[str, TopicPartition], recovery_points: Mapping[TopicPartition, int]
) -> RecoveryProgress:
    """What there is to do: of each log, the segments from the one on that holds its recovery point."""
    size_bytes = 0
    for place, partition in partitions.items():
        path = f"{directory}/{place}"
        names = [name for name in disk.list(path) if name.endswith(LOG)]
        point = f"{recovery_points.get(partition, 0):020d}{LOG}"
        first = max((index for index, name in enumerate(names) if name <= point), default=0)
        size_bytes += sum(disk.size_bytes(f"{path}/{name}") for name in names[first:])
    return RecoveryProgress(directory, len(partitions), size_bytes)
