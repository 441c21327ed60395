"""What every Disk must do, as checks that run on any implementation.

Each check is a coroutine that takes a disk and an empty directory of its own; ``check_disk`` runs them all. Whoever
writes another disk runs these first. Durability cannot be checked from outside and is not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeAlias

from barnabas.world.disk import CHUNK_BYTES_MAX, AlreadyLocked, Disk, DiskFailure, FileClosed, PathGone, replace

DiskCheck: TypeAlias = Callable[[Disk, str], Coroutine[Any, Any, None]]


def _raises(kind: type[Exception], act: Callable[[], object]) -> None:
    try:
        act()
    except kind:
        return
    raise AssertionError(f"{kind.__name__} was expected")


async def appends_are_read_back(disk: Disk, root: str) -> None:
    file = disk.open(f"{root}/log", create=True)
    assert file.path == f"{root}/log"
    assert file.size_bytes == 0
    file.append(b"one")
    file.append(bytearray(b"two"))
    file.append(memoryview(b"-three-")[1:-1])
    file.append(b"")
    assert file.size_bytes == 11
    assert file.read(0, 100) == b"onetwothree"
    assert file.read(3, 3) == b"two"
    assert file.read(11, 5) == b""
    file.close()
    again = disk.open(f"{root}/log", create=True)
    assert again.size_bytes == 11, "opening never truncates"
    again.append(b"!")
    assert again.read(6, 100) == b"three!"
    again.close()


async def gathered_appends_keep_their_order(disk: Disk, root: str) -> None:
    file = disk.open(f"{root}/log", create=True)
    buffers = [number.to_bytes(4, "big") * (number % 3) for number in range(3000)]
    file.append(b"head")
    file.append_all(iter(buffers))
    file.append_all([])
    assert file.read(0, 1 << 20) == b"head" + b"".join(buffers)
    assert file.size_bytes == 4 + sum(map(len, buffers))
    file.close()


async def bytes_are_overwritten_in_place(disk: Disk, root: str) -> None:
    file = disk.open(f"{root}/index", create=True)
    file.append(b"0123456789")
    file.write(2, b"ab")
    assert file.read(0, 10) == b"01ab456789"
    assert file.size_bytes == 10
    file.write(8, b"tail")
    assert file.read(0, 20) == b"01ab4567tail"
    file.write(14, b"!")
    assert file.read(0, 20) == b"01ab4567tail\0\0!", "a gap is filled with zeroes"
    file.close()


async def a_view_is_loaded_where_it_is_not_cached(disk: Disk, root: str) -> None:
    file = disk.open(f"{root}/log", create=True)
    content = bytes(range(256)) * 2048  # two chunks
    file.append(content)
    for position, size_bytes in ((0, 10), (100, 70_000), (0, len(content)), (len(content) - 5, 100)):
        view = file.view(position, size_bytes)
        if view is None:
            view = await file.load(position, size_bytes)
        assert view == content[position : position + min(size_bytes, CHUNK_BYTES_MAX)]
        file.release(view)
    assert await file.load(len(content) - 5, 100) == content[-5:]
    assert len(await file.load(len(content), 1)) == 0
    empty = file.view(len(content), 1)
    assert empty is None or len(empty) == 0
    file.close()


async def a_view_outlives_what_is_written_after_it(disk: Disk, root: str) -> None:
    file = disk.open(f"{root}/log", create=True)
    file.append(b"a" * 50_000)
    first = await file.load(0, 50_000)
    part = first[10:20]
    file.release(first)
    file.release(first)  # once too often does no harm
    file.write(0, b"b" * 50_000)
    second = await file.load(0, 50_000)
    assert part == b"a" * 10, "memory that somebody still looks at is not used again"
    assert second == b"b" * 50_000
    file.append(b"c")
    file.truncate(0)
    assert second == b"b" * 50_000
    file.close()


async def a_truncated_file_goes_on_at_its_new_end(disk: Disk, root: str) -> None:
    file = disk.open(f"{root}/log", create=True)
    file.append(b"keep and drop")
    file.truncate(4)
    assert file.size_bytes == 4
    file.append(b"!")
    assert file.read(0, 100) == b"keep!"
    file.truncate(8)
    assert file.read(0, 100) == b"keep!\0\0\0", "growing fills with zeroes"
    assert disk.size_bytes(f"{root}/log") == 8
    file.close()


async def a_closed_file_says_so(disk: Disk, root: str) -> None:
    file = disk.open(f"{root}/log", create=True)
    file.append(b"data")
    file.close()
    file.close()
    _raises(FileClosed, lambda: file.append(b"x"))
    _raises(FileClosed, lambda: file.append_all([b"x"]))
    _raises(FileClosed, lambda: file.read(0, 1))
    _raises(FileClosed, lambda: file.view(0, 1))
    _raises(FileClosed, lambda: file.write(0, b"x"))
    _raises(FileClosed, lambda: file.truncate(0))
    for act in (lambda: file.load(0, 1), file.sync):
        try:
            await act()
        except FileClosed:
            continue
        raise AssertionError("FileClosed was expected")


async def closing_waits_for_what_is_under_way(disk: Disk, root: str) -> None:
    file = disk.open(f"{root}/log", create=True)
    file.append(b"data" * 10_000)
    load = asyncio.ensure_future(file.load(0, 40_000))
    await asyncio.sleep(0)
    file.start_writeback()
    other = disk.open(f"{root}/other", create=True)
    file.close()
    other.append(b"none of this")
    assert await load == b"data" * 10_000
    other.close()


async def a_missing_path_is_not_found(disk: Disk, root: str) -> None:
    missing = f"{root}/missing"
    assert not disk.exists(missing)
    assert not disk.is_directory(missing)
    _raises(PathGone, lambda: disk.open(missing))
    _raises(PathGone, lambda: disk.open(f"{missing}/file", create=True))
    _raises(PathGone, lambda: disk.list(missing))
    _raises(PathGone, lambda: disk.size_bytes(missing))
    _raises(PathGone, lambda: disk.modified_ms(missing))
    _raises(PathGone, lambda: disk.read_all(missing, size_bytes_max=1))
    _raises(PathGone, lambda: disk.rename(missing, f"{root}/other"))
    disk.remove(missing)
    disk.remove_tree(missing)


async def names_are_listed_in_order(disk: Disk, root: str) -> None:
    for name in ("b", "a", ".lock", "10", "9"):
        disk.open(f"{root}/{name}", create=True).close()
    disk.make_directory(f"{root}/d/deep/deeper")
    disk.make_directory(f"{root}/d/deep")
    assert disk.list(root) == [".lock", "10", "9", "a", "b", "d"]
    assert disk.list(f"{root}/d") == ["deep"]
    assert disk.is_directory(f"{root}/d/deep")
    assert not disk.is_directory(f"{root}/a")
    assert disk.exists(f"{root}/a")
    await disk.sync_directory(root)


async def a_rename_replaces_what_was_there(disk: Disk, root: str) -> None:
    source, target = disk.open(f"{root}/new", create=True), disk.open(f"{root}/old", create=True)
    source.append(b"new")
    target.append(b"old")
    disk.rename(f"{root}/new", f"{root}/old")
    assert disk.list(root) == ["old"]
    assert disk.read_all(f"{root}/old", size_bytes_max=3) == b"new"
    assert target.read(0, 3) == b"old", "who has it open keeps it"
    source.append(b"er")
    assert disk.read_all(f"{root}/old", size_bytes_max=5) == b"newer"
    source.close()
    target.close()
    disk.make_directory(f"{root}/topic-0")
    disk.open(f"{root}/topic-0/log", create=True).close()
    disk.rename(f"{root}/topic-0", f"{root}/topic-0.deleted")
    assert disk.list(f"{root}/topic-0.deleted") == ["log"]
    disk.make_directory(f"{root}/topic-0")
    _raises(DiskFailure, lambda: disk.rename(f"{root}/topic-0", f"{root}/topic-0.deleted"))
    _raises(DiskFailure, lambda: disk.rename(f"{root}/old", f"{root}/topic-0"))
    _raises(DiskFailure, lambda: disk.rename(f"{root}/topic-0", f"{root}/old"))


async def removed_files_are_gone(disk: Disk, root: str) -> None:
    file = disk.open(f"{root}/log", create=True)
    file.append(b"data")
    disk.remove(f"{root}/log")
    assert disk.list(root) == []
    assert file.read(0, 4) == b"data", "who has it open keeps it"
    file.close()
    disk.make_directory(f"{root}/tree/branch")
    disk.open(f"{root}/tree/branch/leaf", create=True).close()
    _raises(DiskFailure, lambda: disk.remove(f"{root}/tree"))
    disk.remove_tree(f"{root}/tree")
    assert not disk.exists(f"{root}/tree")


async def a_directory_is_no_file_and_a_file_no_directory(disk: Disk, root: str) -> None:
    disk.make_directory(f"{root}/d")
    disk.open(f"{root}/f", create=True).close()
    _raises(DiskFailure, lambda: disk.open(f"{root}/d"))
    _raises(DiskFailure, lambda: disk.open(f"{root}/f/x", create=True))
    _raises(DiskFailure, lambda: disk.list(f"{root}/f"))
    _raises(DiskFailure, lambda: disk.make_directory(f"{root}/f/x"))


async def a_small_file_is_read_whole_or_refused(disk: Disk, root: str) -> None:
    file = disk.open(f"{root}/meta", create=True)
    file.append(b"x" * 100)
    file.close()
    assert disk.read_all(f"{root}/meta", size_bytes_max=100) == b"x" * 100
    _raises(DiskFailure, lambda: disk.read_all(f"{root}/meta", size_bytes_max=99))
    assert disk.size_bytes(f"{root}/meta") == 100


async def a_replaced_file_is_the_new_one(disk: Disk, root: str) -> None:
    await replace(disk, f"{root}/checkpoint", b"one")
    await replace(disk, f"{root}/checkpoint", b"two")
    assert disk.read_all(f"{root}/checkpoint", size_bytes_max=10) == b"two"
    assert disk.list(root) == ["checkpoint"]


async def a_lock_is_held_once(disk: Disk, root: str) -> None:
    lock = disk.lock(f"{root}/.lock")
    _raises(AlreadyLocked, lambda: disk.lock(f"{root}/.lock"))
    other = disk.lock(f"{root}/.other")
    lock.release()
    lock.release()
    again = disk.lock(f"{root}/.lock")
    again.release()
    other.release()
    assert disk.list(root) == [".lock", ".other"]


async def space_is_reported(disk: Disk, root: str) -> None:
    assert 0 <= disk.free_bytes(root) <= disk.total_bytes(root)


async def a_write_moves_the_time_of_change(disk: Disk, root: str) -> None:
    file = disk.open(f"{root}/log", create=True)
    before = disk.modified_ms(f"{root}/log")
    file.append(b"data")
    assert disk.modified_ms(f"{root}/log") >= before > 1_500_000_000_000
    file.close()


DISK_CHECKS: Final[tuple[DiskCheck, ...]] = (
    appends_are_read_back,
    gathered_appends_keep_their_order,
    bytes_are_overwritten_in_place,
    a_view_is_loaded_where_it_is_not_cached,
    a_view_outlives_what_is_written_after_it,
    a_truncated_file_goes_on_at_its_new_end,
    a_closed_file_says_so,
    closing_waits_for_what_is_under_way,
    a_missing_path_is_not_found,
    names_are_listed_in_order,
    a_rename_replaces_what_was_there,
    removed_files_are_gone,
    a_directory_is_no_file_and_a_file_no_directory,
    a_small_file_is_read_whole_or_refused,
    a_replaced_file_is_the_new_one,
    a_lock_is_held_once,
    space_is_reported,
    a_write_moves_the_time_of_change,
)


async def check_disk(disk: Disk, root: str) -> None:
    """Run every check, each in a new directory under ``root``."""
    for check in DISK_CHECKS:
        directory = f"{root}/{getattr(check, '__name__', 'check')}"
        disk.make_directory(directory)
        await check(disk, directory)
