"""Where the rows of a task go: records for other tasks are packed for their labels, records for topics for the sink."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from barnabas.streams.host.blobs import INPUT, OUTPUT, internal_blobs, offsets_blob, output_blobs
from barnabas.streams.host.plan import Plan
from barnabas.streams.positions import Position
from barnabas.streams.runtime.task import Row

__all__ = ["Packed", "Sender", "routed"]


class Packed(NamedTuple):
    """A row between operators; see ``blobs.PACKED``."""

    task: int
    kind: int
    topic: str
    name: str
    partition: int
    first: int
    end: int
    now: int
    blob: bytes


class Sender(NamedTuple):
    """A task that sends records.

    task: index of the task.
    number: its number among the senders; the receiving task merges the records of all senders by time.
    first: number of the first blob; the blobs of a sender are in this order.
    """

    task: int
    number: int
    first: int = 0


def routed(
    plan: Plan,
    sender: Sender,
    rows: Iterable[Row],
    position: Position,
    offsets: Mapping[str, Mapping[str, int]],
    now: int,
) -> Iterator[Packed]:
    """Pack the output rows of a task.

    position: offsets of topics that have reached the task. offsets: those that it has read, for the sink.
    """
    output: list[Row] = []
    internal: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        if not row.is_internal:
            output.append(row)
        elif row.topic in plan.looped:
            output.append(row._replace(topic=f"{plan.application_id}-{row.topic}"))
        else:
            assert row.partition is not None
            internal.setdefault((row.topic, row.partition), []).append(row)
    for (topic, partition), part in internal.items():
        target = plan.labels[plan.task(plan.internal_reader(topic), partition)]
        for number, blob in enumerate(internal_blobs(part, position), sender.first):
            yield Packed(target, INPUT, topic, topic, sender.number, number, -1, now, blob)
    blobs = list(output_blobs(output))
    if offsets:
        blobs.append(offsets_blob(offsets))
    for number, blob in enumerate(blobs, sender.first):
        yield Packed(plan.labels[sender.task], OUTPUT, "", "", sender.number, number, -1, now, blob)
