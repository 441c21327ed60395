"""What a disk is, as small as the log needs it.

Appends and small reads are synchronous, because the page cache answers them; ``view`` answers at once or says that it
cannot; ``load`` and ``sync`` may wait for the device and are awaited. Syncing a directory is a step of its own: a new
or renamed file is durable only after it. Paths are plain strings with ``/``. A file used after ``close`` raises
FileClosed; every other error is a DiskFailure, and a path that does not exist a PathGone. Every implementation passes
``barnabas.testing.conformance``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, Protocol, TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview

CHUNK_BYTES_MAX: Final = 256 * 1024  # what ``view`` and ``load`` hand out at most in one piece


class DiskFailure(Exception):
    """The device or the file system failed. The directory it happened in is offline from then on.

    ``path`` says where. An fsync that failed is never tried again: the kernel may have dropped the pages.
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class PathUnusable(DiskFailure):
    """The file system works, but not with this path: it is gone, is no directory, or may not be accessed.

    The fault is of one log: the other logs of the directory stay online.
    """


class PathGone(PathUnusable):
    """The file or directory does not exist, although the caller needs it."""

    def __init__(self, path: str) -> None:
        super().__init__(path, "the path is gone")


class DiskFull(DiskFailure):
    """No space is left. Reads go on; writes may succeed again later."""


class TooManyFiles(DiskFull):
    """The process may not open more files at the moment. As with a full disk, it may again later."""


class FileClosed(Exception):
    """The file was closed, as when its segment expired under a slow reader. The disk itself is well."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path}: the file is closed")
        self.path = path


class File(Protocol):
    """An open file. One owner appends to it; any number of readers may hold it while it is open."""

    @property
    def path(self) -> str: ...

    @property
    def size_bytes(self) -> int: ...

    def append(self, data: Buffer) -> None:
        """Write at the end, all or (with an exception) as if nothing had been written."""

    def append_all(self, buffers: Iterable[Buffer]) -> None:
        """As ``append``, gathered into as few system calls as possible."""

    def write(self, position: int, data: Buffer) -> None:
        """Overwrite in place."""

    def read(self, position: int, size_bytes: int) -> bytes:
        """A small read that may block; fewer bytes at the end of the file."""

    def view(self, position: int, size_bytes: int) -> memoryview | None:
        """Up to CHUNK_BYTES_MAX bytes, as many as the page cache has now; None if it has not even the first.

        The view belongs to the caller until it is given back with ``release`` or dropped.
        """

    async def load(self, position: int, size_bytes: int) -> memoryview:
        """As ``view``, but waits for the device off the loop; short only at the end of the file."""

    async def cache(self, position: int, size_bytes: int) -> None:
        """Wait off the loop until the page cache has what ``send`` needs; a hint, after which it may still refuse."""

    def send(self, socket: int, position: int, size_bytes: int) -> int | None:
        """Hand cached bytes to a socket of the operating system, which copies none; how many it took, up to a chunk.

        None if it cannot be done so: hardly any is cached, or one of the two is not the operating system's.
        """

    def release(self, view: memoryview) -> None:
        """Give the memory of a view back for reuse; the view must not be touched afterwards."""

    async def sync(self) -> None:
        """Wait until all that was written before the call is on the device."""

    def start_writeback(self) -> None:
        """Ask the device to begin writing, without waiting."""

    def truncate(self, size_bytes: int) -> None: ...

    def close(self) -> None: ...


class FileSlice(NamedTuple):
    """Bytes of a file that nobody has read yet: an answer carries it to the socket, where chunks of it are viewed."""

    file: File
    position: int
    size_bytes: int
    on_failure: Callable[[DiskFailure], None] | None = None  # whose file it is hears that it cannot be read


class Disk(Protocol):
    @property
    def open_files_max(self) -> int:
        """How many files may be open at once, everything else that the process has open included."""

    def open(self, path: str, *, create: bool = False) -> File:
        """Open for reading and writing; never truncates. PathGone if there is no such file, unless ``create``."""

    def exists(self, path: str) -> bool: ...

    def list(self, path: str) -> list[str]:
        """The names in a directory, sorted."""

    def is_directory(self, path: str) -> bool: ...

    def make_directory(self, path: str) -> None:
        """With its parents; nothing happens if it is there."""

    def restrict(self, path: str) -> None:
        """Take the access of other users away from a directory and the files in it, as far as this user may."""

    def rename(self, source: str, target: str) -> None:
        """Atomically, over an existing file if need be; directories too."""

    def remove(self, path: str) -> None:
        """A file; nothing happens if it is gone."""

    def remove_tree(self, path: str) -> None: ...

    def size_bytes(self, path: str) -> int: ...

    def modified_ms(self, path: str) -> int: ...

    def read_all(self, path: str, *, size_bytes_max: int) -> bytes:
        """A whole small file; DiskFailure if it is larger than it may be."""

    def lock(self, path: str) -> Lock:
        """Take the only lock of a directory's lock file, or raise AlreadyLocked."""

    def free_bytes(self, path: str) -> int: ...

    def total_bytes(self, path: str) -> int: ...

    async def sync_directory(self, path: str) -> None: ...


class Lock(Protocol):
    def release(self) -> None: ...


class AlreadyLocked(Exception):
    """Another process keeps its files in this directory."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path}: another process uses this directory")
        self.path = path


async def make_directory(disk: Disk, directory: str) -> None:
    """With its parents, each durable in its own: what is kept in a directory that vanishes was never kept."""
    missing = []
    while directory and not disk.exists(directory):
        missing.append(directory)
        directory = directory.rpartition("/")[0]
    for path in reversed(missing):
        disk.make_directory(path)
        await disk.sync_directory(path.rpartition("/")[0] or ("/" if path.startswith("/") else "."))


async def replace(disk: Disk, path: str, content: Buffer) -> None:
    """Write a small file so that a crash leaves the old one or the new one: temp file, sync, rename, sync directory."""
    temporary = path + ".tmp"
    disk.remove(temporary)
    file = disk.open(temporary, create=True)
    try:
        file.append(content)
        await file.sync()
    finally:
        file.close()
    disk.rename(temporary, path)
    await disk.sync_directory(path.rpartition("/")[0])
