"""What a record of the blocking producer waits for, and what is left when Ctrl-C comes in between."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest

from barnabas import ConsumerSettings, NewTopic, ProducerSettings, Settings, TopicPartition, blocking
from barnabas.client.blocking.outbox import Outbox
from barnabas.client.errors import ProducerClosed
from barnabas.testing import Broker
from barnabas.wire.record_builder import COMPILED

LINGER_MS = 60_000
RESULT_MS = 20_000


@pytest.fixture
def topic(shared_broker: Broker, name: str) -> str:
    with blocking.Admin(Settings(bootstrap_servers=(shared_broker.bootstrap_servers,))) as admin:
        admin.create_topic(NewTopic(name, partition_count=1))
    return name


def settings(broker: Broker, **more: Any) -> ProducerSettings:
    return ProducerSettings(bootstrap_servers=(broker.bootstrap_servers,), **more)


def values(broker: Broker, name: str) -> list[bytes | None]:
    with blocking.Consumer(ConsumerSettings(bootstrap_servers=(broker.bootstrap_servers,))) as consumer:
        consumer.assign([TopicPartition(name, 0)], until_end=True)
        return [record.value for record in consumer]


@contextmanager
def crossings(producer: blocking.Producer[Any, Any], monkeypatch: pytest.MonkeyPatch) -> Iterator[list[None]]:
    """One for each time that the caller's thread waits for the loop's."""
    thread, seen = producer._thread, list[None]()
    run = thread.run

    def counted(work: Any) -> Any:
        seen.append(None)
        return run(work)

    with monkeypatch.context() as patch:
        patch.setattr(thread, "run", counted)
        yield seen


NOT_BARE: dict[str, dict[str, Any]] = {
    "headers": {"headers": {"a": b"b"}},
    "a timestamp": {"timestamp_ms": 1_000},
    "no value": {"value": None},
}


@pytest.mark.parametrize("kind", NOT_BARE)
def test_what_could_not_go_straight_does_not_wait_for_a_batch(
    shared_broker: Broker, topic: str, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    with blocking.Producer(settings(shared_broker, linger_ms=LINGER_MS, batch_size=1 << 20)) as producer:
        for number in range(200):
            producer.send_soon(topic, b"%d" % number)
        producer._carry()
        with crossings(producer, monkeypatch) as seen:
            for _ in range(60):
                producer.send_soon(topic, **({"value": b"x"} | NOT_BARE[kind]))
                while producer._outbox.is_busy:  # so that the next one finds nobody at work, as after a pause
                    pass
        assert not seen
        producer.flush()
    assert len(values(shared_broker, topic)) == 260


@pytest.mark.skipif(not COMPILED, reason="only what is compiled goes straight")
def test_a_bare_record_waits_once_for_each_batch(
    shared_broker: Broker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with blocking.Producer(settings(shared_broker, linger_ms=LINGER_MS, batch_size=16_384)) as producer:
        producer.send_soon(topic, b"first")
        producer._carry()
        with crossings(producer, monkeypatch) as seen:
            for _ in range(5_000):
                producer.send_soon(topic, b"x" * 100)
        batches = 5_000 * 108 // 16_384
        assert 0 < len(seen) <= 2 * batches
        producer.flush()


def test_records_with_and_without_headers_keep_their_order(shared_broker: Broker, topic: str) -> None:
    """Also while somebody says, again and again, that what is known of the cluster is out of date."""
    with blocking.Producer(settings(shared_broker, batch_size=2_048, linger_ms=1)) as producer:
        producer.send(topic, b"-1")
        cluster = producer._inner.cluster
        for number in range(20_000):
            headers = {"n": b"1"} if number % 7 in (2, 3) or number % 500 < 3 else ()
            producer.send_soon(topic, b"%d" % number, headers=headers)
            if number % 1_000 == 999:
                producer._thread.call_soon(cluster.invalidate)
        producer.flush()
    assert values(shared_broker, topic) == [b"%d" % number for number in range(-1, 20_000)]


def test_a_closed_producer_takes_nothing_into_a_batch_that_was_open(shared_broker: Broker, topic: str) -> None:
    producer: blocking.Producer[bytes, bytes] = blocking.Producer(settings(shared_broker, linger_ms=LINGER_MS))
    producer.send_soon(topic, b"lost")
    producer._carry()
    late = producer.send_soon(topic, b"late")
    producer._thread.run(producer._inner.close(flush=False))
    with pytest.raises(ProducerClosed):
        late.result()
    with pytest.raises(ProducerClosed):
        producer.send_many(topic, [(None, b"x")])
    after = producer.send_soon(topic, b"x")
    with pytest.raises(ProducerClosed):
        after.result()
    producer.close(flush=False)
    assert values(shared_broker, topic) == []


def lines_of(function: Callable[..., Any]) -> list[int]:
    """Where a signal can be noticed: not on the lines that take and release a lock, which are one step."""
    code = function.__code__
    first = code.co_firstlineno
    source = _source(code.co_filename)
    lines = sorted({line for *_, line in code.co_lines() if line is not None and line > first})
    return [line for line in lines if not source[line - 1].lstrip().startswith("with ")]


def _source(path: str) -> list[str]:
    with open(path, encoding="utf-8") as file:
        return file.readlines()


@contextmanager
def interrupted_at(function: Callable[..., Any], line: int) -> Iterator[list[int]]:
    """Ctrl-C as that line of the function is reached, once."""
    hits: list[int] = []

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code is not function.__code__:
            return None if event == "call" and frame.f_code.co_filename != function.__code__.co_filename else trace
        if event == "line" and frame.f_lineno == line and not hits:
            hits.append(line)
            raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield hits
    finally:
        sys.settrace(before)


CASES = [
    pytest.param(function, line, id=f"{function.__name__}+{line - function.__code__.co_firstlineno}")
    for function in (Outbox.put, Outbox._put_in)
    for line in lines_of(function)
]


@pytest.mark.parametrize(("function", "line"), CASES)
def test_an_interrupted_put_leaves_nothing_that_nobody_carries(
    shared_broker: Broker, topic: str, function: Callable[..., Any], line: int
) -> None:
    with blocking.Producer(settings(shared_broker, linger_ms=0)) as producer:
        producer.send(topic, b"first")
        with interrupted_at(function, line) as hits:
            try:
                producer.send_soon(topic, b"second", headers={"a": b"b"})
            except KeyboardInterrupt:
                assert hits
        assert producer.send_soon(topic, b"third").result(RESULT_MS).offset >= 1
        producer.flush()
        assert not producer._outbox.is_busy
        assert producer.send_soon(topic, b"fourth").result(RESULT_MS).offset >= 2
    found = values(shared_broker, topic)
    assert [value for value in found if value != b"second"] == [b"first", b"third", b"fourth"]
    assert found.index(b"third") > found.index(b"second") if b"second" in found else hits
