"""Input of the pipeline in ``examples/pipelines/revenue.py``: orders, payments, broken records; and what to expect.

A seed decides everything, so the expected results are known.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

WINDOW_SECONDS = 10
COUNTRIES = ("AT", "CZ", "DE", "IT", "PL")
OPENING = datetime(2026, 1, 1, 9, 0, 0, tzinfo=UTC)


@dataclass
class Shop:
    seconds: int  # of the shop's time
    orders_per_second: int
    seed: int = 1
    order_count: int = 0
    broken_count: int = 0
    expected: dict[tuple[datetime, str], list[float]] = field(default_factory=lambda: defaultdict(lambda: [0, 0.0]))

    def ticks(self) -> Iterator[tuple[list[tuple[str, str]], list[tuple[str, str]]]]:
        """A second of the shop after the other: orders and payments, each with key and value."""
        chance = random.Random(self.seed)
        late: dict[int, list[tuple[str, str]]] = defaultdict(list)
        for second in range(self.seconds):
            orders = [self._order(second, chance, late) for _ in range(self.orders_per_second)]
            if second % 20 == 7:
                orders.append(("broken", '{"id": 12, "total": '))
                self.broken_count += 1
            yield orders, late.pop(second, [])
        yield [], [payment for payments in late.values() for payment in payments]
        # Nothing is older than this: it closes all windows, and is itself paid by nobody.
        closing = OPENING + timedelta(seconds=self.seconds + 3600)
        yield [("closing", order_text(-1, "AT", 0, closing))], [("closing", payment_text(-2, 0, closing))]

    def _order(self, second: int, chance: random.Random, late: dict[int, list[tuple[str, str]]]) -> tuple[str, str]:
        number = self.order_count
        self.order_count += 1
        country = chance.choices(COUNTRIES, weights=(2, 3, 8, 4, 3))[0]
        swing = 1 + 0.6 * ((second // WINDOW_SECONDS) % 3)
        total = round(chance.uniform(5, 200) * swing, 2)
        at = OPENING + timedelta(seconds=second, milliseconds=chance.randrange(1000))
        if chance.random() < 0.9:
            delay = chance.randrange(0, 4)
            paid_at = at + timedelta(seconds=delay)
            late[second + delay].append((str(number), payment_text(number, total, paid_at)))
            window = OPENING + timedelta(seconds=second // WINDOW_SECONDS * WINDOW_SECONDS)
            sums = self.expected[window, country]
            sums[0] += 1
            sums[1] += total
        return str(number), order_text(number, country, total, at)


def order_text(number: int, country: str, total: float, at: datetime) -> str:
    return json.dumps({"id": number, "country": country, "total": total, "at": at.isoformat()})


def payment_text(order: int, amount: float, paid_at: datetime) -> str:
    return json.dumps({"order_id": order, "amount": amount, "paid_at": paid_at.isoformat()})
