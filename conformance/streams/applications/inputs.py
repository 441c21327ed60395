"""Random input of the three applications, the same for both sides, with rising timestamps."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Final, NamedTuple

__all__ = ["INPUTS", "PARTITIONS", "Given"]

PARTITIONS: Final = 4
_WORDS: Final = ("tea", "cake", "salt", "Rice", "Oil", "bread", "milk")
_MINUTE_MS: Final = 60_000


class Given(NamedTuple):
    """A record of the input. A partition of None is that of the key."""

    topic: str
    key: str
    value: str | None
    timestamp: int
    partition: int | None = None


def lines(random: Random, count: int) -> Iterator[Given]:
    for number in range(count):
        yield Given("lines", str(number), " ".join(random.choices(_WORDS, k=random.randrange(6))), number)


def orders(random: Random, count: int) -> Iterator[Given]:
    """Orders, two thirds of which are paid, some within five minutes and some too late; then the end of all windows."""
    at = 0
    for number in range(count):
        at += random.randrange(2 * _MINUTE_MS)
        order = {"id": str(number), "total": random.randrange(1, 100), "placed": at}
        yield Given("orders", str(number), json.dumps(order, separators=(",", ":")), at)
        if random.random() < 2 / 3:
            later = at + random.randrange(6 * _MINUTE_MS)
            payment = {"order_id": str(number), "amount": random.randrange(1, 100)}
            yield Given("payments", f"p{number}", json.dumps(payment, separators=(",", ":")), later)
    end = at + 60 * _MINUTE_MS
    for partition in range(PARTITIONS):
        order = {"id": f"end-{partition}", "total": 0, "placed": end}
        yield Given("orders", f"end-{partition}", json.dumps(order, separators=(",", ":")), end, partition)
        yield Given("payments", f"end-{partition}", '{"order_id":"none","amount":0}', end, partition)


def games(random: Random, count: int) -> Iterator[Given]:
    """Points and players, who move between leagues and leave."""
    for at in range(count):
        player = f"player-{random.randrange(12)}"
        if random.random() < 0.3:
            known = {"name": player.title(), "league": random.choice(("gold", "silver"))}
            value = None if random.random() < 0.1 else json.dumps(known, separators=(",", ":"))
            yield Given("players", player, value, at)
        else:
            yield Given("points", player, str(random.randrange(1, 10)), at)


# Application -> its input, its topics, and the topic that it writes.
INPUTS: Final = {
    "word_count": (lines, ("lines",), "word-counts"),
    "paid_orders": (orders, ("orders", "payments"), "paid"),
    "leaderboard": (games, ("points", "players"), "leaderboard"),
}
