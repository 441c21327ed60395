"""SQL sink and source against PostgreSQL and SQLite."""

from __future__ import annotations

import datetime as dt
import random
import sqlite3
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tools.postgres_server import PostgresServer

from barnabas.connect.connectors.sql.sink import SqlSink
from barnabas.connect.connectors.sql.source import SqlSource
from barnabas.connect.connectors.sql.urls import address_of
from barnabas.connect.errors import ConfigError, ConnectError, DataError
from barnabas.connect.plugins import Context
from barnabas.connect.records import Batch, Limit, Offset, Record
from barnabas.connect.schemas import (
    INT32,
    STRING,
    Field,
    array,
    date_schema,
    decimal_schema,
    struct,
    timestamp_schema,
)

LIMIT = Limit(10_000, 1 << 20)
UPSERT = {"insert_mode": "upsert", "pk_mode": "record_key", "auto_create": "true", "delete_enabled": "true"}


class Store:
    """One of the databases, and a session beside the connector's."""

    def __init__(self, url: str, connect: Callable[[], Any]) -> None:
        self.url = url
        self._connect = connect

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        session = self._connect()
        try:
            cursor = session.execute(statement)
            return list(cursor.fetchall()) if cursor.description else []
        finally:
            session.close()


@pytest.fixture(params=["postgresql", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "sqlite":
        path = tmp_path / "data.db"
        return Store(f"jdbc:sqlite:{path}", lambda: sqlite3.connect(path, isolation_level=None))
    server: PostgresServer = request.getfixturevalue("postgres")
    name = server.database(f"sql{abs(hash(request.node.nodeid)) % 10**9}")
    return Store(f"jdbc:postgresql://127.0.0.1:{server.port}/{name}?user=postgres", lambda: server.connect(name))


def sink(store: Store, **config: str) -> SqlSink:
    given = {"connection.url": store.url} | {key.replace("_", "."): value for key, value in config.items()}
    return SqlSink(SqlSink.Config.read(given), Context("sink"))


def write(made: SqlSink, number: int, *puts: Sequence[Record], task: int = 0, is_lost: bool = False) -> bool:
    """Run a task as the framework does; return whether it wrote."""
    batch = Batch("connect-x", number, task)
    made.open(batch)
    try:
        last = made.last(batch)
        if last is not None and last >= number:
            return False
        for records in puts:
            made.put(records)
        if not is_lost:
            made.flush(batch)
        return True
    finally:
        made.close()


def order(number: int, value: dict[str, Any] | None) -> Record:
    return Record("orders", value, {"id": number})


def test_rows_are_inserted_updated_and_deleted_by_key(store: Store) -> None:
    made = sink(store, **UPSERT)
    write(
        made, 0, [order(1, {"id": 1, "item": "a"}), order(2, {"id": 2, "item": "b"}), order(1, {"id": 1, "item": "c"})]
    )
    assert store.run("select id, item from orders order by id") == [(1, "c"), (2, "b")]
    write(made, 1, [order(2, None), order(3, {"id": 3, "item": "d"}), order(9, None)])
    assert store.run("select id, item from orders order by id") == [(1, "c"), (3, "d")]


def test_a_batch_is_written_once_whatever_happens(store: Store) -> None:
    chance, truth = random.Random(3), {}
    made = sink(store, **UPSERT)
    for number in range(12):
        tasks: list[list[Record]] = [[], []]
        for _ in range(80):
            key = chance.randrange(60)
            value = None if chance.random() < 0.3 else {"id": key, "item": f"b{number}"}
            tasks[key % 2].append(order(key, value))
            truth[key] = value
        for task, records in enumerate(tasks):
            while chance.random() < 0.3:
                write(made, number, records, task=task, is_lost=True)
            half = len(records) // 2
            assert write(made, number, records[:half], records[half:], task=task)
            assert not write(made, number, records, task=task)
    rows = {key: {"id": key, "item": item} for key, item in store.run("select id, item from orders")}
    assert rows == {key: value for key, value in truth.items() if value is not None}


def test_an_insert_that_is_repeated_does_not_add_rows(store: Store) -> None:
    made = sink(store, auto_create="true")
    records = [Record("orders", {"n": number}) for number in range(10)]
    assert write(made, 5, records)
    assert not write(made, 5, records)
    assert store.run("select count(*) from orders") == [(10,)]


def test_types_of_columns_follow_the_schema(store: Store) -> None:
    schema = struct(
        [
            Field("id", INT32),
            Field("price", decimal_schema(2)),
            Field("day", date_schema()),
            Field("at", timestamp_schema()),
            Field("tags", array(STRING)),
            Field("micros", struct([Field("x", INT32)])),
        ]
    )
    moment = dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)
    value = {
        "id": 1,
        "price": Decimal("1.50"),
        "day": moment.date(),
        "at": moment,
        "tags": ["a", "b"],
        "micros": {"x": 1},
    }
    record = Record("orders", value, value_schema=schema)
    write(sink(store, auto_create="true", pk_mode="record_value", pk_fields="id"), 0, [record])
    (row,) = store.run("select price, day, tags from orders")
    is_sqlite = store.url.startswith("jdbc:sqlite")
    assert row == (("1.50", "2026-01-02", '["a","b"]') if is_sqlite else (Decimal("1.50"), moment.date(), ["a", "b"]))


def test_columns_are_added_if_that_is_wanted_and_an_error_if_not(store: Store) -> None:
    write(sink(store, **UPSERT), 0, [order(1, {"id": 1})])
    with pytest.raises(DataError, match=r"auto\.evolve"):
        write(sink(store, **UPSERT), 1, [order(2, {"id": 2, "new": "x"})])
    write(sink(store, auto_evolve="true", **UPSERT), 1, [order(2, {"id": 2, "new": "x"}), order(3, {"id": 3})])
    assert store.run("select id, new from orders order by id") == [(1, None), (2, "x"), (3, None)]


def test_a_record_that_fails_leaves_no_trace_of_its_list(store: Store) -> None:
    made = sink(store, auto_create="true", pk_mode="record_value", pk_fields="id")
    write(made, 0, [Record("orders", {"id": 1})])
    batch = Batch("connect-x", 1, 0)
    made.open(batch)
    made.put([Record("orders", {"id": 2})])
    with pytest.raises(DataError):
        made.put([Record("orders", {"id": 3}), Record("orders", {"id": 1})])
    made.put([Record("orders", {"id": 4})])
    made.flush(batch)
    made.close()
    assert store.run("select id from orders order by id") == [(1,), (2,), (4,)]


def test_rows_can_be_updated_only_and_keyed_by_their_offset(store: Store) -> None:
    store.run("create table orders (id integer primary key, item text)")
    store.run("insert into orders values (1, 'a')")
    made = sink(store, insert_mode="update", pk_mode="record_key")
    write(made, 0, [order(1, {"id": 1, "item": "z"}), order(2, {"id": 2, "item": "y"})])
    assert store.run("select id, item from orders") == [(1, "z")]
    made = sink(store, table_name_format="raw_${topic}", pk_mode="kafka", auto_create="true")
    write(made, 1, [Record("orders", {"n": 1}, partition=0, offset=7)])
    assert store.run("select __connect_topic, __connect_partition, __connect_offset, n from raw_orders") == [
        ("orders", 0, 7, 1)
    ]


def test_a_missing_table_is_named(store: Store) -> None:
    with pytest.raises(ConnectError, match="no table orders"):
        write(sink(store), 0, [Record("orders", {"n": 1})])


def source(store: Store, **config: str) -> SqlSource:
    given = {"connection.url": store.url, "topic.prefix": "shop."}
    return SqlSource(
        SqlSource.Config.read(given | {key.replace("_", "."): value for key, value in config.items()}),
        Context("source"),
    )


def batch(made: SqlSource, since: Offset) -> tuple[Offset, list[Record]]:
    until = made.latest(since, LIMIT)
    parts = made.split(since, until, 2)
    return until, [record for part in parts for record in made.read(part)]


def test_new_rows_are_found_by_an_incrementing_column(store: Store) -> None:
    store.run("create table orders (id integer primary key, item text)")
    store.run("insert into orders values (1, 'a'), (2, 'b'), (3, 'c')")
    made = source(store, mode="incrementing", incrementing_column_name="id", batch_max_rows="2")
    first, records = batch(made, {})
    assert [(record.topic, record.value) for record in records] == [
        ("shop.orders", {"id": 1, "item": "a"}),
        ("shop.orders", {"id": 2, "item": "b"}),
    ]
    second, records = batch(made, first)
    assert [record.value["id"] for record in records] == [3]
    assert made.latest(second, LIMIT) == second, "nothing is new"
    store.run("insert into orders values (4, 'd')")
    again = [record.value for part in made.split(first, second, 1) for record in made.read(part)]
    assert again == [{"id": 3, "item": "c"}], "a range has the same rows when it is read again"
    assert made.offset(made.entries(second)) == second
    made.close()


def test_changed_rows_are_found_by_time_and_id(store: Store) -> None:
    store.run("create table orders (id integer primary key, changed timestamp)")
    store.run("insert into orders values (1, '2026-01-01 00:00:00'), (2, '2026-01-01 00:00:00')")
    made = source(
        store,
        mode="timestamp+incrementing",
        incrementing_column_name="id",
        timestamp_column_name="changed",
        table_whitelist="orders",
        batch_max_rows="1",
    )
    seen: list[int] = []
    since: Offset = {}
    for _ in range(3):
        since, records = batch(made, since)
        seen += [record.value["id"] for record in records]
    store.run("update orders set changed = '2026-01-02 00:00:00' where id = 1")
    since, records = batch(made, since)
    assert (seen, [record.value["id"] for record in records]) == ([1, 2], [1])
    made.close()


def test_whole_tables_and_queries_are_read_again_and_again(store: Store) -> None:
    store.run("create table orders (id integer primary key)")
    store.run("insert into orders values (1), (2)")
    made = source(store, poll_interval_ms="1", query="select id * 10 as ten from orders", topic_prefix="tens")
    first, records = batch(made, {})
    assert [(record.topic, record.value) for record in records] == [("tens", {"ten": 10}), ("tens", {"ten": 20})]
    while made.latest(first, LIMIT) == first:
        pass
    assert made.entries(first)[0].partition == {"query": "query"}
    made.close()
    made = source(store, table_whitelist="nothing")
    with pytest.raises(ConnectError, match="no table nothing"):
        made.latest({}, LIMIT)
    made.close()


def test_addresses_are_read_as_jdbc_writes_them_and_show_no_password() -> None:
    found = address_of("jdbc:postgresql://h:1/d?user=u&password=geheim&ssl=true")
    assert found.parameters == {
        "host": "h",
        "port": 1,
        "dbname": "d",
        "user": "u",
        "password": "geheim",
        "sslmode": "require",
    }
    assert "geheim" not in f"{found} {found!r}"
    assert address_of("sqlite:///data.db").parameters == {"path": "data.db"}
    assert address_of("sqlite:////var/data.db").parameters == {"path": "/var/data.db"}
    with pytest.raises(ConfigError, match="only postgresql"):
        address_of("jdbc:mysql://h/d")
    with pytest.raises(ConfigError, match="record_key"):
        SqlSink.Config.read({"connection.url": "sqlite:///x", "delete.enabled": "true"})
