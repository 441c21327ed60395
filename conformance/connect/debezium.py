"""Debezium judges our change capture: the same configuration and database, its events beside ours, record by record."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from tools.connect_jars import debezium_plugins
from tools.postgres_server import PostgresServer

from conformance.connect.events import ChangeEvent, TopicReader, differences
from conformance.connect.workers import ConnectWorker, KafkaWorker, OurWorker
from conformance.connect.workload import SCHEMA, TABLES, Workload

THEIRS, OURS = "debezium", "barnabas"


class Judge:
    """Both workers on one broker, and a database for each comparison."""

    def __init__(self, bootstrap: str, server: PostgresServer, workers: Mapping[str, ConnectWorker]) -> None:
        self._server = server
        self._workers = workers
        self._reader = TopicReader(bootstrap)

    def compare(self, name: str, seed: int, transactions: int, config: Mapping[str, str]) -> dict[str, list[str]]:
        """Run a workload under both connectors; return the differences by topic."""
        self.run(name, seed, transactions, config)
        return self._differences(name, config)

    def run(self, name: str, seed: int, transactions: int, config: Mapping[str, str]) -> None:
        """Run a workload under all connectors, until their topics have all of it."""
        database = self._server.database(name)
        # Python's datetime, the type of Connect's own timestamps, has no infinity.
        workload = Workload(seed, with_infinity=config.get("time.precision.mode") != "connect")
        with self._server.connect(database) as session:
            for statement in (*SCHEMA, *workload.first_rows()):
                session.execute(statement.encode())
            for who, worker in self._workers.items():
                worker.put(f"{name}-{who}", self._config(name, who, config))
                worker.reaches(f"{name}-{who}", "RUNNING")
            for table in TABLES:
                (count,) = session.execute(f"select count(*) from {table}".encode()).fetchone() or (0,)
                for who in self._workers:
                    self._reader.wait_for_count(f"{name}-{who}.public.{table}", count)
            self._run(session, workload, transactions)
            for who, worker in self._workers.items():
                self._reader.wait_for(f"{name}-{who}.public.marker", b"the end")
                worker.request("DELETE", f"/connectors/{name}-{who}")

    def events(self, name: str, who: str, topic: str) -> list[ChangeEvent]:
        """Return the events of a connector in one of its topics."""
        return self._reader.events(f"{name}-{who}.{topic}", f"{name}-{who}")

    def _config(self, name: str, who: str, more: Mapping[str, str]) -> dict[str, str]:
        return {
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            "database.hostname": "127.0.0.1",
            "database.port": str(self._server.port),
            "database.user": "postgres",
            "database.password": "unused",
            "database.dbname": name,
            "topic.prefix": f"{name}-{who}",
            "slot.name": f"{name}_{who}",
            "plugin.name": "pgoutput",
            "skipped.operations": "none",
            "tasks.max": "1",
            "poll.interval.ms": "200",
            "key.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            **more,
        }

    def _run(self, session: psycopg.Connection[Any], workload: Workload, count: int) -> None:
        for statements, is_committed in workload.transactions(count):
            session.execute(b"begin")
            for statement in statements:
                session.execute(statement.encode())
            session.execute(b"commit" if is_committed else b"rollback")
        session.execute("insert into marker values (1, 'the end')")

    def _differences(self, name: str, config: Mapping[str, str]) -> dict[str, list[str]]:
        topics = [f"public.{table}" for table in TABLES]
        if config.get("provide.transaction.metadata") == "true":
            topics.append("transaction")
        found: dict[str, list[str]] = {}
        for topic in topics:
            theirs, ours = (self.events(name, who, topic) for who in (THEIRS, OURS))
            found[topic] = differences(theirs, ours)
        return found


@contextmanager
def judge(bootstrap: str) -> Iterator[Judge]:
    """Start PostgreSQL and both workers."""
    with tempfile.TemporaryDirectory(prefix="barnabas-judge-") as directory:
        server = PostgresServer("max_replication_slots=40", "max_wal_senders=40")
        try:
            with (
                KafkaWorker(bootstrap, Path(directory), group="theirs", plugins=[debezium_plugins()]) as kafka,
                OurWorker(bootstrap, Path(directory), group="ours") as ours,
            ):
                yield Judge(bootstrap, server, {THEIRS: kafka, OURS: ours})
        finally:
            server.stop()
