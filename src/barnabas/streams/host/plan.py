"""How a topology runs in Spark: its tasks, the chained operators that host them, and which task reads what.

Sub-topologies that are connected by repartition topics become stages: stage 0 reads topics, stage 1 what stage 0
repartitions, and so on. Each stage is one stateful operator of the query, and the shuffle between two operators
replaces the repartition topic. A sub-topology that reads topics and has no state needs no operator: it runs where the
records are read, before stage 0. A connection that leads back to an earlier sub-topology, as the answers of a
foreign-key join do, cannot be a shuffle within one batch: it is a topic of the cluster, which the query reads in a
later batch. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

from barnabas.streams.errors import TopologyError
from barnabas.streams.host.labels import labels
from barnabas.streams.runtime.store import StateStore
from barnabas.streams.runtime.task import RECORD_BYTES_MAX, Task
from barnabas.streams.topology.copartition import check_partitions, task_counts
from barnabas.streams.topology.node import SubTopology, Topology
from barnabas.streams.topology.operators import GlobalTableJoin, Process
from barnabas.streams.topology.stages import stages_of, stateless_of

__all__ = ["Plan", "Reader", "TaskPlace", "make_plan"]

TASKS_MAX: Final = 10_000


class TaskPlace(NamedTuple):
    """A task: its sub-topology and its partition."""

    number: int
    partition: int

    def __str__(self) -> str:
        return f"{self.number}_{self.partition}"


class Reader(NamedTuple):
    """The sub-topology that reads a topic, and the name that the topic has in the topology."""

    number: int
    topic: str


@dataclass(frozen=True)
class Plan:
    """The plan of an application; plain data that is sent to the workers.

    partitions: number of partitions of every topic that is read, and of output topics with a custom partitioner.
    tasks: all tasks. A task is known by its index in this tuple.
    labels: the label of each task in Spark's shuffle.
    stages: the stage of each sub-topology; -1 if it is stateless and runs where records are read.
    readers: topic of the cluster -> its reader. patterns: the same for topics that are read by a pattern.
    looped: repartition topics that are topics of the cluster, by the names that they have in the topology.
    copies: topic of a global table -> tasks that have a copy of it.
    global_numbers: numbers of the sub-topologies of global tables.
    ticked: tasks with wall-clock punctuators. tick_ms: interval of the ticks, None if there are no such tasks.
    record_bytes_max: largest value that the application can write.
    """

    application_id: str
    partitions: Mapping[str, int]
    tasks: tuple[TaskPlace, ...]
    labels: tuple[int, ...]
    stages: Mapping[int, int]
    readers: Mapping[str, Reader]
    patterns: tuple[tuple[str, Reader], ...]
    looped: frozenset[str]
    copies: Mapping[str, tuple[int, ...]]
    global_numbers: tuple[int, ...]
    state_partitions: int
    ticked: tuple[int, ...]
    tick_ms: int | None
    record_bytes_max: int = RECORD_BYTES_MAX

    @property
    def stage_count(self) -> int:
        return max(self.stages.values()) + 1

    @property
    def is_atomic(self) -> bool:
        """Whether each task depends on topics of the cluster only, so that its transaction is complete by itself."""
        return len(set(self.stages.values())) == 1 and not self.copies

    def is_read(self, topic: str) -> bool:
        """Whether a topic of the cluster is read by name: a source, or a repartition topic that leads back."""
        name = self.readers[topic].topic
        return name == topic or name in self.looped

    def is_matched(self, topic: str) -> bool:
        """Whether a topic of the cluster is read by a pattern."""
        return any(re.fullmatch(pattern, topic) for pattern, _ in self.patterns)

    @cached_property
    def _indexes(self) -> dict[TaskPlace, int]:
        return {place: index for index, place in enumerate(self.tasks)}

    def index(self, label: int) -> int:
        """The task with a label."""
        return label % len(self.tasks)

    def stage(self, task: int) -> int:
        return self.stages[self.tasks[task].number]

    def is_stateless(self, number: int) -> bool:
        """Whether a sub-topology runs where records are read."""
        return self.stages[number] < 0

    def sender(self, task: int, topic: str) -> int:
        """The number of the sender of what a stateless task makes of a topic; a task of a stage has its index.

        Topics of a stateless sub-topology are read apart from each other, so the order is within a topic only.
        """
        number = self.tasks[task].number
        topics = sorted(reader.topic for reader in self.readers.values() if reader.number == number)
        return task + len(self.tasks) * (topics.index(topic) if topic in topics else 0)

    def task(self, number: int, partition: int) -> int:
        """The index of a task. Raises TopologyError if the partition is new."""
        try:
            return self._indexes[TaskPlace(number, partition)]
        except KeyError:
            raise TopologyError(
                f"partition {partition} is new to sub-topology {number}: topics of an application must keep their "
                f"number of partitions; start it with a new checkpoint"
            ) from None

    def reader(self, topic: str) -> Reader:
        """The reader of a topic of the cluster."""
        found = self.readers.get(topic)
        if found is None:
            found = next((each for pattern, each in self.patterns if re.fullmatch(pattern, topic)), None)
            if found is None:
                raise TopologyError(f"no sub-topology reads topic {topic}")
            found = Reader(found.number, topic)
        return found

    def internal_reader(self, topic: str) -> int:
        """The sub-topology that reads a repartition topic."""
        return self.readers[f"{self.application_id}-{topic}"].number


def make_plan(
    topology: Topology,
    partitions: Mapping[str, int],
    *,
    partitions_max: int,
    state_partitions: int | None = None,
    record_bytes_max: int = RECORD_BYTES_MAX,
) -> Plan:
    """Plan a topology.

    partitions: number of partitions of the topics of the cluster that are read, and of output topics.
    partitions_max: how many partitions the state of an operator may have.
    state_partitions: how many it has, if a checkpoint has decided that.
    record_bytes_max: largest value that the application can write.
    Raises TopologyError if topics that are joined differ in their number of partitions, or if there are too many tasks.
    """
    partitions = {**partitions, **{name: source.frame_partitions for name, source in topology.frames.items()}}
    known = check_partitions(topology, partitions)
    counts = task_counts(topology, known)
    tasks = tuple(TaskPlace(number, each) for number, count in sorted(counts.items()) for each in range(count))
    if len(tasks) > TASKS_MAX:
        raise TopologyError(f"the application has {len(tasks)} tasks; the limit is {TASKS_MAX}")
    stages, looped = stages_of(topology, stateless_of(topology))
    state_partitions = state_partitions or max(1, min(len(tasks), partitions_max))
    intervals = _tick_intervals(topology, known, counts)
    return Plan(
        application_id=topology.application_id,
        partitions=dict(partitions) | known,
        tasks=tasks,
        labels=labels(len(tasks), state_partitions),
        stages=stages,
        readers=_readers(topology),
        patterns=_patterns(topology),
        looped=looped,
        copies=_copies(topology, tasks),
        global_numbers=tuple(each.number for each in topology.sub_topologies if each.is_global),
        state_partitions=state_partitions,
        ticked=tuple(index for index, place in enumerate(tasks) if place.number in intervals),
        tick_ms=min(intervals.values(), default=None),
        record_bytes_max=record_bytes_max,
    )


def _sources(sub_topology: SubTopology) -> Iterable[tuple[str, bool]]:
    """Topics that a sub-topology reads by name, and whether each is internal."""
    for node in sub_topology.sources:
        for topic in node.operator.topics:  # type: ignore[attr-defined]
            yield topic, node.operator.is_internal  # type: ignore[attr-defined]


def _readers(topology: Topology) -> dict[str, Reader]:
    found = {}
    for each in topology.sub_topologies:
        for topic, is_internal in _sources(each):
            found[topology.decorate(topic) if is_internal else topic] = Reader(each.number, topic)
    return found


def _patterns(topology: Topology) -> tuple[tuple[str, Reader], ...]:
    found = []
    for each in topology.sub_topologies:
        for node in each.sources:
            pattern = node.operator.pattern  # type: ignore[attr-defined]
            if pattern is not None:
                found.append((pattern.pattern, Reader(each.number, "")))
    return tuple(found)


def _copies(topology: Topology, tasks: tuple[TaskPlace, ...]) -> dict[str, tuple[int, ...]]:
    users: dict[str, set[int]] = {topic: set() for topic in topology.global_stores.values()}
    for each in topology.sub_topologies:
        if each.is_global:
            continue
        for node in each.nodes:
            stores = set(node.stores)
            if isinstance(node.operator, GlobalTableJoin):
                stores.add(node.operator.store)
            if isinstance(node.operator, Process):
                stores |= set(node.operator.stores)
            for store in stores & topology.global_stores.keys():
                users[topology.global_stores[store]].add(each.number)
    return {
        topic: tuple(index for index, place in enumerate(tasks) if place.number in numbers)
        for topic, numbers in users.items()
    }


def _tick_intervals(topology: Topology, partitions: Mapping[str, int], counts: Mapping[int, int]) -> dict[int, int]:
    """The first wall-clock punctuation of each sub-topology that has one, in milliseconds after its start."""
    found = {}
    globals_of = _global_stores(topology, partitions)
    for number, count in counts.items():
        if count and any(isinstance(node.operator, Process) for node in topology.sub_topologies[number].nodes):
            task = Task(topology, number, 0, partitions=partitions, globals=globals_of)
            task.begin(time_ms=0, seed=0)
            due = task.punctuators.next_wall_clock_time
            task.close()
            if due is not None:
                found[number] = due
    return found


def _global_stores(topology: Topology, partitions: Mapping[str, int]) -> dict[str, StateStore]:
    """Empty stores of all global tables."""
    tasks = [
        Task(topology, each.number, 0, partitions=partitions) for each in topology.sub_topologies if each.is_global
    ]
    return {name: store for task in tasks for name, store in task.stores.items()}
