"""The content of a file in memory, and what of it would survive a power cut.

A node keeps what programs see now and, page by page, what was on the device when it was last synced, so that a crash
can mix the two. Names and directories are ``memory``'s, which also opens the handles of this module.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from barnabas.world.disk import CHUNK_BYTES_MAX, Buffer, DiskFailure, FileClosed
from barnabas.world.entropy import Entropy

if TYPE_CHECKING:
    from barnabas.world.memory import MemoryDisk

PAGE_BYTES: Final = 4096
SECTOR_BYTES: Final = 512


class _Image:
    """A state of the file, told as what to put back into the next newer one to get it."""

    __slots__ = ("pages", "size_bytes", "size_bytes_min")

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes
        self.size_bytes_min = size_bytes  # how short the file has been since
        self.pages: dict[int, bytes] = {}


class FileNode:
    """One file's bytes. ``images[0]`` is what the device has; each sync under way adds one, newest last."""

    __slots__ = ("content", "failure", "images", "modified_ms")

    def __init__(self, modified_ms: int) -> None:
        self.content = bytearray()
        self.images = [_Image(0)]
        self.failure: str | None = None
        self.modified_ms = modified_ms

    def write(self, position: int, data: Buffer) -> None:
        self._keep(position, position + len(data))
        if position > len(self.content):
            self.content.extend(bytes(position - len(self.content)))
        self.content[position : position + len(data)] = data

    def truncate(self, size_bytes: int) -> None:
        if size_bytes > len(self.content):
            self.content.extend(bytes(size_bytes - len(self.content)))
        else:
            self._keep(size_bytes, len(self.content))
            self.images[-1].size_bytes_min = min(self.images[-1].size_bytes_min, size_bytes)
            del self.content[size_bytes:]

    def _keep(self, start: int, end: int) -> None:
        """Before bytes change: save the pages of the newest image that would lose something."""
        image = self.images[-1]
        for page in range(start // PAGE_BYTES, -(-min(end, image.size_bytes) // PAGE_BYTES)):
            if page not in image.pages:
                position = page * PAGE_BYTES
                image.pages[page] = bytes(self.content[position : min(position + PAGE_BYTES, image.size_bytes)])

    def begin_sync(self) -> _Image:
        image = _Image(len(self.content))
        self.images.append(image)
        return image

    def end_sync(self, image: _Image) -> None:
        """The device has this image; older ones are of no use. A later sync may have done it already."""
        if image in self.images:
            del self.images[: self.images.index(image)]

    def durable(self) -> bytes:
        """What the device has for certain."""
        content = bytearray(self.content)
        for image in reversed(self.images):
            if len(content) < image.size_bytes:
                content.extend(bytes(image.size_bytes - len(content)))
            del content[image.size_bytes :]
            for page, data in image.pages.items():
                content[page * PAGE_BYTES : page * PAGE_BYTES + len(data)] = data
        return bytes(content)

    def crash(self, entropy: Entropy, *, tears_pages: bool) -> None:
        """The power fails. What was not synced is kept, lost, cut, or (if pages may tear) holed at random."""
        before, after = self.durable(), bytes(self.content)
        shortest = min(image.size_bytes_min for image in self.images)
        outcome = entropy.below(4)
        if before == after or outcome == 0:
            survived = after
        elif outcome == 1:
            survived = before
        else:
            # What was cut off may be gone while only a part of what was appended then has arrived.
            survived = after[: shortest + entropy.below(len(after) - shortest + 1)]
            if tears_pages and outcome == 3:
                survived = _torn(before, survived, entropy)
        self.content = bytearray(survived)
        self.images = [_Image(len(survived))]
        self.failure = None


def _torn(before: bytes, after: bytes, entropy: Entropy) -> bytes:
    """Each page of ``after`` is there, or is still as before (zeroes where nothing was), or is part of each."""
    old = before.ljust(len(after), b"\0")[: len(after)]
    result = bytearray(after)
    for position in range(0, len(after), PAGE_BYTES):
        end = min(position + PAGE_BYTES, len(after))
        fate = entropy.below(4)
        if fate == 0:
            result[position:end] = old[position:end]
        elif fate == 1:
            sector = position + entropy.below(PAGE_BYTES // SECTOR_BYTES) * SECTOR_BYTES
            result[sector:end] = old[sector:end]
    return bytes(result)


class MemoryFile:
    """A handle, as a process has it: it dies with the process, the node lives on."""

    __slots__ = ("_disk", "_is_open", "_node", "_process", "path")

    def __init__(self, disk: MemoryDisk, path: str, node: FileNode) -> None:
        self.path = path
        self._disk = disk
        self._node = node
        self._is_open = True
        self._process = disk.process

    @property
    def size_bytes(self) -> int:
        return len(self._node.content)

    @property
    def has_failed(self) -> bool:
        return self._node.failure is not None

    def _checked(self) -> FileNode:
        if not self._is_open or self._process != self._disk.process:
            raise FileClosed(self.path)
        return self._node

    def append(self, data: Buffer) -> None:
        self.write(self.size_bytes, data)

    def append_all(self, buffers: Iterable[Buffer]) -> None:
        self.write(self.size_bytes, b"".join(buffers))

    def write(self, position: int, data: Buffer) -> None:
        node = self._checked()
        growth = position + len(data) - len(node.content)
        self._disk.check_write(self.path, growth)
        node.write(position, data)
        node.modified_ms = self._disk.now_ms()

    def read(self, position: int, size_bytes: int) -> bytes:
        node = self._checked()
        self._disk.check_read(self.path)
        return bytes(node.content[position : position + size_bytes])

    def view(self, position: int, size_bytes: int) -> memoryview | None:
        node = self._checked()
        self._disk.check_read(self.path)
        if not self._disk.is_cached:
            return None
        return memoryview(node.content[position : position + min(size_bytes, CHUNK_BYTES_MAX)])

    async def load(self, position: int, size_bytes: int) -> memoryview:
        node = self._checked()
        await asyncio.sleep(self._disk.load_delay_ms / 1000)
        self._disk.check_read(self.path)
        return memoryview(node.content[position : position + min(size_bytes, CHUNK_BYTES_MAX)])

    async def cache(self, position: int, size_bytes: int) -> None:
        self._checked()  # and nothing else: ``send`` refuses it anyway

    def send(self, socket: int, position: int, size_bytes: int) -> int | None:
        return None  # the operating system knows nothing of it

    def release(self, view: memoryview) -> None:
        view.release()

    async def sync(self) -> None:
        node = self._checked()
        if node.failure is not None:
            raise DiskFailure(self.path, node.failure)
        image = node.begin_sync()
        await asyncio.sleep(self._disk.sync_delay_ms / 1000)
        self._checked()
        if self._disk.is_sync_failing(self.path):
            node.failure = "an earlier fsync failed"
            raise DiskFailure(self.path, "the device refused an fsync")
        node.end_sync(image)

    def start_writeback(self) -> None:
        self._checked()

    def truncate(self, size_bytes: int) -> None:
        node = self._checked()
        self._disk.check_write(self.path, size_bytes - len(node.content))
        node.truncate(size_bytes)
        node.modified_ms = self._disk.now_ms()

    def close(self) -> None:
        self._is_open = False
