"""Runs a topology of the judge with Barnabas, and writes what it emits in the same lines as the Java side."""

from __future__ import annotations

from barnabas.streams import App
from barnabas.streams.driver import Driver
from barnabas.streams.topology.description import describe
from conformance.streams.records import NULL, Sent
from conformance.streams.topologies import ALL, topics

OUTPUTS = ("out", "out2", "out3")


def description(name: str) -> str:
    """Return Kafka's description of a topology."""
    app = App(name)
    ALL[name](app)
    return describe(app.topology())


def _hex(data: bytes | None) -> str:
    return NULL if data is None else data.hex()


def run(name: str, records: list[Sent], *, restart_every: int = 0) -> list[str]:
    """Return the lines of the output.

    restart_every: replace all tasks by restored ones after so many records; the output must not change.
    """
    app = App(name)
    ALL[name](app)
    driver = Driver(app)
    read = topics(name)
    lines: list[str] = []
    for number, (topic, key, value, timestamp) in enumerate(records, 1):
        if topic == "advance":
            driver.advance(f"{key}ms")
        elif topic in read:
            driver.send(topic, value, key=key, at=timestamp, headers=[("n", str(number).encode())])
        if restart_every and number % restart_every == 0:
            driver.restart()
        for output in OUTPUTS:
            for row in driver.read_rows(output):
                headers = "".join(f"{name}={_hex(value)}," for name, value in row.headers)
                lines.append(f"{output}\t{_hex(row.key)}\t{_hex(row.value)}\t{row.timestamp}\t{headers}")
    return lines
