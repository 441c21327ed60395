"""Sends the ISR changes that this broker's partitions propose to the controller: many in one AlterPartition request.

One request is in flight at a time. A request that failed, for whatever reason, is sent again after a pause, for as long
as its partition still proposes the change. :mod:`barnabas.replication.isr` decides what to propose.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from barnabas.metadata.partition_image import LeaderRecoveryState
from barnabas.model import errors
from barnabas.model.errors import BarnabasError
from barnabas.model.ids import Uuid
from barnabas.observe.log import logger
from barnabas.replication.isr import Answer, Change, Proposal
from barnabas.replication.partition import Partition
from barnabas.wire.message import Message
from barnabas.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from barnabas.world.tasks import Tasks
from barnabas.world.timers import Timers

log = logger("isr")

PARTITIONS_PER_REQUEST_MAX: Final = 250
PAUSE_MS_MIN: Final = 50  # first pause between attempts; it doubles
PAUSE_MS_MAX: Final = 1_000
REQUEST_TIMEOUT_MS: Final = 30_000

AskController: TypeAlias = Callable[[Message, int], Awaitable[Message]]  # a request and how long it may take, in ms
Key: TypeAlias = tuple[Uuid, int]


class IsrChanges:
    def __init__(self, *, broker_id: int, broker_epoch: Callable[[], int], ask: AskController, timers: Timers) -> None:
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._ask = ask
        self._timers = timers
        self._waiting: dict[Key, tuple[Partition, Proposal]] = {}
        self._tasks = Tasks()
        self._is_stopped = False
        self.counts = dict.fromkeys(Change, 0)  # changes that the controller made
        self.failed_count = 0  # proposals that the controller refused

    def propose(self, partition: Partition, proposal: Proposal) -> None:
        """Send a proposal soon; it replaces a proposal of the same partition that has not been sent yet."""
        if self._is_stopped:
            return
        self._waiting[partition.topic_id, partition.id.partition] = (partition, proposal)
        self._tasks.retry("isr-changes", self._run, self._timers, retry_ms=PAUSE_MS_MAX)

    async def stop(self) -> None:
        self._is_stopped = True
        self._waiting.clear()
        await self._tasks.stop()

    async def _run(self) -> None:
        # All proposals of one turn of the loop, as when a follower comes back, share a request.
        await asyncio.sleep(0)
        failures = 0  # failed attempts in a row
        while self._waiting:
            keys = list(self._waiting)[:PARTITIONS_PER_REQUEST_MAX]
            left = batch = {key: self._waiting.pop(key) for key in keys}
            try:
                left = await self._send(batch)
            finally:
                for key, entry in left.items():
                    self._waiting.setdefault(key, entry)
            failures = failures + 1 if left else 0
            if left:
                await self._timers.sleep(min(PAUSE_MS_MIN << min(failures, 16), PAUSE_MS_MAX))

    async def _send(self, batch: dict[Key, tuple[Partition, Proposal]]) -> dict[Key, tuple[Partition, Proposal]]:
        """Send one request and apply its outcome to the partitions; returns the proposals to send again."""
        wanted = {key: entry for key, entry in batch.items() if _is_wanted(*entry)}
        if not wanted:
            return {}
        try:
            response = await self._ask(self._request(wanted), REQUEST_TIMEOUT_MS)
        except (BarnabasError, TimeoutError) as error:
            log.warning("the controller does not answer", partitions=len(wanted), reason=error)
            return wanted
        assert isinstance(response, AlterPartitionResponse)
        if response.error_code:
            # A stale broker epoch or a right that is missing: both may change, and nothing was decided.
            log.warning("ISR changes are refused", error=errors.error_of(response.error_code).name)
            return wanted
        left = dict(wanted)
        outcomes: dict[str, list[str]] = {}
        for topic in response.topics:
            for row in topic.partitions:
                key = (topic.topic_id, row.partition_index)
                entry = wanted.get(key)
                if entry is not None:
                    is_again, outcome = self._settle(*entry, row)
                    outcomes.setdefault(outcome, []).append(f"{entry[0].id}={list(entry[1].isr)}")
                    if not is_again:
                        del left[key]
        for outcome, changes in outcomes.items():
            # One line for all: a broker that comes back joins thousands at once.
            log.info("ISR changes", outcome=outcome, count=len(changes), first=changes[0])
        return left

    def _settle(
        self, partition: Partition, proposal: Proposal, row: AlterPartitionResponse.PartitionData
    ) -> tuple[bool, str]:
        """Whether the partition has to ask the same again, and what became of it in a word."""
        if row.error_code:
            error = errors.error_of(row.error_code)
            self.failed_count += 1
            return partition.refused(proposal, error), error.name
        is_news = partition.answered(proposal, Answer(row.leader_epoch, row.partition_epoch, tuple(row.isr)))
        # The metadata may bring the change before the answer does: it was ours all the same.
        if is_news or set(row.isr) == set(proposal.isr):
            self.counts[proposal.change] += 1
            return False, proposal.change.value
        return False, "overtaken"

    def _request(self, entries: dict[Key, tuple[Partition, Proposal]]) -> AlterPartitionRequest:
        topics: dict[Uuid, AlterPartitionRequest.TopicData] = {}
        own_epoch = self._broker_epoch()
        for (topic_id, index), (_, proposal) in entries.items():
            topic = topics.setdefault(topic_id, AlterPartitionRequest.TopicData(topic_id=topic_id))
            topic.partitions.append(
                AlterPartitionRequest.PartitionData(
                    partition_index=index,
                    leader_epoch=proposal.leader_epoch,
                    new_isr_with_epochs=[
                        AlterPartitionRequest.BrokerState(
                            broker_id=replica, broker_epoch=own_epoch if replica == self._broker_id else epoch
                        )
                        for replica, epoch in zip(proposal.isr, proposal.broker_epochs, strict=True)
                    ],
                    leader_recovery_state=LeaderRecoveryState.RECOVERED,
                    partition_epoch=proposal.partition_epoch,
                )
            )
        return AlterPartitionRequest(broker_id=self._broker_id, broker_epoch=own_epoch, topics=list(topics.values()))


def _is_wanted(partition: Partition, proposal: Proposal) -> bool:
    return partition.in_sync is not None and partition.in_sync.proposal is proposal
