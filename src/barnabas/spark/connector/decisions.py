"""The decision to commit a batch: which transactions it has, stored by the driver before it commits the first one.

The transactions of a batch are committed one after the other. A driver that dies in between leaves some of them open.
With the checkpoint the batch is repeated and the markers tell what is missing. Without it the decision tells, so the
rest can still be committed while the transactions are open, or the gap is noticed.

A decision is stored as offsets of the group ``<application>.commits``, one for each transaction, in one request: the
offset is the batch, the metadata is ``<number of transactions> <producer id> <producer epoch> <sink id>``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from barnabas.client.admin.client import Admin
from barnabas.client.cluster.cluster import Cluster
from barnabas.client.cluster.coordinators import Coordinator, KeyKind
from barnabas.client.group.commits import Commits, GroupMetadata, OffsetAndMetadata
from barnabas.client.transactions import OpenTransaction
from barnabas.model import errors
from barnabas.model.ids import TopicPartition
from barnabas.spark.connector.markers import SLOTS, TOPIC, Slot, ensure_topic

__all__ = ["Decision", "delete_decision", "load_decision", "store_decision", "transactional_id"]


@dataclass(frozen=True)
class Decision:
    """The transactions of a batch, by task of the sink."""

    sink_id: str
    batch_id: int
    transactions: Mapping[int, OpenTransaction]


def transactional_id(application_id: str, task: int) -> str:
    return f"{application_id}-{task}"


async def store_decision(cluster: Cluster, application_id: str, decision: Decision) -> None:
    await ensure_topic(cluster)
    by_group: dict[str, dict[TopicPartition, OffsetAndMetadata]] = {}
    count = len(decision.transactions)
    for task, each in decision.transactions.items():
        slot = Slot.of(_group(application_id), task)
        note = f"{count} {each.producer_id} {each.producer_epoch} {decision.sink_id}"
        by_group.setdefault(slot.group, {})[slot.place] = OffsetAndMetadata(decision.batch_id, note)
    for group, offsets in by_group.items():
        commits = Commits(cluster, Coordinator(cluster, KeyKind.GROUP, group))
        await commits.commit(GroupMetadata(group), offsets, timeout_ms=None)


async def load_decision(cluster: Cluster, application_id: str, tasks: int) -> Decision | None:
    """The decision about the newest batch; None if there is none, or if it was not stored completely.

    tasks: number of tasks that the sink had.
    """
    found: dict[int, tuple[int, int, OpenTransaction, str]] = {}
    for first in range(0, tasks, SLOTS):
        group = Slot.of(_group(application_id), first).group
        commits = Commits(cluster, Coordinator(cluster, KeyKind.GROUP, group))
        places = [TopicPartition(TOPIC, number) for number in range(min(SLOTS, tasks - first))]
        for place, entry in (await commits.fetch(group, places)).items():
            if entry is not None:
                count, producer_id, epoch, sink_id = entry.metadata.split(" ", 3)
                task = first + place.partition
                opened = OpenTransaction(transactional_id(application_id, task), int(producer_id), int(epoch))
                found[task] = entry.offset, int(count), opened, sink_id
    batch = max((entry[0] for entry in found.values()), default=-1)
    newest = {task: entry for task, entry in found.items() if entry[0] == batch}
    if not newest or any(entry[1] != len(newest) for entry in newest.values()):
        return None
    sink_id = next(iter(newest.values()))[3]
    return Decision(sink_id, batch, {task: entry[2] for task, entry in newest.items()})


async def delete_decision(cluster: Cluster, application_id: str, tasks: int) -> None:
    groups = {Slot.of(_group(application_id), first).group for first in range(0, max(tasks, 1), SLOTS)}
    for refused in (await Admin(cluster=cluster).delete_groups(groups)).values():
        if refused is not None and refused.error is not errors.GROUP_ID_NOT_FOUND:
            raise refused


def _group(application_id: str) -> str:
    return f"{application_id}.commits"
