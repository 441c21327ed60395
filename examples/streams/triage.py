"""Split orders by their total; records that cannot be read or processed go to a dead letter topic."""

import msgspec

from barnabas.streams import App, DeadLetter


class Order(msgspec.Struct):
    id: str
    total: int
    items: int


class Review(msgspec.Struct):
    order_id: str
    price_per_item: int


def review(order: Order) -> Review:
    return Review(order.id, order.total // order.items)  # an order of no items is a dead letter


app = App("triage", on_error=DeadLetter("triage-dead-letters"))
small, large, rest = app.stream("orders", value=Order).split(
    lambda order: order.total < 100, lambda order: order.total >= 1000, default=True
)
small.to("small-orders")
large.map_values(review, value=Review).to("to-review")
rest.to("orders-checked")
