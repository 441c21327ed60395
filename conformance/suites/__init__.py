"""The suites, one module each; the table here is what `--suite` accepts.

A suite is a function that says which tests it has and on what broker they want to run: a list of legs.
"""

from __future__ import annotations

from collections.abc import Callable

from conformance.outcome import Leg
from conformance.suites import clients, connect, kafka_python, librdkafka, registry, tools

SUITES: dict[str, Callable[[], list[Leg]]] = {
    "librdkafka": librdkafka.legs,
    "librdkafka-consumer": librdkafka.group_legs,
    "kafka-python": kafka_python.legs,
    "tools": tools.legs,
    "clients": clients.legs,
    "registry": registry.legs,
    "connect": connect.legs,
}
