"""A disk in memory that knows what a power cut would leave of it, and that can be told to fail.

It behaves as the real one until ``crash``: then everything that was not synced may be lost, file content by page and
names in the order in which they were changed. Tests and the simulator hold one per machine; production never does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Final

from barnabas.world.clock import Clock
from barnabas.world.disk import AlreadyLocked, DiskFailure, DiskFull, PathGone, PathUnusable
from barnabas.world.entropy import Entropy
from barnabas.world.memory_file import FileNode, MemoryFile

OPEN_FILES_MAX: Final = 1 << 20
TOTAL_BYTES: Final = 1 << 40  # what a disk without a capacity says it has


class _Directory:
    """Names as programs see them, and as the device has them."""

    __slots__ = ("durable", "entries", "modified_ms")

    def __init__(self, modified_ms: int) -> None:
        self.entries: dict[str, _Node] = {}
        self.durable: dict[str, _Node] = {}
        self.modified_ms = modified_ms


_Node = FileNode | _Directory
# One change of names is atomic: all its (directory, name, what the name means now) reach the device, or none.
_Change = list[tuple[_Directory, str, _Node | None]]


class MemoryDisk:
    def __init__(self, clock: Clock, *, capacity_bytes: int | None = None, tears_pages: bool = True) -> None:
        self._clock = clock
        self._root = _Directory(clock.wall_ms())
        self._pending: list[_Change] = []
        self._locks: dict[str, object] = {}
        self._failing_syncs: list[str] = []
        self._failing_writes: list[str] = []
        self._failing_reads: list[str] = []
        self._tears_pages = tears_pages
        self.process = 0  # handles of earlier processes are dead
        # Faults, set by tests at will.
        self.capacity_bytes = capacity_bytes
        self.is_cached = True  # False: ``view`` always says that the page cache has nothing
        self.read_only_prefix: str | None = None  # nothing below this path can be changed
        self.load_delay_ms = 0
        self.sync_delay_ms = 0

    # What a disk does.

    @property
    def open_files_max(self) -> int:
        return OPEN_FILES_MAX

    def open(self, path: str, *, create: bool = False) -> MemoryFile:
        directory, name = self._place(path)
        node = directory.entries.get(name)
        if node is None:
            if not create:
                raise PathGone(path)
            self.check_write(path, 0)
            node = FileNode(self.now_ms())
            self._change([(directory, name, node)])
        if isinstance(node, _Directory):
            raise PathUnusable(path, "Is a directory")
        return MemoryFile(self, path, node)

    def exists(self, path: str) -> bool:
        return self._find(path) is not None

    def list(self, path: str) -> list[str]:
        node = self._get(path)
        if not isinstance(node, _Directory):
            raise PathUnusable(path, "Not a directory")
        return sorted(node.entries)

    def is_directory(self, path: str) -> bool:
        return isinstance(self._find(path), _Directory)

    def restrict(self, path: str) -> None:
        """Nothing to do: memory has no other users."""

    def make_directory(self, path: str) -> None:
        directory = self._root
        for name in _names(path):
            node = directory.entries.get(name)
            if node is None:
                self._check_writable(path)
                node = _Directory(self.now_ms())
                self._change([(directory, name, node)])
            if not isinstance(node, _Directory):
                raise PathUnusable(path, "Not a directory")
            directory = node

    def rename(self, source: str, target: str) -> None:
        self._check_writable(source)
        node = self._get(source)
        source_directory, source_name = self._place(source)
        target_directory, target_name = self._place(target)
        there = target_directory.entries.get(target_name)
        if there is node:
            return
        if isinstance(there, _Directory):
            if not isinstance(node, _Directory):
                raise PathUnusable(source, "Is a directory")
            if there.entries:
                raise DiskFailure(source, "Directory not empty")
        elif there is not None and isinstance(node, _Directory):
            raise PathUnusable(source, "Not a directory")
        self._change([(source_directory, source_name, None), (target_directory, target_name, node)])

    def remove(self, path: str) -> None:
        node = self._find(path)
        if node is not None:
            self._check_writable(path)
        if isinstance(node, _Directory):
            raise PathUnusable(path, "Is a directory")
        if node is not None:
            directory, name = self._place(path)
            self._change([(directory, name, None)])

    def remove_tree(self, path: str) -> None:
        node = self._find(path)
        if node is None:
            return
        if not isinstance(node, _Directory):
            raise PathUnusable(path, "Not a directory")
        for name in sorted(node.entries):
            if isinstance(node.entries[name], _Directory):
                self.remove_tree(f"{path}/{name}")
            else:
                self._change([(node, name, None)])
        directory, name = self._place(path)
        self._change([(directory, name, None)])

    def size_bytes(self, path: str) -> int:
        node = self._get(path)
        return len(node.content) if isinstance(node, FileNode) else 0

    def modified_ms(self, path: str) -> int:
        return self._get(path).modified_ms

    def read_all(self, path: str, *, size_bytes_max: int) -> bytes:
        file = self.open(path)
        if file.size_bytes > size_bytes_max:
            raise DiskFailure(path, f"{file.size_bytes} bytes, more than the {size_bytes_max} it may have")
        return file.read(0, file.size_bytes)

    def lock(self, path: str) -> MemoryLock:
        self.open(path, create=True)
        key = "/".join(_names(path))
        if key in self._locks:
            raise AlreadyLocked(path)
        return MemoryLock(self._locks, key)

    def free_bytes(self, path: str) -> int:
        total_bytes = self.total_bytes(path)
        # Without a capacity it never fills, and adding up every file is slow.
        return total_bytes if self.capacity_bytes is None else max(0, total_bytes - self.used_bytes())

    def total_bytes(self, path: str) -> int:
        self._get(path)
        return TOTAL_BYTES if self.capacity_bytes is None else self.capacity_bytes

    async def sync_directory(self, path: str) -> None:
        directory = self._get(path)
        if not isinstance(directory, _Directory):
            raise PathUnusable(path, "Not a directory")
        process = self.process
        changes = list(self._pending)  # what is changed while we wait is not meant
        await asyncio.sleep(self.sync_delay_ms / 1000)
        if process != self.process:
            return
        if self.is_sync_failing(path):
            raise DiskFailure(path, "the device refused an fsync")
        self._settle(directory, changes)

    # What tests do to it.

    def fail_next_sync(self, path_prefix: str) -> None:
        """The next sync of a file or directory whose path begins so fails, once for each call of this."""
        self._failing_syncs.append(path_prefix)

    def fail_next_write(self, path_prefix: str) -> None:
        self._failing_writes.append(path_prefix)

    def fail_next_read(self, path_prefix: str) -> None:
        self._failing_reads.append(path_prefix)

    def sync_all(self) -> None:
        """As the command ``sync``: all that is there now is durable."""
        for change in self._pending:
            _apply(change)
        self._pending.clear()
        for node in _walk(self._root, durable=False):
            if isinstance(node, FileNode):
                node.end_sync(node.begin_sync())

    def kill(self) -> None:
        """The process dies and the machine stays up: handles and locks are gone, every written byte is there."""
        self.process += 1
        self._locks.clear()

    def crash(self, entropy: Entropy) -> None:
        """The power fails: of what was not synced, chance decides what is left. Handles and locks are gone."""
        self.kill()
        for change in self._pending[: entropy.below(len(self._pending) + 1)]:
            _apply(change)
        self._pending.clear()
        for node in _walk(self._root, durable=True):
            if isinstance(node, _Directory):
                node.entries = dict(node.durable)
            else:
                node.crash(entropy, tears_pages=self._tears_pages)

    def flip_bit(self, path: str, position: int, bit: int) -> None:
        """Rot: one bit of a file changes on the device, and nobody is told."""
        node = self._get(path)
        assert isinstance(node, FileNode)
        node.write(position, bytes([node.content[position] ^ 1 << bit]))
        node.end_sync(node.begin_sync())

    def used_bytes(self) -> int:
        return sum(len(node.content) for node in _walk(self._root, durable=False) if isinstance(node, FileNode))

    # What the handles ask.

    def now_ms(self) -> int:
        return self._clock.wall_ms()

    def check_write(self, path: str, growth_bytes: int) -> None:
        self._check_writable(path)
        if _take(self._failing_writes, path):
            raise DiskFailure(path, "Input/output error")
        if self.capacity_bytes is not None and growth_bytes > self.capacity_bytes - self.used_bytes():
            raise DiskFull(path, "No space left on device")

    def _check_writable(self, path: str) -> None:
        if self.read_only_prefix is not None and path.startswith(self.read_only_prefix):
            raise DiskFailure(path, "Read-only file system")

    def check_read(self, path: str) -> None:
        if _take(self._failing_reads, path):
            raise DiskFailure(path, "Input/output error")

    def is_sync_failing(self, path: str) -> bool:
        return _take(self._failing_syncs, path)

    # Names.

    def _change(self, change: _Change) -> None:
        for directory, name, node in change:
            if node is None:
                directory.entries.pop(name, None)
            else:
                directory.entries[name] = node
            directory.modified_ms = self.now_ms()
        self._pending.append(change)

    def _settle(self, directory: _Directory, changes: Sequence[_Change]) -> None:
        """Make durable what touched a directory, and what came before it in any directory that is involved."""
        involved = {id(directory)}
        settled: set[int] = set()
        for change in reversed(changes):
            touched = {id(place) for place, _, _ in change}
            if touched & involved:
                involved |= touched
                settled.add(id(change))
        # In the order in which they happened; another sync may have settled some of them meanwhile.
        for change in self._pending:
            if id(change) in settled:
                _apply(change)
        self._pending = [change for change in self._pending if id(change) not in settled]

    def _find(self, path: str) -> _Node | None:
        node: _Node = self._root
        for name in _names(path):
            if not isinstance(node, _Directory) or name not in node.entries:
                return None
            node = node.entries[name]
        return node

    def _get(self, path: str) -> _Node:
        node = self._find(path)
        if node is None:
            raise PathGone(path)
        return node

    def _place(self, path: str) -> tuple[_Directory, str]:
        """The directory that holds a path's last name, which need not be there yet."""
        names = _names(path)
        if not names:
            raise PathUnusable(path, "Is a directory")
        directory = self._get("/".join(names[:-1]))
        if not isinstance(directory, _Directory):
            raise PathUnusable(path, "Not a directory")
        return directory, names[-1]


class MemoryLock:
    def __init__(self, locks: dict[str, object], key: str) -> None:
        self._locks = locks
        self._key = key
        locks[key] = self

    def release(self) -> None:
        if self._locks.get(self._key) is self:
            del self._locks[self._key]


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name not in ("", ".")]


def _apply(change: _Change) -> None:
    for directory, name, node in change:
        if node is None:
            directory.durable.pop(name, None)
        else:
            directory.durable[name] = node


def _walk(root: _Directory, *, durable: bool) -> Iterator[_Node]:
    """Every node that can be reached, each directory before what is in it, names in order."""
    yield root
    entries = root.durable if durable else root.entries
    for name in sorted(entries):
        node = entries[name]
        if isinstance(node, _Directory):
            yield from _walk(node, durable=durable)
        else:
            yield node


def _take(prefixes: list[str], path: str) -> bool:
    for prefix in prefixes:
        if path.startswith(prefix):
            prefixes.remove(prefix)
            return True
    return False
