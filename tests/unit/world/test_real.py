"""The operating system behind the seam."""

from __future__ import annotations

import asyncio
import ctypes
import errno
import os
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from barnabas.world import page_cache, real_file
from barnabas.world.chunks import PAGE_BYTES, POOLED_CHUNKS_MAX, SMALL_READ_BYTES_MAX, ChunkPool
from barnabas.world.disk import CHUNK_BYTES_MAX, DiskFailure, DiskFull
from barnabas.world.real import RealClock, RealDisk, RealEntropy, RealWorkers, real_world


@pytest.fixture(name="disk")
def _disk() -> Any:
    disk = RealDisk()
    yield disk
    disk.close()


def raising(number: int) -> Any:
    def fail(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    return fail


def test_a_short_write_goes_on_where_it_stopped(
    disk: RealDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = disk.open(f"{tmp_path}/log", create=True)
    pwrite, pwritev = os.pwrite, os.pwritev
    monkeypatch.setattr(os, "pwrite", lambda fd, data, position: pwrite(fd, memoryview(data)[:3], position))
    monkeypatch.setattr(os, "pwritev", lambda fd, views, position: pwritev(fd, [views[0][:2]], position))
    file.append(b"0123456789")
    file.append_all([b"", b"abcde", b"", b"f"])
    assert file.read(0, 100) == b"0123456789abcdef"
    assert file.size_bytes == 16
    file.close()


@pytest.mark.parametrize(
    ("number", "kind"), [(errno.ENOSPC, DiskFull), (errno.EDQUOT, DiskFull), (errno.EIO, DiskFailure)]
)
def test_an_append_that_fails_halfway_leaves_nothing(
    disk: RealDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, kind: type[DiskFailure]
) -> None:
    file = disk.open(f"{tmp_path}/log", create=True)
    file.append(b"kept")
    pwrite = os.pwrite
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", lambda fd, data, position: pwrite(fd, memoryview(data)[:3], position))
        patch.setattr(os, "pwritev", raising(number))
        with pytest.raises(DiskFailure) as caught:
            file.append(b"lost and gone")
        assert type(caught.value) is kind
        assert caught.value.path == f"{tmp_path}/log"
        with pytest.raises(DiskFailure):
            file.append_all([b"lost", b"too"])
    assert file.size_bytes == 4
    assert disk.size_bytes(f"{tmp_path}/log") == 4
    file.append(b"!")
    assert file.read(0, 100) == b"kept!"
    file.close()


def test_a_failed_sync_is_never_tried_again(disk: RealDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        file = disk.open(f"{tmp_path}/log", create=True)
        with monkeypatch.context() as patch:
            patch.setattr(real_file, "_full_sync", raising(errno.EIO))
            with pytest.raises(DiskFailure):
                await file.sync()
        assert file.has_failed
        with pytest.raises(DiskFailure, match="earlier fsync"):
            await file.sync()
        file.close()

    asyncio.run(main())


def test_what_is_not_cached_is_loaded(disk: RealDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        file = disk.open(f"{tmp_path}/log", create=True)
        file.append(b"x" * 100_000)
        preadv = os.preadv

        def cold(fd: int, views: Any, position: int, flags: int = 0) -> int:
            if flags:
                raise BlockingIOError
            return preadv(fd, views, position)

        def half_warm(fd: int, views: Any, position: int, flags: int = 0) -> int:
            return preadv(fd, [views[0][:4096]], position)

        for answer, viewed in ((cold, None), (half_warm, b"x" * 4096)):
            with monkeypatch.context() as patch:
                patch.setattr(os, "preadv", answer)
                patch.setattr(file, "_view_flags", 8)
                assert file.view(0, 100_000) == viewed
                assert await file.load(0, 100_000) == b"x" * 100_000
        file.close()

    asyncio.run(main())


@pytest.mark.skipif(not page_cache.RWF_NOWAIT, reason="this system cannot say what is cached")
def test_a_file_sends_itself_to_a_socket(disk: RealDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = disk.open(f"{tmp_path}/log", create=True)
    content = bytes(range(256)) * 4096
    file.append(content)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        sent = 0
        while taken := file.send(ours.fileno(), sent, len(content) - sent):
            assert taken <= CHUNK_BYTES_MAX
            sent += taken
        assert taken == 0, "there is no room any more"
        assert theirs.recv(sent, socket.MSG_WAITALL) == content[:sent]
        assert file.send(ours.fileno(), len(content), 1) is None
        assert file.send(-1, 0, 1) is None
        for size, taken_of_it in ((100_000, 100_000), (100_001, None), (200_001, 100_000)):
            monkeypatch.setattr(page_cache, "is_present", lambda descriptor, position: position < 100_000)
            assert file.send(ours.fileno(), 0, size) == taken_of_it, "the device would have to be waited for"
            if taken_of_it:
                theirs.recv(taken_of_it, socket.MSG_WAITALL)
    file.close()
    assert file.send(0, 0, 1) is None


def test_a_file_system_that_cannot_tell_is_read_plainly(
    disk: RealDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = disk.open(f"{tmp_path}/log", create=True)
    file.append(b"x" * 100)
    preadv = os.preadv

    def refuse_flags(fd: int, views: Any, position: int, flags: int = 0) -> int:
        if flags:
            raise OSError(errno.EOPNOTSUPP, "not supported")
        return preadv(fd, views, position)

    monkeypatch.setattr(os, "preadv", refuse_flags)
    assert file.view(0, 100) == b"x" * 100
    assert file.view(50, 100) == b"x" * 50
    file.close()


def test_a_read_that_fails_is_a_failure_of_the_disk(
    disk: RealDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        file = disk.open(f"{tmp_path}/log", create=True)
        file.append(b"x")
        monkeypatch.setattr(os, "preadv", raising(errno.EIO))
        with pytest.raises(DiskFailure):
            file.view(0, 1)
        with pytest.raises(DiskFailure):
            await file.load(0, 1)
        file.close()

    asyncio.run(main())


def test_a_descriptor_stays_open_while_a_thread_uses_it(
    disk: RealDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        file = disk.open(f"{tmp_path}/log", create=True)
        descriptor = file._descriptor
        entered, proceed = threading.Event(), threading.Event()

        def slow(fd: int) -> None:
            entered.set()
            proceed.wait(10)
            os.fstat(fd)

        monkeypatch.setattr(real_file, "_full_sync", slow)
        sync = asyncio.create_task(file.sync())
        await asyncio.to_thread(entered.wait, 10)
        file.close()
        os.fstat(descriptor)
        proceed.set()
        await sync
        # The thread closes it just after it has answered.
        disk._resources.syncers.submit(int).result()
        disk._resources.syncers.shutdown()
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptor)

    asyncio.run(main())


def test_chunks_are_used_again_only_when_nobody_looks_at_them() -> None:
    pool = ChunkPool()
    view = pool.take(CHUNK_BYTES_MAX)
    memory = view.obj
    pool.give(view)
    assert pool.free_count == 1
    pool.give(view)
    assert pool.free_count == 1
    again = pool.take(CHUNK_BYTES_MAX - 1)
    assert again.obj is memory
    assert pool.free_count == 0
    part = again[5:10]
    pool.give(again)
    assert pool.free_count == 0, "a part of it is still in sight"
    pool.give(part)
    assert pool.free_count == 1
    exported = pool.take(CHUNK_BYTES_MAX)
    holder = memoryview(exported)
    pool.give(exported)
    assert pool.free_count == 0
    del holder


@pytest.mark.parametrize("position", [0, 1, 4095, 4096, 123_456_789])
def test_a_chunk_lies_in_its_page_as_the_file_does(position: int) -> None:
    pool = ChunkPool()
    for _ in range(3):
        view = pool.take(CHUNK_BYTES_MAX, position=position)
        address = ctypes.addressof(ctypes.c_char.from_buffer(view))
        assert len(view) == CHUNK_BYTES_MAX
        assert address % PAGE_BYTES == position % PAGE_BYTES


def test_the_pool_takes_only_what_is_its_own_and_not_too_much() -> None:
    pool = ChunkPool()
    pool.give(memoryview(bytearray(CHUNK_BYTES_MAX)))
    pool.give(pool.take(SMALL_READ_BYTES_MAX))
    assert pool.free_count == 0
    views = [pool.take(CHUNK_BYTES_MAX) for _ in range(POOLED_CHUNKS_MAX + 3)]
    for view in views:
        pool.give(view)
    assert pool.free_count == POOLED_CHUNKS_MAX


def test_workers_run_elsewhere_and_hand_back_what_went_wrong() -> None:
    async def main() -> None:
        workers = RealWorkers()
        assert await workers.run(threading.get_ident) != threading.get_ident()
        assert await workers.run(divmod, 7, 2) == (3, 1)
        with pytest.raises(ZeroDivisionError):
            await workers.run(divmod, 1, 0)
        await workers.close()

    asyncio.run(main())


def test_clock_and_entropy_are_the_systems() -> None:
    clock, entropy = RealClock(), RealEntropy()
    assert clock.wall_ms() > 1_700_000_000_000
    assert clock.monotonic_ns() // 1_000_000 <= clock.monotonic_ms()
    clock.on_jump(lambda: None)()
    assert len(entropy.token(32)) == 32
    assert 0 <= entropy.below(3) < 3
    uuids = {entropy.uuid() for _ in range(300)}
    assert len(uuids) == 300
    assert not any(str(uuid).startswith("-") for uuid in uuids)
    assert all(uuid[6] >> 4 == 4 for uuid in uuids)
    assert real_world().clock.wall_ms() > 0


def test_a_look_at_what_is_not_cached_fetches_nothing(disk: RealDisk, tmp_path: Path) -> None:
    """The loop looks; what a look would make the system fetch, it would have to find memory for, there and then."""

    async def main() -> None:
        file = disk.open(f"{tmp_path}/log", create=True)
        content = os.urandom(4 * CHUNK_BYTES_MAX)
        file.append(content)
        await file.sync()
        descriptor = file._descriptor
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        if page_cache.is_present(descriptor, 0):
            pytest.skip("this file system forgets nothing")
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.setblocking(False)
            assert file.view(0, CHUNK_BYTES_MAX) is None
            assert file.send(ours.fileno(), 0, CHUNK_BYTES_MAX) is None
            places = range(0, len(content), PAGE_BYTES)
            assert not any(page_cache.is_present(descriptor, place) for place in places)
            await file.cache(0, len(content))
            assert all(page_cache.is_present(descriptor, place) for place in places)
            sent = file.send(ours.fileno(), 0, CHUNK_BYTES_MAX)
            assert sent
            assert theirs.recv(sent, socket.MSG_WAITALL) == content[:sent]
        file.close()

    if page_cache.RWF_NOWAIT and page_cache.can_be_asked():
        asyncio.run(main())
    else:
        pytest.skip("this system cannot say what is cached")


def test_what_is_present_is_halved_until_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for end, found in ((0, 0), (1 << 20, 1 << 20), (700_000, 1 << 19), (70_000, 1 << 16), (60_000, 0)):
        monkeypatch.setattr(page_cache, "is_present", lambda _, position, end=end: position < end)
        monkeypatch.setattr(page_cache, "_look", lambda *_: True)
        assert page_cache.find_present(0, 0, 1 << 20) == found
