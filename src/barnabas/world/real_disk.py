"""The file system of the operating system as a Disk; ``real_file`` has its open files.

Every path is used as it is given. Calls about names are made on the event loop, since the system answers them from
memory; the sync of a directory runs in a thread.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import resource
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeVar

from barnabas.world.disk import AlreadyLocked, DiskFailure, PathGone
from barnabas.world.real_file import CLOSED, RealFile, Resources, failure
from barnabas.world.tasks import Tasks

OPEN_FILES_MAX: Final = 1 << 20

T = TypeVar("T")

# Logs hold what clients write, and the metadata log credentials: other users of the machine read neither.
FILE_MODE: Final = 0o600
DIRECTORY_MODE: Final = 0o700


class RealLock:
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def release(self) -> None:
        if self._descriptor != CLOSED:
            os.close(self._descriptor)
            self._descriptor = CLOSED


class RealDisk:
    def __init__(self) -> None:
        self._resources = Resources()
        self._syncing: dict[str, asyncio.Future[None]] = {}  # running sync of each directory
        self._following: dict[str, asyncio.Future[None]] = {}  # next sync of each directory
        self._tasks = Tasks()

    @property
    def open_files_max(self) -> int:
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return OPEN_FILES_MAX if soft == resource.RLIM_INFINITY else min(soft, OPEN_FILES_MAX)

    def open(self, path: str, *, create: bool = False) -> RealFile:
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        return RealFile(self._resources, path, _called(os.open, path, flags, FILE_MODE))

    def exists(self, path: str) -> bool:
        return os.path.lexists(path)

    def list(self, path: str) -> list[str]:
        return sorted(_called(os.listdir, path))

    def is_directory(self, path: str) -> bool:
        return os.path.isdir(path)

    def make_directory(self, path: str) -> None:
        _called(os.makedirs, path, DIRECTORY_MODE, True)

    def restrict(self, path: str) -> None:
        with suppress(OSError):  # of another user, or on a file system without modes
            os.chmod(path, DIRECTORY_MODE)
            for entry in os.scandir(path):
                if entry.is_file(follow_symlinks=False):
                    os.chmod(entry.path, FILE_MODE)

    def rename(self, source: str, target: str) -> None:
        _called(os.replace, source, target)

    def remove(self, path: str) -> None:
        try:
            _called(os.unlink, path)
        except PathGone:
            return

    def remove_tree(self, path: str) -> None:
        try:
            if os.path.islink(path) or not os.path.isdir(path):
                _called(os.unlink, path)  # the target of a link is not ours
            else:
                import shutil  # a slow import that most processes do not need

                _called(shutil.rmtree, path)
        except PathGone:
            return

    def size_bytes(self, path: str) -> int:
        return _called(os.stat, path).st_size

    def modified_ms(self, path: str) -> int:
        return _called(os.stat, path).st_mtime_ns // 1_000_000

    def read_all(self, path: str, *, size_bytes_max: int) -> bytes:
        file = self.open(path)
        try:
            if file.size_bytes > size_bytes_max:
                raise DiskFailure(path, f"{file.size_bytes} bytes, more than the {size_bytes_max} it may have")
            return file.read(0, file.size_bytes)
        finally:
            file.close()

    def lock(self, path: str) -> RealLock:
        descriptor = _called(os.open, path, os.O_RDWR | os.O_CLOEXEC | os.O_CREAT, FILE_MODE)
        try:
            # flock keeps out ourselves and each other; Java's brokers take the older lock of the two.
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            if error.errno in (errno.EAGAIN, errno.EACCES):
                raise AlreadyLocked(path) from error
            raise failure(path, error) from error
        return RealLock(descriptor)

    def free_bytes(self, path: str) -> int:
        facts = _called(os.statvfs, path)
        return facts.f_bavail * facts.f_frsize

    def total_bytes(self, path: str) -> int:
        facts = _called(os.statvfs, path)
        return facts.f_blocks * facts.f_frsize

    async def sync_directory(self, path: str) -> None:
        """Sync a directory. Callers that come while a sync runs share the next one."""
        running = self._syncing.get(path)
        if running is None:
            await self._sync_directory(path)
            return
        following = self._following.get(path)
        if following is None:
            following = self._following[path] = self._tasks.call(self._sync_after(running, path), f"sync:{path}")
        await asyncio.shield(following)

    async def _sync_after(self, running: asyncio.Future[None], path: str) -> None:
        await asyncio.wait([running])
        del self._following[path]  # names that are created from here on may be too late for this sync
        if not running.cancelled():
            running.result()  # a failed fsync is never tried again: the kernel may have dropped the pages
        await self._sync_directory(path)

    async def _sync_directory(self, path: str) -> None:
        running = asyncio.wrap_future(self._resources.syncers.submit(_sync_directory, path or "."))
        self._syncing[path] = running
        try:
            await asyncio.shield(running)
        finally:
            if self._syncing.get(path) is running:
                del self._syncing[path]

    def close(self) -> None:
        """End the threads once they are idle. The disk cannot be used afterwards."""
        self._resources.close()


def _called(function: Callable[..., T], path: str, *arguments: object) -> T:
    """Make a system call about a path; an OSError becomes a DiskFailure."""
    try:
        return function(path, *arguments)
    except OSError as error:
        raise failure(path, error) from error


def _sync_directory(path: str) -> None:
    descriptor = _called(os.open, path, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        raise DiskFailure(path, f"the device refused an fsync: {error.strerror}") from error
    finally:
        os.close(descriptor)
