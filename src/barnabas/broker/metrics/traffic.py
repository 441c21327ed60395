"""What went through this broker, by topic, and how long its requests took, part by part: as Kafka's metrics name them.

The counters are filled by the handlers of Produce and Fetch and by the dispatcher; this adds them up when asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from barnabas.broker.requests.services import Services
from barnabas.observe.histogram import Histogram
from barnabas.observe.metrics import COUNTER, SUMMARY, Family, Sample
from barnabas.observe.request_times import PARTS
from barnabas.observe.traffic import Traffic

QUANTILES: Final = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)
_COUNTERS: Final = {
    "messagesin": ("messages_in", "Records written by clients."),
    "bytesin": ("bytes_in", "Bytes written by clients."),
    "bytesout": ("bytes_out", "Bytes read by clients."),
    "replicationbytesin": ("replication_bytes_in", "Bytes copied from leaders."),
    "replicationbytesout": ("replication_bytes_out", "Bytes copied by followers."),
    "totalproducerequests": ("produces", "Batches that clients asked to be written."),
    "totalfetchrequests": ("fetches", "Partitions that were asked for their records."),
    "failedproducerequests": ("failed_produces", "Batches that were refused."),
    "failedfetchrequests": ("failed_fetches", "Partitions whose records could not be given."),
}


class TrafficSource:
    """By topic, and without a topic for all of them, as Kafka does."""

    def __init__(self, broker: Services) -> None:
        self._broker = broker
        self._shown: dict[int, Traffic] = {}
        self._gone = Traffic()  # of partitions that have left: a total must not fall

    def __call__(self) -> Iterator[Family]:
        by_topic: dict[str, list[Traffic]] = {}
        here: dict[int, Traffic] = {}
        for partition in self._broker.replicas:
            by_topic.setdefault(partition.id.topic, []).append(partition.traffic)
            here[id(partition.traffic)] = partition.traffic
        for key, traffic in self._shown.items():
            if key not in here:
                _add(self._gone, traffic)
        self._shown = here
        for name, (field, doc) in _COUNTERS.items():
            samples = [
                Sample(sum(getattr(each, field) for each in by_topic[topic]), (("topic", topic),))
                for topic in sorted(by_topic)
            ]
            total = sum(sample.value for sample in samples)
            total += getattr(self._gone, field) + getattr(self._broker.observed.strays, field)
            yield Family(f"kafka_server_brokertopicmetrics_{name}_total", doc, [Sample(total), *samples], COUNTER)


def _add(total: Traffic, more: Traffic) -> None:
    for field, _ in _COUNTERS.values():
        setattr(total, field, getattr(total, field) + getattr(more, field))


def of_guests(broker: Services) -> Iterator[Family]:
    """Who signed in, who could not, and who had too much."""
    for result, is_success in (("successful", True), ("failed", False)):
        yield Family(
            f"kafka_server_socket_server_metrics_{result}_authentication_total",
            f"Sign-ins that were {result}.",
            [
                Sample(count, (("listener", listener), ("mechanism", mechanism)))
                for (listener, mechanism, is_good), count in sorted(broker.observed.sign_ins.items())
                if is_good is is_success
            ],
            COUNTER,
        )
    yield Family(
        "barnabas_throttled_requests_total",
        "Requests whose client had to wait, by its quota.",
        [Sample(kind.throttled_count, (("quota", kind.name),)) for kind in broker.quotas.kinds],
        COUNTER,
    )


def of_requests(broker: Services) -> Iterator[Family]:
    times = sorted(broker.observed.times.of.items())
    prefix = "kafka_network_requestmetrics_"
    yield Family(
        f"{prefix}requests_total",
        "Requests served.",
        [Sample(measured.count, (("request", name),)) for name, measured in times],
        COUNTER,
    )
    for place, part in enumerate(PARTS):
        yield Family(
            f"{prefix}{part.replace('_', '')}timems",
            f"Milliseconds of a request ({part.replace('_', ' ')}), of the last minutes.",
            _summary([(name, measured.parts[place]) for name, measured in times]),
            SUMMARY,
        )


def _summary(histograms: list[tuple[str, Histogram]]) -> Iterator[Sample]:
    for name, histogram in histograms:
        label = ("request", name)
        for quantile, value in zip(QUANTILES, histogram.quantiles_ms(QUANTILES), strict=True):
            yield Sample(round(value, 6), (label, ("quantile", str(quantile))))
        yield Sample(histogram.count, (label,), "_count")
        yield Sample(round(histogram.sum_ns / 1e6, 6), (label,), "_sum")
