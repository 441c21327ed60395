"""The level at which the broker compresses is the topic's: a higher one makes smaller batches, of the same records."""

from __future__ import annotations

import random

import pytest

from barnabas.storage.settings import TopicSettings
from barnabas.storage.validate import Origin, Rules, validate
from barnabas.wire.records import decode_batch, encode_batch

NOW_MS = 1_700_000_000_000
_CHANCE = random.Random(7)
WORDS = [bytes(_CHANCE.choices(b"abcdefgh", k=12)) for _ in range(200)]


def stored(codec: str, **level: int) -> bytes:
    chance = random.Random(1)
    values = [b" ".join(chance.choices(WORDS, k=40)) for _ in range(60)]
    records = encode_batch([(NOW_MS, None, value, ()) for value in values])
    settings = TopicSettings(compression_type=codec, **level)  # type: ignore[arg-type]
    found = validate(records, Rules.of(settings, origin=Origin.CLIENT), now_ms=NOW_MS)
    assert [record.value for record in decode_batch(found.records)] == values
    return bytes(found.records)


@pytest.mark.parametrize(
    ("codec", "name", "low", "high"),
    [
        ("gzip", "compression_gzip_level", 1, 9),
        ("lz4", "compression_lz4_level", 3, 12),
        ("zstd", "compression_zstd_level", -7, 19),
    ],
)
def test_a_higher_level_makes_smaller_batches(codec: str, name: str, low: int, high: int) -> None:
    assert len(stored(codec, **{name: high})) < len(stored(codec, **{name: low}))
