"""The console's API over HTTP, against a real broker: overview, topics, groups, brokers, and changes of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest
from console_clients import browser, console

from barnabas import Admin, Consumer, ConsumerSettings, NewTopic, Producer, ProducerSettings, Settings
from barnabas.testing import Broker

AT = "/clusters/local"


def with_console(broker: Broker, check: Callable[[httpx.AsyncClient], Awaitable[None]], **options: Any) -> None:
    async def run() -> None:
        async with console(broker.bootstrap_servers, **options) as url, browser(url) as client:
            await check(client)

    asyncio.run(run())


async def fill(broker: Broker, topic: str, count: int, *, partitions: int = 2) -> None:
    servers = {"bootstrap.servers": broker.bootstrap_servers}
    async with Admin(Settings.of(servers)) as admin:
        await admin.create_topic(NewTopic(topic, partitions, 1))
    async with Producer(ProducerSettings.of(servers)) as producer:
        for number in range(count):
            await producer.send_soon(topic, key=b"k%d" % number, value=b"v%d" % number)
        await producer.flush()


def test_a_topic_is_created_described_changed_and_deleted(shared_broker: Broker) -> None:
    async def check(client: httpx.AsyncClient) -> None:
        draft = {"name": "made", "partitions": 3, "configs": {"retention.ms": "1000000"}}
        assert (await client.post(f"{AT}/topics", json=draft)).json()["partitions"] == 3
        assert (await client.post(f"{AT}/topics", json=draft)).status_code == 409
        rows = {row["name"]: row for row in (await client.get(f"{AT}/topics")).json()["topics"]}
        assert (rows["made"]["partitions"], rows["made"]["retention_ms"]) == (3, 1_000_000)
        change = {"set": {"cleanup.policy": "compact"}, "delete": ["retention.ms"]}
        assert (await client.patch(f"{AT}/topics/made/config", json=change)).status_code == 200
        configs = (await client.get(f"{AT}/topics/made/config")).json()["configs"]
        by_name = {row["name"]: row for row in configs}
        assert (by_name["cleanup.policy"]["value"], by_name["cleanup.policy"]["source"]) == ("compact", "topic")
        assert by_name["retention.ms"]["source"] == "default"
        assert by_name["cleanup.policy"]["doc"]
        clone = {"name": "copied", "clone_of": "made"}
        assert (await client.post(f"{AT}/topics", json=clone)).json()["partitions"] == 3
        assert (await client.get(f"{AT}/topics/copied")).json()["cleanup_policy"] == "compact"
        assert (await client.post(f"{AT}/topics/made/partitions", json={"count": 4})).status_code == 200
        assert (await client.get(f"{AT}/topics/made")).json()["partitions"] == 4
        assert (await client.delete(f"{AT}/topics/made")).status_code == 200
        assert (await client.get(f"{AT}/topics/made")).status_code == 404

    with_console(shared_broker, check)


def test_a_bad_setting_is_refused_with_the_brokers_reason(shared_broker: Broker) -> None:
    async def check(client: httpx.AsyncClient) -> None:
        await fill(shared_broker, "checked", 1)
        answer = await client.patch(f"{AT}/topics/checked/config", json={"set": {"retention.ms": "soon"}})
        assert answer.status_code == 400
        assert "INVALID_CONFIG" in answer.json()["message"]

    with_console(shared_broker, check)


def test_the_lag_of_a_group_is_shown_explained_and_reset_with_a_preview(shared_broker: Broker) -> None:
    async def check(client: httpx.AsyncClient) -> None:
        await fill(shared_broker, "read", 40)
        given = {"bootstrap.servers": shared_broker.bootstrap_servers, "group.id": "readers"}
        settings = ConsumerSettings.of({**given, "auto.offset.reset": "earliest", "enable.auto.commit": "false"})
        async with Consumer(settings) as consumer:
            await consumer.subscribe("read")
            seen = 0
            while seen < 40:
                seen += len(await consumer.poll())
            await consumer.commit()
        await fill_more(shared_broker, "read", 10)
        group = (await client.get(f"{AT}/groups/readers")).json()
        assert (group["lag"], group["state"]) == (10, "Empty")
        assert sum(row["lag"] for row in group["partitions"]) == 10
        assert group["behind_ms"] >= 0
        topics = (await client.get(f"{AT}/topics/read/groups")).json()["groups"]
        assert [(row["group"], row["lag"]) for row in topics] == [("readers", 10)]
        assert "readers" in str((await client.get(f"{AT}/groups/readers/explain")).json())
        preview = (await client.post(f"{AT}/groups/readers/reset", json={"to": "start"})).json()["moves"]
        assert sum(move["change"] for move in preview) == -40
        assert (await client.get(f"{AT}/groups/readers")).json()["lag"] == 10
        await client.post(f"{AT}/groups/readers/reset", json={"to": "start", "dry_run": False})
        assert (await client.get(f"{AT}/groups/readers")).json()["lag"] == 50
        assert (await client.delete(f"{AT}/groups/readers")).status_code == 200
        assert (await client.get(f"{AT}/groups/readers")).status_code == 404

    with_console(shared_broker, check)


async def fill_more(broker: Broker, topic: str, count: int) -> None:
    async with Producer(ProducerSettings.of({"bootstrap.servers": broker.bootstrap_servers})) as producer:
        for number in range(count):
            await producer.send_soon(topic, key=b"k%d" % number, value=b"v")
        await producer.flush()


def test_the_overview_has_brokers_totals_and_findings(shared_broker: Broker) -> None:
    async def check(client: httpx.AsyncClient) -> None:
        await fill(shared_broker, "seen", 5)
        overview = (await client.get(f"{AT}/overview")).json()
        assert [broker["controller"] for broker in overview["brokers"]] == [True]
        assert overview["partitions"] >= 2
        findings = (await client.get(f"{AT}/doctor")).json()["findings"]
        assert all(finding["mend"] for finding in findings)
        broker = overview["brokers"][0]["id"]
        detail = (await client.get(f"{AT}/brokers/{broker}")).json()
        assert detail["directory_rows"][0]["replicas"] >= 2
        assert (await client.get(f"{AT}/brokers/{broker}/config")).json()["configs"]
        assert (await client.get(f"{AT}/brokers")).json()["quorum"]["leader"] == broker
        assert (await client.get(f"{AT}/brokers/999")).status_code == 404
        assert (await client.get("/clusters/other/overview")).status_code == 404

    with_console(shared_broker, check)


def test_purging_deletes_records_and_keeps_the_topic(shared_broker: Broker) -> None:
    async def check(client: httpx.AsyncClient) -> None:
        await fill(shared_broker, "purged", 20)
        assert (await client.get(f"{AT}/topics/purged")).json()["records"] == 20
        await client.post(f"{AT}/topics/purged/purge", json={})
        assert (await client.get(f"{AT}/topics/purged")).json()["records"] == 0

    with_console(shared_broker, check)


def test_every_endpoint_is_documented(shared_broker: Broker) -> None:
    async def check(client: httpx.AsyncClient) -> None:
        document = (await client.get("/openapi.json")).json()
        operations = [each for path in document["paths"].values() for each in path.values()]
        assert all(operation["summary"] for operation in operations)
        assert "TopicDraft" in document["components"]["schemas"]
        names = [operation["operationId"] for operation in operations]
        assert len(names) == len(set(names))

    with_console(shared_broker, check)


@pytest.mark.parametrize("method", ["POST", "PATCH", "DELETE"])
def test_a_read_only_console_changes_nothing(shared_broker: Broker, method: str) -> None:
    async def check(client: httpx.AsyncClient) -> None:
        path = {"POST": f"{AT}/topics", "PATCH": f"{AT}/topics/x/config", "DELETE": f"{AT}/topics/x"}[method]
        answer = await client.request(method, path, json={"name": "x"})
        assert (answer.status_code, answer.json()["message"]) == (403, "this console is read-only")

    with_console(shared_broker, check, is_read_only=True)


def test_a_topic_is_found_as_soon_as_it_exists(shared_broker: Broker) -> None:
    async def run() -> None:
        async with console(shared_broker.bootstrap_servers) as url, browser(url) as client:
            assert (await client.get("/clusters/local/topics/newer.than.listing")).status_code == 404
            async with Admin(Settings.of({"bootstrap.servers": shared_broker.bootstrap_servers})) as admin:
                await admin.create_topic(NewTopic("newer.than.listing", 1, 1))
            assert (await client.get("/clusters/local/topics/newer.than.listing")).status_code == 200

    asyncio.run(run())
