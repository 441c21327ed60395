"""A Connect cluster changes hands: Kafka's worker writes the topics, ours takes over, and gives back."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from conformance.connect.events import TopicReader
from conformance.connect.workers import ConnectWorker, KafkaWorker, OurWorker, WorkerFailed

TOPIC = "handed-lines"
WAIT_SECONDS_MAX = 120.0


class Handover:
    """Two file connectors, one running and one paused, and lines that are added under each worker."""

    def __init__(self, bootstrap: str, directory: Path) -> None:
        self._bootstrap = bootstrap
        self._directory = directory
        self._source = directory / "lines.txt"
        self._source.touch()
        self._reader = TopicReader(bootstrap)
        self._lines = 0

    def _worker(self, kind: type[KafkaWorker | OurWorker]) -> ConnectWorker:
        return kind(self._bootstrap, self._directory, group="handed")

    def run(self) -> list[str]:
        """Return what went wrong; each worker must find what the one before it left."""
        found: list[str] = []
        with self._worker(KafkaWorker) as kafka:
            kafka.put("lines", self._config("lines"))
            kafka.put("quiet", self._config("quiet"))
            kafka.reaches("quiet", "RUNNING")
            kafka.request("PUT", "/connectors/quiet/pause")
            kafka.reaches("quiet", "PAUSED")
            left = self._used(kafka, found)
        for kind in (OurWorker, KafkaWorker, OurWorker):
            with self._worker(kind) as worker:
                seen = self._seen(worker, left)
                found += [
                    f"{worker.title}: {key} was {left[key]}, is {seen[key]}" for key in left if left[key] != seen[key]
                ]
                left = self._used(worker, found)
        return found

    def _config(self, name: str) -> dict[str, str]:
        text = "org.apache.kafka.connect.storage.StringConverter"
        return {
            "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
            "file": str(self._source),
            "topic": TOPIC if name == "lines" else "handed-quiet",
            "tasks.max": "1",
            "key.converter": text,
            "value.converter": text,
        }

    def _used(self, worker: ConnectWorker, found: list[str]) -> dict[str, Any]:
        """Add lines, wait until they are in the topic, each once; return what the worker shows."""
        worker.reaches("lines", "RUNNING")
        with self._source.open("a") as file:
            file.writelines(f"line {number}\n" for number in range(self._lines, self._lines + 10))
        self._lines += 10
        self._reader.wait_for_count(TOPIC, self._lines)
        values = [record.value.decode() for record in self._reader.raw(TOPIC)]
        if values != [f"line {number}" for number in range(self._lines)]:
            found.append(f"{worker.title}: the topic has {values}")
        self._wait_for_offset(worker, self._source.stat().st_size)
        return self._shown(worker)

    def _wait_for_offset(self, worker: ConnectWorker, position: int) -> None:
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        while _positions(self._get(worker, "/connectors/lines/offsets")["offsets"]) != [position]:
            if time.monotonic() > deadline:
                raise WorkerFailed(f"{worker.title}: the offset is not {position}")
            time.sleep(0.3)

    def _seen(self, worker: ConnectWorker, left: dict[str, Any]) -> dict[str, Any]:
        """Return what a worker shows, as soon as it is what was left, or after a while."""
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        while (shown := self._shown(worker)) != left and time.monotonic() < deadline:
            time.sleep(0.5)
        return shown

    def _shown(self, worker: ConnectWorker) -> dict[str, Any]:
        names = sorted(self._get(worker, "/connectors"))
        shown: dict[str, Any] = {"names": names}
        for name in names:
            status = self._get(worker, f"/connectors/{name}/status")
            shown[f"{name} config"] = self._get(worker, f"/connectors/{name}/config")
            shown[f"{name} offsets"] = self._get(worker, f"/connectors/{name}/offsets")
            shown[f"{name} states"] = [status.get("connector", {}).get("state"), len(status.get("tasks", ()))]
        return shown

    def _get(self, worker: ConnectWorker, path: str) -> Any:
        return worker.request("GET", path).json()


def _positions(offsets: Sequence[Any]) -> list[int]:
    return [each["offset"]["position"] for each in offsets]
