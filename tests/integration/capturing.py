"""Runs a PostgreSQL source batch by batch, as a query of its own would, and keeps what it gives."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import psycopg
from tools.postgres_server import PostgresServer

from barnabas.connect.connectors.postgres.source import PostgresSource
from barnabas.connect.json_schemas import value_to_json
from barnabas.connect.plugins import Context
from barnabas.connect.records import Limit, Offset, Record

LIMIT = Limit(5000, 1024 * 1024)


class Capture:
    """A connector with its log of offsets. ``crash`` forgets everything else."""

    def __init__(self, server: PostgresServer, database: str, *, tasks: int = 2, **config: str) -> None:
        given = {
            "database.hostname": "127.0.0.1",
            "database.port": str(server.port),
            "database.user": "postgres",
            "database.dbname": database,
            "topic.prefix": "shop",
            "slot.name": f"slot_{database}",
            "slot.retry.delay.ms": "100",
            "slot.max.retries": "100",
            "poll.interval.ms": "10",
        } | {key.replace("_", "."): value for key, value in config.items()}
        self._config = PostgresSource.Config.read(given)
        self._tasks = tasks
        self.records: list[Record] = []
        self.source = self._made()
        self.log: list[Offset] = [_json(self.source.start())]

    def _made(self) -> PostgresSource:
        return PostgresSource(self._config, Context("capture", self._tasks))

    def close(self) -> None:
        self.source.close()

    def crash(self) -> None:
        """Start again from the log of offsets."""
        self.source.close()
        self.source = self._made()

    def plan(self) -> bool:
        """Write the end of the next batch into the log; return whether there is one."""
        self.source.committed(self.log[-1])
        until = _json(self.source.latest(self.log[-1], LIMIT))
        if until == self.log[-1]:
            return False
        self.log.append(until)
        return True

    def read(self) -> list[Record]:
        """Return the records of the last batch in the log."""
        parts = self.source.split(self.log[-2], self.log[-1], self._tasks)
        assert len(parts) <= self._tasks
        return [record for part in parts for record in self._made_for(part)]

    def _made_for(self, part: Any) -> list[Record]:
        reader = self._made()  # executors have instances of their own
        try:
            return list(reader.read(part))
        finally:
            reader.close()

    def batch(self) -> bool:
        """Run one batch; return whether there was one."""
        if not self.plan():
            return False
        self.records += self.read()
        return True

    def until(self, is_done: Callable[[], bool], seconds: float = 60.0) -> None:
        """Run batches until a condition holds."""
        deadline = time.monotonic() + seconds
        while not is_done():
            assert time.monotonic() < deadline, "the records that were expected did not come"
            if not self.batch():
                time.sleep(0.02)

    def take(self, count: int) -> list[Record]:
        """Run batches until there are so many records; return and forget them."""
        self.until(lambda: len(self.records) >= count)
        taken, self.records = self.records, []
        assert len(taken) == count, [shown(record)[:2] for record in taken[: 2 * count]]
        return taken


def _json(offset: Offset) -> Offset:
    """An offset goes through JSON, as in a checkpoint."""
    made: Offset = json.loads(json.dumps(offset))
    return made


def shown(record: Record) -> tuple[Any, Any, Any]:
    """Return key, operation and new row."""
    value = record.value or {}
    return record.key, value.get("op"), value.get("after")


def as_json(record: Record) -> Any:
    """Return the value as the JSON converter without schemas writes it; it checks the schema on the way."""
    return value_to_json(record.value_schema, record.value)


def replayed(records: list[Record], topic: str) -> dict[Any, Any]:
    """Return the rows that remain when the events of a topic are applied in order."""
    rows: dict[Any, Any] = {}
    for record in records:
        if record.topic != topic or record.key is None:
            continue
        key = tuple(record.key.values())
        if record.value is None or record.value["after"] is None:
            rows.pop(key, None)
        else:
            rows[key] = record.value["after"]
    return rows


def released(session: psycopg.Connection[Any]) -> None:
    """Wait until the server has noticed that no session reads the slots any more."""
    query = "select count(*) from pg_replication_slots where active and database = current_database()"
    while session.execute(query).fetchone() != (0,):
        time.sleep(0.02)
