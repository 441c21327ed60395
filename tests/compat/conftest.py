"""What the compatibility tests share: a broker to talk to, and topics on it.

The broker is Barnabas in this process, or whatever `BARNABAS_TEST_BOOTSTRAP` names: run against Apache Kafka, the
same tests judge the tests.
"""

from __future__ import annotations

import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

# The adapters beside this file are not installed anywhere.
sys.path[:0] = [str(Path(__file__).parent)]

ADMIN_SECONDS_MAX = 20.0


@pytest.fixture(scope="session")
def broker_address() -> Iterator[str]:
    """The bootstrap address of the broker under test."""
    from bootstrapping import bootstrap

    with bootstrap() as servers:
        yield servers


@pytest.fixture(scope="session")
def create_topic(broker_address: str) -> Callable[..., str]:
    """Makes a topic with a name of its own and returns the name."""
    from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

    admin = AdminClient({"bootstrap.servers": broker_address, "log_level": 2})

    def create(*, partitions: int = 1, **settings: str) -> str:
        name = f"compat-{uuid.uuid4().hex[:12]}"
        config = {setting.replace("_", "."): value for setting, value in settings.items()}
        topic = NewTopic(name, num_partitions=partitions, replication_factor=1, config=config)
        admin.create_topics([topic])[name].result(ADMIN_SECONDS_MAX)
        return name

    return create
