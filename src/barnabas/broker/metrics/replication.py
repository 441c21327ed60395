"""How replication goes, in numbers, under the names that Kafka's metrics have in public dashboards.

Leaders count the changes of their ISRs, fetchers know how far behind they are. Read when somebody looks; counted
nowhere for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from barnabas.observe.metrics import COUNTER, Family, Sample
from barnabas.replication.isr import Change
from barnabas.replication.replication import Replication

MANAGER: Final = "kafka_server_replicamanager_"
FETCHER: Final = "kafka_server_replicafetchermanager_"


def of_replication(replication: Replication) -> Iterator[Family]:
    changes = replication.isr_changes
    for name, doc, count in (
        ("isrshrinks", "Followers taken out of an ISR.", changes.counts[Change.SHRINK]),
        ("isrexpands", "Followers taken into an ISR.", changes.counts[Change.EXPAND]),
        ("failedisrupdates", "Changes of an ISR that the controller refused.", changes.failed_count),
    ):
        yield Family(f"{MANAGER}{name}_total", doc, [Sample(count)], COUNTER)
    labels = (("clientid", "Replica"),)
    states = sorted(replication.fetchers.states(), key=lambda state: state.partition.id)
    lag_max = max((state.lag or 0 for state in states), default=0)
    failed = sum(1 for state in states if state.is_parked)
    yield Family(
        f"{FETCHER}maxlag", "The most records that a follower here is behind its leader.", [Sample(lag_max, labels)]
    )
    yield Family(
        f"{FETCHER}failedpartitionscount", "Partitions that wait for metadata to be fetched.", [Sample(failed, labels)]
    )
    yield Family(
        "kafka_server_fetcherlagmetrics_consumerlag",
        "Records that a follower here is behind its leader.",
        [
            Sample(
                state.lag,
                (
                    ("clientid", f"replica-{state.partition.leader_id}"),
                    ("topic", state.partition.id.topic),
                    ("partition", str(state.partition.id.partition)),
                ),
            )
            for state in states
            if state.lag is not None
        ],
    )
