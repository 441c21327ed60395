"""The DSL is typed end to end: a type checker finds a join, a function or a store of the wrong types."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[3] / "src"

# Lines with `# error` must be refused, all others accepted.
PROGRAM = """
from __future__ import annotations

from dataclasses import dataclass

from barnabas.streams import App, Avro, JsonSchema, Processor, Record, Store, Stream, Table, Windowed, session, tumbling


@dataclass
class Order:
    id: str
    total: int


@dataclass
class Payment:
    amount: int


app = App("typed")
orders = app.stream("orders", value=Order)
payments = app.stream("payments", value=Payment)
names = app.table("names", value=str)
ids = app.table("ids", key=int, value=str)

stream: Stream[str, Order] = orders
registered: Stream[str, Order] = app.stream("avro", value=Avro(Order, registry="http://127.0.0.1:8081"))
raw: Stream[str, bytes] = app.stream("raw")
totals: Stream[str, int] = orders.map_values(lambda order: order.total)
keyed: Stream[int, Order] = orders.select_key(lambda order: order.total)
pairs: Stream[int, str] = orders.map(lambda key, order: (order.total, key))
joined: Stream[str, tuple[int, int]] = orders.join(
    payments, lambda order, payment: (order.total, payment.amount), within="5m"
)
named: Stream[str, str] = orders.join(names, lambda order, name: order.id + name)
maybe: Stream[str, str] = orders.left_join(names, lambda order, name: name or "none")
by_key: Table[str, str] = names.join(app.table("more", value=int), lambda name, count: name * count)
by_foreign_key: Table[str, str] = names.join(ids, lambda name, other: name + other, by=lambda name: len(name))
counts: Table[Windowed[str], int] = orders.group_by_key().window(tumbling("1m")).count()
sums: Table[str, int] = orders.group_by_key().aggregate(lambda: 0, lambda total, order: total + order.total)
visits: Table[Windowed[str], list[str]] = (
    orders.group_by_key()
    .window(session("1m"))
    .aggregate(lambda: list[str](), lambda found, order: [*found, order.id], lambda one, other: one + other)
)


class Alert(Processor[str, Order, str, str]):
    seen: Store[str, int]

    def process(self, record: Record[str, Order]) -> None:
        self.seen[record.key] = record.value.total
        self.forward(record.with_value(record.value.id))
        self.forward(record.with_value(record.value.total))  # error


alerts: Stream[str, str] = orders.process(Alert)

orders.map_values(lambda order: order.amount)  # error
orders.filter(lambda key, order: key > 5)  # error
orders.join(names, lambda order, name: order.total + name)  # error
orders.join(ids, lambda order, name: name)  # error
orders.left_join(names, lambda order, name: name.upper())  # error
orders.merge(payments)  # error
registered.join(names, lambda order, name: order.amount)  # error
orders.map_values(lambda order: order.total, value=JsonSchema(Payment, registry=""))  # error
payments.process(Alert)  # error
names.join(ids, lambda name, other: name + other)  # error
names.join(ids, lambda name, other: name + other, by=lambda name: name)  # error
orders.group_by_key().reduce(lambda one, other: one.total)  # error
app.stream("orders", value=Order, at=lambda order: order.id)  # error
wrong: Stream[str, str] = orders.map_values(lambda order: order.total)  # error
"""


@pytest.mark.slow
def test_a_type_checker_finds_what_does_not_fit(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), str(program)]
    environment = {"MYPYPATH": str(SOURCE), "PATH": "/usr/bin:/bin"}
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=tmp_path)
    refused = {int(line) for line in re.findall(r"program\.py:(\d+): error", result.stdout)}
    expected = {number for number, line in enumerate(PROGRAM.splitlines(), 1) if line.endswith("# error")}
    assert refused == expected, result.stdout
