"""Files and generated data: complete lines only, the same range the same records, files written once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from barnabas.connect.connectors.datagen import Datagen, DatagenConfig
from barnabas.connect.connectors.files_sink import FilesSink, FilesSinkConfig
from barnabas.connect.connectors.files_source import (
    FilesSource,
    FilesSourceConfig,
    FileStreamSource,
    FileStreamSourceConfig,
)
from barnabas.connect.errors import ConnectError, DataError, OffsetError
from barnabas.connect.plugins import Context, Source
from barnabas.connect.records import Batch, Entry, Limit, Offset, Record
from barnabas.connect.schemas import INT64, STRING, struct

CONTEXT = Context("a")
LIMIT = Limit(1000, 1_000_000)


def read(source: Source[Any], since: Offset) -> tuple[Offset, list[Any]]:
    until = source.latest(since, LIMIT)
    parts = source.split(since, until, 1)
    return until, [record.value for part in parts for record in source.read(part)]


def files(**config: str) -> FilesSource:
    given = {key.replace("_", "."): value for key, value in config.items()}
    return FilesSource(FilesSourceConfig.read(given), CONTEXT)


def test_only_complete_lines_are_read(tmp_path: Path) -> None:
    path = tmp_path / "in.txt"
    source = FileStreamSource(FileStreamSourceConfig(file=str(path), topic="t"), CONTEXT)
    assert read(source, {}) == ({}, [])
    path.write_text("a\nb\nhal")
    until, found = read(source, {})
    assert (until, found) == ({str(path): 4}, ["a", "b"])
    with path.open("a") as file:
        file.write("f\n")
    assert read(source, until) == ({str(path): 9}, ["half"])
    assert source.entries(until) == [Entry({"filename": str(path)}, {"position": 4})]
    assert source.offset(source.entries(until)) == until


@pytest.mark.parametrize(
    "entry",
    [
        Entry({"wrong": "x"}, {"position": 1}),
        Entry({"filename": "x"}, {"position": "1"}),
        Entry({"filename": "x"}, {"position": -1}),
        Entry({"filename": "x"}, {"at": 1}),
    ],
)
def test_offsets_that_are_none_are_refused(entry: Entry) -> None:
    with pytest.raises(OffsetError):
        FileStreamSource(FileStreamSourceConfig(file="x", topic="t"), CONTEXT).offset([entry])


def test_a_batch_is_bounded(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("".join(f"{number}\n" for number in range(100)))
    source = files(path=str(tmp_path), topic="t", batch_size="30")
    since: Offset = {}
    sizes = []
    while True:
        until, found = read(source, since)
        if until == since:
            break
        since = until
        sizes.append(len(found))
    assert sizes == [30, 30, 30, 10]


def test_json_and_csv_and_parquet(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    (tmp_path / "a.json").write_text('{"n": 1}\n\n{"n": 2}\n')
    assert read(files(path=str(tmp_path / "*.json"), topic="t", format="json"), {})[1] == [{"n": 1}, {"n": 2}]
    (tmp_path / "b.csv").write_text('id,text\n1,"two\nlines"\n2,x\n')
    source = files(path=str(tmp_path / "b.csv"), topic="t", format="csv", key_field="id", batch_size="2")
    until, found = read(source, {})
    assert found == [{"id": "1", "text": "two\nlines"}]
    assert read(source, until)[1] == [{"id": "2", "text": "x"}]
    pq.write_table(pa.table({"n": list(range(10))}), tmp_path / "c.parquet", row_group_size=4)
    source = files(path=str(tmp_path / "*.parquet"), topic="t", format="parquet", batch_size="6")
    until, found = read(source, {})
    assert [row["n"] for row in found] == [0, 1, 2, 3, 4, 5]
    assert [row["n"] for row in read(source, until)[1]] == [6, 7, 8, 9]


def test_a_file_that_shrinks_and_a_line_that_is_not_json_are_errors(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"n": 1}\nnot json\n')
    source = files(path=str(path), topic="t", format="json")
    until = source.latest({}, LIMIT)
    with pytest.raises(DataError):
        read(source, {})
    path.write_text("")
    with pytest.raises(ConnectError, match="shorter"):
        list(source.read(source.split({}, until, 1)[0]))


def generator(**config: Any) -> Datagen:
    return Datagen(DatagenConfig(topic="t", **config), CONTEXT)


@pytest.mark.parametrize("kind", ["orders", "clicks", "sensors"])
def test_generated_records_are_the_same_for_the_same_numbers(kind: Any) -> None:
    source = generator(kind=kind, records_per_second=5.0)
    since = {"count": 0, "start_ms": 1_767_323_045_000}
    until, first = read(source, since)
    assert until["count"] == len(first) == 5
    part = source.split(since, until, 1)[0]
    assert [record.value for record in generator(kind=kind, records_per_second=5.0).read(part)] == first
    for record in source.read(part):
        assert record.value_schema is not None
        assert record.value.keys() == {each.name for each in record.value_schema.fields}


def test_the_generator_ends_where_it_is_told_to() -> None:
    source = generator(records_per_second=1000.0, records_max=7)
    until, found = read(source, source.start())
    assert (until["count"], len(found)) == (7, 7)
    assert source.latest(until, LIMIT) == until


def test_the_sink_writes_each_batch_once(tmp_path: Path) -> None:
    config = FilesSinkConfig(path=str(tmp_path), format="json")
    records = [Record("a/b", {"n": n}, partition=n % 2, offset=10 + n) for n in range(4)]
    for _ in range(2):  # the second time is a replay
        sink = FilesSink(config, CONTEXT)
        sink.put(records)
        sink.put([Record("a/b", None, partition=0, offset=20)])
        sink.flush(Batch("s", 0, 0))
    found = {path.name: path.read_text() for path in tmp_path.rglob("*.json")}
    assert found == {
        "a%2Fb+0+00000000000000000010.json": '{"n":0}\n{"n":2}\n',
        "a%2Fb+1+00000000000000000011.json": '{"n":1}\n{"n":3}\n',
    }


@pytest.mark.parametrize(("kind", "content"), [("lines", '{"n":5}\n'), ("csv", "n\n5\n")])
def test_other_formats(tmp_path: Path, kind: Any, content: str) -> None:
    sink = FilesSink(FilesSinkConfig(path=str(tmp_path), format=kind), CONTEXT)
    sink.put([Record("t", {"n": 5}, partition=0, offset=0)])
    (path,) = sink.flush(Batch("s", 0, 0))
    assert Path(path).read_text() == content


def test_parquet_takes_the_schema(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    schema = struct({"n": INT64, "s": STRING.as_optional()})
    sink = FilesSink(FilesSinkConfig(path=str(tmp_path), format="parquet"), CONTEXT)
    sink.put([Record("t", {"n": 5, "s": None}, value_schema=schema, partition=0, offset=0)])
    with pytest.raises(DataError):
        sink.put([Record("t", "no struct", partition=0, offset=1)])
    (path,) = sink.flush(Batch("s", 0, 0))
    table = pq.read_table(path)
    assert table.to_pylist() == [{"n": 5, "s": None}]
    assert json.loads(json.dumps(table.schema.names)) == ["n", "s"]
