"""The coordinators' shards here, of groups and of transactions, under the names of Kafka's own metrics of them.

How far groups are is in ``group_metrics``; this is about whether their coordinators are there to be asked, and about
how much they do.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from barnabas.broker.requests.services import Services
from barnabas.coordinator.runtime.runtime import CoordinatorRuntime
from barnabas.observe.metrics import COUNTER, Family, Sample, one

GROUPS: Final = "kafka_server_group_coordinator_metrics_"


def of_loading(broker: Services) -> Iterator[Family]:
    yield from _load_times(GROUPS, broker.groups.runtime)
    yield from _load_times("kafka_server_transaction_coordinator_metrics_", broker.transactions.runtime)
    shards = broker.groups.runtime
    states = {"loading": shards.loading, "active": shards.active, "failed": shards.failed}
    yield Family(
        f"{GROUPS}num_partitions",
        "Partitions of __consumer_offsets led here, by what their coordinators are.",
        [Sample(len(found), (("state", state),)) for state, found in states.items()],
    )


def of_group_work(broker: Services) -> Iterator[Family]:
    """What groups did, as counts since the start and as rates of late."""
    tally = broker.groups.tally
    meters = (
        ("offset_commit", tally.offset_commits, "Offsets committed"),
        ("offset_expiration", tally.offset_expirations, "Offsets that nobody used for too long"),
        ("offset_deletion", tally.offset_deletions, "Offsets deleted by request"),
        ("group_completed_rebalance", tally.classic_rebalances, "Rebalances of classic groups that came to their end"),
        ("consumer_group_rebalance", tally.consumer_rebalances, "Rebalances of groups of the consumer protocol"),
    )
    for name, meter, what in meters:
        yield one(f"{GROUPS}{name}_rate", f"{what}, per second of the last 30 to 60.", meter.rate)
        yield one(f"{GROUPS}{name}_count", f"{what}, since the start.", meter.count, COUNTER)


def _load_times(prefix: str, runtime: CoordinatorRuntime) -> Iterator[Family]:
    """Without a sample where Kafka says NaN: nothing was loaded in that time."""
    recent_ms = runtime.load_times.recent_ms()
    longest = [Sample(max(recent_ms))] if recent_ms else []
    mean = [Sample(sum(recent_ms) / len(recent_ms))] if recent_ms else []
    what = f"milliseconds that a partition of {runtime.topic} took to load, of the last 30 seconds."
    yield Family(f"{prefix}partition_load_time_max", f"The most {what}", longest)
    yield Family(f"{prefix}partition_load_time_avg", f"The mean of the {what}", mean)
