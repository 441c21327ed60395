"""The Iceberg sink with a catalog in SQLite: change tables that are complete and have no row twice."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyiceberg.catalog import load_catalog

from barnabas.connect.connectors.iceberg_sink import IcebergSink
from barnabas.connect.errors import DataError
from barnabas.connect.plugins import Context
from barnabas.connect.records import Batch, Record
from barnabas.connect.schemas import INT32, STRING, Field, Schema, struct

LATEST = """
select * exclude (_rank) from (
  select *, row_number() over (partition by id order by _offset desc) as _rank from changes
) where _rank = 1 and _op <> 'd' order by id
"""


class Lake:
    """A warehouse in a directory, and the sink that writes to it."""

    def __init__(self, directory: Path) -> None:
        self._catalog = {"type": "sql", "uri": f"sqlite:///{directory}/catalog.db", "warehouse": f"file://{directory}"}

    def sink(self, **config: str) -> IcebergSink:
        extra = {f"iceberg.catalog.{key}": value for key, value in self._catalog.items()}
        given = {key.replace("_", "."): value for key, value in config.items()}
        return IcebergSink(IcebergSink.Config.read(given), Context("lake", extra=extra))

    def write(self, number: int, *tasks: Sequence[Record], **config: str) -> None:
        flushed = []
        for task, records in enumerate(tasks):
            sink = self.sink(**config)
            batch = Batch("connect-lake-1", number, task)
            sink.open(batch)
            sink.put(records)
            flushed.append(sink.flush(batch))
            sink.close()
        driver = self.sink(**config)
        driver.commit(flushed, Batch("connect-lake-1", number, -1))
        driver.close()

    def table(self, name: str = "default.orders") -> Any:
        catalog = load_catalog("default", **self._catalog)
        try:
            return catalog.load_table(name).scan().to_arrow()
        finally:
            catalog.close()


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


def plain(offset: int, **value: Any) -> Record:
    return Record("orders", value, partition=0, offset=offset, timestamp_ms=1000)


ROW = struct({"id": INT32, "day": Schema(INT32.type, name="io.debezium.time.Date", optional=True)}, optional=True)
ENVELOPE = struct(
    [Field("before", ROW), Field("after", ROW), Field("op", STRING), Field("source", STRING.as_optional())]
)


def change(offset: int, op: str, number: int, day: int | None = 20455) -> Record:
    row = {"id": number, "day": day}
    value = {"before": row if op == "d" else None, "after": None if op == "d" else row, "op": op, "source": None}
    return Record("shop.orders", value, {"id": number}, partition=0, offset=offset, value_schema=ENVELOPE)


def test_records_are_appended_with_operation_and_position(lake: Lake) -> None:
    lake.write(0, [plain(0, id=1, item="a")], [plain(1, id=2, item="b")])
    rows = sorted(lake.table().to_pylist(), key=lambda row: row["_offset"])
    moment = dt.datetime(1970, 1, 1, 0, 0, 1)
    position = {"_op": "u", "_topic": "orders", "_partition": 0, "_timestamp": moment}
    assert rows == [{"id": 1, "item": "a", "_offset": 0} | position, {"id": 2, "item": "b", "_offset": 1} | position]


def test_a_batch_that_comes_again_adds_nothing(lake: Lake, tmp_path: Path) -> None:
    lake.write(0, [plain(0, id=1)])
    files = set(tmp_path.rglob("*.parquet"))
    lake.write(0, [plain(0, id=1)])
    assert lake.table().num_rows == 1
    assert set(tmp_path.rglob("*.parquet")) == files, "the files of the second attempt are deleted"
    lake.write(1, [plain(1, id=2)])
    assert lake.table().num_rows == 2


def test_changes_of_a_database_become_rows_and_a_query_gives_the_latest_ones(lake: Lake) -> None:
    lake.write(0, [change(0, "r", 1), change(1, "r", 2, None)])
    tombstone = Record("shop.orders", None, {"id": 1}, partition=0, offset=4)
    lake.write(1, [change(2, "u", 2, 20456), change(3, "d", 1), tombstone])
    changes = lake.table("default.shop_orders")
    assert sorted(changes.column("_op").to_pylist()) == ["d", "r", "r", "u"]
    rows = duckdb.sql(LATEST).fetchall()
    assert [row[:3] for row in rows] == [(2, dt.date(2026, 1, 3), "u")]


def test_new_fields_become_columns(lake: Lake) -> None:
    lake.write(0, [plain(0, id=1)])
    lake.write(1, [plain(1, id=2, colour="red")])
    rows = {row["id"]: row["colour"] for row in lake.table().to_pylist()}
    assert rows == {1: None, 2: "red"}


def test_a_large_batch_has_several_files_and_tombstones_may_be_deletes(lake: Lake, tmp_path: Path) -> None:
    sink = lake.sink(file_bytes_max="100", tombstones="delete", iceberg_table="all")
    batch = Batch("connect-lake-1", 0, 0)
    sink.open(batch)
    for offset in range(4):
        sink.put([plain(offset, id=offset, text="x" * 100)])
    sink.put([Record("orders", None, {"id": 1}, partition=0, offset=9)])
    flushed = sink.flush(batch)
    assert len(flushed) >= 4
    sink.commit([flushed], Batch("connect-lake-1", 0, -1))
    sink.close()
    rows = lake.table("default.all").to_pylist()
    assert sorted(row["_op"] for row in rows) == ["d", "u", "u", "u", "u"]


def test_values_that_are_no_rows_are_refused(lake: Lake) -> None:
    sink = lake.sink()
    sink.open(Batch("s", 0, 0))
    with pytest.raises(DataError, match="structs"):
        sink.put([Record("orders", "text", partition=0, offset=0)])
    with pytest.raises(DataError, match="columns"):
        sink.put([plain(0, id=1), plain(1, id="two")])
