"""PostgreSQL change capture against a real server: snapshot, stream, restarts, and what Debezium's format says."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import pytest
from capturing import Capture, as_json, released, replayed, shown
from tools.postgres_server import PostgresServer

from barnabas.connect.connectors.postgres.source import PostgresSource
from barnabas.connect.errors import ConnectError, RetriableError
from barnabas.connect.plugins import Context
from barnabas.connect.records import Entry

TOPIC = "shop.public.orders"


def orders(sql: Callable[..., Any], count: int = 0) -> None:
    sql("create table orders (id int primary key, item text not null, quantity int)")
    sql(f"insert into orders select n, 'item ' || n, n from generate_series(1, {count}) n")


def test_a_snapshot_in_chunks_is_followed_by_changes(sql: Any, capture: Any) -> None:
    orders(sql, 25)
    run = capture(snapshot_chunk_rows="10")
    rows = run.take(25)
    assert [record.value["op"] for record in rows] == ["r"] * 25
    assert [record.key["id"] for record in rows] == list(range(1, 26))
    marks = [record.value["source"]["snapshot"] for record in rows]
    assert (marks[0], set(marks[1:-1]), marks[-1]) == ("first", {"true"}, "last")
    sql("insert into orders values (100, 'new', null)")
    sql("update orders set quantity = 7 where id = 1")
    sql("delete from orders where id = 2")
    events = sorted((shown(record) for record in run.take(4)), key=lambda each: each[0]["id"])
    assert events == [
        ({"id": 1}, "u", {"id": 1, "item": "item 1", "quantity": 7}),
        ({"id": 2}, "d", None),
        ({"id": 2}, None, None),
        ({"id": 100}, "c", {"id": 100, "item": "new", "quantity": None}),
    ]


def test_a_change_of_the_key_is_a_delete_and_a_create(sql: Any, capture: Any) -> None:
    orders(sql, 1)
    run = capture(snapshot_mode="no_data")
    sql("update orders set id = 9")
    events = run.take(3)
    by_op = {record.value["op"] if record.value else None: record for record in events}
    assert (by_op["d"].key, by_op[None].key, by_op["c"].key) == ({"id": 1}, {"id": 1}, {"id": 9})
    assert by_op["d"].headers[0][:2] == ("__debezium.newkey", {"id": 9})
    assert by_op["c"].headers[0][:2] == ("__debezium.oldkey", {"id": 1})


def test_columns_that_come_and_go_in_mid_stream_change_the_events(sql: Any, capture: Any) -> None:
    orders(sql)
    run = capture(snapshot_mode="no_data")
    sql("insert into orders values (1, 'a', 1)")
    sql("alter table orders add column colour text default 'red'")
    sql("insert into orders values (2, 'b', 2, 'blue')")
    sql("alter table orders drop column quantity")
    sql("insert into orders values (3, 'c', 'green')")
    rows = {record.key["id"]: as_json(record)["after"] for record in run.take(3)}
    assert rows == {
        1: {"id": 1, "item": "a", "quantity": 1},
        2: {"id": 2, "item": "b", "quantity": 2, "colour": "blue"},
        3: {"id": 3, "item": "c", "colour": "green"},
    }


def test_a_batch_that_is_repeated_after_a_restart_has_the_same_changes(sql: Any, capture: Any) -> None:
    orders(sql)
    run = capture(snapshot_mode="no_data")
    sql("insert into orders select n, 'x', n from generate_series(1, 100) n")
    run.until(run.plan)
    first = [shown(record) for record in run.read()]
    run.crash()
    assert [shown(record) for record in run.read()] == first
    assert len(first) == 100


def test_a_transaction_that_is_larger_than_a_batch_is_cut_and_resumed_within(sql: Any, capture: Any) -> None:
    orders(sql)
    run = capture(snapshot_mode="no_data", max_batch_size="2000")
    sql("insert into orders select n, repeat('x', 100), n from generate_series(1, 12000) n")
    while len(run.records) < 12_000:
        if run.plan():
            if len(run.log) in (3, 5):
                run.crash()  # in the middle of the transaction
            run.records += run.read()
        else:
            time.sleep(0.02)
    assert sum(1 for offset in run.log if offset["row"]) >= 3
    assert sorted(record.key["id"] for record in run.records) == list(range(1, 12_001))


def test_replaying_the_topic_gives_the_table_whatever_happens_on_the_way(
    postgres: PostgresServer, database: str, sql: Any, capture: Any
) -> None:
    chance = random.Random(17)
    orders(sql, 400)
    sql("alter table orders replica identity full")
    run = capture(snapshot_chunk_rows="50")
    with postgres.connect(database) as writer:
        for step in range(120):
            with writer.transaction(force_rollback=chance.random() < 0.15):
                for _ in range(chance.randrange(1, 20)):
                    number = chance.randrange(600)
                    kind = chance.choice(("insert", "update", "delete", "key"))
                    if kind == "insert":
                        statement = f"insert into orders values ({number}, 'i{step}', {step}) on conflict do nothing"
                    elif kind == "update":
                        statement = f"update orders set quantity = {step} where id = {number}"
                    elif kind == "delete":
                        statement = f"delete from orders where id = {number}"
                    else:
                        free = f"{1000 + step} not in (select id from orders)"
                        statement = f"update orders set id = {1000 + step} where id = {number} and {free}"
                    writer.execute(statement.encode())
            if run.plan():
                if chance.random() < 0.2:
                    run.crash()
                if chance.random() < 0.1:
                    run.read()  # a task that died after it had read
                run.records += run.read()
            elif chance.random() < 0.1:
                sql("select pg_terminate_backend(active_pid) from pg_replication_slots where active_pid is not null")
                run.crash()
    sql("insert into orders values (-1, 'end', 0)")
    run.until(lambda: any(record.key == {"id": -1} for record in run.records))
    rows = replayed(run.records, TOPIC)
    table = {(row[0],): dict(zip(("id", "item", "quantity"), row, strict=True)) for row in sql("table orders")}
    assert rows == table
    changes = [
        (record.value["source"]["lsn"], record.value["op"], record.key["id"])
        for record in run.records
        if record.value is not None and record.value["op"] != "r"
    ]
    assert len(changes) == len(set(changes)), "a change was given twice"


def test_wal_of_other_tables_is_confirmed_while_ours_are_idle(
    sql: Any, capture: Any, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.connect.connectors.postgres.source.IDLE_SECONDS", 0.1)
    orders(sql)
    sql("create table noise (text text)")
    run = capture(snapshot_mode="no_data", table_include_list="public.orders")
    query = "select confirmed_flush_lsn - '0/0'::pg_lsn from pg_replication_slots where database = %s"
    sql("insert into noise select repeat('x', 1000) from generate_series(1, 2000)")
    (target,) = sql("select pg_current_wal_lsn() - '0/0'::pg_lsn").fetchone()
    run.until(lambda: sql(query, database).fetchone()[0] >= target)
    assert run.records == []


def test_a_large_value_that_did_not_change_is_a_placeholder_unless_the_old_row_is_sent(sql: Any, capture: Any) -> None:
    sql("create table orders (id int primary key, big text, n int, tags text[], bytes bytea)")
    sql("alter table orders alter big set storage external, alter bytes set storage external")
    sql("insert into orders values (1, repeat('b', 9000), 1, null, repeat('c', 9000)::bytea)")
    run = capture(snapshot_mode="no_data")
    sql("update orders set n = 2")
    (event,) = run.take(1)
    assert event.value["after"]["big"] == "__debezium_unavailable_value"
    assert event.value["after"]["bytes"] == b"__debezium_unavailable_value"
    sql("alter table orders replica identity full")
    sql("update orders set n = 3")
    (event,) = run.take(1)
    assert event.value["after"]["big"] == "b" * 9000
    assert event.value["before"]["n"] == 2


def test_signals_ask_for_a_snapshot_of_one_table(sql: Any, capture: Any) -> None:
    orders(sql, 30)
    sql("create table signals (id text primary key, type text, data text)")
    run = capture(
        snapshot_mode="no_data",
        table_include_list="public.orders",
        signal_data_collection="public.signals",
        incremental_snapshot_chunk_size="10",
    )
    sql("""insert into signals values ('1', 'execute-snapshot', '{"data-collections": ["public.orders"]}')""")
    sql("update orders set quantity = 0 where id = 1")
    records = run.take(31)
    assert sorted(record.key["id"] for record in records if record.value["op"] == "r") == list(range(1, 31))
    assert {record.value["source"]["snapshot"] for record in records if record.value["op"] == "r"} == {"incremental"}


def test_heartbeats_and_transactions_have_topics_of_their_own(sql: Any, capture: Any) -> None:
    orders(sql)
    run = capture(snapshot_mode="no_data", provide_transaction_metadata="true", heartbeat_interval_ms="50")
    sql("insert into orders values (1, 'a', 1), (2, 'b', 2)")
    run.until(lambda: {"shop.transaction", "__debezium-heartbeat.shop", TOPIC} <= {r.topic for r in run.records})
    begin, end = (record.value for record in run.records if record.topic == "shop.transaction")
    rows = [record.value["transaction"] for record in run.records if record.topic == TOPIC]
    assert (begin["status"], end["status"], end["event_count"]) == ("BEGIN", "END", 2)
    assert end["data_collections"] == [{"data_collection": "public.orders", "event_count": 2}]
    assert sorted(row["total_order"] for row in rows) == [1, 2]
    # An id is the number of the transaction and, as in Debezium, the position of the operation.
    assert len({each["id"].partition(":")[0] for each in (*rows, begin, end)}) == 1
    assert begin["id"] in {row["id"] for row in rows}


def test_truncates_are_left_out_unless_they_are_wanted(sql: Any, capture: Any) -> None:
    orders(sql, 3)
    run = capture(snapshot_mode="no_data", skipped_operations="none")
    sql("truncate orders")
    sql("insert into orders values (1, 'a', 1)")
    assert [record.value["op"] for record in run.take(2)] == ["t", "c"]


def test_a_slot_that_others_have_moved_is_an_error_and_a_new_snapshot_if_that_is_wanted(
    postgres: PostgresServer, database: str, sql: Any, capture: Any
) -> None:
    orders(sql, 3)
    run = capture()
    run.take(3)
    run.close()
    sql("insert into orders values (4, 'lost', 1)")
    with postgres.connect(database) as session:
        released(session)
    sql(f"select pg_replication_slot_advance('slot_{database}', pg_current_wal_lsn())")
    with pytest.raises(ConnectError, match="was moved"):
        run.batch()
    again = Capture(postgres, database, snapshot_mode="when_needed")
    again.log = run.log
    try:
        assert sorted(record.key["id"] for record in again.take(4)) == [1, 2, 3, 4]
    finally:
        again.close()


def test_a_slot_above_its_limit_is_replaced(
    sql: Any, capture: Any, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.connect.connectors.postgres.source.SLOT_CHECK_SECONDS", 0.0)
    orders(sql, 3)
    run = capture(slot_max_wal=str(1 << 20), table_include_list="public.orders")
    run.take(3)
    sql("create table noise (text text)")
    sql("insert into noise select repeat('x', 1000) from generate_series(1, 3000)")
    assert len(run.take(3)) == 3
    held = "select pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn) from pg_replication_slots where database = %s"
    assert sql(held, database).fetchone()[0] < 1 << 20
    sql("insert into orders values (9, 'after', 1)")
    assert run.take(1)[0].key == {"id": 9}


def test_offsets_are_shown_by_server_and_those_of_debezium_are_taken(sql: Any, capture: Any) -> None:
    orders(sql)
    run = capture(snapshot_mode="no_data")
    (entry,) = run.source.entries(run.log[0])
    assert dict(entry.partition) == {"server": "shop"}
    assert run.source.offset([entry]) == run.log[0]
    taken = run.source.offset([Entry({"server": "shop"}, {"lsn": 5, "txId": 7, "ts_usec": 1})])
    assert (taken["lsn"], taken["snapshot"]) == (5, None)


def test_the_server_that_is_killed_comes_back_with_the_slot() -> None:
    server = PostgresServer()
    with server.connect() as session:
        session.execute("create table orders (id int primary key)")
        run = Capture(server, "postgres", snapshot_mode="no_data")
        session.execute("insert into orders values (1)")
        assert run.take(1)[0].key == {"id": 1}
    try:
        server.kill()
        with pytest.raises(RetriableError):
            run.take(1)
        server.start()
        run.crash()
        with server.connect() as session:
            session.execute("insert into orders values (2)")
        assert run.take(1)[0].key == {"id": 2}
    finally:
        run.close()
        server.stop()


def test_a_table_without_a_primary_key_is_read_in_one_piece_and_has_no_keys(sql: Any, capture: Any) -> None:
    sql("create table orders (item text)")
    sql("insert into orders select 'x' || n from generate_series(1, 5) n")
    sql("alter table orders replica identity full")
    run = capture(snapshot_chunk_rows="2")
    assert [record.key for record in run.take(5)] == [None] * 5
    sql("update orders set item = 'y' where item = 'x1'")
    sql("delete from orders where item = 'x2'")
    assert sorted(record.value["op"] for record in run.take(2)) == ["d", "u"]


def test_a_dry_run_shows_rows_and_leaves_no_slot(postgres: PostgresServer, database: str, sql: Any) -> None:
    orders(sql, 5)
    source = PostgresSource(
        PostgresSource.Config.read(
            {
                "database.hostname": "127.0.0.1",
                "database.port": str(postgres.port),
                "database.user": "postgres",
                "database.dbname": database,
                "topic.prefix": "shop",
            }
        ),
        Context("dry"),
    )
    assert [record.key for record in source.sample(3)] == [{"id": 1}, {"id": 2}, {"id": 3}]
    source.close()
    assert sql("select count(*) from pg_replication_slots where database = %s", database).fetchone() == (0,)
    assert sql("select count(*) from pg_publication").fetchone() == (0,)
