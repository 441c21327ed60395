"""The coordinators' shards here, of groups and of transactions, under the names of Kafka's own metrics of them.

What groups do is in ``group_metrics``; this is about whether their coordinators are there to be asked.
"""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.broker.services import Services
from barnabas.coordinator.runtime import CoordinatorRuntime
from barnabas.observe.metrics import Family, Sample


def of_loading(broker: Services) -> Iterator[Family]:
    groups = "kafka_server_group_coordinator_metrics_"
    yield from _load_times(groups, broker.groups.runtime)
    yield from _load_times("kafka_server_transaction_coordinator_metrics_", broker.transactions.runtime)
    shards = broker.groups.runtime
    states = {"loading": shards.loading, "active": shards.active, "failed": shards.failed}
    yield Family(
        f"{groups}num_partitions",
        "Partitions of __consumer_offsets led here, by what their coordinators are.",
        [Sample(len(found), (("state", state),)) for state, found in states.items()],
    )


def _load_times(prefix: str, runtime: CoordinatorRuntime) -> Iterator[Family]:
    """Without a sample where Kafka says NaN: nothing was loaded in that time."""
    recent_ms = runtime.load_times.recent_ms()
    longest = [Sample(max(recent_ms))] if recent_ms else []
    mean = [Sample(sum(recent_ms) / len(recent_ms))] if recent_ms else []
    what = f"milliseconds that a partition of {runtime.topic} took to load, of the last 30 seconds."
    yield Family(f"{prefix}partition_load_time_max", f"The most {what}", longest)
    yield Family(f"{prefix}partition_load_time_avg", f"The mean of the {what}", mean)
