"""How long a follower rests after an error: longer each time, and no longer than replica.fetch.backoff.ms."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.replication.fetcher import Fetcher
from barnabas.replication.settings import ReplicationSettings


@pytest.mark.parametrize("limit_ms", [100, 5000])
def test_a_follower_rests_no_longer_than_replica_fetch_backoff_ms(limit_ms: int) -> None:
    settings = ReplicationSettings.of_values({"replica.fetch.backoff.ms": limit_ms})
    fetcher: Any = SimpleNamespace(_home=SimpleNamespace(settings=settings))
    pauses = [Fetcher._pause_ms(fetcher, failures) for failures in range(16)]
    assert pauses == sorted(pauses)
    assert pauses[0] < limit_ms
    assert pauses[-1] == limit_ms
