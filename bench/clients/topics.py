"""Makes the topics that the workloads use, and removes them again, through librdkafka's admin client.

Called by every client that stores records. A topic is new for every run, so no run reads what another one wrote, and
its files go right after the run, so none pays for writing back what another one left.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from bench.clients.outcome import ClientFailed
from bench.peers import Peer
from bench.workloads import Workload

_ADMIN_SECONDS_MAX = 20.0
_RETRY_SECONDS = 0.05
_numbers = itertools.count(1)


@contextmanager
def topic_of(peer: Peer, workload: Workload) -> Iterator[str]:
    """A topic with as many partitions and replicas as the workload wants."""
    name = f"bench-{next(_numbers)}"
    admin = AdminClient({"bootstrap.servers": peer.bootstrap, "log_level": 0})
    _wait_for_brokers(admin, peer)
    settings = {"file.delete.delay.ms": "1000", **workload.topic_settings}
    topic = NewTopic(
        name, num_partitions=workload.partitions, replication_factor=workload.replication_factor, config=settings
    )
    try:
        admin.create_topics([topic], request_timeout=_ADMIN_SECONDS_MAX)[name].result(_ADMIN_SECONDS_MAX)
    except KafkaException as error:
        raise ClientFailed(f"{peer.name} does not create a topic: {error}") from error
    yield name
    try:
        admin.delete_topics([name], request_timeout=_ADMIN_SECONDS_MAX)[name].result(_ADMIN_SECONDS_MAX)
    except KafkaException as error:
        raise ClientFailed(f"{peer.name} does not delete a topic: {error}") from error


def _wait_for_brokers(admin: AdminClient, peer: Peer) -> None:
    """A topic that is made before all brokers are there lies on those that are."""
    deadline = time.monotonic() + _ADMIN_SECONDS_MAX
    while peer.brokers > 1 and len(admin.list_topics(timeout=_ADMIN_SECONDS_MAX).brokers) < peer.brokers:
        if time.monotonic() > deadline:
            raise ClientFailed(f"{peer.name} does not have {peer.brokers} brokers")
        time.sleep(_RETRY_SECONDS)
