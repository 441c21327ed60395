"""A task together with its copies of global tables: what the operator runs for one group of Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from barnabas.streams.app import App
from barnabas.streams.host.counters import Counters, Intake
from barnabas.streams.host.plan import Plan
from barnabas.streams.host.state import Chunk
from barnabas.streams.positions import HEADERS_VERSION, POSITION_HEADER, Position, encode_position
from barnabas.streams.runtime.task import InputRecord, Row, Task

__all__ = ["Done", "HostedTask"]

POSITION_CELL: Final = "position:"  # prefix of the cells with offsets of source topics, one number for each partition


class Done(NamedTuple):
    """What a batch of a task gives: rows for topics and other tasks, and changes of the state."""

    rows: list[Row]
    changes: list[Chunk]


class HostedTask:
    def __init__(self, app: App, plan: Plan, index: int) -> None:
        topology, place = app.topology(), plan.tasks[index]
        self._copies = [
            Task(topology, number, 0, partitions=plan.partitions, on_error=app.on_error)
            for number in plan.global_numbers
            if any(index in plan.copies[topic] for topic in topology.sub_topologies[number].topics)
        ]
        # Every copy of a global table meets the same records, so only the first one writes their dead letters.
        self._writes = [
            any(plan.copies[topic][0] == index for topic in copy.sub_topology.topics) for copy in self._copies
        ]
        stores = {name: store for copy in self._copies for name, store in copy.stores.items()}
        self._task = Task(
            topology,
            place.number,
            place.partition,
            partitions=plan.partitions,
            on_error=app.on_error,
            globals=stores,
            record_bytes_max=plan.record_bytes_max,
        )
        self.name = self._task.name
        self.counters = Counters(self._task)
        self._topics = [frozenset(copy.sub_topology.topics) for copy in self._copies]

    @property
    def position(self) -> dict[str, dict[int, int]]:
        """Offsets up to which records of topics have reached the task, directly or through other tasks."""
        return {
            name.removeprefix(POSITION_CELL): {number: offset for number, offset in enumerate(cell) if offset >= 0}
            for name, cell in self._task.cells.items()
            if name.startswith(POSITION_CELL)
        }

    def restore(self, chunks: Iterable[Chunk]) -> None:
        for chunk in chunks:
            (self._task if chunk.part == 0 else self._copies[chunk.part - 1]).restore([chunk.content])

    def run(self, records: Iterable[InputRecord], *, time_ms: int, seed: str, intake: Intake) -> Done:
        """Process a batch: first the records of global tables, then the others, then wall-clock punctuators.

        intake: offsets and counts of the batch; may grow while ``records`` is read.
        """
        mine: list[InputRecord] = []
        of_copies: list[list[InputRecord]] = [[] for _ in self._copies]
        for record in records:
            for topics, target in zip(self._topics, of_copies, strict=True):
                if record[0] in topics:
                    target.append(record)
                    break
            else:
                mine.append(record)
        changes: list[Chunk] = []
        rows: list[Row] = []
        for part, (copy, given) in enumerate(zip(self._copies, of_copies, strict=True), start=1):
            if given:
                copy.begin(time_ms=time_ms, seed=seed)
                letters = copy.process(given)
                if self._writes[part - 1]:
                    rows += letters
                changes += [Chunk(part, content) for content in copy.commit().chunks]
        self._advance(intake.position)
        self._task.begin(time_ms=time_ms, seed=seed)
        rows += self._task.process(mine)
        rows += self._task.punctuate()
        self.counters.add(intake, rows)
        commit = self._task.commit()
        changes += [Chunk(0, content) for content in commit.chunks]
        changelog = [row if row.timestamp >= 0 else row._replace(timestamp=time_ms) for row in commit.changelog]
        return Done(rows + self._positioned(changelog), changes)

    def _advance(self, position: Position) -> None:
        for topic, offsets in position.items():
            cell = self._task.cell(POSITION_CELL + topic)
            cell += [-1] * (max(offsets, default=-1) + 1 - len(cell))
            for partition, offset in offsets.items():
                cell[partition] = max(cell[partition], offset)

    def _positioned(self, changelog: list[Row]) -> list[Row]:
        """Changelog rows; the last one of each store has the position for which the store is true, as in Kafka."""
        headers = (("v", HEADERS_VERSION), (POSITION_HEADER, encode_position(self.position)))
        last = {row.topic: index for index, row in enumerate(changelog)}
        for index in last.values():
            changelog[index] = changelog[index]._replace(headers=headers)
        return changelog

    def snapshot(self) -> Iterator[Chunk]:
        for part, task in enumerate((self._task, *self._copies)):
            for content in task.snapshot():
                yield Chunk(part, content)

    def close(self) -> None:
        self._task.close()
