"""Records in the console: search, newest first, filters, decoding with its reason, tail, produce, export, histogram."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pyarrow.parquet as pq
from console_clients import browser, console

from barnabas import Admin, NewTopic, Producer, ProducerSettings, Settings
from barnabas.testing import Broker

AT = "/clusters/local/topics"
BASE_MS = 1_700_000_000_000


def with_console(broker: Broker, check: Callable[[httpx.AsyncClient], Awaitable[None]]) -> None:
    async def run() -> None:
        async with console(broker.bootstrap_servers) as url, browser(url) as client:
            await check(client)

    asyncio.run(run())


async def fill(
    broker: Broker, topic: str, records: list[tuple[bytes | None, bytes | None]], partitions: int = 3
) -> None:
    servers = {"bootstrap.servers": broker.bootstrap_servers}
    async with Admin(Settings.of(servers)) as admin:
        await admin.create_topic(NewTopic(topic, partitions, 1))
    async with Producer(ProducerSettings.of(servers)) as producer:
        for number, (key, value) in enumerate(records):
            await producer.send_soon(
                topic, key=key, value=value, headers=[("n", b"%d" % number)], timestamp_ms=BASE_MS + number * 1000
            )
        await producer.flush()


def events(text: str) -> list[tuple[str, Any]]:
    found = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines())
        if fields:
            found.append((fields["event"], json.loads(fields["data"])))
    return found


async def search(client: httpx.AsyncClient, topic: str, **query: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The rows, and what the end of the search says."""
    found = events((await client.get(f"{AT}/{topic}/records", params=query)).text)
    assert found[0][0] == "progress"
    rows = [row for name, data in found if name == "records" for row in data]
    return rows, found[-1][1]


def orders(count: int) -> list[tuple[bytes | None, bytes | None]]:
    return [
        (b"k%d" % (number % 10), json.dumps({"id": number, "total": number * 2}).encode()) for number in range(count)
    ]


def test_the_newest_records_come_first(shared_broker: Broker) -> None:
    async def check(client: httpx.AsyncClient) -> None:
        await fill(shared_broker, "newest", orders(500))
        rows, end = await search(client, "newest", limit="5")
        assert [json.loads(row["value"]["text"])["id"] for row in rows] == [499, 498, 497, 496, 495]
        assert end["reason"] == "limit"
        rows, _ = await search(client, "newest", start="start", partition="1", limit="2")
        assert [(row["partition"], row["offset"]) for row in rows] == [(1, 0), (1, 1)]
        rows, _ = await search(client, "newest", start=f"@{BASE_MS + 498_000}", limit="10")
        assert sorted(json.loads(row["value"]["text"])["id"] for row in rows) == [498, 499]

    with_console(shared_broker, check)


def test_filters_find_by_key_header_text_and_expression(shared_broker: Broker) -> None:
    async def check(client: httpx.AsyncClient) -> None:
        await fill(shared_broker, "filtered", orders(300))
        rows, end = await search(client, "filtered", key="k7", limit="1000")
        assert {row["key"]["text"] for row in rows} == {"k7"}
        assert (len(rows), end["scanned"], end["reason"]) == (30, 300, "end")
        rows, _ = await search(client, "filtered", header="n:42")
        assert [json.loads(row["value"]["text"])["id"] for row in rows] == [42]
        rows, _ = await search(client, "filtered", where="value.total > 590 && key == 'k9'")
        assert [json.loads(row["value"]["text"])["id"] for row in rows] == [299]
        rows, _ = await search(client, "filtered", contains='"id": 12[0-2]')
        assert sorted(json.loads(row["value"]["text"])["id"] for row in rows) == [120, 121, 122]
        assert await search(client, "filtered", contains="^(.*.*)*x$") == ([], {**end, "found": 0})
        answer = await client.get(f"{AT}/filtered/records", params={"contains": "("})
        assert (answer.status_code, "regular expression" in answer.json()["message"]) == (400, True)
        answer = await client.get(f"{AT}/filtered/records", params={"where": "value. >"})
        assert (answer.status_code, "--filter" in answer.json()["message"]) == (400, True)
        answer = await client.get(f"{AT}/filtered/records", params={"limit": "1000000"})
        assert answer.status_code == 400

    with_console(shared_broker, check)


