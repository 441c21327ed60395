"""One open file of the operating system.

Reads and writes name their position, so one descriptor serves the appender and every reader. What may wait for the
device runs in the disk's threads; the descriptor stays open until the last of them is done with it. Opened by
``real_disk`` alone.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import sys
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Final, TypeVar

from barnabas.world import page_cache
from barnabas.world.chunks import ChunkPool
from barnabas.world.disk import (
    CHUNK_BYTES_MAX,
    Buffer,
    DiskFailure,
    DiskFull,
    FileClosed,
    PathGone,
    PathUnusable,
    TooManyFiles,
)

LOAD_THREADS_MAX: Final = 4
SYNC_THREADS_MAX: Final = 4  # apart from the loads, so that no reader waits behind an fsync
VECTORS_MAX: Final = 512  # buffers per system call; every system allows at least this many but the oldest
CLOSED: Final = -1
NO_SPACE: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
NO_FILES: Final = frozenset({errno.EMFILE, errno.ENFILE})
NOT_USABLE: Final = frozenset({errno.ENOTDIR, errno.EISDIR, errno.EACCES, errno.ELOOP, errno.ENAMETOOLONG})
NOT_SUPPORTED: Final = frozenset({errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL})

T = TypeVar("T")


def failure(path: str, error: OSError) -> DiskFailure:
    reason = error.strerror or str(error)
    if error.errno == errno.ENOENT:
        return PathGone(path)
    if error.errno in NOT_USABLE:
        return PathUnusable(path, reason)
    if error.errno in NO_FILES:
        return TooManyFiles(path, reason)
    return DiskFull(path, reason) if error.errno in NO_SPACE else DiskFailure(path, reason)


# macOS has no fdatasync; its fsync leaves the drive's cache alone, only F_FULLFSYNC empties it.
_full_sync: Callable[[int], object]
if sys.platform == "darwin":
    _full_sync = lambda descriptor: fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)  # noqa: E731
else:
    _full_sync = os.fdatasync


class Resources:
    """What the files of one disk share: memory for views, and threads that may wait for the device."""

    def __init__(self) -> None:
        self.chunks = ChunkPool()
        self.loaders = ThreadPoolExecutor(LOAD_THREADS_MAX, thread_name_prefix="barnabas-load")
        self.syncers = ThreadPoolExecutor(SYNC_THREADS_MAX, thread_name_prefix="barnabas-sync")

    def close(self) -> None:
        self.loaders.shutdown(wait=False)
        self.syncers.shutdown(wait=False)


class RealFile:
    __slots__ = (
        "_descriptor",
        "_failure",
        "_is_writing_back",
        "_lock",
        "_pins",
        "_resources",
        "_to_close",
        "_view_flags",
        "path",
        "size_bytes",
    )

    def __init__(self, resources: Resources, path: str, descriptor: int) -> None:
        self.path = path
        self.size_bytes = os.fstat(descriptor).st_size
        self._resources = resources
        self._descriptor = descriptor
        self._failure: str | None = None
        self._is_writing_back = False
        self._view_flags = page_cache.RWF_NOWAIT
        # A descriptor number is used again at once after a close, so threads that still use it keep it open.
        self._lock = threading.Lock()
        self._pins = 0
        self._to_close = CLOSED

    @property
    def has_failed(self) -> bool:
        """An fsync failed: the kernel may have dropped what it could not write, so no later one can be believed."""
        return self._failure is not None

    def append(self, data: Buffer) -> None:
        end = self.size_bytes
        try:
            written = os.pwrite(self._descriptor, data, end)
            if written != len(data):
                self._write_all([memoryview(data)[written:]], end + written)
        except OSError as error:
            raise self._undone(end, error) from error
        self.size_bytes = end + len(data)

    def append_all(self, buffers: Iterable[Buffer]) -> None:
        end = self.size_bytes
        try:
            self.size_bytes = self._write_all([memoryview(buffer) for buffer in buffers if len(buffer)], end)
        except OSError as error:
            raise self._undone(end, error) from error

    def _write_all(self, views: list[memoryview], position: int) -> int:
        """Write every view (none is empty), however short the single writes are; answers the position after them."""
        index = 0
        while index < len(views):
            written = os.pwritev(self._descriptor, views[index : index + VECTORS_MAX], position)
            if written == 0:
                raise OSError(errno.EIO, "the system wrote nothing")
            position += written
            while index < len(views) and written >= len(views[index]):
                written -= len(views[index])
                index += 1
            if written:
                views[index] = views[index][written:]
        return position

    def _undone(self, size_bytes: int, error: OSError) -> DiskFailure | FileClosed:
        """Cut off what a failed append left, so that the next one starts where this one did."""
        if self._descriptor == CLOSED:
            return FileClosed(self.path)
        try:
            os.ftruncate(self._descriptor, size_bytes)
        except OSError as second:
            return DiskFailure(self.path, f"{error.strerror}, and undoing it: {second.strerror}")
        return failure(self.path, error)

    def write(self, position: int, data: Buffer) -> None:
        try:
            end = self._write_all([memoryview(data)] if len(data) else [], position)
        except OSError as error:
            raise self._wrong(error) from error
        self.size_bytes = max(self.size_bytes, end)

    def read(self, position: int, size_bytes: int) -> bytes:
        try:
            return os.pread(self._descriptor, size_bytes, position)
        except OSError as error:
            raise self._wrong(error) from error

    def view(self, position: int, size_bytes: int) -> memoryview | None:
        size_bytes = min(size_bytes, CHUNK_BYTES_MAX, self.size_bytes - position)
        if size_bytes <= 0:
            if self._descriptor == CLOSED:
                raise FileClosed(self.path)
            return memoryview(b"")
        if self._view_flags:
            size_bytes = self._find_present(position, size_bytes)
            if not size_bytes:
                return None
        view = self._resources.chunks.take(size_bytes, position=position)
        try:
            count = os.preadv(self._descriptor, (view,), position, self._view_flags)
            if count:
                return view if count == size_bytes else view[:count]
        except BlockingIOError:
            pass
        except OSError as error:
            self._resources.chunks.give(view)
            if error.errno in NOT_SUPPORTED and self._view_flags:
                # This file system cannot say what is cached; the page cache nearly always answers a plain read.
                self._view_flags = 0
                return self.view(position, size_bytes)
            raise self._wrong(error) from error
        # Nothing is cached, or somebody cut the file behind our back: a load finds out.
        self._resources.chunks.give(view)
        return None

    def _find_present(self, position: int, size_bytes: int) -> int:
        """How many of these bytes the loop can look at without a wait, as far as is known before the look."""
        if size_bytes < page_cache.PRESENT_BYTES_MIN:
            return size_bytes
        try:
            return page_cache.find_present(self._descriptor, position, size_bytes)
        except OSError as error:
            if error.errno in NOT_SUPPORTED:
                return size_bytes
            raise self._wrong(error) from error

    async def load(self, position: int, size_bytes: int) -> memoryview:
        size_bytes = min(size_bytes, CHUNK_BYTES_MAX, self.size_bytes - position)
        if size_bytes <= 0:
            return memoryview(b"")
        view = self._resources.chunks.take(size_bytes, position=position)
        # If the caller is cancelled the thread still writes into this memory, so it is dropped and never pooled.
        try:
            filled = await self._in_thread(self._resources.loaders, page_cache.fill, view, position)
        except OSError as error:
            raise self._wrong(error) from error
        return view[:filled] if filled < size_bytes else view

    async def cache(self, position: int, size_bytes: int) -> None:
        size_bytes = min(size_bytes, page_cache.FETCHED_BYTES_MAX, self.size_bytes - position)
        if size_bytes <= 0 or not self._view_flags:
            return
        with suppress(OSError):  # a load finds out
            await self._in_thread(self._resources.loaders, page_cache.fetch, position, size_bytes)

    def send(self, socket: int, position: int, size_bytes: int) -> int | None:
        size_bytes = min(size_bytes, CHUNK_BYTES_MAX, self.size_bytes - position)
        if size_bytes <= 0 or not self._view_flags:
            return None
        try:
            size_bytes = self._find_present(position, size_bytes)
            if size_bytes < page_cache.PRESENT_BYTES_MIN:  # not known to be there, nor worth it
                return None
            return os.sendfile(socket, self._descriptor, position, size_bytes)
        except BlockingIOError:
            return 0
        except (OSError, DiskFailure, FileClosed):
            return None  # of the file or of the socket: whoever reads or writes next is told which

    def release(self, view: memoryview) -> None:
        self._resources.chunks.give(view)

    async def sync(self) -> None:
        if self._failure is not None:
            raise DiskFailure(self.path, self._failure)
        await self._in_thread(self._resources.syncers, self._sync)

    def _sync(self, descriptor: int) -> None:
        try:
            _full_sync(descriptor)
        except OSError as error:
            # Noted here, in the thread: whoever waited may have been cancelled meanwhile.
            self._failure = f"an earlier fsync failed: {error.strerror}"
            # Even if the disk is merely full: pages that were acknowledged may be gone from the cache.
            raise DiskFailure(self.path, f"the device refused an fsync: {error.strerror}") from error

    def start_writeback(self) -> None:
        if self._is_writing_back or self._descriptor == CLOSED or not page_cache.can_write_back():
            return
        self._is_writing_back = True
        self._submit(self._resources.syncers, self._write_back)

    def _write_back(self, descriptor: int) -> None:
        self._is_writing_back = False
        page_cache.write_back(descriptor)

    def truncate(self, size_bytes: int) -> None:
        try:
            os.ftruncate(self._descriptor, size_bytes)
        except OSError as error:
            raise self._wrong(error) from error
        self.size_bytes = size_bytes

    def close(self) -> None:
        with self._lock:
            descriptor, self._descriptor = self._descriptor, CLOSED
            if self._pins:
                self._to_close = descriptor
                return
        if descriptor != CLOSED:
            os.close(descriptor)

    def _wrong(self, error: OSError) -> DiskFailure | FileClosed:
        return FileClosed(self.path) if self._descriptor == CLOSED else failure(self.path, error)

    async def _in_thread(self, threads: ThreadPoolExecutor, work: Callable[..., T], *arguments: object) -> T:
        return await asyncio.wrap_future(self._submit(threads, work, *arguments))

    def _submit(self, threads: ThreadPoolExecutor, work: Callable[..., T], *arguments: object) -> Future[T]:
        with self._lock:
            if self._descriptor == CLOSED:
                raise FileClosed(self.path)
            self._pins += 1
            future = threads.submit(work, self._descriptor, *arguments)
        future.add_done_callback(self._unpin)
        return future

    def _unpin(self, _: Future[T]) -> None:
        with self._lock:
            self._pins -= 1
            if self._pins or self._to_close == CLOSED:
                return
            descriptor, self._to_close = self._to_close, CLOSED
        os.close(descriptor)
