"""All records of a query as a file: JSON lines, CSV or Parquet, streamed; memory does not grow with the topic."""

from __future__ import annotations

import csv
import io
import re
import tempfile
from collections.abc import AsyncGenerator
from contextlib import aclosing
from importlib.util import find_spec
from typing import Any, Final

import msgspec
from starlette.responses import Response

from barnabas.console.api.messages import QUERY_PARAMETERS, decoder_of, query_of
from barnabas.console.endpoint import Call, Endpoint, Parameter
from barnabas.console.rows import WHOLE_CHARACTERS
from barnabas.console.search import Search
from barnabas.rest.errors import RestError

ROWS_MAX: Final = 10_000_000
CHUNK_BYTES: Final = 256 * 1024
COLUMNS: Final = ("partition", "offset", "timestamp", "key", "value", "headers")
TYPES: Final = {"jsonl": "application/x-ndjson", "csv": "text/csv", "parquet": "application/vnd.apache.parquet"}
FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r")

_encode: Final = msgspec.json.Encoder().encode


async def export_records(call: Call) -> Response:
    form = call.query("format", "jsonl")
    if form not in TYPES:
        raise RestError(400, f"there is no format {form!r}; there are {', '.join(TYPES)}")
    if form == "parquet" and find_spec("pyarrow") is None:
        raise RestError(501, "Parquet needs pyarrow: pip install pyarrow where the console runs")
    query = await query_of(call, limit=call.number("limit", ROWS_MAX, low=1, high=ROWS_MAX), in_order=True)
    search = Search(call.view.given, query, decoder_of(call), characters_max=WHOLE_CHARACTERS)
    if form == "parquet":
        content = _parquet(search)
    else:
        content = _lines(search, _json_line if form == "jsonl" else _csv_line, form)
    name = re.sub(r"[^A-Za-z0-9._-]", "_", query.topic)
    headers = {"Content-Disposition": f'attachment; filename="{name}.{form}"'}
    return call.console.streams.response(content, TYPES[form], headers)


async def _rows(search: Search) -> AsyncGenerator[list[dict[str, Any]]]:
    async with aclosing(search.events()) as events:
        async for name, data in events:
            if name == "records":
                yield [_flat(row) for row in data]


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    found = {name: row[name] for name in COLUMNS}
    for side in ("key", "value"):
        found[side] = None if row[side] is None else row[side]["text"]
    return found


async def _lines(search: Search, line: Any, form: str) -> AsyncGenerator[bytes]:
    if form == "csv":
        yield ",".join(COLUMNS).encode() + b"\r\n"
    async for rows in _rows(search):
        yield b"".join(line(row) for row in rows)


def _json_line(row: dict[str, Any]) -> bytes:
    return _encode({**row, "headers": dict(row["headers"])}) + b"\n"


def _csv_line(row: dict[str, Any]) -> bytes:
    out = io.StringIO()
    csv.writer(out).writerow([*(_cell(row[name]) for name in COLUMNS[:-1]), _encode(dict(row["headers"])).decode()])
    return out.getvalue().encode()


def _cell(value: Any) -> Any:
    """The value, with a quote before a text that a spreadsheet would run as a formula."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA_STARTS) else value


async def _parquet(search: Search) -> AsyncGenerator[bytes]:
    """Row groups go to a temporary file, because the end of a Parquet file describes all of it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = {"partition": pa.int32(), "offset": pa.int64(), "timestamp": pa.timestamp("ms", tz="UTC")}
    schema = pa.schema([(name, kinds.get(name, pa.string())) for name in COLUMNS])
    with tempfile.TemporaryFile() as file:
        with pq.ParquetWriter(file, schema) as writer:
            async for rows in _rows(search):
                columns = {name: [row[name] for row in rows] for name in COLUMNS}
                columns["headers"] = [_encode(dict(headers)).decode() for headers in columns["headers"]]
                writer.write_batch(pa.RecordBatch.from_pydict(columns, schema=schema))
        file.seek(0)
        while chunk := file.read(CHUNK_BYTES):
            yield chunk


ENDPOINTS: Final = (
    Endpoint(
        "GET",
        "/clusters/{cluster}/topics/{topic}/export",
        export_records,
        "All records of a query as a file",
        parameters=(*QUERY_PARAMETERS, Parameter("format", "jsonl, csv or parquet")),
    ),
)
