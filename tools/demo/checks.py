"""The results of the demo, read without Spark, compared with the shop's books."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import psycopg

from tools.demo.services import WAIT_SECONDS_MAX
from tools.demo.shop import Shop

LATEST: Final = """
    select id, customer_id, cents from (
        select *, row_number() over (partition by id order by _offset desc) as _rank from changes
    ) where _rank = 1 and _op <> 'd'
"""
Sales = dict[str, tuple[int, int]]


def sales_in_sql(reports: psycopg.Connection[Any]) -> Sales:
    """Return the rows that the SQL sink wrote: number and sum of orders by country."""
    rows = _rows(reports, "select country, orders, cents from sales_by_country where orders > 0")
    return {country: (orders, cents) for country, orders, cents in rows}


def views_in_sql(reports: psycopg.Connection[Any]) -> dict[tuple[str, int], int]:
    """Return the rows that the SQL sink wrote: page views by country and minute."""
    rows = _rows(reports, "select country, start, views from views_by_country")
    return {(country, start): count for country, start, count in rows}


def _rows(session: psycopg.Connection[Any], query: str) -> list[tuple[Any, ...]]:
    try:
        return session.execute(query.encode()).fetchall()
    except psycopg.errors.UndefinedTable:  # the sink creates it with its first batch
        return []


def sales_in_topic(servers: str) -> Sales:
    """Return the newest record of each country, read by another project's client."""
    from confluent_kafka import Consumer, TopicPartition

    topic = "sales-by-country"
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "demo", "enable.partition.eof": True})
    partitions = consumer.list_topics(topic).topics[topic].partitions
    consumer.assign([TopicPartition(topic, index, 0) for index in partitions])
    found: Sales = {}
    ended: set[int] = set()
    while len(ended) < len(partitions):
        message = consumer.poll(1)
        if message is None:
            continue
        key, value, partition = message.key(), message.value(), message.partition()
        assert partition is not None
        if message.error() is not None:
            ended.add(partition)
        elif key is not None and value is not None:
            sales = msgspec.json.decode(value)
            found[key.decode()] = (sales["orders"], sales["cents"])
    consumer.close()
    return {country: sums for country, sums in found.items() if sums[0]}


def orders_in_lake(lake: Path) -> tuple[dict[int, tuple[int, int]], int]:
    """Return the latest rows of the change table in Iceberg, and its number of changes; no change may be twice."""
    import duckdb
    from pyiceberg.catalog import load_catalog
    from pyiceberg.exceptions import NoSuchTableError

    catalog = load_catalog("default", type="sql", uri=f"sqlite:///{lake}/catalog.db", warehouse=f"file://{lake}")
    try:
        changes = catalog.load_table("default.shop_public_orders").scan().to_arrow()
    except NoSuchTableError:  # the sink creates it with its first batch
        return {}, 0
    finally:
        catalog.close()
    session = duckdb.connect()
    session.register("changes", changes)
    ((places,),) = session.execute("select count(distinct (_partition, _offset)) from changes").fetchall()
    if places != changes.num_rows:
        raise SystemExit(f"Iceberg: {changes.num_rows - places} changes are there twice")
    latest = {number: (customer, cents) for number, customer, cents in session.execute(LATEST).fetchall()}
    return latest, changes.num_rows


def wait_until_complete(shop: Shop, reports: psycopg.Connection[Any], lake: Path, check: Callable[[], None]) -> None:
    """Wait until all results are equal to the books."""
    sales, orders = shop.sales(), shop.orders()
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while time.monotonic() < deadline:
        check()
        if sales_in_sql(reports) == sales and views_in_sql(reports) == shop.views and orders_in_lake(lake)[0] == orders:
            return
        time.sleep(1)
    compare("sales", sales_in_sql(reports), sales)
    compare("page views", views_in_sql(reports), shop.views)
    compare("lake", orders_in_lake(lake)[0], orders)


def compare(name: str, found: Mapping[Any, Any], expected: Mapping[Any, Any]) -> None:
    """Raise with the first difference if the result is not equal to the books."""
    wrong = [each for each in expected.keys() | found.keys() if found.get(each) != expected.get(each)]
    if wrong:
        one = min(wrong)
        raise SystemExit(
            f"{name}: {len(wrong)} of {len(expected)} differ, as {one}: {found.get(one)}, not {expected.get(one)}"
        )
