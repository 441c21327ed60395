"""How many Python functions are called to send a record: what each of them costs is paid for every record."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import pytest

from barnabas import Producer, ProducerSettings, blocking
from barnabas.testing import Broker
from barnabas.wire.record_builder import COMPILED

pytestmark = pytest.mark.skipif(not COMPILED, reason="the interpreted codec makes calls of its own")

RECORDS = 1_000
CALLS_MAX = 1  # of a record: the producer's
OVERHEAD_MAX = 10  # of the test itself
BATCH_BYTES = 1 << 20  # takes all of them, so that no new batch is looked for
LINGER_MS = 60_000


def settings(broker: Broker) -> ProducerSettings:
    return ProducerSettings(
        bootstrap_servers=(broker.bootstrap_servers,), batch_size=BATCH_BYTES, linger_ms=LINGER_MS, acks=1
    )


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """Calls in this thread, without those of finalizers that happen to run in it."""
    calls: Counter[str] = Counter()

    def count(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            calls[frame.f_code.co_qualname] += 1

    gc.disable()
    sys.setprofile(count)
    try:
        yield calls
    finally:
        sys.setprofile(None)
        gc.enable()


def test_a_record_of_the_blocking_producer_takes_few_calls(shared_broker: Broker, name: str) -> None:
    with blocking.Producer(settings(shared_broker)) as producer:
        producer.send_soon(name, b"0")
        producer.flush()  # the topic is made and known
        first = producer.send_soon(name, b"0")
        producer._thread.run(producer._outbox.carried())  # a batch is open
        with counted() as calls:
            promises = [producer.send_soon(name, b"%d" % number) for number in range(RECORDS)]
        assert calls.total() <= CALLS_MAX * RECORDS + OVERHEAD_MAX, calls.most_common(10)
        producer.flush()
        places = {first.result()[:2], *(promise.result()[:2] for promise in promises[::100])}
        assert len(places) == 1
        assert [promise.result().offset - first.result().offset for promise in promises[:3]] == [1, 2, 3]


def test_a_record_of_the_producer_takes_few_calls(shared_broker: Broker, name: str) -> None:
    async def work() -> None:
        async with Producer(settings(shared_broker)) as producer:
            await producer.send_soon(name, b"0")
            await producer.flush()
            await producer.send_soon(name, b"0")
            with counted() as calls:
                for number in range(RECORDS):
                    await producer.send_soon(name, b"%d" % number)
            assert calls.total() <= CALLS_MAX * RECORDS + OVERHEAD_MAX, calls.most_common(10)

    asyncio.run(work())
