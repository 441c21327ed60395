"""The shop of the demo: customers and orders in PostgreSQL, page views in a topic, and the books to compare with.

A seed decides what happens. Time in the shop runs faster than the clock: a tick is five seconds.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec
import psycopg

COUNTRIES: Final = ("AT", "CZ", "DE", "IT", "PL")
TICK: Final = timedelta(seconds=5)  # of the shop's time
CUSTOMERS: Final = 500
ORDERS_PER_TICK: Final = 12
VIEWS_PER_TICK: Final = 120  # on average: the number rises and falls
BROKEN_EVERY_TICKS: Final = 30
PAGES: Final = ("/", "/shoes", "/hats", "/cart", "/pay")
SCHEMA: Final = (
    "create table customers (id int primary key, name text not null, country text not null)",
    "create table orders (id int primary key, customer_id int not null, cents int not null)",
)

Key = bytes
Value = bytes


class Shop:
    """Writes orders to the database, and returns page views for the topic."""

    def __init__(self, database: psycopg.Connection[Any], seed: int = 1) -> None:
        self._database = database
        self._chance = random.Random(seed)
        self._open_orders: list[int] = []
        self._countries: dict[int, str] = {}
        self.opening = datetime.now(UTC)
        self.views: Counter[tuple[str, int]] = Counter()  # page views by country and start of the minute
        self.order_count = self.changed = self.deleted = self.rolled_back = self.broken = 0

    def create(self) -> None:
        """Create the tables and the customers."""
        for statement in SCHEMA:
            self._database.execute(statement)
        with self._database.cursor() as cursor:
            for number in range(1, CUSTOMERS + 1):
                country = self._chance.choices(COUNTRIES, weights=(2, 3, 8, 4, 3))[0]
                self._countries[number] = country
                cursor.execute("insert into customers values (%s, %s, %s)", (number, f"customer {number}", country))

    def ticks(self, count: int) -> Iterator[list[tuple[Key, Value]]]:
        """Do the business of one tick after the other; return the page views of each.

        The first page view is younger than the customers: a join finds the customer that was there at its time.
        """
        self.opening = datetime.now(UTC).replace(second=0, microsecond=0) + timedelta(minutes=1)
        for tick in range(count):
            self._sell()
            count_of_views = round(VIEWS_PER_TICK * (1 + 0.5 * math.sin(tick / 18)))
            yield [self._view(tick) for _ in range(count_of_views)] + self._broken_view(tick)

    def _sell(self) -> None:
        with self._database.transaction():
            for _ in range(ORDERS_PER_TICK):
                self.order_count += 1
                self._insert(self.order_count)
                self._open_orders.append(self.order_count)
            for number in self._chance.sample(self._open_orders, 3):
                self._database.execute("update orders set cents = cents * 9 / 10 where id = %s", (number,))
                self.changed += 1
            cancelled = self._open_orders.pop(self._chance.randrange(len(self._open_orders)))
            self._database.execute("delete from orders where id = %s", (cancelled,))
            self.deleted += 1
            customer = self._customer()
            self._database.execute("update customers set name = name || '!' where id = %s", (customer,))
        with self._database.transaction(force_rollback=True):
            self._insert(-1)
            self.rolled_back += 1

    def _insert(self, number: int) -> None:
        cents = self._chance.randrange(500, 20_000)
        self._database.execute("insert into orders values (%s, %s, %s)", (number, self._customer(), cents))

    def _customer(self) -> int:
        return self._chance.randrange(1, CUSTOMERS + 1)

    def _view(self, tick: int) -> tuple[Key, Value]:
        customer = self._customer()
        at = self.opening + tick * TICK + timedelta(milliseconds=self._chance.randrange(5000))
        milliseconds = int(at.timestamp() * 1000)
        self.views[self._countries[customer], milliseconds // 60_000 * 60_000] += 1
        value = {"page": self._chance.choice(PAGES), "at": milliseconds}
        return msgspec.json.encode({"id": customer}), msgspec.json.encode(value)

    def _broken_view(self, tick: int) -> list[tuple[Key, Value]]:
        if tick % BROKEN_EVERY_TICKS != 7:
            return []
        self.broken += 1
        return [(b'{"id":1}', b'{"page": "/", "at": ')]

    def sales(self) -> dict[str, tuple[int, int]]:
        """Return the number and sum of the orders of each country, as the shop's own database has them."""
        rows = self._database.execute(
            "select country, count(*), sum(cents) from orders join customers c on c.id = customer_id group by 1"
        )
        return {country: (int(count), int(cents)) for country, count, cents in rows}

    def orders(self) -> dict[int, tuple[int, int]]:
        """Return all orders: customer and sum by number."""
        rows = self._database.execute("select id, customer_id, cents from orders")
        return {number: (customer, cents) for number, customer, cents in rows}
