"""Records of a topic: search and tail as server-sent events, one record with its bytes, a histogram over time."""

from __future__ import annotations

import time
from argparse import Namespace
from base64 import b64encode
from contextlib import aclosing
from itertools import pairwise
from typing import Any, Final

from starlette.responses import Response

from barnabas.client.offsets import EARLIEST, LATEST, Start, list_offsets, resolve
from barnabas.client.scan.needles import Probe
from barnabas.console.api.topics import topic_of
from barnabas.console.endpoint import Call, Endpoint, Parameter
from barnabas.console.rows import WHOLE_CHARACTERS, row_of
from barnabas.console.search import ROWS_MAX, Query, Search
from barnabas.console.view import ClusterView
from barnabas.model.ids import TopicPartition
from barnabas.ops.records.decoding import Decoder
from barnabas.ops.records.filter import compile_filter, probe_of
from barnabas.ops.records.format import Decoded
from barnabas.ops.records.moments import parse_window
from barnabas.ops.records.schemas import Schemas
from barnabas.rest.errors import RestError

NEWEST: Final = "newest"
FORMS: Final = ("auto", "avro", "proto", "json", "msgpack", "hex", "base64", "string")
FILTER_CHARACTERS_MAX: Final = 2000
BUCKETS_MAX: Final = 60
HISTOGRAM_PARTITIONS_MAX: Final = 100
RAW_BYTES_MAX: Final = 256 * 1024
QUERY_PARAMETERS: Final = (
    Parameter("start", "newest, start, an offset, end-100, -10m, @2026-01-31T12:00; as of `barnabas consume -o`"),
    Parameter("end", "where to stop; by default where the partitions end now"),
    Parameter("partition", "comma-separated partitions; by default all"),
    Parameter("key", "only records with exactly this key"),
    Parameter("header", "only records with this header, NAME or NAME:VALUE"),
    Parameter("contains", "only records whose key, value or a header matches this regular expression"),
    Parameter("where", "only records for which this expression holds, as of `barnabas consume --filter`"),
    Parameter("decode_key", f"form of keys: {', '.join(FORMS)}"),
    Parameter("decode", "form of values"),
    Parameter("committed", "true leaves out records of open and aborted transactions"),
)


def decoder_of(call: Call) -> Decoder:
    key, value = call.query("decode_key", "auto"), call.query("decode", "auto")
    for form in (key, value):
        if form not in FORMS:
            raise RestError(400, f"there is no form {form!r}; there are {', '.join(FORMS)}")
    view = call.view
    if view.registry is None and {"avro", "proto"} & {key, value}:
        raise RestError(
            400, "decoding avro and proto needs a schema registry: start the console with --schema-registry"
        )
    return Decoder(key, value, None if view.registry is None else Schemas(view.registry, is_guess=True))


async def query_of(call: Call, *, limit: int, is_tail: bool = False, in_order: bool = False) -> Query:
    """The query of a request; ``in_order`` reads from the start where others look for the newest records."""
    topic = await topic_of(call)
    start = call.query("start", NEWEST)
    is_newest = start == NEWEST and not is_tail and not in_order
    text = call.query("end")
    now_ms = int(time.time() * 1000)
    raw, decoded = _filters(call)
    return Query(
        topic=topic.name,
        partitions=_partitions(call, len(topic.partitions)),
        start=LATEST
        if is_tail and start == NEWEST
        else EARLIEST
        if start == NEWEST
        else parse_window(start, now_ms=now_ms).start,
        end=parse_window(text, now_ms=now_ms).start if text else None,
        limit=limit,
        newest_first=is_newest,
        is_tail=is_tail,
        raw_holds=compile_filter(raw),
        holds=compile_filter(decoded),
        probe=_probe(call, raw),
        read_committed=call.query("committed") == "true",
    )


def _filters(call: Call) -> tuple[Namespace, Namespace]:
    """Conditions on the stored bytes, and conditions on what was decoded."""
    for name in ("key", "header", "contains", "where"):
        if len(call.query(name)) > FILTER_CHARACTERS_MAX:
            raise RestError(400, f"{name} has more than {FILTER_CHARACTERS_MAX} characters")
    header = call.query("header")
    nothing: dict[str, Any] = {"keys": None, "tombstones": False, "headers": [], "grep": None, "filter": None}
    key = call.query("key")
    of_key = {"keys": [key] if key else None}
    # A key in a registry's format is compared after it was decoded.
    is_plain = call.query("decode_key", "auto") in ("auto", "string")
    raw = Namespace(**{**nothing, "headers": [header] if header else [], **(of_key if is_plain else {})})
    decoded = Namespace(
        **{
            **nothing,
            "grep": call.query("contains") or None,
            "filter": call.query("where") or None,
            **({} if is_plain else of_key),
        }
    )
    return raw, decoded


def _probe(call: Call, raw: Namespace) -> Probe | None:
    """About stored bytes only: an expression counts if values are shown as they are stored."""
    is_stored = call.query("decode", "auto") in ("json", "string") or call.view.registry is None
    text = call.query("where")
    return probe_of(Namespace(**{**vars(raw), "filter": text if text and is_stored else None}))


