"""A Spark home for one machine in which workers import PySpark from where it is installed.

Spark puts a zip file of PySpark first on the path of its Python processes, and Python compiles modules from a zip
file again in every process: a second of processor time for each of the ten processes of a query. A directory of
symbolic links without that zip file avoids it. Called by ``fast_start.py``.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from barnabas.spark.processes.java import cache_directory


def linked_home(installed: Path, version: str, *, cache: Path | None = None) -> Path | None:
    """The directory, created if it is missing; None if it cannot be created."""
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
    fresh.replace(place)  # atomic: another process may create the same link
