"""A host that cannot send records back runs the left side of a foreign-key join twice, with the same final table."""

from __future__ import annotations

import random

import pytest

from barnabas.streams import App, drive
from barnabas.streams.runtime.task import InputRecord, Row, Task


def foreign_key(value: str) -> str | None:
    return None if value.endswith("9") else f"r{value[-1]}"


def foreign_join(kind: str) -> App:
    app = App("loops")
    left, right = app.table("left", value=str), app.table("right", value=str)
    if kind == "inner":
        joined = left.join(right, lambda one, other: f"{one}+{other}", by=foreign_key)
    else:
        joined = left.left_join(right, lambda one, other: f"{one}+{other}", by=foreign_key)
    joined.to_stream().to("out", value=str)
    return app


def records(seed: int) -> list[tuple[str, str, str | None]]:
    chance = random.Random(seed)
    found = []
    for number in range(400):
        topic = chance.choice(["left", "right"])
        key = f"{'l' if topic == 'left' else 'r'}{chance.randrange(8)}"
        found.append((topic, key, None if chance.random() < 0.2 else f"v{number}"))
    return found


class Chained:
    """Three operators in a row, as a micro-batch engine has them."""

    def __init__(self, kind: str) -> None:
        topology = foreign_join(kind).topology()
        partitions = dict.fromkeys(topology.internal_topics, 1)
        self.sender, self.right, self.resolver = (
            Task(topology, n, 0, partitions=partitions, is_chained=True) for n in (0, 1, 0)
        )
        self.offsets: dict[str, int] = {}
        self.table: dict[bytes | None, bytes] = {}

    def inputs(self, rows: list[Row]) -> list[InputRecord]:
        found = []
        for row in rows:
            offset = self.offsets[row.topic] = self.offsets.get(row.topic, -1) + 1
            found.append((row.topic, 0, offset, row.timestamp, row.key, row.value, row.headers))
        return found

    def run(self, batch: list[InputRecord]) -> None:
        lefts = [record for record in batch if record[0] == "left"]
        rights = [record for record in batch if record[0] == "right"]
        for task in (self.sender, self.right, self.resolver):
            task.begin(time_ms=0, seed=0)
        subscriptions = self.inputs(self.sender.process(lefts))
        responses = self.inputs(self.right.process([*rights, *subscriptions]))
        self.resolver.process(lefts)
        for row in self.resolver.process(responses):
            assert row.topic == "out"
            if row.value is None:
                self.table.pop(row.key, None)
            else:
                self.table[row.key] = row.value


@pytest.mark.parametrize("kind", ["inner", "left"])
def test_three_operators_in_a_row_end_with_the_same_table(kind: str) -> None:
    for seed in range(5):
        chained = Chained(kind)
        batch: list[InputRecord] = []
        with drive(foreign_join(kind)) as driver:
            for number, (topic, key, value) in enumerate(records(seed)):
                driver.send(topic, value, key=key, at=number)
                batch.append((topic, 0, number, number, key.encode(), value.encode() if value else None, ()))
                if len(batch) == 13:
                    chained.run(batch)
                    batch = []
            chained.run(batch)
            expected = {key.encode(): value.encode() for key, value in driver.table("out").items()}
        assert chained.table == expected
