"""Batches that are built record by record, compiled and interpreted: both are held to the same words."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.wire import record_builder, records
from barnabas.wire.batch import HEADER_BYTES

WIRE = Path(record_builder.__file__).parent
NOW = 1_700_000_000_000
RECORD_BYTES = 8  # of a value of one byte, nothing else, among the first of a batch


def interpreted() -> ModuleType:
    """The same source, run by the interpreter whatever else is there."""
    loaded: dict[str, ModuleType] = {}
    for name in ("record_encoder", "record_builder"):
        spec = importlib.util.spec_from_file_location(f"interpreted_{name}", WIRE / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        loaded[name] = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = loaded[name]
        spec.loader.exec_module(loaded[name])
    loaded["record_builder"].record_encoder = loaded["record_encoder"]  # type: ignore[attr-defined]
    return loaded["record_builder"]


INTERPRETED = interpreted()


@pytest.fixture(params=["compiled", "interpreted"])
def module(request: pytest.FixtureRequest) -> Any:
    if request.param == "interpreted":
        assert not INTERPRETED.COMPILED
        return INTERPRETED
    if not record_builder.COMPILED:
        pytest.skip("the codec is not compiled here")
    return record_builder


@pytest.fixture
def builders(module: Any) -> Any:
    return module.RecordBuilder


def sealed(builder: Any, **facts: Any) -> bytes:
    plain, count, base_timestamp, max_timestamp = builder.take()
    return bytes(records.finish_batch(plain, count, base_timestamp, max_timestamp, **facts))


def test_what_is_built_is_what_the_encoder_makes_of_the_same_records(builders: Any) -> None:
    rows: list[Any] = [
        (NOW, None, b"plain", ()),
        (NOW, b"key", None, (("name", b"value"), ("é", None), ("empty", b""))),
        (NOW - 70_000, b"", b"v" * 300, ()),
        (NOW + 1, bytearray(b"key"), memoryview(b"value"), [("n", memoryview(b"x"))]),
    ]
    builder = builders(HEADER_BYTES, 1 << 20)
    assert [builder.append(*row) for row in rows] == [0, 1, 2, 3]
    assert len(builder) == 4
    assert sealed(builder) == bytes(records.encode_batch(rows))
    assert builder.timestamps(0, 4) == [NOW, NOW, NOW - 70_000, NOW + 1]


def test_a_batch_takes_what_has_room_and_the_first_record_whatever_its_size(builders: Any) -> None:
    builder = builders(HEADER_BYTES, HEADER_BYTES + 3 * RECORD_BYTES)
    assert [builder.append(NOW, None, b"x", ()) for _ in range(4)] == [0, 1, 2, -1]
    assert builder.size_bytes == HEADER_BYTES + 3 * RECORD_BYTES
    large = builders(HEADER_BYTES, 100)
    assert [large.append(NOW, None, b"x" * 500, ()), large.append(NOW, None, b"", ())] == [0, -1]
    assert records.decode_batch(sealed(large))[0].value == b"x" * 500


def test_a_closed_batch_takes_nothing(builders: Any) -> None:
    builder = builders(HEADER_BYTES, 1000)
    builder.append(NOW, None, b"x", ())
    builder.close()
    assert builder.append(NOW, None, b"y", ()) == -1
    assert builder.extend([(None, b"y")], 0, NOW) == (1, 0)
    assert builder.promise(Pair, "owner", NOW, None, b"y", ()) is None
    assert [record.value for record in records.decode_batch(sealed(builder))] == [b"x"]
    assert not builder.is_open


class Pair(NamedTuple):
    owner: str
    number: int


def test_a_promise_names_its_owner_and_its_place(builders: Any) -> None:
    builder = builders(HEADER_BYTES, 1000)
    found = [builder.promise(Pair, "owner", NOW, None, b"x", ()) for _ in range(2)]
    assert found == [Pair("owner", 0), Pair("owner", 1)]
    assert all(type(pair) is Pair for pair in found)


class Way:
    """The open batch of one topic, and what is known of the cluster."""

    def __init__(self, module: Any, size_bytes_max: int = 1000) -> None:
        self.now_ns = NOW * 1_000_000 + 999_999
        self.fresh = {"orders": "its leader"}
        self.builder = module.RecordBuilder(HEADER_BYTES, size_bytes_max)
        self.batches = module.OpenBatches(Pair, lambda: self.now_ns)
        self.batches.open("orders", self.builder, "owner", self.fresh)

    def send(self, value: Any = b"x", topic: Any = "orders", **others: Any) -> Any:
        facts = {"key": None, "headers": (), "partition": None, "timestamp_ms": None} | others
        return self.batches.promise(topic, value, *facts.values())


def test_a_plain_record_finds_the_open_batch_of_its_topic(module: Any) -> None:
    way = Way(module)
    assert way.send() == Pair("owner", 0)
    way.now_ns += 1  # the next millisecond
    found = way.send(b"y")
    assert (type(found), found) == (Pair, Pair("owner", 1))
    kept = records.decode_batch(sealed(way.builder))
    assert [(record.timestamp, record.value) for record in kept] == [(NOW, b"x"), (NOW + 1, b"y")]


@pytest.mark.parametrize(
    "others",
    [
        {"topic": "payments"},
        {"topic": b"orders"},
        {"topic": ["orders"]},
        {"value": None},
        {"value": "text"},
        {"value": bytearray(b"x")},
        {"key": b""},
        {"headers": [("name", b"")]},
        {"partition": 0},
        {"timestamp_ms": 0},
    ],
    ids=str,
)
def test_whatever_somebody_must_decide_is_left_to_others(module: Any, others: dict[str, Any]) -> None:
    way = Way(module)
    assert way.send(**others) is None
    assert len(way.builder) == 0


def test_nobody_is_let_through_while_the_way_is_held_and_none_if_the_cluster_has_changed(module: Any) -> None:
    way = Way(module)
    way.batches.hold()
    assert way.send() is None
    way.batches.let_go()
    assert way.send() == Pair("owner", 0)
    way.fresh.clear()
    assert way.send() is None
    assert len(way.builder) == 1


def test_a_full_or_closed_batch_takes_no_more_until_another_is_opened(module: Any) -> None:
    way = Way(module, HEADER_BYTES + 2 * RECORD_BYTES)
    assert [way.send() is None for _ in range(3)] == [False, False, True]
    after = module.RecordBuilder(HEADER_BYTES, 1000)
    way.batches.open("orders", after, "next", way.fresh)
    assert way.send() == Pair("next", 0)
    after.close()
    assert way.send() is None


def test_pairs_are_taken_as_far_as_they_are_plain_and_have_room(builders: Any) -> None:
    pairs: list[Any] = [(None, b"a"), (None, None), (b"key", b"b"), (None, b"c"), [None, b"d"], (None, bytearray(b"e"))]
    builder = builders(HEADER_BYTES, 1000)
    assert builder.extend(pairs, 0, NOW) == (0, 2)
    assert builder.extend(pairs, 2, NOW) == (2, 0)
    assert builder.extend(pairs, 3, NOW) == (2, 1)
    assert builder.extend(pairs, 5, NOW) == (3, 0)
    assert builder.extend(pairs, 6, NOW) == (3, 0)
    small = builders(HEADER_BYTES, HEADER_BYTES + 2 * RECORD_BYTES)
    assert small.extend([(None, b"x")] * 5, 1, NOW) == (0, 2)


@pytest.mark.parametrize(
    ("key", "value", "headers"),
    [
        ("text", b"", ()),
        (None, "text", ()),
        (None, 7, ()),
        (None, b"", [("name", "text")]),
        (None, b"", [(b"name", b"")]),
        (None, b"", [("name",)]),
        (None, b"", 7),
    ],
)
def test_what_has_no_bytes_is_refused_and_leaves_no_trace(builders: Any, key: Any, value: Any, headers: Any) -> None:
    builder = builders(HEADER_BYTES, 1000)
    builder.append(NOW, None, b"before", ())
    with pytest.raises((TypeError, ValueError)):
        builder.append(NOW + 1, key, value, headers)
    builder.append(NOW + 2, None, b"behind", ())
    assert [record.value for record in records.decode_batch(sealed(builder))] == [b"before", b"behind"]
    assert builder.timestamps(0, 2) == [NOW, NOW + 2]


def test_a_timestamp_beyond_all_reason_is_refused(builders: Any) -> None:
    builder = builders(HEADER_BYTES, 1000)
    for timestamp in (1 << 62, -(1 << 62) - 1):
        with pytest.raises(ValueError, match="timestamp"):
            builder.append(timestamp, None, b"", ())
    assert builder.append((1 << 62) - 1, None, b"", ()) == 0
    assert builder.append(-(1 << 62), None, b"", ()) == 1
    assert [record.timestamp for record in records.decode_batch(sealed(builder))] == [(1 << 62) - 1, -(1 << 62)]


def test_the_bytes_can_be_let_go_of_and_the_timestamps_stay(builders: Any) -> None:
    builder = builders(HEADER_BYTES, 1000)
    for number in range(4):
        builder.append(NOW + number // 2, None, b"x", ())
    builder.take()
    builder.release()
    assert len(builder) == 4
    assert builder.timestamps(1, 2) == [NOW, NOW + 1]
    assert builder.timestamps(3, 1) == [NOW + 1]
    assert builder.timestamps(0, 0) == []


def test_a_batch_is_sealed_again_under_another_number_and_codec(builders: Any) -> None:
    builder = builders(HEADER_BYTES, 1000)
    builder.append(NOW, b"key", b"value" * 50, ())
    packed = sealed(builder, codec=1, producer_id=7, base_sequence=3)
    plain = sealed(builder, producer_id=8, base_sequence=0)
    assert len(packed) < len(plain)
    for batch, producer_id in ((packed, 7), (plain, 8)):
        assert records.decode_batch(batch)[0].value == b"value" * 50
        assert records.batch.read_header(batch, 0).producer_id == producer_id


def test_unfilled_bytes_are_as_many_as_were_asked_for() -> None:
    for module in (record_builder, INTERPRETED):
        for size in (0, 1, 300_000):
            buffer = module.unfilled(size)
            assert type(buffer) is bytearray
            assert len(buffer) == size
            buffer[:] = b"x" * size
            assert buffer == b"x" * size


OPTIONAL_BYTES = st.none() | st.binary(max_size=300)
ROWS = st.lists(
    st.tuples(
        st.integers(-(1 << 62), (1 << 62) - 1),
        OPTIONAL_BYTES,
        OPTIONAL_BYTES,
        st.lists(st.tuples(st.text(st.characters(exclude_categories=["Cs"]), max_size=10), OPTIONAL_BYTES), max_size=3),
    ),
    min_size=1,
    max_size=20,
)


@settings(deadline=None)
@given(ROWS, st.integers(0, 2000))
def test_both_forms_build_the_same_batches(rows: list[Any], size_bytes_max: int) -> None:
    both = [kind(HEADER_BYTES, size_bytes_max) for kind in (record_builder.RecordBuilder, INTERPRETED.RecordBuilder)]
    places = [[builder.append(*row) for row in rows] for builder in both]
    assert places[0] == places[1]
    taken = [row for row, place in zip(rows, places[0], strict=True) if place >= 0]
    assert [sealed(builder) for builder in both] == [bytes(records.encode_batch(taken))] * 2
    assert both[0].timestamps(0, len(taken)) == both[1].timestamps(0, len(taken)) == [row[0] for row in taken]
