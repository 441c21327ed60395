"""A worker against a real broker: Kafka Connect's REST API, its topics, leadership and forwarding. Without Spark."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from connect_workers import in_a_loop, reaches, records, until, worker

from barnabas.testing import Broker

FILE = {"connector.class": "FileStreamSource", "tasks.max": "1", "file": "/tmp/in.txt", "topic": "lines"}


@in_a_loop
async def test_a_connectors_life(broker: Broker, tmp_path: Path) -> None:
    async with worker(broker, tmp_path) as (made, client):
        await until(lambda: made.is_leader)
        root = (await client.get("/")).json()
        assert root.keys() == {"version", "commit", "kafka_cluster_id"}
        assert (await client.get("/health")).json()["status"] == "healthy"
        created = await client.post("/connectors", json={"name": "src", "config": FILE})
        assert created.status_code == 201
        assert created.headers["location"] == f"{made.url}/connectors/src"
        assert created.json() == {"name": "src", "config": {**FILE, "name": "src"}, "tasks": [], "type": "source"}
        await reaches(client, "src", "RUNNING")
        status = (await client.get("/connectors/src/status")).json()
        worker_id = made.url.removeprefix("http://")
        task = {"id": 0, "state": "RUNNING", "worker_id": worker_id, "version": root["version"]}
        assert status == {
            "name": "src",
            "connector": {key: value for key, value in task.items() if key != "id"},
            "tasks": [task],
            "type": "source",
        }
        assert (await client.get("/connectors/src")).json()["tasks"] == [{"connector": "src", "task": 0}]
        assert (await client.put("/connectors/src/pause")).status_code == 202
        await reaches(client, "src", "PAUSED")
        assert (await client.put("/connectors/src/resume")).status_code == 202
        await reaches(client, "src", "RUNNING")
        again = await client.post("/connectors/src/restart?includeTasks=true&onlyFailed=false")
        assert (again.status_code, again.json()["connector"]["state"]) == (202, "RESTARTING")
        await reaches(client, "src", "RUNNING")
        assert (await client.post("/connectors/src/restart")).status_code == 204
        assert (await client.delete("/connectors/src")).status_code == 204
        assert (await client.get("/connectors/src/status")).status_code == 404
        assert (await client.get("/connectors")).json() == []


@in_a_loop
async def test_offsets_change_only_while_a_connector_is_stopped(broker: Broker, tmp_path: Path) -> None:
    async with worker(broker, tmp_path) as (made, client):
        await until(lambda: made.is_leader)
        await client.put("/connectors/src/config", json=FILE)
        path = "/connectors/src/offsets"

        async def offsets() -> Any:
            return (await client.get(path)).json()["offsets"]

        entry = {"partition": {"filename": "/tmp/in.txt"}, "offset": {"position": 6}}
        assert await until(offsets) == [entry]
        changed = {"offsets": [entry | {"offset": {"position": 2}}]}
        assert (await client.patch(path, json=changed)).status_code == 400
        assert (await client.delete(path)).status_code == 400
        assert (await client.put("/connectors/src/stop")).status_code == 204
        assert (await client.get("/connectors/src/tasks")).json() == []
        await reaches(client, "src", "STOPPED")
        assert (await client.patch(path, json=changed)).status_code == 200
        assert await offsets() == changed["offsets"]
        for wrong in ({"wrong": "x"}, {"filename": "x", "more": 1}):
            bad = {"offsets": [{"partition": wrong, "offset": {"position": 1}}]}
            assert (await client.patch(path, json=bad)).status_code == 400
        assert (await client.patch(path, json={"offsets": []})).status_code == 400
        assert (await client.delete(path)).status_code == 200
        assert await offsets() == []


@in_a_loop
async def test_the_topics_are_in_kafkas_formats(broker: Broker, tmp_path: Path) -> None:
    async with worker(broker, tmp_path) as (made, client):
        await until(lambda: made.is_leader)
        await client.put("/connectors/src/config", json=FILE)
        await reaches(client, "src", "RUNNING")
        await client.put("/connectors/src/stop")
        found = await records(broker, "connect-configs")
    names = ",".join(f'"{key}":"{value}"' for key, value in {**FILE, "name": "src"}.items())
    assert found[b"connector-src"] == f'{{"properties":{{{names}}}}}'.encode()
    assert found[b"target-state-src"] == b'{"state":"PAUSED","state.v2":"STOPPED"}'
    assert found[b"commit-src"] == b'{"tasks":1}'


@in_a_loop
async def test_secrets_are_hidden_and_kept(broker: Broker, tmp_path: Path) -> None:
    (tmp_path / "secretive.py").write_text(
        "from barnabas.connect.plugins import Config, Cursor, Secret, source\n"
        "class Keys(Config):\n    topic: str\n    file: str = ''\n    token: Secret = Secret('')\n"
        "@source('secretive')\ndef secretive(config: Keys, cursor: int = 0):\n    yield Cursor(cursor)\n"
    )
    config = {"connector.class": "secretive", "topic": "t", "token": "hush-hush"}
    async with worker(broker, tmp_path) as (made, client):
        await until(lambda: made.is_leader)
        created = await client.post("/connectors", json={"name": "s", "config": config})
        assert created.status_code == 201, created.text
        await reaches(client, "s", "RUNNING")
        shown = [(await client.get(f"/connectors/s{path}")).text for path in ("", "/config", "/tasks", "/status")]
        shown.append((await client.get("/connectors?expand=info&expand=status")).text)
        validated = await client.put("/connector-plugins/secretive/config/validate", json={**config, "name": "s"})
        shown.append(validated.text)
        assert not [text for text in [created.text, *shown] if "hush-hush" in text]
        back = (await client.get("/connectors/s/config")).json()
        assert back["token"] == "********"
        assert (await client.put("/connectors/s/config", json=back | {"topic": "u"})).status_code == 200
        stored = await records(broker, "connect-configs")
    assert b"hush-hush" in (stored[b"connector-s"] or b"")
    statuses = await records(broker, "connect-status")
    assert not [value for value in statuses.values() if b"hush-hush" in (value or b"")]


@in_a_loop
async def test_a_failed_connector_shows_its_trace(broker: Broker, tmp_path: Path) -> None:
    async with worker(broker, tmp_path) as (made, client):
        await until(lambda: made.is_leader)
        await client.put("/connectors/bad/config", json={**FILE, "topic": "fails"})
        await reaches(client, "bad", "FAILED RUNNING")
        task = (await client.get("/connectors/bad/tasks/0/status")).json()
        assert (task["state"], task["trace"]) == ("FAILED", "boom")


@in_a_loop
async def test_a_driver_that_dies_is_started_again(broker: Broker, tmp_path: Path) -> None:
    async with worker(broker, tmp_path) as (made, client):
        await until(lambda: made.is_leader)
        await client.put("/connectors/src/config", json=FILE)
        await reaches(client, "src", "RUNNING")
        first = made.driver_pid
        await client.put("/connectors/killer/config", json={**FILE, "topic": "dies"})
        await until(lambda: made.driver_pid not in (None, first))
        await client.delete("/connectors/killer")
        await reaches(client, "src", "RUNNING")


@in_a_loop
async def test_another_worker_forwards_and_takes_over(broker: Broker, tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        first, _ = await stack.enter_async_context(worker(broker, tmp_path))
        await until(lambda: first.is_leader)
        async with AsyncExitStack() as inner:
            second, two = await inner.enter_async_context(worker(broker, tmp_path))

            async def is_created() -> bool:
                answer = await two.put("/connectors/src/config", json=FILE)
                assert answer.status_code in (201, 200, 409), answer.text
                return answer.status_code != 409

            await until(is_created)
            await reaches(two, "src", "RUNNING")
            assert first.driver_pid is not None
            assert first.is_leader, "a worker that joins does not take the lead"
            assert not second.is_leader
            await first.stop()
            await until(lambda: second.is_leader)
            await until(lambda: second.driver_pid)
            await reaches(two, "src", "RUNNING")
