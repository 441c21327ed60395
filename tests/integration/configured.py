"""A broker with some settings, for the time of a test, and what is asked of one; what tests of settings share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from talk import Talk

from barnabas.testing import Broker
from barnabas.wire.messages.describe_configs import DescribeConfigsRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest

TOPIC = 2


@contextmanager
def running(data_dir: Path | None = None, **settings: str) -> Iterator[tuple[Broker, Talk]]:
    """A broker with these settings, underscores for dots, and a connection to it."""
    named = {name.replace("_", "."): value for name, value in settings.items()}
    with Broker(settings=named, data_dir=data_dir) as broker, Talk(broker.bootstrap_servers) as talk:
        yield broker, talk


def find_coordinator(talk: Talk, key: str, *, kind: int = 0) -> int:
    code: int = talk.ask(FindCoordinatorRequest(key_type=kind, coordinator_keys=[key]), 6).coordinators[0].error_code
    return code


def topic_config(talk: Talk, topic: str, name: str) -> str:
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=TOPIC, resource_name=topic, configuration_keys=[name]
    )
    value: str = talk.ask(DescribeConfigsRequest(resources=[resource])).results[0].configs[0].value
    return value
