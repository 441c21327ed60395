"""A memory group of the kernel (cgroup, version 1 or 2) that a broker is started in: heap and page cache in one limit.

Page cache is charged to the group of whoever touches it first, so a broker that is in the group before it writes has
its log counted: what of a log does not fit is only on the disk, however much memory the machine has. A group is removed
when its broker is gone. Called by `bench.run`; where none can be made the rows that want one take their log out of the
page cache instead, and the report says so.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_REMOVE_SECONDS_MAX = 10.0
_RETRY_SECONDS = 0.05
_JOIN = 'echo $$ > "$0" && exec "$@"'


@dataclass(frozen=True, slots=True)
class MemoryGroup:
    """A group that exists. `file_key` is what its statistics call page cache."""

    path: Path
    limit_bytes: int
    usage_name: str
    file_key: str

    def joining(self, command: Sequence[str]) -> list[str]:
        """The command, in the group from its first instruction on; the process stays the one that was started."""
        return ["/bin/sh", "-c", _JOIN, str(self.path / "cgroup.procs"), *command]

    @property
    def usage_bytes(self) -> int:
        """Everything that is charged to the group."""
        return int((self.path / self.usage_name).read_text())

    @property
    def page_cache_bytes(self) -> int:
        lines = (line.split() for line in (self.path / "memory.stat").read_text().splitlines())
        return next(int(value) for key, value in lines if key == self.file_key)


@contextmanager
def memory_group(limit_bytes: int, *, root: Path = Path("/")) -> Iterator[MemoryGroup | None]:
    """A group with this limit, or None: no limit is wanted, or this machine does not let us make one."""
    group = _made(limit_bytes, root) if limit_bytes else None
    try:
        yield group
    finally:
        if group is not None:
            _remove(group.path)


def _made(limit_bytes: int, root: Path) -> MemoryGroup | None:
    kinds = (
        ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_cache"),
        ("memory.max", "memory.current", "file"),
    )
    for parent in parents(root):
        path = parent / f"barnabas-bench-{os.getpid()}"
        try:
            path.mkdir()
        except OSError:
            continue
        for limit_name, usage_name, file_key in kinds:
            # Only a directory in which the kernel keeps the limit is a memory group.
            if (path / limit_name).exists():
                try:
                    (path / limit_name).write_text(str(limit_bytes))
                except OSError:
                    break
                return MemoryGroup(path, limit_bytes, usage_name, file_key)
        _remove(path)
    return None


def parents(root: Path) -> list[Path]:
    """Where a group may be made, in each hierarchy that may know of memory."""
    entries = [line.split(":", 2) for line in _lines(root / "proc/self/cgroup")]
    own = {name: path.strip("/") for _, names, path in entries for name in names.split(",")}
    found = []
    for _, place, kind, flags, *_ in (line.split() for line in _lines(root / "proc/mounts")):
        mount = root / place.lstrip("/")
        if kind == "cgroup" and "memory" in flags.split(","):
            # Below our own group: what limits us limits the broker, too.
            found.append(mount / own.get("memory", ""))
        elif kind == "cgroup2":
            # In version 2 a group holds processes or groups with limits, not both: a sibling of our own, then.
            path = mount / own.get("", "")
            found.append(path if path == mount else path.parent)
    return found


def _remove(path: Path) -> None:
    """The kernel lets go of a group a moment after the last process in it is gone."""
    deadline = time.monotonic() + _REMOVE_SECONDS_MAX
    while True:
        try:
            path.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_RETRY_SECONDS)
        else:
            return


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []
