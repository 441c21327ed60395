"""Spark's checkpoints in a compacted topic, so that another worker can go on without a shared disk.

A stateless checkpoint is ``metadata`` and a file each in ``offsets`` and ``commits`` per batch. ``ship`` is called when
Spark has written a batch's offsets and before any of its tasks runs; a lost ``commits`` file only repeats a batch,
which the sinks recognise. The transactional id fences a driver that another one has replaced.
"""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from barnabas.client.blocking.consumer import Consumer
from barnabas.client.blocking.producer import Producer
from barnabas.client.settings.consumer import ConsumerSettings
from barnabas.client.settings.producer import ProducerSettings
from barnabas.model.ids import TopicPartition

KEPT: Final = 2  # newest files of offsets and commits
METADATA: Final = "metadata"
PIECE_BYTES: Final = 900_000  # below the 1 MiB that brokers take by default


def wanted_files(paths: Iterable[str]) -> list[str]:
    """Return the files of a checkpoint that a new driver needs: metadata and the newest offsets and commits. Pure."""
    found = list(paths)
    wanted = [path for path in found if path == METADATA]
    for folder in ("offsets", "commits"):
        numbers = sorted(
            (int(name) for path in found if (name := path.removeprefix(f"{folder}/")) != path and name.isdecimal()),
            reverse=True,
        )
        wanted += [f"{folder}/{number}" for number in sorted(numbers[:KEPT])]
    return wanted


class CheckpointStore:
    """The checkpoint topic, for one Connect cluster. Keys are ``GROUP/QUERY/PATH``."""

    def __init__(self, client: Mapping[str, str], group: str, topic: str) -> None:
        self._prefix = f"{group}/"
        self._topic = topic
        self._lock = threading.Lock()
        self._producer: Producer[bytes, bytes] = Producer(
            ProducerSettings.of({**client, "transactional.id": f"connect-checkpoints-{group}"})
        )
        with self._producer.transaction():  # fences the driver before this one; what it wrote is then complete
            self._producer.send(topic, b"", key=f"{self._prefix}/epoch".encode())
        self._files = self._read(client)

    def _read(self, client: Mapping[str, str]) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        settings = ConsumerSettings.of({**client, "isolation.level": "read_committed"})
        with Consumer(settings) as consumer:
            consumer.assign([TopicPartition(self._topic, 0)], until_end=True)
            while not consumer.is_at_end:
                for record in consumer.poll(timeout_ms=1000):
                    key = (record.key or b"").decode(errors="replace")
                    if not key.startswith(self._prefix):
                        continue
                    if record.value is None:
                        found.pop(key.removeprefix(self._prefix), None)
                    else:
                        found[key.removeprefix(self._prefix)] = record.value
        return found

    def lay_out(self, query: str, directory: Path) -> None:
        """Write a query's checkpoint to a directory, in place of what is there."""
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True, mode=0o700)
        prefix = f"{query}/file/"
        for path, data in self._files.items():
            if path.startswith(prefix):
                target = directory / path.removeprefix(prefix)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(data)

    def ship(self, query: str, directory: Path) -> None:
        """Send the files that are new, and forget those that are not needed any more."""
        prefix = f"{query}/file/"
        there = [path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file()]
        files = {prefix + path: (directory / path).read_bytes() for path in wanted_files(there)}
        with self._lock:
            changed: dict[str, bytes | None] = {
                path: data for path, data in files.items() if self._files.get(path) != data
            }
            changed |= {path: None for path in self._files if path.startswith(prefix) and path not in files}
            self._write(changed)

    def keep_rows(self, key: str, about: Mapping[str, Any], data: bytes) -> None:
        """Store bytes with a JSON value about them, in pieces that a broker takes, in place of what was there."""
        pieces = [data[start : start + PIECE_BYTES] for start in range(0, len(data), PIECE_BYTES)]
        made: dict[str, bytes | None] = {f"{key}/{number}": piece for number, piece in enumerate(pieces)}
        made[key] = json.dumps({**about, "pieces": len(pieces)}, sort_keys=True).encode()
        with self._lock:
            old = [path for path in self._files if path.startswith(f"{key}/") and path not in made]
            self._write(made | dict.fromkeys(old))

    def rows(self, key: str, about: Mapping[str, Any]) -> bytes | None:
        """Return the bytes that were stored with this value about them, or None."""
        found = self.note(key)
        if found is None or {name: found.get(name) for name in about} != dict(about):
            return None
        return b"".join(self._files[f"{key}/{number}"] for number in range(found["pieces"]))

    def note(self, key: str) -> Any:
        """Return a value that ``keep`` has stored, or None."""
        data = self._files.get(key)
        return None if data is None else json.loads(data)

    def keep(self, key: str, value: Any) -> None:
        """Store a JSON value."""
        with self._lock:
            self._write({key: json.dumps(value, sort_keys=True).encode()})

    def _write(self, changed: Mapping[str, bytes | None]) -> None:
        if not changed:
            return
        with self._producer.transaction():
            for path, data in changed.items():
                self._producer.send_soon(self._topic, data, key=(self._prefix + path).encode())
        for path, data in changed.items():
            if data is None:
                self._files.pop(path, None)
            else:
                self._files[path] = data

    def close(self) -> None:
        """Close the producer."""
        self._producer.close()
