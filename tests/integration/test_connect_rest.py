"""The REST API answers as Kafka's own worker 4.3.1 did: ``tests/data/connect-rest.json`` has its answers, in order.

Compared are status codes, the shape of answers, states, and the Location of what was created. ``ours`` is a status that
differs on purpose.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from connect_workers import worker

from barnabas import Admin, NewTopic, Settings
from barnabas.connect.errors import ConfigError
from barnabas.connect.worker.settings import WorkerSettings
from barnabas.connect.worker.worker import Worker
from barnabas.testing import Broker

TABLE: list[dict[str, Any]] = json.loads((Path(__file__).parents[1] / "data" / "connect-rest.json").read_text())
RETRY_SECONDS_MAX = 30


async def answer_to(client: httpx.AsyncClient, row: dict[str, Any]) -> httpx.Response:
    method, _, path = row["request"].partition(" ")
    content = row.get("raw")
    if "body" in row:
        content = json.dumps(row["body"])
    headers = {} if content is None else {"Content-Type": row.get("content_type", "application/json")}
    return await client.request(method, path, content=content, headers=headers)


def difference(row: dict[str, Any], answer: httpx.Response, url: str) -> str | None:
    """Return what differs from Kafka's answer."""
    wanted = row.get("ours", row["status"])
    if answer.status_code != wanted:
        return f"status {answer.status_code}, not {wanted}: {answer.text[:300]}"
    if wanted >= 400:
        found = answer.json()
        is_error = found.keys() == {"error_code", "message"} and found["error_code"] == wanted
        return None if is_error else f"not an error of Kafka's shape: {answer.text[:300]}"
    if "location" in row and answer.headers.get("location") != url + row["location"]:
        return f"Location {answer.headers.get('location')}"
    if "answer" not in row or row["request"].startswith("HEAD"):
        return None
    (kind, keys), found = next(iter(row["answer"].items())), answer.json()
    if isinstance(found, list) != (kind == "list"):
        return f"a {type(found).__name__}, not a {kind}"
    sample = (found[0] if found and isinstance(found[0], dict) else {}) if kind == "list" else found
    if keys is not None and sorted(sample) != keys:
        return f"keys {sorted(sample)}, not {keys}"
    if "state" in row and found["connector"]["state"] != row["state"]:
        return f"state {found['connector']['state']}, not {row['state']}"
    return None


async def ask_all(broker: Broker, tmp_path: Path) -> list[str]:
    different: list[str] = []
    async with worker(broker, tmp_path) as (made, client):
        while not made.is_leader:
            await asyncio.sleep(0.05)
        async with Admin(Settings.of({"bootstrap.servers": broker.bootstrap_servers})) as admin:
            await admin.create_topic(NewTopic("kc-lines", 1))
        for number, row in enumerate(TABLE):
            found = difference(row, await answer_to(client, row), made.url)
            # What a connector does follows a request a little later.
            deadline = asyncio.get_running_loop().time() + RETRY_SECONDS_MAX
            is_repeatable = row["request"].startswith("GET") or "offsets" in row["request"]
            while found is not None and is_repeatable and asyncio.get_running_loop().time() < deadline:
                await asyncio.sleep(0.1)
                found = difference(row, await answer_to(client, row), made.url)
            if found is not None:
                different.append(f"{number}: {row['request']} {row.get('note', '')}: {found}")
    return different


def test_every_answer_has_the_status_and_shape_of_kafkas(broker: Broker, tmp_path: Path) -> None:
    assert len(TABLE) == 104
    assert asyncio.run(ask_all(broker, tmp_path)) == []


HOSTILE: list[tuple[str, dict[str, str]]] = [
    ("/connectors", {"Host": "evil.example"}),
    ("/connectors", {"Origin": "http://evil.example"}),
    ("/connectors/..%2f..%2fetc", {}),
    ("/connectors/" + "x" * 5000, {}),
    ("/connector-plugins/os:system/config", {}),
]


def test_hostile_requests_get_an_error(broker: Broker, tmp_path: Path) -> None:
    async def ask() -> list[int]:
        async with worker(broker, tmp_path) as (_, client):
            return [(await client.get(path, headers=headers)).status_code for path, headers in HOSTILE]

    codes = asyncio.run(ask())
    assert not [code for code in codes if not 400 <= code < 500], codes


def test_a_worker_with_users_answers_only_them(broker: Broker, tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text("ann=secret\n")

    async def ask() -> list[int]:
        async with worker(broker, tmp_path, rest_users_file=str(users), host="0.0.0.0") as (_, client):
            known = [None, ("ann", "wrong"), ("ann", "secret")]
            return [(await client.get("/connectors", auth=auth)).status_code for auth in known]

    assert asyncio.run(ask()) == [401, 401, 200]


def test_a_worker_without_users_listens_on_loopback_only(broker: Broker) -> None:
    settings = {"bootstrap.servers": broker.bootstrap_servers, "host": "0.0.0.0", "port": "0"}
    with pytest.raises(ConfigError, match="without authentication"):
        Worker(WorkerSettings.read(settings))


def test_hostile_bodies_get_an_error_and_change_nothing(broker: Broker, tmp_path: Path) -> None:
    bodies = [b"[" * 100_000, b"\xff\xfe", b'{"name": 5}', b'{"config": []}', b"null", b'{"name": "a", "config": null}']
    bodies.append(b'{"name":"' + b"a" * 5_000_000 + b'"}')

    async def ask() -> tuple[list[int], Any]:
        async with worker(broker, tmp_path) as (made, client):
            while not made.is_leader:
                await asyncio.sleep(0.05)
            headers = {"Content-Type": "application/json"}
            codes = [(await client.post("/connectors", content=body, headers=headers)).status_code for body in bodies]
            return codes, (await client.get("/connectors")).json()

    codes, left = asyncio.run(ask())
    assert not [code for code in codes if not 400 <= code < 500], codes
    assert left == []
