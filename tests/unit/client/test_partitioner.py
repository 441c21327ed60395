"""Which partition a record goes to: by its key as Java's client has it, or with its batch."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any
from zlib import crc32

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.client.cluster.metadata import PartitionMetadata, TopicMetadata
from barnabas.client.errors import CannotPartition
from barnabas.client.partitions.partitioner import RoundRobin, Sticky, murmur2, of_key
from barnabas.client.produce.arrow_rows import checked, partitions_by_murmur2
from barnabas.client.produce.partitioning import Partitioning
from barnabas.client.settings.producer import ProducerSettings
from barnabas.model import errors
from barnabas.model.ids import Uuid
from barnabas.model.settings import InvalidSetting
from barnabas.wire import columns, key_hash
from barnabas.wire.columns_headers import cells


class Counting:
    """Entropy that counts instead of guessing."""

    def __init__(self) -> None:
        self.calls = 0

    def below(self, limit: int) -> int:
        self.calls += 1
        return self.calls % limit

    def token(self, size_bytes: int) -> bytes:
        return bytes(size_bytes)

    def uuid(self) -> Uuid:
        return Uuid(bytes(16))


@pytest.mark.parametrize(
    ("key", "signed"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_murmur2_is_that_of_javas_client(key: bytes, signed: int) -> None:
    assert murmur2(key) == signed & 0xFFFFFFFF


def test_a_key_always_goes_to_the_same_partition() -> None:
    assert {of_key("t", b"foobar", 7) for _ in range(3)} == {(murmur2(b"foobar") & 0x7FFFFFFF) % 7}


def test_keyless_records_stay_until_a_batch_is_full_and_then_move() -> None:
    sticky = Sticky(Counting(), batch_bytes=100)
    first = [sticky.choose("t", (0, 1, 2), size_bytes=40) for _ in range(3)]
    assert len(set(first)) == 1
    assert sticky.choose("t", (0, 1, 2), size_bytes=40) != first[0]


def test_a_partition_without_a_leader_is_left() -> None:
    sticky = Sticky(Counting(), batch_bytes=1 << 20)
    chosen = sticky.choose("t", (0, 1, 2), size_bytes=1)
    others = tuple(partition for partition in (0, 1, 2) if partition != chosen)
    assert sticky.choose("t", others, size_bytes=1) in others


def test_topics_stick_by_themselves() -> None:
    sticky = Sticky(Counting(), batch_bytes=10)
    one = sticky.choose("one", (0, 1), size_bytes=5)
    sticky.choose("two", (0, 1), size_bytes=100)
    sticky.choose("two", (0, 1), size_bytes=100)
    assert sticky.choose("one", (0, 1), size_bytes=5) == one


def interpreted() -> ModuleType:
    """The hash from its source, whether or not a compiled one stands beside it."""
    path = Path(columns.__file__).parent / "key_hash.py"
    spec = importlib.util.spec_from_file_location("interpreted_key_hash", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@given(st.lists(st.none() | st.binary(max_size=20), min_size=1, max_size=30), st.integers(0, 5), st.integers(1, 9))
@settings(deadline=None)
def test_a_column_of_keys_goes_where_its_keys_go_one_by_one(keys: list[bytes | None], skip: int, count: int) -> None:
    table = pa.table({"key": pa.array([*([b"before"] * skip), *keys], pa.binary())}).slice(skip)
    found = partitions_by_murmur2(table, count)
    expected = [None if key is None else of_key("t", key, count) for key in keys]
    assert ([None] * len(keys) if found is None else found.to_pylist()) == expected
    twin = interpreted()
    assert [None if key is None else (twin.murmur2(key) & 0x7FFFFFFF) % count for key in keys] == expected
    out = memoryview(bytearray(4 * len(keys))).cast("i")
    cells_of = cells(table.column("key").combine_chunks())
    twin.partitions(cells_of[0], cells_of[1] or b"\x00", *cells_of[2:], count, out)
    assert [None if key is None else out[row] for row, key in enumerate(keys)] == expected


def test_bounds_that_lie_are_refused() -> None:
    for module in (key_hash, interpreted()):
        for bounds in ([0, 5], [-1, 1], [2, 1]):
            lies = memoryview(bytearray(8)).cast("i")
            lies[0], lies[1] = bounds
            with pytest.raises(ValueError, match="outside"):
                module.partitions(lies, b"key", None, 0, 3, memoryview(bytearray(4)).cast("i"))


def test_round_robin_goes_over_the_partitions_that_have_a_leader_topic_by_topic() -> None:
    turns = RoundRobin()
    assert [turns.choose("one", (0, 2, 5)) for _ in range(4)] == [0, 2, 5, 0]
    assert turns.choose("two", (0, 2, 5)) == 0
    assert turns.choose("one", (0, 2)) == 0  # the fifth record of two partitions


def test_a_partition_with_fewer_batches_waiting_is_chosen_more_often() -> None:
    sticky = Sticky(Counting(), batch_bytes=1)
    chosen = [sticky.choose("t", (0, 1, 2), size_bytes=1, loads=(9, 0, 4)) for _ in range(170)]
    assert [chosen.count(partition) for partition in (0, 1, 2)] == [10, 100, 60]


def topic(partitions: int) -> TopicMetadata:
    rows = tuple(PartitionMetadata(index, 1, 0, (1,), (1,), (), errors.NONE) for index in range(partitions))
    return TopicMetadata("t", Uuid(bytes(16)), False, rows, errors.NONE)


def partitioning(given: Any = None, **named: Any) -> Partitioning:
    return Partitioning(ProducerSettings(**named), given)


def test_a_function_of_topic_key_and_count_is_asked_for_keys_alone() -> None:
    asked = partitioning(lambda topic, key, count: len(key) % count)
    assert not asked.is_asked_always
    assert asked.of_key(topic(3), b"four") == 1


def test_a_function_that_wants_the_value_too_is_asked_for_every_record() -> None:
    asked = partitioning(lambda topic, key, value, count: None if value is None else len(value) % count)
    assert asked.is_asked_always
    assert asked.choose(topic(3), None, b"12345") == 2
    assert asked.choose(topic(3), b"k", None) is None


class Bound:
    def choose(self, topic: str, key: bytes | None, value: bytes | None, count: int, extra: int = 7) -> int:
        return extra % count


def test_methods_and_numbers_of_other_kinds_will_do() -> None:
    assert partitioning(Bound().choose).choose(topic(4), None, None) == 3

    class Number:
        def __index__(self) -> int:
            return 2

    assert partitioning(lambda topic, key, count: Number()).of_key(topic(4), b"") == 2


@pytest.mark.parametrize("wrong", [-1, 3, "0", None, 0.0])
def test_a_partition_that_there_is_not_is_refused(wrong: Any) -> None:
    with pytest.raises(CannotPartition, match="partitions 0 to 2"):
        partitioning(lambda topic, key, count: wrong).of_key(topic(3), b"k")


def test_a_function_that_fails_says_how() -> None:
    with pytest.raises(CannotPartition, match="ZeroDivisionError"):
        partitioning(lambda topic, key, value, count: 1 // 0).choose(topic(3), None, None)


@pytest.mark.parametrize(
    ("named", "key", "expected"),
    [
        ({}, b"foobar", of_key("t", b"foobar", 7)),
        ({"partitioner_class": "murmur2_random"}, b"foobar", of_key("t", b"foobar", 7)),
        (
            {"partitioner_class": "org.apache.kafka.clients.producer.internals.DefaultPartitioner"},
            b"foobar",
            of_key("t", b"foobar", 7),
        ),
        ({"partitioner_class": "consistent_random"}, b"foobar", crc32(b"foobar") % 7),
        ({"partitioner_class": "consistent"}, None, crc32(b"") % 7),
        ({"partitioner_class": "murmur2"}, None, of_key("t", b"", 7)),
        ({"partitioner_class": "random"}, b"foobar", None),
        ({"partitioner_class": "org.apache.kafka.clients.producer.UniformStickyPartitioner"}, b"foobar", None),
        ({"partitioner_ignore_keys": True}, b"foobar", None),
        ({"partitioner_class": "consistent_random", "partitioner_ignore_keys": True}, b"foobar", crc32(b"foobar") % 7),
        ({"partitioner_class": "org.apache.kafka.clients.producer.RoundRobinPartitioner"}, b"foobar", 0),
        ({"partitioner_class": "round_robin"}, None, 0),
    ],
)
def test_partitioners_are_known_by_the_names_of_kafka_and_librdkafka(
    named: dict[str, Any], key: bytes | None, expected: int | None
) -> None:
    asked = partitioning(**named)
    if asked.is_asked_always:
        assert asked.choose(topic(7), key, b"v") == expected
    elif key is not None and asked.by_key is not None:
        assert asked.of_key(topic(7), key) == expected
    else:
        assert expected is None


def test_a_class_that_nobody_knows_and_two_partitioners_at_once_are_refused() -> None:
    with pytest.raises(InvalidSetting, match="partitioner="):
        ProducerSettings(partitioner_class="com.example.Mine")
    with pytest.raises(InvalidSetting, match="leave one of them out"):
        partitioning(of_key, partitioner_class="random")


@pytest.mark.parametrize("keys", [["a", None, "b"], None])
def test_rows_are_asked_for_one_by_one(keys: list[str | None] | None) -> None:
    columns = {"value": pa.array([b"", b"1", b"22"], pa.binary())} | ({} if keys is None else {"key": keys})
    table = checked(pa.table(columns))
    found = partitioning(lambda topic, key, value, count: len(value) if value else None).of_rows(topic(3), table)
    assert found is not None
    assert found.to_pylist() == [None if keys is None else of_key("t", b"a", 3), 1, 2]
    turns = partitioning(RoundRobin()).of_rows(topic(2), table)
    assert turns is not None
    assert turns.to_pylist() == [0, 1, 0]
    assert partitioning(partitioner_ignore_keys=True).of_rows(topic(3), table) is None
