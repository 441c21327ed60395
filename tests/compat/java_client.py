"""Kafka's own Java client for the compatibility tests: compiles `java/Probe.java` once and talks to it in lines of
JSON.

The classes go into the cache, under the digest of their source. Called by the Java adapter of `clients.py`; a failure
carries what Java said.
"""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from records import Headers, ReadRecord, SentRecord
from tools.cache import cache_directory, locked
from tools.kafka_jars import class_path, java_command, program

SOURCES = Path(__file__).parent / "java"
RUN_SECONDS_MAX = 120
# Nothing in these programs runs for long: a compiler that optimises would cost more than it saves.
_QUICK_START = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256M")


class JavaFailed(Exception):
    """The Java program ended with an error; the message has the end of what it said."""


def produce(
    bootstrap: str, topic: str, records: Sequence[SentRecord], codec: str = "none", *, idempotent: bool = False
) -> list[dict[str, int]]:
    """Writes to partition 0 and returns offset and timestamp of every record."""
    settings = {
        "acks": "all",
        "compression.type": codec,
        "enable.idempotence": str(idempotent).lower(),
        "linger.ms": "50",
        "max.block.ms": "20000",
        "delivery.timeout.ms": "30000",
        "request.timeout.ms": "10000",
    }
    lines = "".join(json.dumps(_to_json(record)) + "\n" for record in records)
    return _run("produce", bootstrap, topic, *(f"{name}={value}" for name, value in settings.items()), stdin=lines)


def consume(bootstrap: str, topic: str, count: int, *, start: str = "earliest") -> list[ReadRecord]:
    """Reads `count` records of partition 0, or as many as came in half a minute."""
    return [_from_json(row) for row in _run("consume", bootstrap, topic, str(count), start)]


def compiled(name: str) -> Path:
    """The directory with the classes of one of the programs in `java`."""
    source = SOURCES / f"{name}.java"
    directory = cache_directory("java", hashlib.sha256(source.read_bytes()).hexdigest()[:16])
    with locked(f"java-{name.lower()}"):
        if not (directory / f"{name}.class").exists():
            command = [program("javac"), "-cp", class_path(), "-d", str(directory), str(source)]
            subprocess.run(command, check=True, timeout=RUN_SECONDS_MAX)
    return directory


def _run(*arguments: str, stdin: str = "") -> list[Any]:
    command = java_command("Probe", *arguments, options=_QUICK_START, classes=str(compiled("Probe")))
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=RUN_SECONDS_MAX)
    if done.returncode != 0:
        raise JavaFailed(f"{arguments[0]} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def _to_json(record: SentRecord) -> dict[str, Any]:
    return {
        "key": _text(record["key"]),
        "value": _text(record["value"]),
        "headers": [[name, _text(value)] for name, value in record["headers"]],
        "timestamp": record["timestamp"],
    }


def _from_json(row: dict[str, Any]) -> ReadRecord:
    headers: Headers = [(name, _bytes(value)) for name, value in row["headers"]]
    return {
        "key": _bytes(row["key"]),
        "value": _bytes(row["value"]),
        "headers": headers,
        "offset": row["offset"],
        "timestamp": row["timestamp"],
    }


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
