"""Open transactions that hold back readers of committed records: how they are found, and what to do about each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.model.ids import TopicPartition
from barnabas.ops.units import duration

if TYPE_CHECKING:
    from barnabas.client.admin.client import Admin
    from barnabas.client.admin.transactions import ActiveProducer, TransactionDescription

OPEN_STATES: Final = ("Ongoing", "PrepareCommit", "PrepareAbort")


class Waiting(NamedTuple):
    """The oldest open transaction of a partition: readers of committed records see nothing behind its start."""

    partition: TopicPartition
    producer: ActiveProducer
    description: TransactionDescription | None  # None: no coordinator knows the producer

    def as_value(self) -> dict[str, object]:
        return {
            "topic": self.partition.topic,
            "partition": self.partition.partition,
            **self.producer._asdict(),
            "transactional_id": None if self.description is None else self.description.transactional_id,
        }


async def find_waiting(admin: Admin, topic: str, chosen: list[int] | None) -> list[Waiting]:
    """The oldest open transaction of each partition that has one."""
    known = await admin.cluster.topic(topic, timeout_ms=0)
    found = []
    for index in chosen or range(len(known.partitions)):
        partition = TopicPartition(topic, index)
        producers = [each for each in await admin.describe_producers(partition) if each.transaction_start_offset >= 0]
        if producers:
            oldest = min(producers, key=lambda each: each.transaction_start_offset)
            found.append(Waiting(partition, oldest, await _owner(admin, partition, oldest)))
    return found


async def _owner(admin: Admin, partition: TopicPartition, producer: ActiveProducer) -> TransactionDescription | None:
    """The transaction that the producer's partition belongs to, if any coordinator knows of one."""
    for listed in await admin.list_transactions(producer_ids=[producer.producer_id]):
        description = await admin.describe_transaction(listed.transactional_id)
        if partition in description.partitions:
            return description
    return None


def explain(waiting: Waiting, *, now_ms: int) -> str:
    partition, producer, description = waiting
    start = f"{partition}: readers of committed records wait at offset {producer.transaction_start_offset}"
    who = f"producer {producer.producer_id}, epoch {producer.producer_epoch}"
    if description is None:
        return (
            f"{start} for a transaction of {who}, which no coordinator knows: nobody will end it; "
            f"`barnabas txn abort --partition {partition} --producer {producer.producer_id}` does"
        )
    left_ms = description.started_ms + description.timeout_ms - now_ms
    end = f"aborted in {duration(left_ms)}" if left_ms > 0 else "its time is up: aborted at the next look"
    if description.state != "Ongoing":
        end = "its markers are on the way"
    return (
        f"{start} for {description.transactional_id!r} ({who}): {description.state} for "
        f"{duration(now_ms - description.started_ms)}, {end}"
    )
