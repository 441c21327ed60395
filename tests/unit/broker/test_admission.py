"""How long a leader asks the coordinator again while the last transaction of a producer is being ended."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.broker.coordinators import admission, transaction_calls
from barnabas.broker.settings.broker import BrokerSettings
from barnabas.model import errors
from barnabas.model.ids import TopicPartition

PLACE = TopicPartition("t", 0)


@pytest.mark.parametrize(("pause_ms", "patience_ms", "attempts"), [(20, 100, 6), (50, 100, 3), (20, 0, 1)])
def test_a_leader_asks_again_as_often_and_as_long_as_the_settings_say(
    pause_ms: int, patience_ms: int, attempts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = BrokerSettings.of(
        {
            "add.partitions.to.txn.retry.backoff.ms": str(pause_ms),
            "add.partitions.to.txn.retry.backoff.max.ms": str(patience_ms),
        }
    )
    now_ms = 0
    asked = 0

    async def add_partitions(*_: Any) -> dict[TopicPartition, errors.WireError]:
        nonlocal asked
        asked += 1
        return {PLACE: errors.CONCURRENT_TRANSACTIONS}

    async def until_ended(_: str, *, timeout_ms: int) -> None:
        nonlocal now_ms
        now_ms += timeout_ms

    monkeypatch.setattr(transaction_calls, "add_partitions", add_partitions)
    broker: Any = SimpleNamespace(
        settings=settings,
        world=SimpleNamespace(clock=SimpleNamespace(monotonic_ms=lambda: now_ms)),
        transactions=SimpleNamespace(until_ended=until_ended),
    )
    said = asyncio.run(admission._add(broker, "id", admission.ProducerIdEpoch(1, 0), frozenset({PLACE})))
    assert said == {PLACE: errors.CONCURRENT_TRANSACTIONS}
    assert asked == attempts
