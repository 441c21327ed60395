"""Sales and page views of a shop by country. ``make demo`` runs it; docs/DEMO.md explains it.

Topics that it reads: ``shop.public.orders`` and ``shop.public.customers``, which a connector captures from PostgreSQL,
and ``views`` (key: customer), which the web site produces. It writes ``sales-by-country`` and ``views-by-country``.
"""

from typing import Generic, TypeVar

import msgspec

from barnabas.streams import App, DeadLetter, tumbling

Row = TypeVar("Row")


class Id(msgspec.Struct, frozen=True):
    """Primary key of both tables."""

    id: int


class Order(msgspec.Struct):
    customer_id: int
    cents: int


class Customer(msgspec.Struct):
    name: str
    country: str


class Change(msgspec.Struct, Generic[Row]):
    """A change event: the row after the change, or None if the row was deleted."""

    after: Row | None = None


class View(msgspec.Struct):
    page: str
    at: int  # milliseconds


class Sale(msgspec.Struct):
    country: str
    cents: int


class Sales(msgspec.Struct):
    orders: int = 0
    cents: int = 0


class Views(msgspec.Struct):
    views: int


class Minute(msgspec.Struct, frozen=True):
    country: str
    start: int  # milliseconds


app = App("shop", on_error=DeadLetter("shop.dead-letters"))

customers = (
    app.stream("shop.public.customers", key=Id, value=Change[Customer])
    .map_values(lambda change: change.after if change else None, value=Customer)
    .to_table(store="customers")
)
orders = (
    app.stream("shop.public.orders", key=Id, value=Change[Order])
    .map_values(lambda change: change.after if change else None, value=Order)
    .to_table(store="orders")
)

# Sales by country: a join of two tables by a foreign key. Changed and deleted orders are subtracted again.
sales = orders.join(
    customers,
    lambda order, customer: Sale(customer.country, order.cents),
    by=lambda order: Id(order.customer_id),
    value=Sale,
)
by_country = sales.group_by(lambda sale: (sale.country, sale), key=str, value=Sale).aggregate(
    lambda: Sales(),
    lambda total, sale: Sales(total.orders + 1, total.cents + sale.cents),
    lambda total, sale: Sales(total.orders - 1, total.cents - sale.cents),
    value=Sales,
    store="sales",
)
by_country.to_stream().to("sales-by-country")

# Page views by country and minute: a join of a stream with a table, then a windowed count.
views = app.stream("views", key=Id, value=View, at=lambda view: view.at)
counts = (
    views.join(customers, lambda view, customer: customer.country, value=str)
    .group_by(lambda country: country, key=str)
    .window(tumbling("1m", grace="1h"))
    .count(store="views")
)
counts.to_stream().map(
    lambda window, count: (Minute(window.key, window.start), Views(count)), key=Minute, value=Views
).to("views-by-country")
