from __future__ import annotations

import pytest

from barnabas.client.partitioner import Sticky, murmur2, of_key
from barnabas.model.ids import Uuid


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
