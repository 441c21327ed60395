"""A generator of realistic records: orders, clicks and sensor readings. Record number n is always the same."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Final, Literal

from msgspec import Meta

from barnabas.connect.config import Config, doc
from barnabas.connect.plugins import Context, Source, connector
from barnabas.connect.records import Limit, Offset, Part, Record
from barnabas.connect.schemas import (
    BOOLEAN,
    FLOAT64,
    INT32,
    INT64,
    STRING,
    Schema,
    array,
    from_millis,
    struct,
    timestamp_schema,
)

_COUNTRIES: Final = ("AT", "BR", "DE", "FR", "IN", "JP", "NG", "PL", "US", "VN")
_PRODUCTS: Final = (
    ("keyboard", 79.0),
    ("lamp", 24.5),
    ("notebook", 4.9),
    ("headphones", 129.0),
    ("backpack", 59.0),
    ("bottle", 18.0),
    ("charger", 35.0),
    ("chair", 249.0),
)
_STATUSES: Final = ("created", "paid", "packed", "shipped", "returned")
_PAGES: Final = ("/", "/search", "/product/{}", "/cart", "/checkout", "/account", "/help")
_AGENTS: Final = ("Firefox/145.0", "Chrome/142.0", "Safari/19.1", "Edge/142.0")
_SITES: Final = ("hall-a", "hall-b", "roof", "cellar")

ORDER: Final = struct(
    {
        "order_id": INT64,
        "customer_id": INT32,
        "country": STRING,
        "status": STRING,
        "items": array(struct({"product": STRING, "quantity": INT32, "price": FLOAT64}, name="item")),
        "total": FLOAT64,
        "created_at": timestamp_schema(),
    },
    name="order",
)
CLICK: Final = struct(
    {
        "user_id": INT32,
        "session_id": STRING,
        "page": STRING,
        "referrer": STRING.as_optional(),
        "user_agent": STRING,
        "is_new_visit": BOOLEAN,
        "at": timestamp_schema(),
    },
    name="click",
)
READING: Final = struct(
    {
        "sensor_id": STRING,
        "site": STRING,
        "temperature": FLOAT64,
        "humidity": FLOAT64,
        "battery": FLOAT64,
        "at": timestamp_schema(),
    },
    name="reading",
)


class DatagenConfig(Config):
    """Keys of the data generator."""

    topic: Annotated[str, doc("Topic to write to")]
    kind: Annotated[Literal["orders", "clicks", "sensors"], doc("What to generate", importance="HIGH")] = "orders"
    records_per_second: Annotated[float, doc("Speed"), Meta(gt=0, le=1_000_000)] = 10.0
    records_max: Annotated[int, doc("Records to generate in all; -1: no end"), Meta(ge=-1)] = -1
    seed: Annotated[int, doc("Another seed gives other records")] = 1
    poll_interval_ms: Annotated[int, doc("Milliseconds between two batches"), Meta(ge=100)] = 1000


@connector("datagen")
class Datagen(Source[DatagenConfig]):
    """Generates records at a steady rate. The offset is how many there were, and when the first one was."""

    Config = DatagenConfig

    def __init__(self, config: DatagenConfig, context: Context) -> None:
        super().__init__(config, context)
        self._asked_at: float | None = None

    def start(self) -> Offset:
        """Return the beginning, with the time of the first record."""
        return {"count": 0, "start_ms": time.time_ns() // 1_000_000}

    def latest(self, since: Offset, limit: Limit) -> Offset:
        """Return as many more as the rate allows since the last call."""
        now = time.monotonic()
        elapsed = self.config.poll_interval_ms / 1000 if self._asked_at is None else now - self._asked_at
        count = int(since["count"])
        more = min(limit.records, int(elapsed * self.config.records_per_second))
        if self.config.records_max >= 0:
            more = min(more, self.config.records_max - count)
        if more <= 0:
            return since
        self._asked_at = now
        return {**since, "count": count + more}

    def read(self, part: Part) -> Iterator[Record]:
        """Yield the records of these numbers."""
        schema, make = _KINDS[self.config.kind]
        step_ms = 1000 / self.config.records_per_second
        for number in range(int(part.since["count"]), int(part.until["count"])):
            at = int(part.since["start_ms"]) + int(number * step_ms)
            key, value = make(random.Random(f"{self.config.seed}/{number}"), number, at)  # noqa: S311 - test data
            key_schema = STRING if isinstance(key, str) else INT32
            yield Record(self.config.topic, value, key, key_schema=key_schema, value_schema=schema, timestamp_ms=at)


def _order(chance: random.Random, number: int, at_ms: int) -> tuple[Any, dict[str, Any]]:
    customer = chance.randrange(1, 5001)
    items: list[dict[str, Any]] = []
    for product, price in chance.sample(_PRODUCTS, chance.choices((1, 2, 3), (6, 3, 1))[0]):
        items.append({"product": product, "quantity": chance.choices((1, 2, 5), (7, 2, 1))[0], "price": price})
    return customer, {
        "order_id": 1_000_000 + number,
        "customer_id": customer,
        "country": chance.choice(_COUNTRIES),
        "status": chance.choices(_STATUSES, (5, 4, 3, 2, 1))[0],
        "items": items,
        "total": round(sum(item["quantity"] * item["price"] for item in items), 2),
        "created_at": from_millis(at_ms),
    }


def _click(chance: random.Random, number: int, at_ms: int) -> tuple[Any, dict[str, Any]]:
    user = int(chance.paretovariate(1.2)) % 20_000
    return user, {
        "user_id": user,
        "session_id": f"{user:05d}-{at_ms // 1_800_000:x}",
        "page": chance.choice(_PAGES).format(chance.randrange(1, 500)),
        "referrer": chance.choice((None, None, "https://search.example", "https://news.example")),
        "user_agent": chance.choice(_AGENTS),
        "is_new_visit": chance.random() < 0.1,
        "at": from_millis(at_ms),
    }


def _reading(chance: random.Random, number: int, at_ms: int) -> tuple[Any, dict[str, Any]]:
    sensor = chance.randrange(100)
    return f"sensor-{sensor:03d}", {
        "sensor_id": f"sensor-{sensor:03d}",
        "site": _SITES[sensor % len(_SITES)],
        "temperature": round(chance.gauss(21 + sensor % 7, 0.8), 2),
        "humidity": round(min(100.0, max(0.0, chance.gauss(45, 6))), 1),
        "battery": round(max(0.0, 100 - number / 5000 - sensor / 10), 1),
        "at": from_millis(at_ms),
    }


_KINDS: Final[dict[str, tuple[Schema, Callable[[random.Random, int, int], tuple[Any, dict[str, Any]]]]]] = {
    "orders": (ORDER, _order),
    "clicks": (CLICK, _click),
    "sensors": (READING, _reading),
}
