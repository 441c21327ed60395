"""One replica of a partition on this broker: leadership, in-sync replicas, and the high watermark they give.

Bytes and files are ``storage.log``'s business; which broker leads is the controller's. The handlers call ``append`` and
``read``; :mod:`barnabas.replication.replicas` tells a partition what the metadata says of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from barnabas.metadata.image import PartitionImage
from barnabas.metadata.topic_names import is_internal
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.model.ids import NO_LEADER_EPOCH, TopicPartition, Uuid
from barnabas.observe.traffic import Traffic
from barnabas.replication.pending import Acknowledgements, Readers
from barnabas.storage.log import Appended, LogRead, PartitionLog
from barnabas.storage.validate import Origin, Rules, Validated
from barnabas.world.disk import DiskFailure


class Partition:
    """What this broker knows of one partition it holds a replica of."""

    def __init__(self, *, broker_id: int, log: PartitionLog, topic_id: Uuid, image: PartitionImage):
        self.broker_id = broker_id
        self.log = log
        self.id: TopicPartition = log.partition
        self.topic_id = topic_id
        self.is_internal = is_internal(log.partition.topic)  # written by coordinators, not by clients
        self.acknowledgements = Acknowledgements()
        self.traffic = Traffic()  # counted by those who write and read here
        self.readers = Readers()
        self.is_leader = False
        self.is_gone = False
        self._flushing: asyncio.Task[None] | None = None
        self.apply_settings()
        self.apply(image)

    # --- what the metadata says -----------------------------------------------------------------------------------

    def apply(self, image: PartitionImage) -> None:
        """Take over leadership, epoch and in-sync replicas from the controller's picture."""
        was_leader, old_epoch = self.is_leader, getattr(self, "leader_epoch", NO_LEADER_EPOCH)
        self.image = image
        self.leader_id = image.leader
        self.leader_epoch = image.leader_epoch
        self.is_leader = image.leader == self.broker_id
        self.is_in_sync_enough = len(image.isr) >= min(self.log.settings.min_insync_replicas, len(image.replicas))
        if self.is_leader and (not was_leader or image.leader_epoch != old_epoch):
            self.log.begin_epoch(image.leader_epoch, self.log.end_offset)
        if was_leader and not self.is_leader:
            self.acknowledgements.give_up()
        if self.is_leader:
            self._advance()
        self.readers.wake()

    def apply_settings(self) -> None:
        """The topic's settings have changed (or are read for the first time)."""
        self.rules = Rules.of(self.log.settings, origin=Origin.CLIENT)
        self._must_flush = self.log.settings.flush_messages == 1

    def leave(self) -> None:
        """The replica is being removed: nobody waits for it any longer."""
        self.is_gone = True
        self.is_leader = False
        self.acknowledgements.give_up()
        self.readers.wake()

    # --- writing --------------------------------------------------------------------------------------------------

    def append(
        self, validated: Validated, *, is_waiting_for_all: bool, now_ms: int, transaction_version: int = 0
    ) -> Appended:
        """Write one batch as the leader. It counts as acknowledged when the high watermark has passed it."""
        if not self.is_leader:
            raise ApiError(errors.NOT_LEADER_OR_FOLLOWER)
        if is_waiting_for_all and not self.is_in_sync_enough:
            raise ApiError(errors.NOT_ENOUGH_REPLICAS)
        if self.acknowledgements.is_full:
            raise ApiError(errors.REQUEST_TIMED_OUT, "too many acknowledgements are waiting for this partition")
        appended = self.log.append_as_leader(
            validated, leader_epoch=self.leader_epoch, now_ms=now_ms, transaction_version=transaction_version
        )
        if self.log.is_flush_due(now_ms):
            self._start_flush()
        self._advance()
        return appended

    def when_acknowledged(self, last_offset: int, callback: Callable[[bool], None]) -> None:
        """Call back once all in-sync replicas have ``last_offset``: at once if they do."""
        if self.log.high_watermark > last_offset:
            callback(True)
        elif not self.is_leader:
            callback(False)
        else:
            self.acknowledgements.add(last_offset + 1, callback)

    async def acknowledged(self, last_offset: int) -> bool:
        """Wait until all in-sync replicas have ``last_offset``; False if this broker stops leading before."""
        if self.log.high_watermark > last_offset:
            return True
        future = asyncio.get_running_loop().create_future()
        self.when_acknowledged(last_offset, lambda done: None if future.done() else future.set_result(done))
        return bool(await future)

    def _advance(self) -> None:
        """Move the high watermark to what every in-sync replica has; it stays while too few are in sync (KIP-966)."""
        if not self.is_in_sync_enough:
            return
        offset = self.log.end_offset
        if self._must_flush and self.log.recovery_point < offset:
            # Also after a restart: what recovery found in the page cache counts only once it is on the device.
            offset = self.log.recovery_point
            self._start_flush()
        if offset > self.log.high_watermark and self.log.advance_high_watermark(offset):
            self.acknowledgements.reached(self.log.high_watermark)
            self.readers.wake()

    def _start_flush(self) -> None:
        """One fsync for everything that arrives meanwhile: the next one starts when this one is done."""
        if self._flushing is None:
            loop = asyncio.get_running_loop()
            self._flushing = loop.create_task(self._flush(), name=f"flush:{self.id}")

    async def _flush(self) -> None:
        try:
            while not self.is_gone and self.log.recovery_point < self.log.end_offset:
                await self.log.flush()
                self._advance()
                if not self._must_flush:
                    break
        except DiskFailure:
            pass  # the store has heard of it and takes the whole directory away, with all who wait
        finally:
            self._flushing = None

    # --- reading --------------------------------------------------------------------------------------------------

    def check_epoch(self, current_leader_epoch: int) -> None:
        """A client that names the epoch it believes in is told when it is behind us or ahead of us."""
        if current_leader_epoch == NO_LEADER_EPOCH or current_leader_epoch == self.leader_epoch:
            return
        if current_leader_epoch < self.leader_epoch:
            raise ApiError(errors.FENCED_LEADER_EPOCH)
        raise ApiError(errors.UNKNOWN_LEADER_EPOCH)

    def readable_end(self, *, is_committed_only: bool) -> int:
        return self.log.last_stable_offset if is_committed_only else self.log.high_watermark

    def read(self, offset: int, *, size_bytes_max: int, is_committed_only: bool, at_least_one: bool) -> LogRead:
        return self.log.read(
            offset,
            size_bytes_max=size_bytes_max,
            end_offset_max=self.readable_end(is_committed_only=is_committed_only),
            at_least_one=at_least_one,
        )

    def delete_records(self, offset: int) -> int:
        """Move the start of the log up; −1 means the high watermark. Answers the new start."""
        if not self.is_leader:
            raise ApiError(errors.NOT_LEADER_OR_FOLLOWER)
        target = self.log.high_watermark if offset == -1 else offset
        if target < 0 or target > self.log.high_watermark:
            raise ApiError(errors.OFFSET_OUT_OF_RANGE)
        self.log.delete_records(target)
        return self.log.log_start_offset
