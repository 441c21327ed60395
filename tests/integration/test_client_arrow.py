"""Topics as Arrow tables, both ways, and the clients without async."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading

import pyarrow as pa
import pytest

import barnabas
from barnabas import ConsumerSettings, NewTopic, Producer, ProducerSettings, Settings, Start, TopicPartition, blocking
from barnabas.client.consumer import Consumer
from barnabas.model.errors import BarnabasError
from barnabas.testing import Broker


def make(broker: Broker, name: str, partitions: int) -> None:
    with blocking.Admin(Settings(bootstrap_servers=(broker.bootstrap_servers,))) as admin:
        admin.create_topic(NewTopic(name, partition_count=partitions))


def producing(broker: Broker, **more: object) -> ProducerSettings:
    return ProducerSettings.of({"bootstrap.servers": broker.bootstrap_servers, **more})


def consuming(broker: Broker, **more: object) -> ConsumerSettings:
    return ConsumerSettings.of({"bootstrap.servers": broker.bootstrap_servers, **more})


@pytest.mark.parametrize("codec", ["none", "lz4", "zstd"])
def test_a_table_comes_back_as_it_was_sent(shared_broker: Broker, name: str, codec: str) -> None:
    make(shared_broker, name, 3)
    count = 20_000
    table = pa.table(
        {
            "key": pa.array(
                [None if index % 10 == 0 else b"k%d" % (index % 100) for index in range(count)], pa.binary()
            ),
            "value": pa.array([b"value %d" % index for index in range(count)], pa.binary()),
            "timestamp": pa.array([1_700_000_000_000 + index for index in range(count)], pa.timestamp("ms", tz="UTC")),
        }
    )
    with blocking.Producer(producing(shared_broker, compression_type=codec)) as producer:
        assert producer.send_arrow(table, name) == count
    read = barnabas.read(name, bootstrap_servers=shared_broker.bootstrap_servers)
    assert len(read) == count
    columns = ["key", "value", "timestamp"]
    again = read.select(columns).cast(table.schema).sort_by("timestamp")
    assert again.equals(table.sort_by("timestamp"))
    # Keys go where the producer of single records puts them.
    with blocking.Producer(producing(shared_broker)) as producer:
        for key in (b"k1", b"k57"):
            metadata = producer.send(name, b"x", key=key)
            assert set(read.filter(pa.compute.equal(read["key"], key))["partition"].to_pylist()) == {metadata.partition}


def test_partitions_topics_and_headers_are_columns_too(shared_broker: Broker, name: str) -> None:
    make(shared_broker, name, 2)
    make(shared_broker, f"{name}-b", 2)
    with blocking.Producer(producing(shared_broker)) as producer:
        for index in range(10):
            producer.send(name, b"%d" % index, partition=index % 2, headers=[("n", b"%d" % index)])
        first = barnabas.read(name, bootstrap_servers=shared_broker.bootstrap_servers, with_headers=True)
        copied = first.set_column(first.schema.get_field_index("topic"), "topic", pa.array([f"{name}-b"] * 10))
        assert producer.send_arrow(copied) == 10
        with pytest.raises(ValueError, match="column 'colour' is none of"):
            producer.send_arrow(pa.table({"value": [b"x"], "colour": [1]}), name)
    second = barnabas.read(f"{name}-b", bootstrap_servers=shared_broker.bootstrap_servers, with_headers=True)
    same = ["key", "value", "partition", "offset", "timestamp", "headers"]
    order = [("partition", "ascending"), ("offset", "ascending")]
    assert second.select(same).sort_by(order).equals(first.select(same).sort_by(order))
    part = barnabas.read(name, bootstrap_servers=shared_broker.bootstrap_servers, start=Start.before_last(2))
    assert sorted(part["value"].to_pylist()) == [b"6", b"7", b"8", b"9"]


def test_columns_hide_what_was_aborted(shared_broker: Broker, name: str) -> None:
    make(shared_broker, name, 1)
    servers = shared_broker.bootstrap_servers

    async def work() -> None:
        async with Producer(producing(shared_broker, transactional_id=name)) as producer:
            for turn in range(6):
                await producer.begin_transaction()
                await producer.send_arrow(pa.table({"value": [b"%d" % turn] * 3}), name)
                await (producer.abort_transaction() if turn % 2 else producer.commit_transaction())

    asyncio.run(work())
    seen = barnabas.read(name, bootstrap_servers=servers, isolation_level="read_committed")
    assert seen["value"].to_pylist() == [b"0"] * 3 + [b"2"] * 3 + [b"4"] * 3
    assert len(barnabas.read(name, bootstrap_servers=servers)) == 18


def test_records_and_columns_may_alternate(shared_broker: Broker, name: str) -> None:
    make(shared_broker, name, 1)
    place = TopicPartition(name, 0)

    async def work() -> None:
        async with Producer(producing(shared_broker)) as producer:
            await producer.send_arrow(pa.table({"value": [b"%03d" % index for index in range(500)]}), name)
        async with Consumer(consuming(shared_broker)) as consumer:
            await consumer.assign([place], until_end=True)
            records = await consumer.poll(7)
            table = await consumer.poll_arrow()
            values = [record.value for record in records] + table["value"].to_pylist()
            assert values == [b"%03d" % index for index in range(500)]
            assert consumer.is_at_end
            assert consumer.position(place) == 500
            assert len(await consumer.poll_arrow()) == 0

    asyncio.run(work())


def test_rows_with_and_without_keys_stay_in_order_in_one_partition(shared_broker: Broker, name: str) -> None:
    make(shared_broker, name, 1)
    rows = pa.table({"key": [b"a", None, b"b", None], "value": [b"1", b"2", b"3", b"4"]})

    async def work() -> None:
        async with Producer(producing(shared_broker)) as producer:
            await producer.send_arrow(rows, name)

    asyncio.run(work())
    read = barnabas.read(name, bootstrap_servers=shared_broker.bootstrap_servers)
    assert read["value"].to_pylist() == [b"1", b"2", b"3", b"4"]


def test_the_blocking_consumer_counts_only_what_was_reached(shared_broker: Broker, name: str) -> None:
    make(shared_broker, name, 1)
    place = TopicPartition(name, 0)
    group = consuming(shared_broker, group_id=name, auto_offset_reset="earliest")
    with blocking.Producer(producing(shared_broker)) as producer:
        sent = producer.send_many(name, [(None, b"%d" % index) for index in range(100)])
        assert [metadata.offset for metadata in sent] == list(range(100))
    with blocking.Consumer(group) as consumer:
        consumer.subscribe(name)
        for record in consumer:
            if record.offset == 9:
                break
        assert consumer.position(place) == 10
    with blocking.Consumer(group) as consumer:
        consumer.subscribe(name)
        assert consumer.poll(5, timeout_ms=10_000)[0].offset == 10
        consumer.commit({place: 50})
        assert consumer.committed()[place] == (50, "", 0)


def test_blocking_transactions_commit_and_abort(shared_broker: Broker, name: str) -> None:
    make(shared_broker, name, 1)
    with blocking.Producer(producing(shared_broker, transactional_id=name)) as producer:
        with producer.transaction():
            producer.send(name, b"kept")

        def fail() -> None:
            with producer.transaction():
                producer.send(name, b"dropped")
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fail()
    seen = barnabas.read(name, bootstrap_servers=shared_broker.bootstrap_servers, isolation_level="read_committed")
    assert seen["value"].to_pylist() == [b"kept"]


WAITING = """
import sys
from barnabas import ConsumerSettings, TopicPartition, blocking
with blocking.Consumer(ConsumerSettings(bootstrap_servers=(sys.argv[1],))) as consumer:
    consumer.assign([TopicPartition(sys.argv[2], 0)])
    try:
        print("waiting", flush=True)
        consumer.poll()
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


