"""Kafka's worker judges our REST API: the same requests to both, in order, status codes and answers compared."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import httpx

from conformance.connect.workers import ConnectWorker

TABLE: Final = Path(__file__).parents[2] / "tests" / "data" / "connect-rest.json"
RETRY_SECONDS_MAX: Final = 15.0
RETRY_SECONDS: Final = 0.3
TEXT_MAX: Final = 300
NOT_FOUND, CONFLICT = 404, 409
FILE: Final = {
    "connector.class": "FileStreamSource",
    "file": "/dev/null",
    "topic": "more-lines",
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.storage.StringConverter",
}
# Requests beside the table: names that need escapes, queries, states, tasks, offsets.
MORE: Final[list[dict[str, Any]]] = [
    {"request": "PUT /connectors/a%20b/config", "body": FILE},
    {"request": "GET /connectors/a%20b"},
    {"request": "GET /connectors/a%20b/status", "state": "RUNNING"},
    {"request": "PUT /connectors/a%20b/pause"},
    {"request": "GET /connectors/a%20b/status", "state": "PAUSED"},
    {"request": "PUT /connectors/a%20b/pause"},
    {"request": "PUT /connectors/a%20b/stop"},
    {"request": "GET /connectors/a%20b/status", "state": "STOPPED"},
    {"request": "GET /connectors/a%20b/tasks"},
    {"request": "GET /connectors/a%20b/tasks/0/status"},
    {"request": "GET /connectors/a%20b/offsets"},
    {"request": "DELETE /connectors/a%20b/offsets"},
    {"request": "PUT /connectors/a%20b/resume"},
    {"request": "GET /connectors/a%20b/status", "state": "RUNNING"},
    {"request": "POST /connectors/a%20b/restart?includeTasks=true&onlyFailed=true"},
    {"request": "POST /connectors/a%20b/tasks/9/restart"},
    {"request": "GET /connectors?expand=status&expand=info"},
    {"request": "GET /connectors?expand=nothing"},
    {"request": "DELETE /connectors/a%20b"},
    {"request": "GET /connectors/a%20b"},
    {"request": "PUT /connectors/gone/resume"},
    {"request": "PUT /connectors/gone/stop"},
    {"request": "PUT /connectors/gone/topics/reset"},
    {"request": "PATCH /connectors/gone/config", "body": {"a": "b"}},
    {"request": "POST /connectors/gone/restart?includeTasks=true"},
    {"request": "GET /nothing"},
    {"request": "PUT /connectors"},
]


class RestJudge:
    """Sends each request to both workers and notes where the answers differ."""

    def __init__(self, theirs: ConnectWorker, ours: ConnectWorker) -> None:
        self._workers = (theirs, ours)

    def table(self) -> list[str]:
        """Run the requests whose answers of Kafka's worker are also recorded."""
        return self._all(json.loads(TABLE.read_text()))

    def more(self) -> list[str]:
        """Run the other requests."""
        return self._all(MORE)

    def _all(self, rows: list[dict[str, Any]]) -> list[str]:
        found = []
        for row in rows:
            text = self._difference(row)
            if text:
                print(f"  {row['request']}: {text}"[:TEXT_MAX], flush=True)
                found.append(f"{row['request']} {row.get('note', '')}: {text}")
        return found

    def _difference(self, row: Mapping[str, Any]) -> str:
        """Send a request; what a connector does follows a little later, so that reads are repeated."""
        deadline = time.monotonic() + RETRY_SECONDS_MAX
        is_read = row["request"].startswith("GET") or "offsets" in row["request"]
        theirs, ours = (_settled(worker, row) for worker in self._workers)
        while text := different(row, theirs, ours):
            if not is_read or time.monotonic() > deadline:
                return text
            time.sleep(RETRY_SECONDS)
            theirs, ours = (_settled(worker, row) for worker in self._workers)
        return ""


def _settled(worker: ConnectWorker, row: Mapping[str, Any]) -> httpx.Response:
    """Return an answer that is not about a rebalance, and has the state that the row waits for."""
    method, _, path = row["request"].partition(" ")
    content = row.get("raw")
    if "body" in row:
        content = json.dumps(row["body"])
    headers = {} if content is None else {"Content-Type": row.get("content_type", "application/json")}
    deadline = time.monotonic() + RETRY_SECONDS_MAX
    while True:
        answer = worker.client.request(method, path, content=content, headers=headers)
        is_settled = answer.status_code != CONFLICT or "already exists" in answer.text
        if is_settled and "state" in row and answer.status_code == 200:
            is_settled = answer.json()["connector"]["state"] == row["state"]
        if is_settled or time.monotonic() > deadline:
            return answer
        time.sleep(RETRY_SECONDS)


def different(row: Mapping[str, Any], theirs: httpx.Response, ours: httpx.Response) -> str:
    """Return what differs; ``ours`` of a row is a status code that differs on purpose."""
    wanted = row.get("ours", theirs.status_code)
    if ours.status_code != wanted:
        return f"theirs {theirs.status_code} {theirs.text[:TEXT_MAX]}, ours {ours.status_code} {ours.text[:TEXT_MAX]}"
    if not all(_is_json(answer) for answer in (theirs, ours)):
        return ""  # what Jersey and starlette answer to OPTIONS
    if bool(theirs.content) != bool(ours.content):
        return f"theirs {theirs.text[:TEXT_MAX]!r}, ours {ours.text[:TEXT_MAX]!r}"
    if theirs.status_code in (NOT_FOUND, CONFLICT) and wanted == theirs.status_code:
        texts = [_plain(answer.json().get("message", "")) for answer in (theirs, ours)]
        return "" if texts[0] == texts[1] else f"theirs {texts[0]!r}, ours {texts[1]!r}"
    if theirs.status_code >= 400 or not theirs.content:
        return ""
    shapes = [shape(answer.json(), row["request"]) for answer in (theirs, ours)]
    return "" if shapes[0] == shapes[1] else f"theirs {json.dumps(shapes[0])}, ours {json.dumps(shapes[1])}"[:900]


def _is_json(answer: httpx.Response) -> bool:
    return not answer.content or "json" in answer.headers.get("content-type", "")


def _plain(text: str) -> str:
    return re.sub(r"HTTP (\d+) .*", r"HTTP \1", text)


def shape(value: Any, request: str) -> Any:
    """Return the keys and kinds of an answer; values where both workers must have the same."""
    if "plugins" in request or "loggers" in request:  # the workers have different plugins and loggers
        sample = value[0] if isinstance(value, list) and value else value
        return sorted(sample) if isinstance(sample, dict) and "loggers/" not in request else type(value).__name__
    return _shape(value, "")


def _shape(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        return {key: _shape(each, key) for key, each in sorted(value.items())}
    if isinstance(value, list):
        return [_shape(each, name) for each in value]
    if name in ("worker_id", "version", "commit", "kafka_cluster_id", "trace", "position", "message", "file"):
        return type(value).__name__
    return value
