"""A limit on what moving partitions may take: which settings it needs, set before a move and taken off after it.

They are those that ``kafka-reassign-partitions --throttle`` uses, so either tool can take off what the other has set: a
rate on every broker that sends or receives, and on each topic the replicas that it holds for. ``reassign`` calls this.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from barnabas.client.admin.configs import Change, Operation, Resource, ResourceKind
from barnabas.model.ids import TopicPartition

RATES: Final = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
LEADERS: Final = "leader.replication.throttled.replicas"
FOLLOWERS: Final = "follower.replication.throttled.replicas"

_UNITS: Final = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30}

Placement = Mapping[TopicPartition, Sequence[int]]
Changes = dict[Resource, list[Change]]


def rate(text: str) -> int:
    """Bytes a second, as an option of a command: 500000, 10MB or 8MiB."""
    found = re.fullmatch(r"([0-9]+)\s*([kmg]?i?)b?(?:/s)?", text.strip().lower())
    if found is None or found[2] not in _UNITS or int(found[1]) == 0:
        raise ValueError(f"{text!r} is no rate; say bytes a second, like 500000, 10MB or 8MiB")
    return int(found[1]) * _UNITS[found[2]]


def limits(now: Placement, targets: Placement, bytes_per_second: int, *, brokers: Iterable[int]) -> Changes:
    """What to set: any replica that has a partition may come to lead, and send; those that are new to it receive."""
    sends: dict[str, list[str]] = {}
    receives: dict[str, list[str]] = {}
    involved: set[int] = set()
    for (topic, index), replicas in sorted(targets.items()):
        sources = now[TopicPartition(topic, index)]
        added = [replica for replica in replicas if replica not in sources]
        if added:
            sends.setdefault(topic, []).extend(f"{index}:{replica}" for replica in sources)
            receives.setdefault(topic, []).extend(f"{index}:{replica}" for replica in added)
            involved |= {*sources, *added}
    changes: Changes = {
        _topic(topic): [Change(LEADERS, ",".join(sends[topic])), Change(FOLLOWERS, ",".join(receives[topic]))]
        for topic in sends
    }
    for broker in sorted(involved & set(brokers)):
        changes[_broker(broker)] = [Change(name, str(bytes_per_second)) for name in RATES]
    return changes


def no_limits(topics: Iterable[str], *, brokers: Iterable[int]) -> Changes:
    """What to take off again."""
    changes = {_topic(topic): [_without(LEADERS), _without(FOLLOWERS)] for topic in sorted(set(topics))}
    return changes | {_broker(broker): [_without(name) for name in RATES] for broker in sorted(brokers)}


def _topic(name: str) -> Resource:
    return Resource(ResourceKind.TOPIC, name)


def _broker(broker: int) -> Resource:
    return Resource(ResourceKind.BROKER, str(broker))


def _without(name: str) -> Change:
    return Change(name, operation=Operation.DELETE)
