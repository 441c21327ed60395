"""Random input of the three applications, the same for both sides, with rising timestamps."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Final, NamedTuple

__all__ = ["INPUTS", "PARTITIONS", "Given", "Round"]

PARTITIONS: Final = 4
_WORDS: Final = ("tea", "cake", "salt", "Rice", "Oil", "bread", "milk")
_MINUTE_MS: Final = 60_000
_HOUR_MS: Final = 60 * _MINUTE_MS
_ROUNDS: Final = 3


class Given(NamedTuple):
    """A record of the input. A partition of None is that of the key."""

    topic: str
    key: str
    value: str | None
    timestamp: int
    partition: int | None = None


class Round(NamedTuple):
    """Records that are produced together. The next round follows when so many results are there."""

    records: list[Given]
    results: int = 0


def lines(random: Random, count: int) -> Iterator[Round]:
    yield Round(
        [Given("lines", str(n), " ".join(random.choices(_WORDS, k=random.randrange(6))), n) for n in range(count)]
    )


def orders(random: Random, count: int) -> Iterator[Round]:
    """Orders of which two thirds are paid in the same round, and some in the next one, which is an hour later.

    A round takes four minutes of event time, so that its results do not depend on the order in which the two topics are
    read: Kafka Streams reads payments behind a repartition. The last round closes the windows of the others.
    """
    paid = 0
    late: list[Given] = []
    for start in range(0, _ROUNDS * _HOUR_MS, _HOUR_MS):
        records, late = late, []
        for number in range(count // _ROUNDS):
            name = f"{start // _HOUR_MS}-{number}"
            at = start + random.randrange(4 * _MINUTE_MS)
            order: dict[str, object] = {"id": name, "total": random.randrange(1, 100), "placed": at}
            records.append(Given("orders", name, _json(order), at))
            if random.random() < 2 / 3:
                payment = _json({"order_id": name, "amount": random.randrange(1, 100)})
                at = start + random.randrange(4 * _MINUTE_MS)
                if random.random() < 0.1:
                    late.append(Given("payments", f"p{name}", payment, at + _HOUR_MS))
                else:
                    records.append(Given("payments", f"p{name}", payment, at))
                    paid += 1
        yield Round(records, paid)
    end = (_ROUNDS + 1) * _HOUR_MS
    last = []
    for partition in range(PARTITIONS):
        order = {"id": f"end-{partition}", "total": 0, "placed": end}
        last.append(Given("orders", f"end-{partition}", _json(order), end, partition))
    yield Round(last)


def _json(content: dict[str, object]) -> str:
    return json.dumps(content, separators=(",", ":"))


def games(random: Random, count: int) -> Iterator[Round]:
    """Points and players, who move between leagues and leave."""
    records: list[Given] = []
    for at in range(count):
        player = f"player-{random.randrange(12)}"
        if random.random() < 0.3:
            known: dict[str, object] = {"name": player.title(), "league": random.choice(("gold", "silver"))}
            value = None if random.random() < 0.1 else _json(known)
            records.append(Given("players", player, value, at))
        else:
            records.append(Given("points", player, str(random.randrange(1, 10)), at))
    yield Round(records)


# Application -> its input, its topics, and the topic that it writes.
INPUTS: Final = {
    "word_count": (lines, ("lines",), "word-counts"),
    "paid_orders": (orders, ("orders", "payments"), "paid"),
    "leaderboard": (games, ("points", "players"), "leaderboard"),
}
