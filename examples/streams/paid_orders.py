"""Join orders with their payments within five minutes; an order without a payment has a result too."""

import msgspec

from barnabas.streams import App


class Order(msgspec.Struct):
    id: str
    total: int
    placed: int  # milliseconds


class Payment(msgspec.Struct):
    order_id: str
    amount: int


class Paid(msgspec.Struct):
    order_id: str
    total: int
    amount: int | None


app = App("paid-orders")
orders = app.stream("orders", value=Order, at=lambda order: order.placed)
payments = app.stream("payments", value=Payment).select_key(lambda payment: payment.order_id, key=str)
paid = orders.left_join(
    payments,
    lambda order, payment: Paid(order.id, order.total, payment.amount if payment else None),
    within="5m",
    grace="30s",
    value=Paid,
)
paid.to("paid")
