"""A stage for the tests that kill parts of change capture: a database under a writer, workers, a broker, and judges.

The writer gives every row a version that each update raises by one, so that an event that is lost or repeated shows in
the versions of its row.
"""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
from conformance.connect.workers import OurWorker
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import NoSuchTableError
from tools.postgres_server import PostgresServer

from barnabas import ConsumerSettings, TopicPartition, blocking
from barnabas.testing import BrokerProcess

TOPIC = "shop.public.orders"
PARTITIONS = 3
FIRST_ROWS = 3000
WAIT_SECONDS_MAX = 300.0
MOVED = 1_000_000  # what a change of the key adds to it
COLUMNS = "id, item, version"


def until(condition: Callable[[], Any], what: Callable[[], str]) -> None:
    """Wait for a condition; ``what`` describes the state if it does not come."""
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline, what()
        time.sleep(0.3)


class Writer:
    """Random transactions, through crashes of the database, until it is stopped."""

    def __init__(self, server: PostgresServer, seed: int) -> None:
        self._server = server
        self._chance = random.Random(seed)
        self._is_stopped = threading.Event()
        self.committed = 0
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def stop(self) -> None:
        self._is_stopped.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._is_stopped.is_set():
            with suppress(psycopg.Error), self._server.connect() as session:
                while not self._is_stopped.is_set():
                    self._transaction(session)
                    self.committed += 1
            time.sleep(0.1)

    def _transaction(self, session: psycopg.Connection[Any]) -> None:
        session.execute("begin")
        for _ in range(self._chance.choice([1, 1, 3, 20])):
            session.execute(self._statement().encode())
        session.execute("rollback" if self._chance.random() < 0.15 else "commit")
        time.sleep(self._chance.random() * 0.15)

    def _statement(self) -> str:
        some = f"(select id from orders where id < {MOVED} order by random() limit 3)"
        match self._chance.randrange(6):
            case 0 | 1:
                return "insert into orders (item, version) values (repeat('x', (random() * 50)::int), 0)"
            case 2 | 3:
                return f"update orders set version = version + 1 where id in {some}"
            case 4:
                return f"update orders set id = id + {MOVED}, version = version + 1 where id in {some} and id % 7 = 0"
        return f"delete from orders where id in {some} and id % 3 = 0"


