"""Where everything that is fetched from others, or built from it, is kept: one directory outside the repository.

It follows the XDG convention, so `XDG_CACHE_HOME` moves it. Called by the Maven tool, the benchmarks and the
compatibility tests; it may be deleted at any time, and the next run fills it again.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def cache_directory(*parts: str) -> Path:
    """A directory of our cache, made if it is missing."""
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    directory = root.joinpath("barnabas", *parts)
    directory.mkdir(parents=True, exist_ok=True)
    return directory


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Two runs at once must not fetch or build the same thing twice, nor see half of it."""
    with (cache_directory() / f".{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
