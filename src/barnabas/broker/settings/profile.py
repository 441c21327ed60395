"""The development profile: what ``barnabas up`` without a file, and the test broker, change of Kafka's defaults.

A production broker is started from a file and gets none of this. ``docs/SETTINGS.md`` lists these lines.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from barnabas.broker.settings.endpoints import FIRST_FREE

DEVELOPMENT: Final[Mapping[str, str]] = {
    "listeners": "PLAINTEXT://127.0.0.1:9092",  # not every interface: nobody else has business here
    "offsets.topic.replication.factor": "1",  # there is one broker, and groups must work on it
    "group.initial.rebalance.delay.ms": "0",  # a developer's first consumer should not wait for others
    "group.consumer.assignment.interval.ms": "0",  # nor should the second
    "transaction.state.log.replication.factor": "1",  # and so must transactions
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",  # and the state of share groups
    "share.coordinator.state.topic.min.isr": "1",
    "barnabas.audit.enable": "false",  # who did what is no question where one person works
}

# What the command adds: brokers of tests come in numbers, and nobody looks at their pages.
FOR_PEOPLE: Final[Mapping[str, str]] = {"barnabas.http.port": str(FIRST_FREE)}
