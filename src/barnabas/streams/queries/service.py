"""Stores of applications over HTTP: views that are kept in memory and brought up to date by each request.

::

    GET /streams                                 applications and their stores
    GET /streams/APP                             the entry of an application in the catalog
    GET /streams/APP/stores/STORE                rows: from, to (keys), limit, since, until (times of windows)
    GET /streams/APP/stores/STORE/KEY            value: at, partition; windows: since, until; versions=true
    GET /metrics                                 for Prometheus

Every answer has the position for which it is true. A key is written as text; keys that are JSON as JSON.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from barnabas.client.cluster.cluster import Cluster
from barnabas.observe.metrics import CONTENT_TYPE, Metrics
from barnabas.rest.access import Access
from barnabas.rest.bodies import JsonResponse, int_parameter, is_true
from barnabas.rest.errors import RestError
from barnabas.rest.service import NOT_FOUND, Service, Users
from barnabas.spark.pipelines.status import published
from barnabas.streams.catalog.application import Application, StoreEntry
from barnabas.streams.catalog.formats import json_value, key_from_text
from barnabas.streams.catalog.task_metrics import TaskMetrics, metrics_topic
from barnabas.streams.catalog.topic import applications
from barnabas.streams.errors import StreamsError
from barnabas.streams.positions import Position
from barnabas.streams.queries.answers import Answers, StoreRow
from barnabas.streams.queries.metrics import DriverState, families
from barnabas.streams.queries.reader import STORE_BYTES_MAX, StoreReader, StoreTooLarge
from barnabas.streams.queries.view import reader_of_entry

__all__ = ["QueryService", "Views"]

ROWS_MAX: Final = 10_000  # rows of a response
ROWS: Final = 1_000  # unless limit= says otherwise
VIEWS_BYTES_MAX: Final = 1024 * 1024 * 1024  # memory of all views; the one that was used longest ago makes room
CATALOG_SECONDS: Final = 5.0
BAD_REQUEST: Final = 400
TOO_LARGE: Final = 507  # insufficient storage


class Views:
    """Readers of stores that stay in memory between requests.

    view_bytes_max: limit of one store. views_bytes_max: limit of all of them.
    """

    def __init__(
        self, cluster: Cluster, *, view_bytes_max: int = STORE_BYTES_MAX, views_bytes_max: int = VIEWS_BYTES_MAX
    ) -> None:
        self.cluster = cluster
        self._view_bytes_max = view_bytes_max
        self._views_bytes_max = views_bytes_max
        self._readers: OrderedDict[tuple[str, str, str], StoreReader] = OrderedDict()
        self._counters: dict[str, StoreReader] = {}  # readers of the metrics topics
        self._known: dict[str, Application] = {}
        self._known_until = 0.0

    @property
    def size(self) -> int:
        return sum(reader.size for reader in self._readers.values())

    async def applications(self) -> dict[str, Application]:
        now = asyncio.get_running_loop().time()
        if now >= self._known_until:
            self._known, self._known_until = await applications(self.cluster), now + CATALOG_SECONDS
        return self._known

    async def application(self, name: str) -> Application:
        known = await self.applications()
        if name not in known:
            raise RestError(
                NOT_FOUND, f"the cluster knows no application {name}; it knows: {', '.join(known) or 'none'}"
            )
        return known[name]

    async def reader(self, application_id: str, store: str) -> StoreReader:
        """The view of a store. One that the generation of the application has outdated is dropped."""
        application = await self.application(application_id)
        entry = application.store(store)
        key = application_id, store, entry.topic
        reader = self._readers.pop(key, None)
        if reader is None or reader.entry != entry:
            reader = reader_of_entry(self.cluster, entry, self._view_bytes_max)
        self._readers[key] = reader
        while self.size > self._views_bytes_max and len(self._readers) > 1:
            self._readers.popitem(last=False)
        return reader

    async def metrics(self) -> tuple[dict[str, list[TaskMetrics]], dict[str, DriverState]]:
        """Counters of the tasks of all applications, and states of their drivers."""
        known = await self.applications()
        self._counters = {
            name: self._counters.get(name) or reader_of_entry(self.cluster, _metrics_entry(name)) for name in known
        }
        tasks = {}
        for name, reader in self._counters.items():
            if await self.cluster.look_up([reader.entry.topic]):
                rows = await reader.all()
                tasks[name] = [msgspec.convert(row.value, TaskMetrics) for row in rows]
        statuses = await published(self.cluster.settings)
        drivers = {
            each.name: DriverState(each.state == "running", each.state == "failed", each.batch_id + 1, each.batch_ms)
            for each in statuses
            if each.name in known
        }
        return tasks, drivers

    def drop(self, reader: StoreReader) -> None:
        for key in [key for key, known in self._readers.items() if known is reader]:
            del self._readers[key]


class QueryService(Service):
    """The ASGI application."""

    def __init__(self, views: Views, *, access: Access, users: Users | None = None) -> None:
        self._views = views
        store = "/streams/{application:segment}/stores/{store:segment}"
        super().__init__(
            "streams",
            [
                Route("/streams", self._list),
                Route("/streams/{application:segment}", self._describe),
                Route(store, self._rows),
                Route(store + "/{key:segment}", self._key),
                Route("/metrics", self._metrics),
                Route("/readyz", self._ready),
            ],
            access=access,
            users=users,
        )

    async def _ready(self, _: Request) -> Response:
        await self._views.applications()
        return JsonResponse({"status": "ready"})

    async def _metrics(self, _: Request) -> Response:
        tasks, drivers = await self._views.metrics()
        page = Metrics()
        page.add(lambda: families(tasks, drivers))
        return Response("".join(page.page()), media_type=CONTENT_TYPE)

    async def _list(self, _: Request) -> Response:
        known = await self._views.applications()
        return JsonResponse(
            [
                {"application": name, "tasks": each.tasks, "stores": [store.name for store in each.stores]}
                for name, each in known.items()
            ]
        )

    async def _describe(self, request: Request) -> Response:
        return JsonResponse(await self._views.application(request.path_params["application"]))

    async def _rows(self, request: Request) -> Response:
        reader = await self._reader(request)
        limit = int_parameter(request, "limit", ROWS)
        if not 0 < limit <= ROWS_MAX:
            raise RestError(BAD_REQUEST, f"limit={limit}: pass a number from 1 to {ROWS_MAX}")
        first, last = (
            None if text is None else self._typed(reader, text)
            for text in (request.query_params.get("from"), request.query_params.get("to"))
        )
        since, until = _times(request)
        found = await self._asked(reader, reader.range(first, last, limit=limit + 1, start=since, end=until))
        body = {"rows": _plain_rows(found)[:limit], "is_complete": len(found) <= limit}
        return JsonResponse(body | {"positions": _positions(found.positions)})

    async def _key(self, request: Request) -> Response:
        reader = await self._reader(request)
        key = self._typed(reader, request.path_params["key"])
        partition = None if "partition" not in request.query_params else int_parameter(request, "partition", 0)
        since, until = _times(request)
        if reader.entry.kind in ("window", "session"):
            found = await self._asked(reader, reader.fetch(key, since, until, partition=partition))
            return JsonResponse({"rows": _plain_rows(found), "positions": _positions(found.positions)})
        if is_true(request, "versions"):
            versions = await self._asked(reader, reader.versions(key, since, until, partition=partition))
            rows = [each._replace(value=json_value(each.value))._asdict() for each in versions]
            return JsonResponse({"rows": rows, "positions": _positions(versions.positions)})
        at = None if "at" not in request.query_params else int_parameter(request, "at", 0)
        answer = await self._asked(reader, reader.get(key, at=at, partition=partition))
        if answer.value is None:
            raise RestError(NOT_FOUND, f"store {reader.entry.name} has no row with key {request.path_params['key']}")
        body = {"key": json_value(key), "value": json_value(answer.value), "timestamp": answer.timestamp}
        return JsonResponse(body | {"partition": answer.partition, "position": _position(answer.position)})

    async def _reader(self, request: Request) -> StoreReader:
        try:
            return await self._views.reader(request.path_params["application"], request.path_params["store"])
        except StreamsError as error:
            raise RestError(NOT_FOUND, str(error)) from error

    async def _asked(self, reader: StoreReader, query: Any) -> Any:
        try:
            return await query
        except StoreTooLarge as error:
            self._views.drop(reader)
            raise RestError(TOO_LARGE, str(error)) from error
        except StreamsError as error:
            raise RestError(BAD_REQUEST, str(error)) from error

    def _typed(self, reader: StoreReader, text: str) -> Any:
        try:
            return key_from_text(reader.entry.key, text)
        except StreamsError as error:
            raise RestError(BAD_REQUEST, str(error)) from error


def _metrics_entry(application_id: str) -> StoreEntry:
    """The metrics topic of an application as a store."""
    return StoreEntry("task-metrics", "key_value", metrics_topic(application_id), "str", "json")


def _times(request: Request) -> tuple[int | None, int | None]:
    since, until = (
        None if name not in request.query_params else int_parameter(request, name, 0) for name in ("since", "until")
    )
    return since, until


def _plain_rows(found: Answers[StoreRow]) -> list[dict[str, Any]]:
    rows = []
    for row in found:
        is_window = hasattr(row.key, "start") and hasattr(row.key, "end")
        key = {"key": json_value(row.key.key), "start": row.key.start, "end": row.key.end} if is_window else row.key
        rows.append({"key": json_value(key), "value": json_value(row.value), "timestamp": row.timestamp})
    return rows


def _position(position: Position) -> dict[str, dict[str, int]]:
    """A position as JSON: topic -> partition -> offset of the next record."""
    return {topic: {str(number): offset for number, offset in offsets.items()} for topic, offsets in position.items()}


def _positions(positions: Mapping[int, Position]) -> dict[str, Any]:
    return {str(partition): _position(position) for partition, position in positions.items()}
