"""What workers share is there before they are forked, and nothing of it runs by then."""

from __future__ import annotations

import subprocess
import sys

import pytest

from barnabas.spark.daemon import SHARED

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

PROGRAM = """
import importlib, sys, threading
for name in sys.argv[1:]:
    importlib.import_module(name)
print(threading.active_count())
"""


def test_what_workers_share_can_be_imported_and_starts_no_thread() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM, *SHARED], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1"]
