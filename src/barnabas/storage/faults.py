"""The logs of a store that are damaged or have lost files. A fault of one log concerns no other log.

A log whose files are gone is offline: it is neither read nor written until the broker starts again. A log in which only
some batches or index entries are damaged stays online; the work that met the damage (retention, compaction, closing) is
left out for this log alone. ``barnabas doctor`` and the metrics name every fault.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from barnabas.model.errors import CorruptBatch
from barnabas.model.ids import TopicPartition, Uuid
from barnabas.observe.log import logger
from barnabas.storage.identity import read_partition_metadata
from barnabas.storage.index import CorruptIndex
from barnabas.storage.log import PartitionLog
from barnabas.world.disk import Disk, DiskFailure
from barnabas.world.tasks import report

log = logger("faults")


class Fault(NamedTuple):
    partition: TopicPartition
    path: str  # directory of the log
    topic_id: Uuid | None
    reason: str
    work: str | None = None  # work that is left out for this log; None if the log is offline

    @property
    def is_offline(self) -> bool:
        return self.work is None

    @property
    def home(self) -> str:
        """The directory of log.dirs that holds the log."""
        return self.path.rpartition("/")[0]

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


class Faults:
    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._by_partition: dict[TopicPartition, Fault] = {}
        self.total = 0  # faults found since the start

    def __iter__(self) -> Iterator[Fault]:
        return iter(list(self._by_partition.values()))

    def get(self, partition: TopicPartition) -> Fault | None:
        return self._by_partition.get(partition)

    def inside(self, home: str) -> list[Fault]:
        """The faults of logs in one directory of log.dirs."""
        return [fault for fault in self if fault.home == home]

    def forget(self, partition: TopicPartition) -> Fault | None:
        """Remove a fault, because its log was deleted or opened again; returns it."""
        return self._by_partition.pop(partition, None)

    @contextmanager
    def contained(self, target: PartitionLog, work: str) -> Iterator[None]:
        """Do some work on one log; if it fails, the log is noted here and the caller goes on with the others."""
        try:
            yield
        except DiskFailure as error:
            target.fail(error)
        except Exception as error:  # noqa: BLE001  # no error of one log may stop the work on the others
            self.damaged(target, work, error)
        else:
            known = self._by_partition.get(target.partition)
            if known is not None and known.work == work:
                self.forget(target.partition)

    def damaged(self, target: PartitionLog, work: str, error: Exception) -> None:
        """Note that some work on a log fails because its files are damaged. The log stays online."""
        if not isinstance(error, CorruptBatch | CorruptIndex):
            report(f"{work}:{target.partition}", error)
        self._note(Fault(target.partition, target.directory, target.topic_id, f"{work} failed: {error}", work))

    def unopened(self, partition: TopicPartition, path: str, reason: str) -> None:
        """Note a log that cannot be opened."""
        topic_id = None
        with suppress(DiskFailure):
            topic_id = read_partition_metadata(self._disk, path)
        self._note(Fault(partition, path, topic_id, reason))

    def lost(self, target: PartitionLog, error: DiskFailure) -> None:
        """Note a log that was taken offline because its files cannot be used."""
        self._note(Fault(target.partition, target.directory, target.topic_id, str(error)))

    def _note(self, fault: Fault) -> None:
        if self._by_partition.get(fault.partition) == fault:
            return
        self._by_partition[fault.partition] = fault
        self.total += 1
        what = "log is offline" if fault.is_offline else "log is damaged"
        log.error(what, partition=fault.partition, directory=fault.path, reason=fault.reason)
