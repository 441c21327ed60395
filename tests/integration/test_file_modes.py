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


def test_a_directory_that_others_could_read_is_closed_to_them_at_the_start(tmp_path: Path) -> None:
    """As Kafka makes it, or an older version of the broker."""
    data = tmp_path / "data"
    with Broker(data_dir=data):
        pass
    metadata = data / "__cluster_metadata-0"
    kept = [path for path in [*data.iterdir(), *metadata.iterdir()] if path.is_file()]
    for path in kept:
        path.chmod(0o644)
    for path in (data, metadata):
        path.chmod(0o755)
    with Broker(data_dir=data):
        assert {stat.S_IMODE(path.stat().st_mode) for path in (data, metadata)} == {0o700}
        assert {stat.S_IMODE(path.stat().st_mode) for path in kept if path.exists()} == {0o600}
