"""One small request must not stop every other client: the most expensive request of each API, and the table of costs.

The rule: no turn of the event loop is longer than 5 ms by design, and the most expensive legal request of any API
holds the loop for at most 10 ms of CPU at a time. The table is printed with ``pytest -s``; since a shared machine may
be slow, the test fails only when a turn is far beyond the rule.
"""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import Iterator
from typing import Any

import pytest
from certificates import Authority
from costly_requests import KNOWN_TOPICS, TurnWatch, shapes
from hostile_frames import frame_of
from rights import guarded_settings
from talk import Raw, Talk, batch, creatable, produce_request

import barnabas.testing.broker as testing_broker
from barnabas.broker.requests.dispatch import RECORDLESS_BYTES_MAX
from barnabas.broker.requests.routes import ROUTES
from barnabas.testing import Broker
from barnabas.wire.api import ApiKey
from barnabas.wire.compression import Codec
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.produce import ProduceRequest

ROWS = int(os.environ.get("BARNABAS_TURN_ROWS", "2000"))
TURN_MS_RULE = 10.0
TURN_MS_MAX = 10 * TURN_MS_RULE  # what a slow or busy machine is allowed


@pytest.fixture(scope="module")
def patched() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture(scope="module")
def watch(patched: pytest.MonkeyPatch) -> TurnWatch:
    found = TurnWatch()
    found.install(patched)
    patched.setattr(testing_broker, "new_event_loop", asyncio.new_event_loop)
    return found


@pytest.fixture(scope="module", params=["open", "guarded"])
def broker(request: pytest.FixtureRequest, watch: TurnWatch, authority: Authority) -> Iterator[Broker]:
    settings = {} if request.param == "open" else guarded_settings(authority) | {"super.users": "User:ANONYMOUS"}
    with Broker(settings=settings) as running:
        assert running._thread is not None
        watch.thread = running._thread.ident
        with Talk(running.address_of("PLAINTEXT")) as talk:
            for start in range(0, len(KNOWN_TOPICS), 50):
                topics = [creatable(name, 4) for name in KNOWN_TOPICS[start : start + 50]]
                talk.ask(CreateTopicsRequest(topics=topics, timeout_ms=20_000))
        yield running


def cost_of(broker: Broker, watch: TurnWatch, frame: bytes) -> tuple[float, float, int]:
    """The longest turn and the CPU of all turns in ms, and the bytes of the answer (−1: the connection was closed)."""
    watch.reset()
    with Raw(broker.address_of("PLAINTEXT"), seconds=20) as raw:
        raw.send(frame)
        try:
            size = len(raw.receive_frame())
        except (ConnectionError, TimeoutError) as error:
            size = -1 if isinstance(error, ConnectionError) else -2
    return watch.longest_ms, watch.total_ms, size


def test_small_compressed_batches_that_unpack_to_much_do_not_hold_the_loop(
    broker: Broker, watch: TurnWatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """20 MB of zeros take 20 kB: they are unpacked in a worker, however small the request is."""
    rows = []
    for codec in (Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD):
        big = batch(bytes(20_000_000), codec=codec)
        small = batch(*[bytes(100_000)] * 2, codec=codec)
        partitions = [ProduceRequest.PartitionProduceData(index=index, records=bytes(small)) for index in range(4)]
        several = [ProduceRequest.TopicProduceData(name=name, partition_data=partitions) for name in KNOWN_TOPICS[:50]]
        one = produce_request(KNOWN_TOPICS[0], bytes(big))
        many = ProduceRequest(acks=-1, timeout_ms=5000, topic_data=several)
        for shape, request in (("one batch", one), ("200 batches", many)):
            frame = frame_of(request, 12)
            longest, total, size = cost_of(broker, watch, frame)
            assert size > 0
            rows.append((longest, f"{codec.name:8}{shape:14}{len(frame):10}{total:9.1f}{longest:9.1f}"))
    with capsys.disabled():
        print("", *(text for _, text in rows), sep="\n")
    assert max(longest for longest, _ in rows) < TURN_MS_MAX


# A full fetch of thousands of partitions begins a session; it is not divided, and neither is what follows.
LEFT_OUT = {ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE}


@pytest.mark.slow
def test_no_request_holds_the_loop(broker: Broker, watch: TurnWatch, capsys: pytest.CaptureFixture[str]) -> None:
    gc.collect()
    gc.disable()  # the messages of this test are no heap of a broker
    table: list[tuple[float, float, str, str, int, int]] = []
    last = (ApiKey.CREATE_ACLS, ApiKey.DESCRIBE_ACLS, ApiKey.DELETE_ACLS)  # each change makes the rules anew
    for route in sorted(ROUTES.values(), key=lambda route: route.key in last):
        if route.key in LEFT_OUT:
            continue
        version = route.versions[-1]
        for shape, message in shapes(route.request, version, ROWS // 10 if route.key in last else ROWS):
            frame = frame_of(message, version)
            if len(frame) > RECORDLESS_BYTES_MAX and route.key is not ApiKey.PRODUCE:
                continue
            longest, total, size = cost_of(broker, watch, frame)
            table.append((longest, total, route.key.name, shape, len(frame), size))
    table.sort(key=lambda row: row[2])
    worst: dict[str, Any] = {}
    for row in table:
        if row[2] not in worst or row[0] > worst[row[2]][0]:
            worst[row[2]] = row
    with capsys.disabled():
        print(f"\n{'API':34}{'request':46}{'bytes':>10}{'answer':>10}{'CPU ms':>9}{'turn ms':>9}")
        for longest, total, api, shape, sent, size in worst.values():
            mark = " *" if longest > TURN_MS_RULE else ""
            print(f"{api:34}{shape:46}{sent:10}{size:10}{total:9.1f}{longest:9.1f}{mark}")
    late = {row[2]: (row[3], round(row[0], 1)) for row in worst.values() if row[0] > TURN_MS_MAX}
    assert not late, late