def test_each_form_says_why(shared_broker: Broker) -> None:
    async def check(client: httpx.AsyncClient) -> None:
        hostile = b"<script>alert(1)</script>"
        records: list[tuple[bytes | None, bytes | None]] = [
            (None, b'{"a": 1}'),
            (hostile, hostile),
            (b"bin", bytes(range(200, 250))),
            (b"gone", None),
            (b"big", b"x" * 10_000),
        ]
        await fill(shared_broker, "forms", records, partitions=1)
        rows, _ = await search(client, "forms", start="start")
        assert [row["value"] and row["value"]["form"] for row in rows] == ["json", "string", "hex", None, "string"]
        assert "valid JSON" in rows[0]["value"]["why"]
        assert rows[1]["key"]["text"] == hostile.decode()
        assert rows[0]["key"] is None
        assert (rows[4]["value"]["cut"], len(rows[4]["value"]["text"])) == (True, 2000)
        whole = (await client.get(f"{AT}/forms/records/0/4")).json()
        assert len(whole["value"]["text"]) == 10_000
        assert (await client.get(f"{AT}/forms/records/0/2")).json()["raw_value"]
        assert (await client.get(f"{AT}/forms/records/0/99")).status_code == 404

    with_console(shared_broker, check)


def test_the_tail_shows_what_is_produced_here(shared_broker: Broker) -> None:
    async def check(client: httpx.AsyncClient) -> None:
        await fill(shared_broker, "tailed", orders(3), partitions=1)
        async with client.stream("GET", f"{AT}/tailed/tail") as answer:
            lines = answer.aiter_lines()
            assert await anext(lines) == "event: progress"
            draft = {"key": "k", "value": "fresh", "headers": [["a", "b"]]}
            sent = (await client.post(f"{AT}/tailed/records", json=draft)).json()
            assert (sent["partition"], sent["offset"]) == (0, 3)
            async with asyncio.timeout(30):
                async for line in lines:
                    if "fresh" in line:
                        (row,) = json.loads(line.removeprefix("data: "))
                        assert (row["offset"], row["headers"]) == (3, [["a", "b"]])
                        break

    with_console(shared_broker, check)


def test_bytes_and_tombstones_are_produced(shared_broker: Broker) -> None:
    async def check(client: httpx.AsyncClient) -> None:
        await fill(shared_broker, "drafted", [], partitions=1)
        for draft in (
            {"key": "00ff", "key_form": "hex", "value_form": "null"},
            {"value": "AAEC", "value_form": "base64"},
            {"value": "", "partition": 0},
        ):
            assert (await client.post(f"{AT}/drafted/records", json=draft)).status_code == 200
        bad = await client.post(f"{AT}/drafted/records", json={"value": "zz", "value_form": "hex"})
        assert bad.status_code == 400
        rows, _ = await search(client, "drafted", start="start", decode="hex", decode_key="hex")
        assert [(row["key"] and row["key"]["text"], row["value"] and row["value"]["text"]) for row in rows] == [
            ("00ff", None),
            (None, "000102"),
            (None, ""),
        ]

    with_console(shared_broker, check)


def test_exports_have_every_record_of_the_query(shared_broker: Broker) -> None:
    async def check(client: httpx.AsyncClient) -> None:
        await fill(shared_broker, "exported", orders(2500))
        text = (await client.get(f"{AT}/exported/export", params={"format": "jsonl"})).text
        rows = [json.loads(line) for line in text.splitlines()]
        assert sorted(json.loads(row["value"])["id"] for row in rows) == list(range(2500))
        lines = (await client.get(f"{AT}/exported/export", params={"format": "csv", "key": "k1"})).text.splitlines()
        assert (lines[0], len(lines)) == ("partition,offset,timestamp,key,value,headers", 251)
        answer = await client.get(f"{AT}/exported/export", params={"format": "parquet"})
        table = pq.read_table(io.BytesIO(answer.content))
        assert table.num_rows == 2500
        assert answer.headers["content-disposition"] == 'attachment; filename="exported.parquet"'

    with_console(shared_broker, check)


def test_the_histogram_counts_records_by_time(shared_broker: Broker) -> None:
    async def check(client: httpx.AsyncClient) -> None:
        await fill(shared_broker, "timed", orders(100))
        query = {"from": str(BASE_MS), "to": str(BASE_MS + 100_000), "buckets": "10"}
        assert (await client.get(f"{AT}/timed/histogram", params=query)).json()["counts"] == [10] * 10

    with_console(shared_broker, check)
