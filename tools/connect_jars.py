"""Kafka's Connect worker and Debezium's connectors from Maven, kept in our cache.

Called by the judges of ``barnabas.connect`` and by its benchmark. Debezium publishes each connector with all that
it needs as one archive, which becomes a directory of the worker's ``plugin.path``.
"""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path

from tools.cache import cache_directory, locked
from tools.kafka_jars import FETCH_SECONDS_MAX, KAFKA_VERSION, LOG4J_VERSION, fetch, program

DEBEZIUM_VERSION = "3.6.2.Final"
CONNECTORS = ("postgres",)


def connect_libraries() -> Path:
    """Return the directory with the jars of Kafka's Connect worker, fetched on first use."""
    directory = cache_directory("kafka-connect", KAFKA_VERSION)
    complete = directory / ".complete"
    with locked("kafka-connect-jars"):
        if not complete.exists():
            kafka = [
                ("org.apache.kafka", name, KAFKA_VERSION)
                for name in ("connect-runtime", "connect-file", "connect-json", "connect-transforms")
            ]
            logging = [("org.apache.logging.log4j", name, LOG4J_VERSION) for name in ("log4j-slf4j-impl", "log4j-core")]
            fetch(directory, (*kafka, *logging))
            complete.touch()
    return directory / "libs"


def debezium_plugins(connector: str = "postgres") -> Path:
    """Return a directory for ``plugin.path`` with one of Debezium's connectors, fetched on first use."""
    directory = cache_directory("debezium", DEBEZIUM_VERSION, connector)
    complete = directory / ".complete"
    with locked("debezium"):
        if not complete.exists():
            artifact = f"io.debezium:debezium-connector-{connector}:{DEBEZIUM_VERSION}:tar.gz:plugin"
            command = [program("mvn"), "-q", "-B", "dependency:copy", f"-Dartifact={artifact}"]
            command += [f"-DoutputDirectory={directory}", "-Dmdep.useBaseVersion=true"]
            subprocess.run(command, check=True, cwd=directory, timeout=FETCH_SECONDS_MAX)
            archive = next(directory.glob("*.tar.gz"))
            with tarfile.open(archive) as packed:
                packed.extractall(directory, filter="data")
            archive.unlink()
            complete.touch()
    return directory


def main() -> None:
    print(connect_libraries())
    for connector in CONNECTORS:
        print(debezium_plugins(connector))


if __name__ == "__main__":
    main()
