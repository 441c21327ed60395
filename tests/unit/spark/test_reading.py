"""How much of a partition is fetched for a range."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark")

from barnabas.client.settings.consumer import ConsumerSettings
from barnabas.spark.connector import reading
from barnabas.spark.connector.reading import FETCH_BYTES_MIN, RangePartition, sized

SETTINGS = ConsumerSettings.of({"max.partition.fetch.bytes": str(4 * 1024 * 1024)})


def test_a_small_range_is_not_fetched_with_all_that_is_behind_it() -> None:
    assert sized(SETTINGS, RangePartition("t", 0, 10, 20, "")).max_partition_fetch_bytes == FETCH_BYTES_MIN
    assert sized(SETTINGS, RangePartition("t", 0, 0, 1000, "")).max_partition_fetch_bytes == 1000 * 1024
    assert sized(SETTINGS, RangePartition("t", 0, 0, 1_000_000, "")) is SETTINGS


def test_the_size_of_records_is_learnt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(reading._record_bytes, "t", 100)
    assert sized(SETTINGS, RangePartition("t", 0, 0, 10_000, "")).max_partition_fetch_bytes == 1_000_000
    assert sized(SETTINGS, RangePartition("other", 0, 0, 10_000, "")) is SETTINGS
