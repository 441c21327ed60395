"""A driver for the tests that kill: an application with all kinds of state.

Run as a program, like ``stateful_counting.py``. A windowed join, a table-table join and a suppress buffer write what an
undisturbed run writes; a processor keeps each number in a store until a wall-clock punctuator writes it, once.
"""

from __future__ import annotations

from stateful_counting import run_until_killed

from barnabas.streams import App, Processor, Record, Store, tumbling


class Held(Processor[str, int, str, int]):
    """Keeps numbers until the next tick, and counts them by stream time."""

    numbers: Store[str, int]
    counted: Store[str, int]

    def init(self) -> None:
        self.schedule("500ms", self.write, by="wall_clock")
        self.schedule("1s", self.count, by="stream_time")

    def process(self, record: Record[str, int]) -> None:
        self.numbers[record.key] = record.value

    def write(self, now: int) -> None:
        for key, number in list(self.numbers.items()):
            self.forward(Record(key, number, now))
            del self.numbers[key]

    def count(self, now: int) -> None:
        self.counted["calls"] = self.counted.get("calls", 0) + 1


app = App("everything-killed")
numbers = app.stream("input", value=int)
doubled = numbers.map_values(lambda number: 2 * number, value=int)
numbers.join(doubled, lambda one, other: one + other, within="10s", grace="1m", value=int).to("joined")
numbers.to_table(store="ones").left_join(
    doubled.filter(lambda number: number % 4 == 0).to_table(store="twos"),
    lambda one, two: f"{one} {two}",
    value=str,
    store="both",
).to_stream().to("rows")
numbers.group_by_key().window(tumbling("1s")).count(store="windows").suppress(until="window_closes").to_stream().map(
    lambda window, count: (window.key, count), key=str, value=int
).to("closed")
numbers.process(Held, key=str, value=int).to("output")

if __name__ == "__main__":
    run_until_killed(app)
