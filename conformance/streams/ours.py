"""Runs a topology of the judge with Barnabas, and writes what it emits in the same lines as the Java side."""

from __future__ import annotations

from barnabas.streams import App
from barnabas.streams.driver import Driver
from barnabas.streams.runtime.task import Commit
from barnabas.streams.topology.description import describe
from conformance.streams.records import NULL, Sent
from conformance.streams.topologies import ALL, topics

OUTPUTS = ("out", "out2", "out3")
LOG_ENTRIES_MAX = 40


class LoggingDriver(Driver):
    """Restores tasks from a log of changes, with a snapshot in the place of a long log, as a host does."""

    def __init__(self, app: App) -> None:
        self._log: dict[tuple[int, int], list[bytes]] = {}
        super().__init__(app)

    def _keep(self, place: tuple[int, int], commit: Commit) -> None:
        super()._keep(place, commit)
        log = self._log.setdefault(place, [])
        log += commit.chunks
        if len(log) > LOG_ENTRIES_MAX:
            log[:] = self._tasks[place].snapshot(limit=200)

    def _state(self, place: tuple[int, int]) -> list[bytes]:
        return self._log.get(place, [])


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
    driver = LoggingDriver(app)
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
