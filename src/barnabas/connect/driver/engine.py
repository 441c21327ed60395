"""Spark queries: one per lane of light sources, one for each other source and for each sink."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from barnabas.connect.definitions import SinkConfig
from barnabas.connect.driver.checkpoints import CheckpointStore
from barnabas.connect.driver.feed import Reader
from barnabas.connect.driver.host import Host
from barnabas.connect.driver.lanes import OwnLane, SharedLane
from barnabas.connect.driver.prepared import Prepared
from barnabas.connect.driver.sink_query import sink_options
from barnabas.connect.errors import RetriableError
from barnabas.connect.records import Entry, Offset
from barnabas.connect.tolerance import TRACE_CHARACTERS_MAX, trace_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

LANES: Final = ((2.0, "1 second"), (20.0, "10 seconds"), (float("inf"), "60 seconds"))  # up to so many seconds
GRACE_SECONDS: Final = 20.0  # for a batch under way when a query is stopped
LANE_PAUSE_FIRST: Final = 5.0  # seconds before a lane that failed is started again
LANE_PAUSE_MAX: Final = 300.0
DETAILS_SECONDS: Final = 5.0  # between two looks at what sources report about themselves
_RETRIABLE: Final = re.compile(
    "RetriableError|Timed out while waiting for the Python worker|ConnectionRefused"
    "|DISCONNECTED|TIMED_OUT|UNKNOWN_TOPIC_OR_PARTITION"
)
OnEvent = Callable[[str, str, Mapping[str, Any]], None]


@dataclass(slots=True)
class _Lane:
    lane: SharedLane
    trigger: str
    query: StreamingQuery | None = None
    retry_at: float = 0.0
    pause: float = LANE_PAUSE_FIRST


@dataclass(slots=True)
class _Own:
    """A sink, or a source in a query of its own."""

    prepared: Prepared
    lane: OwnLane | None
    is_paused: bool
    query: StreamingQuery | None = None


class Engine:
    """Starts, stops and watches queries. Used by one thread; ``on_event`` may be called by others."""

    def __init__(
        self,
        store: CheckpointStore,
        *,
        client: Mapping[str, str],
        group: str,
        master: str,
        directory: Path,
        on_event: OnEvent,
    ) -> None:
        self._store = store
        self._client = client
        self._group = group
        self._master = master
        self._files = directory
        self._on_event = on_event
        self._lanes: dict[str, _Lane] = {}
        self._own: dict[str, _Own] = {}
        self._leaving: list[tuple[str, threading.Event, float]] = []
        self._topics: dict[str, set[str]] = {}
        self._details: dict[str, dict[str, Any]] = {}
        self._detailed_at = 0.0
        self._session: SparkSession | None = None
        self._host = Host(directory)
        self._host.offer("latest", self._latest)
        self._host.offer("plan", self._plan)
        self._host.offer("sink", self._sink)
        self._host.start()

    # --- commands -------------------------------------------------------------------------------------------------

    def start(self, prepared: Prepared, entries: Sequence[Entry], *, is_paused: bool) -> None:
        """Start a connector, or start it again with another configuration."""
        name = prepared.spec.name
        self._stop_own(name)
        for key, lane in self._lanes.items():
            if name in lane.lane.names and (not prepared.is_light or key != self._lane_of(prepared)):
                lane.lane.remove(name).wait(GRACE_SECONDS)
        if prepared.is_light:
            self._start_light(prepared, entries, is_paused=is_paused)
        else:
            lane_of_own: OwnLane | None = None
            if not prepared.is_sink:
                reader = Reader(prepared)
                lane_of_own = OwnLane(name, reader, self._base(reader, entries), self._committed)
                lane_of_own.is_paused = is_paused
            self._own[name] = own = _Own(prepared, lane_of_own, is_paused)
            if not (prepared.is_sink and is_paused):
                self._start_own(name, own)
        self._on_event("running", name, {})
        if isinstance(prepared.common, SinkConfig):
            self._used(name, set(prepared.common.topics))

    def _start_light(self, prepared: Prepared, entries: Sequence[Entry], *, is_paused: bool) -> None:
        name, key = prepared.spec.name, self._lane_of(prepared)
        if key not in self._lanes:
            self._lanes[key] = _Lane(SharedLane(self._committed, self._used, self._store), key.partition(":")[2])
        lane = self._lanes[key]
        reader = Reader(prepared)

        def failed(error: BaseException) -> None:
            more = {"trace": prepared.redact(trace_of(error)), "retriable": isinstance(error, RetriableError)}
            self._on_event("failed", name, more)

        lane.lane.add(name, reader, self._base(reader, entries), failed)
        lane.lane.pause(name, is_paused=is_paused)
        if lane.query is None:
            lane.query = self._start_lane(key, lane)

    def stop(self, name: str) -> None:
        """Stop a connector; the event ``stopped`` follows when its batch under way is done."""
        if name in self._own:
            self._stop_own(name)
            self._on_event("stopped", name, {})
            return
        for lane in self._lanes.values():
            if name in lane.lane.names:
                self._leaving.append((name, lane.lane.remove(name), time.monotonic() + GRACE_SECONDS))
                return
        self._on_event("stopped", name, {})

    def pause(self, name: str, *, is_paused: bool) -> None:
        """Pause or resume a connector."""
        own = self._own.get(name)
        if own is None:
            for lane in self._lanes.values():
                lane.lane.pause(name, is_paused=is_paused)
            return
        own.is_paused = is_paused
        if own.lane is not None:
            own.lane.is_paused = is_paused
        elif is_paused:
            self._stop_query(own.query)
            own.query = None
        elif own.query is None:
            self._start_own(name, own)

    def close(self) -> None:
        """Stop all queries and Spark."""
        for own in self._own.values():
            self._stop_query(own.query)
        for lane in self._lanes.values():
            self._stop_query(lane.query)
        self._store.close()
        self._host.close()
        if self._session is not None:
            self._session.stop()

    # --- watching -------------------------------------------------------------------------------------------------

    def watch(self) -> None:
        """Notice queries that have failed and connectors that have left their lane."""
        now = time.monotonic()
        for name, own in list(self._own.items()):
            if own.query is not None and not own.query.isActive:
                trace = _trace(own.query, own.prepared.redact)
                own.query = None
                self._own.pop(name)
                self._on_event("failed", name, {"trace": trace, "retriable": bool(_RETRIABLE.search(trace))})
        if now - self._detailed_at >= DETAILS_SECONDS:
            self._detailed_at = now
            self._send_details()
        for key, lane in self._lanes.items():
            self._watch_lane(key, lane, now)
        waiting = []
        for name, left, deadline in self._leaving:
            if left.is_set() or now > deadline:
                self._on_event("stopped", name, {})
            else:
                waiting.append((name, left, deadline))
        self._leaving = waiting

    def _send_details(self) -> None:
        for name, own in self._own.items():
            found = {} if own.lane is None else own.lane.reader.details()
            if found != self._details.get(name, {}):
                self._details[name] = found
                self._on_event("details", name, {"details": found})

    def _watch_lane(self, key: str, lane: _Lane, now: float) -> None:
        """Start a lane that failed again, with back-off: its connectors stay in it."""
        if lane.query is not None and not lane.query.isActive:
            trace = _trace(lane.query, str)
            lane.query, lane.retry_at = None, now + lane.pause
            lane.pause = min(LANE_PAUSE_MAX, lane.pause * 2)
            for name in lane.lane.names:
                self._on_event("failed", name, {"trace": trace, "retriable": False})
        if lane.query is None and lane.retry_at and now >= lane.retry_at and len(lane.lane):
            lane.query = self._start_lane(key, lane)
            for name in lane.lane.names:
                self._on_event("running", name, {})

    # --- queries --------------------------------------------------------------------------------------------------

    def _spark(self) -> SparkSession:
        if self._session is None:
            import barnabas.spark
            from barnabas.connect.driver.spark_format import ConnectFormat

            config = {"spark.scheduler.mode": "FAIR"}
            self._session = barnabas.spark.session("barnabas-connect", master=self._master, config=config)
            self._session.dataSource.register(ConnectFormat)
        return self._session

    def _read(self, query: str) -> DataFrame:
        from barnabas.connect.driver.spark_format import FORMAT, QUERY, SOCKET

        options = {SOCKET: self._host.path, QUERY: query}
        return self._spark().readStream.format(FORMAT).options(**options).load()

    def _kafka_options(self, overrides: Mapping[str, str] | None = None) -> dict[str, str]:
        return {f"kafka.{key}": value for key, value in {**self._client, **(overrides or {})}.items()}

    def _start_lane(self, key: str, lane: _Lane) -> StreamingQuery:
        rows = self._read(key)
        writer = rows.writeStream.format("barnabas").options(**self._kafka_options())
        return self._launch(key, writer.option("onReplay", "keep"), lane.trigger)

    def _start_own(self, name: str, own: _Own) -> None:
        from barnabas.connect.driver.spark_format import FORMAT, QUERY, SOCKET

        prepared = own.prepared
        trigger = f"{max(0.1, prepared.seconds):.3f} seconds"
        if own.lane is not None:
            overrides = _overrides(prepared, "producer.override.")
            writer = self._read(f"own:{name}").writeStream.format("barnabas").options(**self._kafka_options(overrides))
            own.query = self._launch(f"own:{name}", writer.option("onReplay", prepared.cls.replay), trigger)
            return
        key = f"sink:{name}:{prepared.spec.generation}"
        options = sink_options(prepared, self._client, self._store, key)
        rows = self._spark().readStream.format("barnabas").options(**options).load().coalesce(prepared.common.tasks_max)
        writer = rows.writeStream.format(FORMAT).options(**{SOCKET: self._host.path, QUERY: name})
        own.query = self._launch(key, writer, trigger)

    def _launch(self, key: str, writer: Any, trigger: str) -> StreamingQuery:
        directory = self._directory(key)
        self._store.lay_out(key, directory)
        self._spark().sparkContext.setLocalProperty("spark.scheduler.pool", key)
        started: StreamingQuery = (
            writer.option("checkpointLocation", str(directory)).queryName(key).trigger(processingTime=trigger).start()
        )
        return started

    def _directory(self, key: str) -> Path:
        return self._files / "checkpoints" / quote(key, safe="")

    def _stop_own(self, name: str) -> None:
        own = self._own.pop(name, None)
        if own is not None:
            self._stop_query(own.query)
            if own.lane is not None:
                own.lane.reader.source.close()

    def _stop_query(self, query: StreamingQuery | None) -> None:
        """Stop a query after its batch under way."""
        if query is None:
            return
        deadline = time.monotonic() + GRACE_SECONDS
        with suppress(Exception):  # Java may be gone already
            while query.isActive and query.status["isTriggerActive"] and time.monotonic() < deadline:
                time.sleep(0.05)
            query.stop()

    # --- what Spark's processes ask -------------------------------------------------------------------------------

    def _latest(self, key: str, start: Mapping[str, dict[str, Any]]) -> Any:
        return self._lane(key).latest(start)

    def _plan(self, key: str, start: Mapping[str, dict[str, Any]], end: Mapping[str, dict[str, Any]]) -> list[Any]:
        from barnabas.connect.driver.spark_format import RowsPartition, SourcePart

        self._store.ship(key, self._directory(key))
        lane = self._lane(key)
        if isinstance(lane, SharedLane):
            return [RowsPartition(rows) for rows in lane.plan(start, end)]
        spec = lane.reader.prepared.spec
        return [SourcePart(spec, part, task) for task, part in enumerate(lane.plan(start, end))]

    def _lane(self, key: str) -> SharedLane | OwnLane:
        if key.startswith("own:"):
            lane = self._own[key.removeprefix("own:")].lane
            assert lane is not None
            return lane
        return self._lanes[key].lane

    def _sink(self, name: str) -> tuple[Any, str]:
        """A batch of a sink begins: Spark has noted its offsets."""
        spec = self._own[name].prepared.spec
        key = f"sink:{name}:{spec.generation}"
        self._store.ship(key, self._directory(key))
        return spec, f"connect-{self._group}-{name}-{spec.generation}"

    # --- offsets --------------------------------------------------------------------------------------------------

    def _base(self, reader: Reader, entries: Sequence[Entry]) -> Offset:
        """Return where a connector starts if Spark's checkpoint does not know it."""
        if entries:
            return reader.offset(list(entries))
        spec = reader.prepared.spec
        key = f"start/{spec.name}/{spec.generation}"
        kept = self._store.note(key)
        if kept is None:
            kept = reader.start()
            self._store.keep(key, kept)
        return dict(kept)

    def _committed(self, name: str, offset: Offset) -> None:
        """Everything up to here is durable in its topics."""
        reader = self._reader(name)
        if reader is not None:
            entries = [[dict(entry.partition), dict(entry.offset or {})] for entry in reader.entries(offset)]
            self._on_event("offsets", name, {"entries": entries})

    def _used(self, name: str, topics: set[str]) -> None:
        """A connector has records for these topics."""
        known = self._topics.setdefault(name, set())
        if not topics <= known:
            known |= topics
            self._on_event("topics", name, {"topics": sorted(topics)})

    def _reader(self, name: str) -> Reader | None:
        own = self._own.get(name)
        if own is not None and own.lane is not None:
            return own.lane.reader
        return next((r for lane in self._lanes.values() if (r := lane.lane.reader(name)) is not None), None)

    def _lane_of(self, prepared: Prepared) -> str:
        trigger = next(trigger for limit, trigger in LANES if prepared.seconds <= limit)
        return f"lane:{trigger}"


def _overrides(prepared: Prepared, prefix: str) -> dict[str, str]:
    found = prepared.parts.overrides
    return {key.removeprefix(prefix): value for key, value in found.items() if key.startswith(prefix)}


def _trace(query: StreamingQuery, redact: Callable[[str], str]) -> str:
    return redact(str(query.exception() or "the query ended"))[-TRACE_CHARACTERS_MAX:]
