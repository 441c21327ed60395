"""Rebuilds a lost checkpoint from the cluster: source offsets from the application's group, state from its state topic.

Each transaction of the sink has the output of some tasks, their changes of the state, and the source offsets that they
have read. If all tasks are independent (one stage, no global table), each task continues from its own newest
transaction, and the result is exact. Otherwise a task's input comes from other tasks, and the transactions of a batch
belong together: the driver stores which they are before it commits the first one (``decisions.py``). If it died in
between, the rest is committed here. That works until the brokers have aborted them (``transaction.timeout.ms``); then
the rebuild is refused, because some tasks have the batch and others do not.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from barnabas.client.admin.client import Admin
from barnabas.client.cluster.cluster import Cluster
from barnabas.client.offsets import LATEST_TIMESTAMP, list_offsets
from barnabas.client.producer import Producer
from barnabas.client.settings.producer import ProducerSettings
from barnabas.client.transactions import end_transaction
from barnabas.model.errors import BarnabasError
from barnabas.model.ids import TopicPartition
from barnabas.spark.connector.decisions import Decision, delete_decision, load_decision, transactional_id
from barnabas.spark.connector.link import link
from barnabas.spark.connector.markers import Slot
from barnabas.streams.catalog.application import Application
from barnabas.streams.errors import StreamsError
from barnabas.streams.host.checkpoint import Origin
from barnabas.streams.host.state_topic import topic_name

__all__ = ["RebuildRefused", "rebuild", "state_ends"]


class RebuildRefused(StreamsError):
    """The state and the offsets of the cluster do not fit each other."""


def rebuild(known: Application, partitions: Mapping[str, int], client: Mapping[str, str]) -> Origin | None:
    """Prepare a start without a checkpoint; None if the application has not written anything yet.

    known: the application as it was started last.
    partitions: number of partitions of the topics that are read.
    Raises RebuildRefused if the rebuilt state would not be exact.
    """
    connection = link(ProducerSettings, client)
    return connection.run(_rebuild(connection.cluster, known, partitions, client))


async def _rebuild(
    cluster: Cluster, known: Application, partitions: Mapping[str, int], client: Mapping[str, str]
) -> Origin | None:
    name = known.application_id
    decision = None if known.is_atomic else await load_decision(cluster, name, known.state_partitions)
    if decision is not None:
        await _complete(cluster, decision)
    await _fence(cluster, known, client)
    if not known.is_atomic:
        # A driver that was still alive may have decided once more before it was fenced.
        await _check_committed(cluster, await load_decision(cluster, name, known.state_partitions), name)
        await delete_decision(cluster, name, known.state_partitions)
    ends = await state_ends(cluster, topic_name(name))
    committed = await Admin(cluster=cluster).group_offsets(name)
    offsets: dict[str, dict[str, int]] = {}
    for place, entry in sorted(committed.items()):
        if place.topic in partitions and place.partition < partitions[place.topic]:
            offsets.setdefault(place.topic, {})[str(place.partition)] = entry.offset
    if not offsets and any(ends.values()):
        raise RebuildRefused(
            f"the checkpoint of {name} is missing, and its committed offsets have expired or were deleted: where its "
            f"state ends is not known. Restore the checkpoint {known.checkpoint}, or {_reset(name)}"
        )
    return Origin(offsets, ends) if offsets else None


async def _complete(cluster: Cluster, decision: Decision) -> None:
    """Commit what a driver has decided to commit; what is not open any more is found by the markers."""
    for each in decision.transactions.values():
        with suppress(BarnabasError):
            await end_transaction(cluster, each, commit=True)


async def _fence(cluster: Cluster, known: Application, client: Mapping[str, str]) -> None:
    """End the transactions of a driver that may still be alive, so that it cannot commit any more."""
    for task in range(known.state_partitions):
        settings = ProducerSettings.of(
            dict(client) | {"transactional.id": transactional_id(known.application_id, task)}
        )
        producer = Producer(settings, cluster=cluster)
        try:
            await producer.begin_transaction()
            await producer.abort_transaction()
        finally:
            await producer.close()


async def _check_committed(cluster: Cluster, decision: Decision | None, name: str) -> None:
    if decision is None:
        return
    missing = []
    for task in decision.transactions:
        marker = await Slot.of(decision.sink_id, task).read(cluster)
        if marker is None or marker.batch_id < decision.batch_id:
            missing.append(task)
    if 0 < len(missing) < len(decision.transactions):  # all or none is a state that all tasks agree on
        raise RebuildRefused(
            f"the checkpoint of {name} is missing, and the driver stopped while it committed batch "
            f"{decision.batch_id}: {len(missing)} of {len(decision.transactions)} transactions were aborted "
            f"when their time was up. Tasks of this application send records to each other, so state without them "
            f"would not be exact. Restore the checkpoint, or {_reset(name)}"
        )


async def state_ends(cluster: Cluster, topic: str) -> dict[str, int]:
    """Ends of the partitions of a state topic, as offsets of committed records; empty if there is no such topic."""
    found = (await cluster.look_up([topic])).get(topic)
    if found is None:
        return {}
    places = [TopicPartition(topic, each.partition) for each in found.partitions]
    listed = await list_offsets(cluster, dict.fromkeys(places, LATEST_TIMESTAMP), isolation_level="read_committed")
    return {str(place.partition): entry.offset for place, entry in listed.items()}


def _reset(name: str) -> str:
    return f"start anew: `barnabas streams reset {name}`, which deletes its state; it then writes its results again"
