"""A broker in a memory group has its own log charged to it, and what does not fit has to come from the disk."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from bench.clients import CLIENTS, HarnessFailed, Outcome
from bench.measure import disk_read_bytes
from bench.memory_group import MemoryGroup, memory_group, parents
from bench.peers import BarnabasPeer
from bench.workload import QUICK
from bench.workloads import WORKLOADS

MEBIBYTE = 1 << 20
CATCH_UP = next(workload for workload in WORKLOADS if workload.name == "catch-up")
COLD_BYTES = 160 * MEBIBYTE
WRITER = f"""
import os, sys
with open(sys.argv[1], "wb+") as file:
    for _ in range(96):
        file.write(bytes({MEBIBYTE}))
        file.flush()
    os.fdatasync(file.fileno())
    print("written", flush=True)
    sys.stdin.readline()
    file.seek(0)
    while file.read({MEBIBYTE}):
        pass
    print("read", flush=True)
    sys.stdin.readline()
"""


@contextmanager
def group_of(limit_bytes: int) -> Iterator[MemoryGroup]:
    with memory_group(limit_bytes) as group:
        if group is None:
            pytest.skip("no memory group can be made here")
        yield group


def test_what_a_process_writes_is_charged_to_its_group_and_read_again_from_the_disk(tmp_path: Path) -> None:
    with group_of(32 * MEBIBYTE) as group:
        command = group.joining([sys.executable, "-c", WRITER, str(tmp_path / "log")])
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdin is not None
            assert writer.stdout is not None
            assert writer.stdout.readline() == "written\n"
            assert 4 * MEBIBYTE < group.page_cache_bytes < group.usage_bytes <= group.limit_bytes
            before = disk_read_bytes([writer.pid])
            writer.stdin.write("\n")
            writer.stdin.flush()
            assert writer.stdout.readline() == "read\n"
            assert disk_read_bytes([writer.pid]) - before > 48 * MEBIBYTE
    assert not group.path.exists()


def catch_up(limit_bytes: int) -> Outcome:
    peer = BarnabasPeer()
    with group_of(limit_bytes) as peer.memory_group, peer:
        outcome = CLIENTS["raw-catch-up"](peer, CATCH_UP, replace(QUICK, cold_bytes=COLD_BYTES))
        assert peer.memory_group is not None
        assert peer.memory_group.usage_bytes <= limit_bytes
    return outcome


needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="the load generator needs a C compiler")


@needs_compiler
def test_a_log_larger_than_the_group_is_read_from_the_disk() -> None:
    outcome = catch_up(96 * MEBIBYTE)
    assert outcome.cost.disk_read_bytes > COLD_BYTES // 2


@needs_compiler
def test_a_log_that_fits_into_the_group_does_not_pass_as_cold() -> None:
    with pytest.raises(HarnessFailed, match=r"only \d+ of \d+ MB came from the disk"):
        catch_up(COLD_BYTES * 4)


def test_a_machine_without_memory_groups_has_none_and_nothing_stays_behind(tmp_path: Path) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("0::/session/shell\n")
    (tmp_path / "proc/mounts").write_text("cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n")
    session = tmp_path / "sys/fs/cgroup/session"
    (session / "shell").mkdir(parents=True)
    with memory_group(MEBIBYTE, root=tmp_path) as group:
        assert group is None
    assert [path.name for path in session.iterdir()] == ["shell"]


@pytest.mark.parametrize(
    ("mounts", "own", "expected"),
    [
        pytest.param(
            "cgroup /groups/cpu cgroup rw,cpu 0 0\ncgroup /groups/memory cgroup rw,memory 0 0\n",
            "2:cpu:/c\n1:memory:/a/b\n0::/\n",
            "groups/memory/a/b",
            id="version 1, below our own",
        ),
        pytest.param("cgroup2 /groups cgroup2 rw 0 0\n", "0::/a/b\n", "groups/a", id="version 2, beside our own"),
        pytest.param("cgroup2 /groups cgroup2 rw 0 0\n", "0::/\n", "groups", id="version 2, at the top"),
    ],
)
def test_where_a_group_is_made(tmp_path: Path, mounts: str, own: str, expected: str) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text(own)
    (tmp_path / "proc/mounts").write_text(mounts)
    assert parents(tmp_path) == [tmp_path / expected]
