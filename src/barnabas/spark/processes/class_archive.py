"""An archive of Spark's Java classes (application class-data sharing), which halves the time that Java takes to start.

The first session writes it when it ends; later sessions start from it. Called by ``fast_start.py``.
"""

from __future__ import annotations

import os
from pathlib import Path

from barnabas.spark.processes.java import Java, cache_directory


class ClassArchive:
    """The archive for one version of Java and one of Spark.

    Java writes it while it shuts down, after the driver's Python has ended. A file is complete when the process that
    its name ends with has ended and no process has it open.
    """

    def __init__(self, java: Java, spark_version: str, cache: Path | None = None) -> None:
        self._directory = cache or cache_directory()
        self._path = self._directory / f"spark-{spark_version}-java-{java.version}.jsa"

    def options(self) -> list[str]:
        """Options of the ``java`` command that use the archive, or create it if there is none."""
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            self._promote()
        except OSError:  # in a read-only home directory Spark starts without an archive
            return []
        quiet = ["-Xshare:auto", "-Xlog:disable", "-Xlog:all=error:stderr"]
        if self._path.exists():
            return [f"-XX:SharedArchiveFile={self._path}", *quiet]
        return [f"-XX:ArchiveClassesAtExit={self._path}.{os.getpid()}", *quiet]

    def _promote(self) -> None:
        for fresh in sorted(self._directory.glob(f"{self._path.name}.*")):
            writer = fresh.suffix.removeprefix(".")
            if writer.isdecimal() and not _is_alive(int(writer)) and not _is_open(fresh):
                fresh.replace(self._path)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _is_open(path: Path) -> bool:
    """Whether a process of this user has the file open."""
    wanted = str(path)
    for entry in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if os.readlink(entry) == wanted:
                return True
        except OSError:
            continue
    return False
