"""Files and directories of a broker are for its own user."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from barnabas.testing import Broker


def test_other_users_read_nothing_of_a_brokers_directory(tmp_path: Path) -> None:
    data = tmp_path / "data"
    before = os.umask(0o022)
    try:
        with Broker(data_dir=data):
            found = {path: stat.S_IMODE(path.stat().st_mode) for path in [data, *data.rglob("*")]}
    finally:
        os.umask(before)
    assert {mode for path, mode in found.items() if path.is_dir()} == {0o700}
    assert {mode for path, mode in found.items() if not path.is_dir()} == {0o600}
