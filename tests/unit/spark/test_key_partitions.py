"""Keys by the column go where keys one by one go."""

from __future__ import annotations

import random

import pytest

from barnabas.client.partitioner import of_key

pa = pytest.importorskip("pyarrow")
pytest.importorskip("numpy")


def test_every_key_goes_where_the_client_would_send_it() -> None:
    from barnabas.spark.key_partitions import partitions_of

    chance = random.Random(1)
    keys = [chance.randbytes(chance.randrange(0, 40)) for _ in range(2000)] + [None, b"", None]
    chance.shuffle(keys)
    column = pa.array(keys, pa.binary())
    for part in (column, column.slice(3, 1000), column.slice(0, 0)):
        for count in (1, 3, 32):
            expected = [None if key is None else of_key("t", key, count) for key in part.to_pylist()]
            assert partitions_of(part, count).to_pylist() == expected
