"""Random records of the judge, from a seed: out of order, late, with equal times, null keys and null values."""

from __future__ import annotations

import random
from pathlib import Path
from typing import NamedTuple

NULL = "\\N"


class Sent(NamedTuple):
    """A record, or a step of the wall clock: then the topic is ``advance`` and the key the milliseconds."""

    topic: str
    key: str | None
    value: str | None
    timestamp: int


def generate(seed: int, count: int) -> list[Sent]:
    """Return records whose times mostly grow by a few milliseconds, with jumps and with late ones."""
    chance = random.Random(seed)
    now = chance.choice([0, 10, 1000, 1_700_000_000_000])
    records = []
    for number in range(count):
        now += chance.choice([0, 0, 1, 2, 3, 5, 8, 13]) if chance.random() < 0.98 else chance.randrange(50, 400)
        late = chance.choice([0, 0, 0, 0, 1, 5, 20, 60, 150, 400])
        key = None if chance.random() < 0.03 else f"k{chance.randrange(6)}"
        value = None if chance.random() < 0.12 else f"v{chance.randrange(1000)}"
        topic = chance.choice(["left", "left", "right", "right", "third"])
        records.append(Sent(topic, key, value, max(0, now - late)))
        if number % 97 == 96:
            records.append(Sent("advance", str(chance.randrange(1, 2500)), None, 0))
    return records


def write(records: list[Sent], path: Path) -> None:
    """Write records as lines with tabs, as the Java side reads them."""
    lines = (
        f"{topic}\t{key if key is not None else NULL}\t{value if value is not None else NULL}\t{timestamp}\n"
        for topic, key, value, timestamp in records
    )
    path.write_text("".join(lines))
