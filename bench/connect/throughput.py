"""Change capture beside Debezium in Kafka's worker, and the sinks: same broker, same database, same machine.

`python -m bench.connect.throughput [--rows N] [--changes N] [--rate N] [--sides barnabas,debezium]` prints, for each
side, the time to start, the snapshot in rows a second, changes a second out of a backlog, CPU per row, memory, and the
lag at a steady rate; then the ratios.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from conformance.connect.workers import ConnectWorker, KafkaWorker, OurWorker
from tools.connect_jars import debezium_plugins
from tools.postgres_server import PostgresServer

from barnabas.client.blocking.admin import Admin
from barnabas.client.offsets import LATEST_TIMESTAMP
from barnabas.client.settings.client import Settings
from barnabas.model.errors import ApiError
from barnabas.model.ids import TopicPartition
from barnabas.testing import BrokerProcess
from bench.machine import describe
from bench.measure import cpu_seconds, process_tree

ROWS: Final = 5_000_000
CHANGES: Final = 500_000
RATE: Final = 5_000
LAG_SECONDS: Final = 30
WAIT_SECONDS_MAX: Final = 3600.0
TICK_SECONDS: Final = 0.1
TABLE: Final = (
    "create table orders (id bigint primary key, customer int, item text, price numeric(10,2), at timestamptz)"
)
INSERT: Final = (
    "insert into orders select n, n %% 5000, 'item ' || n %% 100, n %% 1000 + 0.99, now()"
    " from generate_series(%s::bigint, %s::bigint) n"
)
SIDES: Final = ("barnabas", "debezium")


class Figures(NamedTuple):
    """What one side did."""

    start_seconds: float
    snapshot_rows_per_second: float
    snapshot_cpu_us_per_row: float
    changes_per_second: float
    changes_cpu_us_per_row: float
    memory_mib: float
    lag_ms_median: float
    lag_ms_max: float


def main() -> None:
    parser = argparse.ArgumentParser(description="Change capture beside Debezium.")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--changes", type=int, default=CHANGES)
    parser.add_argument("--rate", type=int, default=RATE)
    parser.add_argument("--lag-seconds", type=int, default=LAG_SECONDS)
    parser.add_argument("--sides", default=",".join(SIDES))
    options = parser.parse_args()
    print(describe(), flush=True)
    found = {side: _measured(side, options) for side in options.sides.split(",")}
    print(f"{'':28}" + "".join(f"{side:>14}" for side in found) + ("         ratio" if len(found) > 1 else ""))
    for name in Figures._fields:
        values = [getattr(figures, name) for figures in found.values()]
        ratio = f"{values[0] / values[1]:14.2f}" if len(values) > 1 and values[1] else ""
        print(f"{name:28}" + "".join(f"{value:14.1f}" for value in values) + ratio)


@contextmanager
def _worker(side: str, bootstrap: str, directory: Path) -> Iterator[ConnectWorker]:
    made: ConnectWorker = OurWorker(bootstrap, directory, group=side)
    if side == "debezium":
        made = KafkaWorker(bootstrap, directory, group=side, plugins=[debezium_plugins()])
    with made as worker:
        yield worker


def _measured(side: str, options: argparse.Namespace) -> Figures:
    server = PostgresServer("max_wal_size=8GB", "shared_buffers=256MB")
    try:
        with (
            tempfile.TemporaryDirectory(prefix="barnabas-bench-") as name,
            BrokerProcess(Path(name) / "broker") as broker,
            server.connect() as session,
        ):
            session.execute(TABLE)
            session.execute(INSERT, (1, options.rows))
            with _worker(side, broker.bootstrap_servers, Path(name)) as worker:
                return _run(side, worker, broker.bootstrap_servers, server, session, options)
    finally:
        server.stop()


def _run(
    side: str, worker: ConnectWorker, bootstrap: str, server: PostgresServer, session: Any, options: argparse.Namespace
) -> Figures:
    topic, rows, changes = f"{side}.public.orders", options.rows, options.changes
    with Admin(Settings.of({"bootstrap.servers": bootstrap})) as admin:
        count = _counter(admin, topic)
        began = time.monotonic()
        worker.put("capture", _config(side, server))
        _wait(lambda: count() > 0)
        start = time.monotonic() - began
        cpu, at, first = cpu_seconds(process_tree(worker.pid)), time.monotonic(), count()
        _wait(lambda: count() >= rows)
        snapshot_wall = time.monotonic() - at
        snapshot_cpu = cpu_seconds(process_tree(worker.pid)) - cpu
        worker.request("PUT", "/connectors/capture/pause")
        worker.reaches("capture", "PAUSED")
        session.execute(INSERT, (rows + 1, rows + changes))
        cpu, at = cpu_seconds(process_tree(worker.pid)), time.monotonic()
        worker.request("PUT", "/connectors/capture/resume")
        _wait(lambda: count() >= rows + changes)
        changes_wall = time.monotonic() - at
        changes_cpu = cpu_seconds(process_tree(worker.pid)) - cpu
        lags = _lags(session, count, rows + changes, options.rate, options.lag_seconds)
    return Figures(
        start,
        max(0, rows - first) / snapshot_wall,  # after the first batch, which start-up includes
        1e6 * snapshot_cpu / (rows - first) if first < rows else 0.0,
        changes / changes_wall,
        1e6 * changes_cpu / changes,
        _memory_mib(worker.pid),
        1000 * sorted(lags)[len(lags) // 2],
        1000 * max(lags),
    )


def _config(side: str, server: PostgresServer) -> Mapping[str, str]:
    return {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "database.hostname": "127.0.0.1",
        "database.port": str(server.port),
        "database.user": "postgres",
        "database.password": "unused",
        "database.dbname": "postgres",
        "topic.prefix": side,
        "slot.name": side,
        "plugin.name": "pgoutput",
        "tasks.max": "1" if side == "debezium" else "2",
        "key.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "key.converter.schemas.enable": "false",
        "value.converter.schemas.enable": "false",
    }


def _counter(admin: Admin, topic: str) -> Callable[[], int]:
    place = TopicPartition(topic, 0)

    def count() -> int:
        try:
            return admin.list_offsets({place: LATEST_TIMESTAMP})[place].offset
        except ApiError:
            return 0  # there is no topic yet

    return count


def _wait(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not done after {WAIT_SECONDS_MAX:g} s")
        time.sleep(TICK_SECONDS)


def _lags(session: Any, count: Callable[[], int], first: int, rate: int, seconds: int) -> list[float]:
    """Write at a steady rate; return how long after the commit each tenth of a second's rows were in the topic."""
    written: list[tuple[int, float]] = []
    is_over = threading.Event()

    def write() -> None:
        began, done = time.monotonic(), 0
        step = max(1, rate // 10)
        while done < rate * seconds:
            session.execute(INSERT, (first + done + 1, first + done + step))
            done += step
            written.append((first + done, time.monotonic()))
            time.sleep(max(0.0, began + done / rate - time.monotonic()))
        is_over.set()

    writer = threading.Thread(target=write)
    writer.start()
    lags: list[float] = []
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while (not is_over.is_set() or len(lags) < len(written)) and time.monotonic() < deadline:
        end, now = count(), time.monotonic()
        while len(lags) < len(written) and written[len(lags)][0] <= end:
            lags.append(now - written[len(lags)][1])
        time.sleep(TICK_SECONDS / 10)
    writer.join()
    return lags


def _memory_mib(pid: int) -> float:
    """Memory of a process and its children, pages that they share counted once."""
    total = 0
    for each in process_tree(pid):
        try:
            lines = (Path("/proc") / str(each) / "smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1024


if __name__ == "__main__":
    main()
