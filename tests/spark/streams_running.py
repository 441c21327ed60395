"""Runs an application of a test on the shared Spark session, with topics of its own on the shared broker."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from barnabas import NewTopic, ProducerSettings, blocking
from barnabas.streams import App
from barnabas.streams.host.runner import AppRun, start

RUN_SECONDS_MAX = 300
LOOK_SECONDS = 0.05


class Playground:
    """The topics of one application, created anew, and its runs."""

    def __init__(self, stage: Any, app: App, topics: dict[str, int], scheme: str = "") -> None:
        self.stage = stage
        self.app = app
        self.checkpoints = f"{scheme}{stage.directory}"
        with stage.admin() as admin:
            for name, count in topics.items():
                admin.create_topic(NewTopic(name, count))

    def send(self, topic: str, records: Sequence[tuple[str | None, str | None]], at: int | None = None) -> None:
        settings = ProducerSettings.of({"bootstrap.servers": self.stage.servers})
        with blocking.Producer(settings) as producer:
            for key, value in records:
                producer.send(
                    topic,
                    None if value is None else value.encode(),
                    key=None if key is None else key.encode(),
                    timestamp_ms=at,
                )

    def start(self, **options: Any) -> AppRun:
        return start(self.app, self.stage.spark, servers=self.stage.servers, checkpoints=self.checkpoints, **options)

    def run(self) -> AppRun:
        """Process the records that are there."""
        run = self.start(once=True)
        try:
            deadline = time.monotonic() + RUN_SECONDS_MAX
            while not run.has_ended:
                assert time.monotonic() < deadline, "the query did not end"
                time.sleep(LOOK_SECONDS)
                run.tend()
            failure = run.failure()
            if failure is not None:
                raise failure
        finally:
            run.stop(grace_seconds=0)
        return run

    def records(self, topic: str) -> list[tuple[str | None, str | None]]:
        """Committed records, in order of partition and offset."""
        table = blocking.read(topic, bootstrap_servers=self.stage.servers, isolation_level="read_committed")
        rows = sorted(table.to_pylist(), key=lambda row: (row["partition"], row["offset"]))
        return [(_text(row["key"]), _text(row["value"])) for row in rows]

    def lose_checkpoint(self) -> None:
        shutil.rmtree(Path(self.stage.directory) / self.app.application_id)

    def table(self, topic: str) -> dict[str | None, str | None]:
        return dict(self.records(topic))

    def committed(self, topic: str) -> int:
        """How many records of a topic the application's group has read."""
        offsets = self.stage.committed(self.app.application_id)
        return sum(offset for place, offset in offsets.items() if place.rpartition("-")[0] == topic)


def _text(content: bytes | None) -> str | None:
    return None if content is None else content.decode()