def test_ctrl_c_ends_a_wait(shared_broker: Broker, name: str) -> None:
    make(shared_broker, name, 1)
    command = [sys.executable, "-c", WAITING, shared_broker.bootstrap_servers, name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
        os.kill(process.pid, signal.SIGINT)
        watchdog = threading.Timer(20, process.kill)
        watchdog.start()
        assert process.stdout.readline() == "interrupted\n"
        assert process.wait() == 0
        watchdog.cancel()


def test_importing_the_package_imports_nothing_heavy() -> None:
    code = (
        "import sys; before = set(sys.modules); import barnabas; "
        "assert not {'pyarrow', 'pyspark', 'asyncio', 'uvloop'} & (set(sys.modules) - before); "
        "from barnabas import Producer, Consumer, Admin, read; "
        "assert not {'pyarrow', 'pyspark', 'numpy', 'pandas'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert set(barnabas.__all__) <= set(dir(barnabas))


def test_text_is_sent_as_bytes_and_other_types_are_refused_at_once(shared_broker: Broker, name: str) -> None:
    make(shared_broker, name, 1)
    headers = pa.array(
        [[{"key": "n", "value": b"1"}]], pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    )
    table = pa.table({"key": ["ü"], "value": pa.array(["text"], pa.large_string()), "headers": headers})
    with blocking.Producer(producing(shared_broker)) as producer:
        assert producer.send_arrow(table, name) == 1
        with pytest.raises(ValueError, match="the column value is of type int64"):
            producer.send_arrow(pa.table({"value": [1]}), name)
        wrong = pa.table({"value": ["x"], "headers": pa.array([7])})
        with pytest.raises(BarnabasError, match="the records cannot be encoded"):
            producer.send_arrow(wrong, name)
    read = barnabas.read(name, bootstrap_servers=shared_broker.bootstrap_servers, with_headers=True)
    assert read["key"].to_pylist() == ["ü".encode()]
    assert read["value"].to_pylist() == [b"text"]
    assert read["headers"].to_pylist() == headers.to_pylist()
