"""Makes the topics that the workloads use, through librdkafka's admin client.

Called by every client that stores records. A topic is new for every run, so no run reads what another one wrote.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from bench.clients.outcome import ClientFailed
from bench.peers import Peer

_ADMIN_SECONDS_MAX = 20.0
_numbers = itertools.count(1)


def new_topic(peer: Peer, *, partitions: int, settings: Mapping[str, str] | None = None) -> str:
    """Creates a topic with one replica and returns its name."""
    name = f"bench-{next(_numbers)}"
    admin = AdminClient({"bootstrap.servers": peer.bootstrap, "log_level": 0})
    topic = NewTopic(name, num_partitions=partitions, replication_factor=1, config=dict(settings or {}))
    try:
        admin.create_topics([topic], request_timeout=_ADMIN_SECONDS_MAX)[name].result(_ADMIN_SECONDS_MAX)
    except KafkaException as error:
        raise ClientFailed(f"{peer.name} does not create a topic: {error}") from error
    return name
