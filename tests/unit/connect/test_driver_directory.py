"""Each driver has a directory of its own: one that is still ending its batches and its successor share no files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from barnabas.connect.driver.main import own_directory


def test_directories_of_drivers_that_are_gone_are_removed_and_others_stay(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    for pid in (ended.pid, os.getppid()):
        (tmp_path / f"driver-{pid}" / "checkpoints").mkdir(parents=True)
    (tmp_path / "driver.log").touch()
    made = own_directory(tmp_path)
    assert made == tmp_path / f"driver-{os.getpid()}"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        ["driver.log", made.name, f"driver-{os.getppid()}"]
    )
