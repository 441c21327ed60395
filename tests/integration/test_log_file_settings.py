"""How much is logged, and how many files are kept: as the settings say."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.broker.settings.broker import BrokerSettings
from barnabas.cli.serve.logs import write_logs
from barnabas.observe.log import logger


def logged(path: Path, lines: int, **settings: str) -> None:
    given = {f"barnabas.log.{name.replace('_', '.')}": value for name, value in settings.items()}
    write_logs(BrokerSettings.of({"barnabas.log.file": str(path), **given}).observe)
    for number in range(lines):
        logger("test").warning("something", number=number)
        logger("test").info("little")


@pytest.mark.parametrize(("level", "is_told"), [("INFO", True), ("WARNING", False)])
def test_barnabas_log_level(tmp_path: Path, level: str, is_told: bool) -> None:
    logged(tmp_path / "log", 1, level=level)
    assert ("little" in (tmp_path / "log").read_text()) is is_told


def test_barnabas_log_file_max_bytes_and_barnabas_log_file_count(tmp_path: Path) -> None:
    """Of barnabas.log.file.max.bytes and barnabas.log.file.count, and of barnabas.log.level above."""
    logged(tmp_path / "log", 200, file_max_bytes="2048", file_count="2")
    files = sorted(tmp_path.iterdir())
    assert len(files) == 3  # the one that is written, and two put aside
    assert all(file.stat().st_size <= 2048 for file in files)
