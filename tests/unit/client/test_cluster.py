"""Whom a client asks for its cluster when the brokers that it knows do not answer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from barnabas.client.cluster.cluster import BOOTSTRAP_ID, Cluster
from barnabas.client.cluster.metadata import Broker, ClusterMetadata
from barnabas.client.errors import ClusterUnreachable
from barnabas.client.settings.client import Settings
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.transport.channel import PeerGone
from barnabas.wire.messages.metadata import MetadataResponse

OLD = MetadataResponse(brokers=[MetadataResponse.MetadataResponseBroker(node_id=7, host="new", port=1)])


class Scripted(Cluster):
    """Answers by a function instead of by brokers, and keeps whom it was asked of."""

    def __init__(self, answer: Any, **settings: str) -> None:
        super().__init__(Settings(bootstrap_servers=("a:1", "b:2"), **settings))  # type: ignore[arg-type]
        self.metadata = ClusterMetadata({1: Broker(1, "old", 1), 2: Broker(2, "old", 2)})
        self.asked: list[int] = []
        self._answer = answer

    async def call(self, broker: int, *_: Any, **__: Any) -> Any:
        self.asked.append(broker)
        return self._answer(broker)


def only_configured(broker: int) -> MetadataResponse:
    if broker > BOOTSTRAP_ID:
        raise PeerGone("gone")
    return OLD


def test_configured_addresses_are_asked_when_no_known_broker_answers() -> None:
    cluster = Scripted(only_configured)
    asyncio.run(cluster.refresh())
    assert sorted(cluster.asked[:2]) == [1, 2]
    assert cluster.asked[2:] == [BOOTSTRAP_ID]
    assert cluster.metadata.brokers.keys() == {7}


def test_a_client_that_is_not_to_bootstrap_again_stays_with_what_it_knows() -> None:
    cluster = Scripted(only_configured, metadata_recovery_strategy="none")
    with pytest.raises(ClusterUnreachable):
        asyncio.run(cluster.refresh())
    assert sorted(cluster.asked) == [1, 2]
    cluster.metadata = ClusterMetadata()
    asyncio.run(cluster.refresh())
    assert cluster.asked[2:] == [BOOTSTRAP_ID]


def sends_away(broker: int) -> MetadataResponse:
    return OLD if broker <= BOOTSTRAP_ID else MetadataResponse(error_code=errors.REBOOTSTRAP_REQUIRED.code)


def test_a_broker_that_sends_its_clients_away_is_obeyed() -> None:
    cluster = Scripted(sends_away)
    asyncio.run(cluster.refresh())
    assert cluster.asked[1:] == [BOOTSTRAP_ID]
    assert cluster.metadata.brokers.keys() == {7}
    obstinate = Scripted(sends_away, metadata_recovery_strategy="none")
    with pytest.raises(ApiError) as refused:
        asyncio.run(obstinate.refresh())
    assert refused.value.error is errors.REBOOTSTRAP_REQUIRED
