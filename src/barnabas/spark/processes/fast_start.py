"""Starts Spark's processes faster and with less memory, by means that depend on how Spark 4.3 works inside.

These are the fork server and the daemon (``fork_server.py``, ``daemon.py``), the class archive
(``class_archive.py``), the linked Spark home (``spark_home.py``), fewer malloc arenas (``memory.py``), and on one
machine the checkpoint file manager below. They are used together or not at all: only with Spark versions that they
were tried with, and not if the Spark setting ``spark.barnabas.fastStart`` is false. Otherwise Spark runs as it does
by itself. The decision and its reasons are in ``docs/adr/0010-fast-start.md``.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from barnabas.spark.errors import InvalidOption
from barnabas.spark.processes.class_archive import ClassArchive
from barnabas.spark.processes.fork_server import fork_server
from barnabas.spark.processes.java import Java, cache_directory
from barnabas.spark.processes.memory import ARENAS_MAX
from barnabas.spark.processes.spark_home import linked_home

log = logging.getLogger("barnabas.spark")

SWITCH: Final = "spark.barnabas.fastStart"
SPARK_VERSIONS: Final = ("4.3",)  # versions of Spark, without the last number, with which all of this was tried
DAEMON: Final = {"spark.python.daemon.module": "barnabas.spark.processes.daemon"}
# Spark's first choice for local files (FileContext) starts processes (`chmod`, `readlink`) for each file of a
# checkpoint if Hadoop's native library is missing. This one starts fewer, and renames as atomically.
LOCAL_CHECKPOINTS: Final = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    )
}
PYTHONS: Final = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
ARENAS: Final = "MALLOC_ARENA_MAX"  # read by glibc in Spark's Java process, which has hundreds of threads


def is_on(config: Mapping[str, str], spark_version: str) -> bool:
    """Whether a session with this configuration starts fast. Raises InvalidOption for a value that is no boolean."""
    value = config.get(SWITCH, "true").lower()
    if value not in ("true", "false"):
        raise InvalidOption(f"{SWITCH}={config[SWITCH]!r}: pass true or false")
    if value == "false":
        return False
    if not is_tried(spark_version):
        log.info("fast start was not tried with Spark %s: Spark starts its processes itself", spark_version)
        return False
    return True


def is_tried(spark_version: str) -> bool:
    return spark_version.rpartition(".")[0] in SPARK_VERSIONS


class FastStart:
    """The settings, Java options and environment for one start of Spark."""

    def __init__(self, master: str, java: Java, spark_version: str, *, has_own_python: bool) -> None:
        """``has_own_python``: executors run a packed environment, not the Python of this process."""
        self._is_local = master.startswith("local")
        self.settings = DAEMON | (LOCAL_CHECKPOINTS if self._is_local else {})
        self.java_options = ClassArchive(java, spark_version).options()
        chosen = {os.environ.get(name, sys.executable) for name in PYTHONS}
        is_forking = self._is_local and not has_own_python and chosen == {sys.executable}
        self._server = fork_server(cache_directory()) if is_forking else None
        self._home = _home(spark_version) if self._is_local and "SPARK_HOME" not in os.environ else None

    @property
    def environment(self) -> dict[str, str]:
        """Variables for the processes that Spark starts."""
        values = {} if self._server is None else self._server.environment
        if self._is_local:
            values[ARENAS] = os.environ.get(ARENAS, str(ARENAS_MAX))
        if self._home is not None:
            values["SPARK_HOME"] = str(self._home)
        return values

    def wait(self) -> None:
        """Wait until the fork server listens, after Spark has started."""
        if self._server is not None:
            self._server.wait()


def _home(spark_version: str) -> Path | None:
    import pyspark

    return linked_home(Path(pyspark.__file__).parent, spark_version)
