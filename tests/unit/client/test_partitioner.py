from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.client.arrow_rows import partitions_by_murmur2
from barnabas.client.partitioner import Sticky, murmur2, of_key
from barnabas.model.ids import Uuid
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