class Stage:
    """Everything that runs; ``kill`` ends a part of it and starts it again."""

    def __init__(self, directory: Path, seed: int) -> None:
        self.directory = directory
        self._chance = random.Random(seed)
        self.broker = BrokerProcess(directory / "broker")
        self.broker.start()
        self.server = PostgresServer()
        self.workers = [self._worker(), self._worker()]
        with self.server.connect() as session:
            session.execute("create table orders (id serial primary key, item text, version int not null)")
            session.execute(
                f"insert into orders (item, version) select 'first', 0 from generate_series(1, {FIRST_ROWS})"
            )
        self.server.database("copy")
        for worker in self.workers:
            worker.start()
        self.catalog = {
            "type": "sql",
            "uri": f"sqlite:///{directory}/catalog.db",
            "warehouse": f"file://{directory}/lake",
        }
        for name, config in self._connectors().items():
            self.workers[0].put(name, config)

    def _worker(self) -> OurWorker:
        return OurWorker(self.broker.bootstrap_servers, self.directory, group="stage")

    def _connectors(self) -> dict[str, dict[str, str]]:
        capture = {
            "connector.class": "postgres-source",
            "database.hostname": "127.0.0.1",
            "database.port": str(self.server.port),
            "database.user": "postgres",
            "database.dbname": "postgres",
            "topic.prefix": "shop",
            "slot.name": "shop",
            "slot.retry.delay.ms": "500",
            "snapshot.chunk.rows": "500",
            "tasks.max": "2",
            "topic.creation.default.partitions": str(PARTITIONS),
            "topic.creation.default.replication.factor": "1",
        }
        copy = {
            "connector.class": "sql-sink",
            "topics": TOPIC,
            "connection.url": f"postgresql://127.0.0.1:{self.server.port}/copy",
            "connection.user": "postgres",
            "table.name.format": "orders",
            "insert.mode": "upsert",
            "pk.mode": "record_key",
            "auto.create": "true",
            "delete.enabled": "true",
            "transforms": "row",
            "transforms.row.type": "ExtractNewRecordState",
        }
        lake = {"connector.class": "iceberg-sink", "topics": TOPIC, "poll.interval.ms": "3000"}
        lake |= {f"iceberg.catalog.{key}": value for key, value in self.catalog.items()}
        return {"capture": capture, "copy": copy, "lake": lake}

    def close(self) -> None:
        for worker in self.workers:
            worker.stop()
        self.server.stop()
        self.broker.__exit__(None, None, None)

    # --- killing --------------------------------------------------------------------------------------------------

    def kill(self, part: str) -> None:
        """Kill a part, and start it again if no other does that."""
        if part == "broker":
            self.broker.kill()
            time.sleep(self._chance.random())
            self.broker.start()
        elif part == "database":
            self.server.kill()
            time.sleep(self._chance.random())
            self.server.start()
        elif part == "worker":
            leader = self._leader()
            leader.kill()
            leader.start()
        else:
            driver = self._driver()
            (os.killpg if self._chance.random() < 0.5 else os.kill)(driver, signal.SIGKILL)

    def _leader(self) -> OurWorker:
        return next((each for each in self.workers if _driver_of(each.pid)), self.workers[0])

    def _driver(self) -> int:
        found: list[int] = []

        def is_there() -> bool:
            found[:] = [pid for each in self.workers for pid in _driver_of(each.pid)]
            return bool(found)

        until(is_there, lambda: f"there is no driver: {self.statuses()}")
        return found[0]

    # --- looking --------------------------------------------------------------------------------------------------

    def rows(self, database: str) -> list[tuple[Any, ...]]:
        """The rows of the table, or of its copy."""
        try:
            with self.server.connect(database) as session:
                return session.execute(f"select {COLUMNS} from orders order by id".encode()).fetchall()
        except psycopg.Error:  # no table yet, or the server is away
            return []

    def statuses(self) -> str:
        answer = self.workers[0].request("GET", "/connectors?expand=status")
        return json.dumps(answer.json(), indent=1)[:6000]

    def flows(self) -> None:
        """Wait until a row that is written now has come to the copy."""
        with self.server.connect() as session:
            row = session.execute("insert into orders (item, version) values ('pulse', 0) returning id").fetchone()
        assert row is not None

        def has_come() -> bool:
            with suppress(psycopg.Error), self.server.connect("copy") as session:
                # The writer may have deleted or moved it meanwhile: a later one does as well.
                found = session.execute("select max(id) from orders where id < %s", (MOVED,)).fetchone()
                return found is not None and found[0] is not None and found[0] >= row[0]
            return False

        until(has_come, self.statuses)

    def events(self) -> list[Any]:
        """The records of the topic."""
        told = {"bootstrap.servers": self.broker.bootstrap_servers, "isolation.level": "read_committed"}
        found: list[Any] = []
        with blocking.Consumer(ConsumerSettings.of(told)) as consumer:
            consumer.assign([TopicPartition(TOPIC, number) for number in range(PARTITIONS)], until_end=True)
            while not consumer.is_at_end:
                found += consumer.poll(timeout_ms=500)
        return found

    def lake(self) -> list[dict[str, Any]]:
        """The rows of the change table."""
        opened = load_catalog("default", **self.catalog)
        try:
            found: list[dict[str, Any]] = opened.load_table("default.shop_public_orders").scan().to_arrow().to_pylist()
            return found
        except NoSuchTableError:
            return []
        finally:
            opened.close()


def _driver_of(parent: int) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            is_child = int(path.read_text().rpartition(")")[2].split()[1]) == parent
            if is_child and b"barnabas.connect.driver.main" in (path.parent / "cmdline").read_bytes():
                found.append(int(path.parent.name))
    return found


def check_events(records: list[Any], books: list[tuple[Any, ...]]) -> None:
    """The topic, replayed, is the table; no change is missing and none is there twice."""
    rows: dict[int, tuple[Any, ...]] = {}
    versions: dict[int, list[int]] = defaultdict(list)
    places: Counter[tuple[int, str, int]] = Counter()
    for record in records:
        if record.value is None:
            continue
        event, key = json.loads(record.value)["payload"], json.loads(record.key)["payload"]["id"]
        after = event["after"]
        if after is None:
            rows.pop(key, None)
        else:
            rows[key] = tuple(after[name] for name in ("id", "item", "version"))
        if event["op"] != "r":
            places[(event["source"]["lsn"], event["op"], key)] += 1
            if after is not None:
                versions[key].append(after["version"])
    assert not [place for place, count in places.items() if count > 1], "a change is in the topic twice"
    for key, found in versions.items():
        assert found == list(range(found[0], found[0] + len(found))), f"versions of row {key}: {found}"
    assert sorted(rows.values()) == books


def check_lake(rows: list[dict[str, Any]], records: list[Any]) -> None:
    """The change table has each event of the topic once."""
    places = Counter((row["_partition"], row["_offset"]) for row in rows)
    assert not [place for place, count in places.items() if count > 1], "a change is in the lake twice"
    assert places.keys() == {(each.partition, each.offset) for each in records if each.value is not None}


@contextmanager
def stage(directory: Path, seed: int) -> Iterator[Stage]:
    made = Stage(directory, seed)
    try:
        yield made
    finally:
        made.close()
