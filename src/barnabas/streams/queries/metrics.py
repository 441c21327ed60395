"""Metrics of applications for Prometheus, under the names that the JMX exporter gives to those of Kafka Streams.

The counters come from the metrics topics, the state of the driver from the status that ``barnabas run`` publishes. A
batch of Spark is what a commit is in Kafka Streams. Pure; ``service.py`` reads the topics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from barnabas.observe.metrics import COUNTER, GAUGE, Family, Sample
from barnabas.streams.catalog.task_metrics import NodeTraffic, TaskMetrics

__all__ = ["DriverState", "families"]

PREFIX: Final = "kafka_streams_stream"


class DriverState(NamedTuple):
    """What the driver of an application has published last."""

    is_running: bool
    has_failed: bool
    batches: int
    batch_ms: int


def families(tasks: Mapping[str, Iterable[TaskMetrics]], drivers: Mapping[str, DriverState]) -> Iterator[Family]:
    """The families of all applications; both arguments are by application id."""
    known = [(name, list(found)) for name, found in tasks.items()]

    def by_task(value: Callable[[TaskMetrics], int]) -> list[Sample]:
        return [Sample(value(task), _labels(name, task)) for name, found in known for task in found]

    def by_node(side: str, field: str) -> list[Sample]:
        return [
            Sample(getattr(each, field), (*_labels(name, task), *_node(each)))
            for name, found in known
            for task in found
            for each in getattr(task, side)
        ]

    def by_driver(value: Callable[[DriverState], int], *more: tuple[str, str]) -> list[Sample]:
        return [Sample(value(state), (("client_id", name), *more, _thread(name))) for name, state in drivers.items()]

    yield Family(
        f"{PREFIX}_metrics_alive_stream_threads",
        "1 while the driver runs.",
        [Sample(int(state.is_running), (("client_id", name),)) for name, state in drivers.items()],
    )
    yield Family(
        f"{PREFIX}_metrics_failed_stream_threads",
        "1 if the driver has failed.",
        [Sample(int(state.has_failed), (("client_id", name),)) for name, state in drivers.items()],
    )
    thread = f"{PREFIX}_thread_metrics"
    yield Family(f"{thread}_commit_total", "Batches of the query.", by_driver(lambda state: state.batches), COUNTER)
    yield Family(
        f"{thread}_commit_latency_avg", "Duration of the last batch in ms.", by_driver(lambda state: state.batch_ms)
    )
    yield Family(
        f"{thread}_commit_latency_max", "Duration of the last batch in ms.", by_driver(lambda state: state.batch_ms)
    )
    task = f"{PREFIX}_task_metrics"
    yield Family(f"{task}_process_total", "Records that a task has processed.", by_task(_processed), COUNTER)
    yield Family(f"{task}_dropped_records_total", "Late and invalid records.", list(_dropped(known)), COUNTER)
    node = f"{PREFIX}_processor_node_metrics"
    yield Family(
        f"{node}_process_total", "Records that a source node has read.", by_node("consumed", "records"), COUNTER
    )
    topic = f"{PREFIX}_topic_metrics"
    for side in ("consumed", "produced"):
        yield Family(f"{topic}_records_{side}_total", f"Records {side}.", by_node(side, "records"), COUNTER)
        yield Family(
            f"{topic}_bytes_{side}_total", f"Bytes of keys and values {side}.", by_node(side, "bytes"), COUNTER
        )
    keys = [
        Sample(count, (*_labels(name, each), ("in_memory_state_id", store)))
        for name, found in known
        for each in found
        for store, count in each.keys.items()
    ]
    yield Family(f"{PREFIX}_state_metrics_estimate_num_keys", "Keys of a store.", keys)
    yield Family(
        "barnabas_streams_task_state_bytes", "Bytes of a task's state.", by_task(lambda each: each.state_bytes), GAUGE
    )
    yield Family(
        "barnabas_streams_task_stream_time_ms", "Stream time of a task.", by_task(lambda each: each.stream_time_ms)
    )


def _labels(name: str, task: TaskMetrics) -> tuple[tuple[str, str], ...]:
    return ("client_id", name), _thread(name), ("task_id", task.task)


def _thread(name: str) -> tuple[str, str]:
    return "thread_id", f"{name}-StreamThread-1"


def _node(traffic: NodeTraffic) -> tuple[tuple[str, str], ...]:
    return ("processor_node_id", traffic.node), ("topic_name", traffic.topic)


def _processed(task: TaskMetrics) -> int:
    return sum(each.records for each in task.consumed)


def _dropped(known: list[tuple[str, list[TaskMetrics]]]) -> Iterator[Sample]:
    """A sample for each node that has dropped records; a task without drops has one of 0, so that rates start."""
    for name, found in known:
        for task in found:
            if not task.dropped:
                yield Sample(0, _labels(name, task))
            for node, count in task.dropped.items():
                yield Sample(count, (*_labels(name, task), ("processor_node_id", node)))
