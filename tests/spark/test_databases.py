"""Change capture on Spark: PostgreSQL into a topic, the topic into SQLite and Iceberg; the driver is killed."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import NoSuchTableError
from tools.postgres_server import PostgresServer

from barnabas.connect.worker.settings import WorkerSettings
from barnabas.connect.worker.worker import Worker
from barnabas.testing import BrokerProcess

WAIT_SECONDS_MAX = 240
ROWS = 200
TOPIC = "shop.public.orders"


@pytest.fixture
def postgres() -> Iterator[PostgresServer]:
    server = PostgresServer()
    yield server
    server.stop()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_SECONDS_MAX):
        while not condition():
            await asyncio.sleep(0.2)


async def put(client: httpx.AsyncClient, name: str, config: dict[str, str]) -> None:
    answer = await client.put(f"/connectors/{name}/config", json=config)
    assert answer.status_code in (200, 201), answer.text


def sunk(path: Path) -> list[tuple[Any, ...]]:
    """Return the rows of the SQL sink's table."""
    session = sqlite3.connect(path)
    try:
        return session.execute("select id, item, quantity from orders order by id").fetchall()
    except sqlite3.OperationalError:  # no table yet
        return []
    finally:
        session.close()


def changes(catalog: dict[str, str]) -> list[dict[str, Any]]:
    """Return the rows of the change table."""
    opened = load_catalog("default", **catalog)
    try:
        found: list[dict[str, Any]] = opened.load_table("default.shop_public_orders").scan().to_arrow().to_pylist()
        return found
    except NoSuchTableError:
        return []
    finally:
        opened.close()


async def flow(broker: BrokerProcess, postgres: PostgresServer, tmp_path: Path) -> None:
    target, catalog = tmp_path / "copy.db", {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db"}
    catalog["warehouse"] = f"file://{tmp_path}/lake"
    capture = {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "database.hostname": "127.0.0.1",
        "database.port": str(postgres.port),
        "database.user": "postgres",
        "database.dbname": "postgres",
        "topic.prefix": "shop",
        "snapshot.chunk.rows": "50",
        "tasks.max": "2",
    }
    sink = {
        "connector.class": "sql-sink",
        "topics": TOPIC,
        "connection.url": f"sqlite:///{target}",
        "table.name.format": "orders",
        "insert.mode": "upsert",
        "pk.mode": "record_key",
        "auto.create": "true",
        "delete.enabled": "true",
        "transforms": "row",
        "transforms.row.type": "ExtractNewRecordState",
    }
    lake = {"connector.class": "iceberg-sink", "topics": TOPIC, "poll.interval.ms": "2000"}
    lake |= {f"iceberg.catalog.{key}": value for key, value in catalog.items()}
    given = {"bootstrap.servers": broker.bootstrap_servers, "port": "0", "data.dir": str(tmp_path / "data")}
    worker = Worker(WorkerSettings.read(given))
    await worker.start()
    session = postgres.connect()
    try:
        session.execute("create table orders (id int primary key, item text, quantity int)")
        session.execute(f"insert into orders select n, 'item ' || n, n from generate_series(1, {ROWS}) n".encode())
        async with httpx.AsyncClient(base_url=worker.url, timeout=90) as client:
            await until(lambda: worker.is_leader)
            await put(client, "capture", capture)
            await put(client, "copy", sink)
            await put(client, "lake", lake)
            await until(lambda: len(sunk(target)) == ROWS)
            session.execute("update orders set quantity = 0 where id % 2 = 0")
            assert worker.driver_pid is not None
            os.kill(worker.driver_pid, signal.SIGKILL)
            session.execute("delete from orders where id % 10 = 0")
            session.execute("update orders set id = id + 1000 where id <= 5")
            session.execute("insert into orders values (5000, 'last', 1)")
            books = session.execute("select id, item, quantity from orders order by id").fetchall()
            await until(lambda: sunk(target) == books)
            await until(lambda: any(row["id"] == 5000 for row in changes(catalog)))
    finally:
        session.close()
        await worker.stop()
    found = changes(catalog)
    places = [(row["_partition"], row["_offset"]) for row in found]
    assert len(places) == len(set(places)), "a change is in the lake twice"
    # The last chunk of the snapshot may be read late: new rows are then read by it, and come as changes as well.
    read = [row["id"] for row in found if row["_op"] == "r"]
    assert set(range(1, ROWS + 1)) <= set(read)
    assert len(read) == len(set(read))
    counts = Counter(row["_op"] for row in found)
    assert (counts["u"], counts["d"], counts["c"]) == (ROWS // 2, ROWS // 10 + 5, 5 + 1)


@pytest.mark.slow
def test_a_table_is_copied_through_a_topic_and_no_change_is_lost_or_repeated(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    with BrokerProcess(tmp_path / "broker") as broker:
        asyncio.run(flow(broker, postgres, tmp_path))
