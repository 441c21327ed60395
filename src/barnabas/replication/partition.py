"""One replica of a partition on this broker: leadership, in-sync replicas, and the high watermark they give.

Bytes and files are ``storage.log``'s business; which broker leads is the controller's. The handlers call ``append``,
``read`` and ``fetched``; :mod:`barnabas.replication.replicas` tells a partition what the metadata says of it, and
:mod:`barnabas.replication.fetcher` brings what the leader has, where another broker leads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

from barnabas.metadata.image import PartitionImage
from barnabas.metadata.topic_names import is_internal
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.model.ids import NO_LEADER_EPOCH, TopicPartition, Uuid
from barnabas.model.settings import INT64_MAX
from barnabas.observe.traffic import Traffic
from barnabas.replication.isr import Answer, Follower, InSyncReplicas, Proposal
from barnabas.replication.pending import Acknowledgements, Readers
from barnabas.replication.throttle import is_throttled
from barnabas.storage.log import Appended, LogRead, PartitionLog
from barnabas.storage.validate import Origin, Rules, Validated
from barnabas.world.disk import DiskFailure
from barnabas.world.tasks import Tasks


class Cluster(Protocol):
    """What a leader needs to know of the other brokers, and whom it asks for another ISR."""

    @property
    def lag_ms_max(self) -> int:
        """How long a follower may be behind before it leaves the ISR."""

    def active_epoch(self, broker_id: int) -> int | None:
        """The epoch in which a broker is registered; None unless it is alive and stays."""

    def propose(self, partition: Partition, proposal: Proposal) -> None:
        """Ask the controller; ``partition.answered`` or ``partition.refused`` is called with what it says."""


class Nobody:
    """The cluster of a broker that is alone."""

    lag_ms_max = 30_000

    def active_epoch(self, broker_id: int) -> int | None:
        return None

    def propose(self, partition: Partition, proposal: Proposal) -> None:
        """There is nobody to ask."""


NOBODY: Final = Nobody()
SILENCE_MS_MIN: Final = 5_000  # many times what lies between two fetches of a follower


class Partition:
    """What this broker knows of one partition it holds a replica of."""

    def __init__(
        self,
        *,
        broker_id: int,
        log: PartitionLog,
        topic_id: Uuid,
        image: PartitionImage,
        cluster: Cluster = NOBODY,
    ) -> None:
        self.broker_id = broker_id
        self.log = log
        self.id: TopicPartition = log.partition
        self.topic_id = topic_id
        self.is_internal = is_internal(log.partition.topic)  # written by coordinators, not by clients
        self.acknowledgements = Acknowledgements()
        self.traffic = Traffic()  # counted by those who write and read here
        self.readers = Readers()  # of what is committed
        self.followers_waiting = Readers()  # of what is written
        self.low_watermark_waiting = Readers()  # for the followers' logs to start where this one does
        self.is_leader = False
        self.leader_epoch = NO_LEADER_EPOCH
        self.epoch_start_offset = 0  # where the log ended when this broker began to lead
        self.is_gone = False
        self.in_sync: InSyncReplicas | None = None  # while this broker leads
        self._is_alone = False
        self._is_committed_at_once = False  # nobody else has to have a batch, and the page cache will do
        self._cluster = cluster
        self._clock = log.clock
        self._tasks = Tasks()
        self._read_settings()
        self.apply(image)

    # --- what the metadata says -----------------------------------------------------------------------------------

    def apply(self, image: PartitionImage) -> None:
        """Take over leadership, epoch and in-sync replicas from the controller's picture."""
        was_leader, old_epoch = self.is_leader, self.leader_epoch
        self.image = image
        self.leader_id = image.leader
        self.leader_epoch = image.leader_epoch
        self.is_leader = image.leader == self.broker_id
        if not self.is_leader:
            self.in_sync = None
        elif self.in_sync is None or not was_leader or image.leader_epoch != old_epoch:
            self.epoch_start_offset = self.log.end_offset
            self.log.begin_epoch(image.leader_epoch, self.log.end_offset)
            self.in_sync = InSyncReplicas(
                self.broker_id, image, end_offset=self.log.end_offset, now_ms=self._clock.monotonic_ms()
            )
        else:
            self.in_sync.apply(image, now_ms=self._clock.monotonic_ms())
        self._count_in_sync()
        if was_leader and not self.is_leader:
            self.acknowledgements.give_up()
        if self.in_sync is not None:
            self._advance()
            self._propose(self.in_sync.recovery())
            self.check_outsiders()
        self._wake()

    def apply_settings(self) -> None:
        """The topic's settings have changed."""
        self._read_settings()
        self._count_in_sync()
        if self.in_sync is not None:
            self._advance()

    def _read_settings(self) -> None:
        self.rules = Rules.of(self.log.settings, origin=Origin.CLIENT)
        index, broker_id, settings = self.id.partition, self.broker_id, self.log.settings
        self.must_flush = settings.flush_messages == 1
        self._is_flushing_by_rule = min(settings.flush_messages, settings.flush_ms) < INT64_MAX
        self.is_throttled_leader = is_throttled(
            settings.leader_replication_throttled_replicas, partition=index, broker_id=broker_id
        )
        self.is_throttled_follower = is_throttled(
            settings.follower_replication_throttled_replicas, partition=index, broker_id=broker_id
        )

    def _count_in_sync(self) -> None:
        isr = self.isr
        self.is_in_sync_enough = len(isr) >= min(self.log.settings.min_insync_replicas, len(self.image.replicas))
        self._is_alone = self.in_sync is not None and self.in_sync.is_alone
        self._is_committed_at_once = self._is_alone and self.is_in_sync_enough and not self.must_flush

    @property
    def isr(self) -> tuple[int, ...]:
        """Who is in sync: the leader hears it from the controller a moment before it is in the metadata."""
        return self.image.isr if self.in_sync is None else self.in_sync.isr

    @property
    def is_under_replicated(self) -> bool:
        return self.is_leader and len(self.isr) < len(self.image.replicas)

    def leave(self) -> None:
        """The replica is being removed: nobody waits for it any longer."""
        self.is_gone = True
        self.is_leader = False
        self.in_sync = None
        self.acknowledgements.give_up()
        self._wake()

    def _wake(self) -> None:
        self.readers.wake()
        self.followers_waiting.wake()
        self.low_watermark_waiting.wake()

    # --- writing --------------------------------------------------------------------------------------------------

    def append(
        self, validated: Validated, *, is_waiting_for_all: bool, now_ms: int, transaction_version: int = 0
    ) -> Appended:
        """Write one batch as the leader. It counts as acknowledged when the high watermark has passed it."""
        if not self.is_leader:
            raise ApiError(errors.NOT_LEADER_OR_FOLLOWER)
        if is_waiting_for_all and not self.is_in_sync_enough:
            raise ApiError(errors.NOT_ENOUGH_REPLICAS)
        if self.acknowledgements.waiting and self.acknowledgements.is_full:
            raise ApiError(errors.REQUEST_TIMED_OUT, "too many acknowledgements are waiting for this partition")
        appended = self.log.append_as_leader(
            validated, leader_epoch=self.leader_epoch, now_ms=now_ms, transaction_version=transaction_version
        )
        if self._is_flushing_by_rule and self.log.is_flush_due(now_ms):
            self._start_flush()
        if self._is_committed_at_once:
            self._commit(self.log.end_offset)
            return appended
        self._advance()
        if not self._is_alone:
            self.followers_waiting.wake()
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

    def why_late(self, waited_ms: int) -> errors.WireError:
        """What a producer is told whose batch was not acknowledged in time.

        Where no follower has asked for anything all the while, this broker may be cut off and another may lead. A
        producer that were told of nothing but the time would come back here and not ask who does. One that is told
        might ask this broker, which knows nothing newer, so it is hung up on as well: that makes it look elsewhere.
        """
        if self.in_sync is not None and self.in_sync.followers:
            since_ms = self._clock.monotonic_ms() - max(waited_ms, SILENCE_MS_MIN)
            if all(follower.seen_ms < since_ms for follower in self.in_sync.followers.values()):
                return errors.NOT_LEADER_OR_FOLLOWER
        return errors.REQUEST_TIMED_OUT

    def _advance(self) -> None:
        """Move the high watermark to what every in-sync replica has; it stays while too few are in sync (KIP-966)."""
        if not self.is_in_sync_enough:
            return
        offset = self.log.end_offset
        if not self._is_alone:
            if self.in_sync is None:
                return
            offset = self.in_sync.high_watermark(
                offset,
                now_ms=self._clock.monotonic_ms(),
                lag_ms_max=self._cluster.lag_ms_max,
                active_epoch=self._cluster.active_epoch,
            )
        if self.must_flush and self.log.recovery_point < self.log.end_offset:
            # Also after a restart: what recovery found in the page cache counts only once it is on the device.
            offset = min(offset, self.log.recovery_point)
            self._start_flush()
        self._commit(offset)

    def _commit(self, offset: int) -> None:
        """Everything below an offset is where it has to be; whoever waits for that is told."""
        if self.log.advance_high_watermark(offset):
            if self.acknowledgements.waiting:
                self.acknowledgements.reached(self.log.high_watermark)
            if self.readers.waiting:
                self.readers.wake()

    def _start_flush(self) -> None:
        """One fsync for everything that arrives meanwhile: the next one starts when this one is done."""
        self._tasks.once(f"flush:{self.id}", self._flush)

    async def _flush(self) -> None:
        try:
            while not self.is_gone and self.log.recovery_point < self.log.end_offset:
                await self.log.flush()
                self._advance()
                if not self.must_flush:
                    break
        except DiskFailure:
            pass  # the log has reported it to the store, which takes the log offline and ends every wait

    # --- followers ------------------------------------------------------------------------------------------------

    def follower(self, broker_id: int, *, is_epoch_known: bool) -> Follower:
        """What is known of a follower; an error that lets it come back if it is not one in this leader's eyes."""
        if self.in_sync is None:
            raise ApiError(errors.NOT_LEADER_OR_FOLLOWER)
        found = self.in_sync.followers.get(broker_id)
        if found is None:
            # If it named our epoch, it knows of an assignment that this broker has not heard of yet.
            error = errors.UNKNOWN_LEADER_EPOCH if is_epoch_known else errors.NOT_LEADER_OR_FOLLOWER
            raise ApiError(error, f"broker {broker_id} is no replica of {self.id}")
        return found

    def fetched(
        self, follower: Follower, offset: int, *, log_start_offset: int, broker_epoch: int, now_ms: int
    ) -> None:
        """A follower asks from here on: its log matches ours below."""
        assert self.in_sync is not None
        registered = self._cluster.active_epoch(follower.id)
        if broker_epoch != -1 and registered is not None and broker_epoch < registered:
            raise ApiError(errors.NOT_LEADER_OR_FOLLOWER, f"broker {follower.id} has restarted since it asked")
        is_news = follower.end_offset != offset
        is_start_news = follower.log_start_offset != log_start_offset
        follower.fetched(
            offset,
            log_start_offset=log_start_offset,
            leader_end_offset=self.log.end_offset,
            broker_epoch=broker_epoch,
            now_ms=now_ms,
        )
        if is_news:
            self._advance()
        if is_start_news:
            self.low_watermark_waiting.wake()
        if follower.id not in self.in_sync.isr:
            self._ask_for(follower.id)

    def check_outsiders(self) -> None:
        """Ask for followers that have caught up: one that is idle does not say so again by itself."""
        if self.in_sync is not None and len(self.in_sync.isr) < len(self.image.replicas):
            now_ms, lag_ms_max = self._clock.monotonic_ms(), self._cluster.lag_ms_max
            for follower in self.in_sync.followers.values():
                is_here = follower.presence is not None and now_ms - follower.presence.used_ms <= lag_ms_max
                if is_here and follower.id not in self.in_sync.isr:
                    self._ask_for(follower.id)

    def _ask_for(self, broker_id: int) -> None:
        assert self.in_sync is not None
        self._propose(
            self.in_sync.expansion(
                broker_id,
                high_watermark=self.log.high_watermark,
                now_ms=self._clock.monotonic_ms(),
                active_epoch=self._cluster.active_epoch,
            )
        )

    def check_followers(self, now_ms: int) -> None:
        """Ask that followers which have fallen behind leave the ISR, and wait no longer for those outside of it."""
        if self.in_sync is not None and not self._is_alone:
            self._advance()
            self._propose(
                self.in_sync.shrinking(self.log.end_offset, now_ms=now_ms, lag_ms_max=self._cluster.lag_ms_max)
            )
            self.check_outsiders()

    def _propose(self, proposal: Proposal | None) -> None:
        if proposal is not None:
            self._cluster.propose(self, proposal)

    def answered(self, proposal: Proposal, answer: Answer) -> bool:
        """The controller has said what the ISR is; whether that was news."""
        if self.in_sync is None or not self.in_sync.answered(proposal, answer):
            return False
        self._count_in_sync()
        self._advance()
        self.check_outsiders()
        return True

    def refused(self, proposal: Proposal, error: errors.WireError) -> bool:
        """Whether the controller is to be asked again."""
        now_ms = self._clock.monotonic_ms()
        is_again = self.in_sync is not None and self.in_sync.refused(proposal, error, now_ms=now_ms)
        if not is_again:
            self._advance()
        return is_again

    @property
    def low_watermark(self) -> int:
        """Where the logs of all living replicas start."""
        if self.in_sync is None:
            return self.log.log_start_offset
        return self.in_sync.low_watermark(self.log.log_start_offset, active_epoch=self._cluster.active_epoch)

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

    def read(self, offset: int, *, size_bytes_max: int, end_offset_max: int, at_least_one: bool) -> LogRead:
        return self.log.read(
            offset, size_bytes_max=size_bytes_max, end_offset_max=end_offset_max, at_least_one=at_least_one
        )

    def delete_records(self, offset: int) -> int:
        """Move the start of the log up; −1 means the high watermark. Answers the new start."""
        if not self.is_leader:
            raise ApiError(errors.NOT_LEADER_OR_FOLLOWER)
        target = self.log.high_watermark if offset == -1 else offset
        if target < 0 or target > self.log.high_watermark:
            raise ApiError(errors.OFFSET_OUT_OF_RANGE)
        self.log.delete_records(target)
        self.readers.wake()  # the start of the log is news that followers need, too
        return target
