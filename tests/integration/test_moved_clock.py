"""A test that moves a broker's clock moves the deadlines of requests that wait there, too."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from talk import Talk

from barnabas.testing import Broker
from barnabas.wire.messages.fetch import FetchRequest

HOUR_MS = 3_600_000


def test_a_waiting_fetch_is_answered_when_the_clock_is_moved() -> None:
    with Broker() as broker, Talk(broker.bootstrap_servers) as talk, ThreadPoolExecutor(1) as pool:
        topic_id = talk.create("t")
        partition = FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
        topic = FetchRequest.FetchTopic(topic="t", topic_id=topic_id, partitions=[partition])
        request = FetchRequest(max_wait_ms=10_000, min_bytes=1, max_bytes=1000, topics=[topic])
        waiting = pool.submit(talk.ask, request, 12)
        with pytest.raises(TimeoutError):
            waiting.result(0.2)
        broker.clock.advance("11s")
        assert waiting.result(5).error_code == 0
