"""Both disks do what a disk must do."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from barnabas.testing.conformance import DISK_CHECKS, DiskCheck, check_disk
from barnabas.world.memory import MemoryDisk
from barnabas.world.real import RealClock, RealDisk


@pytest.mark.parametrize("check", DISK_CHECKS, ids=lambda check: check.__name__)
def test_the_real_disk_conforms(check: DiskCheck, tmp_path: Path) -> None:
    disk = RealDisk()
    asyncio.run(check(disk, str(tmp_path)))
    disk.close()


@pytest.mark.parametrize("check", DISK_CHECKS, ids=lambda check: check.__name__)
def test_the_disk_in_memory_conforms(check: DiskCheck) -> None:
    disk = MemoryDisk(RealClock())
    disk.make_directory("/data")
    asyncio.run(check(disk, "/data"))


def test_all_checks_run_one_after_another(tmp_path: Path) -> None:
    disk = RealDisk()
    asyncio.run(check_disk(disk, str(tmp_path)))
    disk.close()


def test_a_disk_without_a_page_cache_conforms() -> None:
    disk = MemoryDisk(RealClock())
    disk.is_cached = False
    asyncio.run(check_disk(disk, "/data"))