def _partitions(call: Call, count: int) -> tuple[int, ...]:
    text = call.query("partition")
    if not text:
        return tuple(range(count))
    try:
        chosen = sorted({int(each) for each in text.split(",")})
    except ValueError:
        raise RestError(400, f"partition={text!r} is not a list of numbers") from None
    if chosen[0] < 0 or chosen[-1] >= count:
        raise RestError(400, f"the topic has partitions 0 to {count - 1}")
    return tuple(chosen)


async def search_records(call: Call) -> Response:
    query = await query_of(call, limit=call.number("limit", 100, low=1, high=ROWS_MAX))
    search = Search(call.view.given, query, decoder_of(call))
    return call.console.streams.events(search.events())


async def tail_records(call: Call) -> Response:
    query = await query_of(call, limit=ROWS_MAX, is_tail=True)
    search = Search(call.view.given, query, decoder_of(call))
    return call.console.streams.events(search.events())


async def get_record(call: Call) -> dict[str, Any]:
    """One record in full, with its first bytes as they are stored."""
    topic = await topic_of(call)
    try:
        partition, offset = int(call.path("partition")), int(call.path("offset"))
    except ValueError:
        raise RestError(404, "partition and offset must be numbers") from None
    if not 0 <= partition < len(topic.partitions):
        raise RestError(404, f"the topic has partitions 0 to {len(topic.partitions) - 1}")
    query = Query(topic=topic.name, partitions=(partition,), start=Start.at(offset), end=Start.at(offset + 1), limit=1)
    raw = _Raw()
    search = Search(call.view.given, query, raw)  # type: ignore[arg-type]
    async with aclosing(search.events()) as events:
        async for _ in events:
            pass
    if not raw.lines:
        raise RestError(404, f"there is no record at offset {offset} of partition {partition}")
    (line,) = await decoder_of(call).decode(raw.lines[:1])
    return {
        **row_of(line, characters_max=WHOLE_CHARACTERS),
        "raw_key": _base64(raw.lines[0].key),
        "raw_value": _base64(raw.lines[0].value),
    }


class _Raw:
    """Keeps records as they are stored, for a search that must not decode."""

    def __init__(self) -> None:
        self.lines: list[Any] = []

    async def decode(self, lines: list[Any]) -> list[Any]:
        self.lines += lines
        return [line._replace(key=None if line.key is None else Decoded.failed(b"", ""), value=None) for line in lines]


def _base64(data: bytes | None) -> str | None:
    return None if data is None else b64encode(data[:RAW_BYTES_MAX]).decode()


async def get_histogram(call: Call) -> dict[str, Any]:
    """How many records were written in each part of a span of time, from the time index; no record is read."""
    topic = await topic_of(call)
    chosen = _partitions(call, len(topic.partitions))[:HISTOGRAM_PARTITIONS_MAX]
    places = [TopicPartition(topic.name, index) for index in chosen]
    start_ms, end_ms = await _span(call, call.view, places)
    count = call.number("buckets", BUCKETS_MAX, low=1, high=BUCKETS_MAX)
    step = max((end_ms - start_ms) // count, 1)
    edges = [start_ms + step * number for number in range(count + 1)]
    cluster = call.view.admin.cluster
    offsets = [
        await resolve(cluster, dict.fromkeys(places, Start.at_time(edge)), isolation_level="read_uncommitted")
        for edge in edges
    ]
    counts = [sum(max(after[place] - before[place], 0) for place in places) for before, after in pairwise(offsets)]
    return {"start": start_ms, "step": step, "counts": counts, "partitions": len(places), "of": len(topic.partitions)}


async def _span(call: Call, view: ClusterView, places: list[TopicPartition]) -> tuple[int, int]:
    """From the oldest record to now, or what the query says."""
    now_ms = int(time.time() * 1000)
    start, end = call.query("from"), call.query("to")
    if start.isdecimal() and end.isdecimal() and int(start) < int(end):
        return int(start), int(end)
    oldest = await list_offsets(view.admin.cluster, dict.fromkeys(places, 0))
    times = [entry.timestamp_ms for entry in oldest.values() if entry.timestamp_ms > 0]
    return min(times, default=now_ms - 3_600_000), now_ms + 1


_AT: Final = "/clusters/{cluster}/topics/{topic}"
ENDPOINTS: Final = (
    Endpoint(
        "GET",
        f"{_AT}/records",
        search_records,
        "Search records; server-sent events records, progress, done, failed",
        parameters=(*QUERY_PARAMETERS, Parameter("limit", "stop after so many records (100)", "integer")),
    ),
    Endpoint(
        "GET",
        f"{_AT}/tail",
        tail_records,
        "New records as they are written; server-sent events",
        parameters=QUERY_PARAMETERS,
    ),
    Endpoint(
        "GET",
        f"{_AT}/records/{{partition}}/{{offset}}",
        get_record,
        "One record in full, with its bytes in base64",
        parameters=QUERY_PARAMETERS[-3:-1],
    ),
    Endpoint(
        "GET",
        f"{_AT}/histogram",
        get_histogram,
        "Records over time",
        parameters=(
            Parameter("partition", "comma-separated partitions; by default all"),
            Parameter("from", "start in ms", "integer"),
            Parameter("to", "end in ms", "integer"),
            Parameter("buckets", f"how many parts, at most {BUCKETS_MAX}", "integer"),
        ),
    ),
)
