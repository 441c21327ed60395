"""Syncing a directory for many at once: what comes while one runs shares the next, and a failure is everybody's."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from barnabas.world import real_disk
from barnabas.world.disk import DiskFailure
from barnabas.world.real_disk import RealDisk


class Device:
    """Counts syncs and holds the first until it is let go."""

    def __init__(self, *, fails: bool = False) -> None:
        self.count = 0
        self.is_open = threading.Event()
        self._fails = fails

    def sync(self, path: str) -> None:
        self.count += 1
        assert self.is_open.wait(10)
        if self._fails:
            raise DiskFailure(path, "the device refused")


async def turn() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_whoever_comes_while_a_sync_runs_shares_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        device, disk = Device(), RealDisk()
        monkeypatch.setattr(real_disk, "_sync_directory", device.sync)
        first = asyncio.ensure_future(disk.sync_directory(str(tmp_path)))
        await turn()
        others = [asyncio.ensure_future(disk.sync_directory(str(tmp_path))) for _ in range(100)]
        elsewhere = asyncio.ensure_future(disk.sync_directory(str(tmp_path / "other")))
        await turn()
        others[0].cancel()  # one that gives up takes nobody with it
        device.is_open.set()
        await asyncio.gather(first, *others[1:], elsewhere)
        assert device.count == 3
        await disk.sync_directory(str(tmp_path))
        assert device.count == 4
        disk.close()

    asyncio.run(main())


def test_a_sync_that_failed_is_not_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        device, disk = Device(fails=True), RealDisk()
        monkeypatch.setattr(real_disk, "_sync_directory", device.sync)
        syncing = []
        for _ in range(3):
            syncing.append(asyncio.ensure_future(disk.sync_directory(str(tmp_path))))
            await turn()
        device.is_open.set()
        said = await asyncio.gather(*syncing, return_exceptions=True)
        assert [type(each) for each in said] == [DiskFailure] * 3
        assert device.count == 1
        disk.close()

    asyncio.run(main())
