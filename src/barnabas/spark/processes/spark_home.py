"""A home for Spark on one machine, in which workers import PySpark from where it is installed.

Spark puts a zip file of PySpark in front of everything that its Python processes import, and Python compiles what it
finds in a zip anew in every process: a second of work for each of the ten that a query starts. A directory of links
that has no such zip saves it. Called by ``sessions.py`` for sessions on one machine.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from barnabas.spark.processes.java import cache_directory


def lean_home(installed: Path, version: str, *, cache: Path | None = None) -> Path | None:
    """The directory, made if it is missing; None if it cannot be made, in which case Spark's own does."""
    digest = hashlib.sha256(str(installed).encode()).hexdigest()[:8]
    home = (cache or cache_directory()) / f"spark-{version}-{digest}"
    try:
        home.mkdir(parents=True, exist_ok=True)
        for name in ("bin", "jars", "data", "sbin"):
            _link(home / name, installed / name)
    except OSError:
        return None
    return home


def _link(place: Path, target: Path) -> None:
    if place.is_symlink() and place.readlink() == target:
        return
    fresh = place.with_name(f"{place.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(target)
    fresh.replace(place)  # another process may be doing the same
