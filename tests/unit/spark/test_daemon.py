"""What workers share is there before they are forked, and nothing of it runs by then."""

from __future__ import annotations

import subprocess
import sys

import pytest

from barnabas.spark.processes.daemon import SHARED
from barnabas.spark.processes.fork_server import PLANNERS

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

PROGRAM = """
import importlib, sys, threading
for name in sys.argv[1:]:
    importlib.import_module(name)
print(threading.active_count())
"""


DRAWING = """
import os
from barnabas.spark.processes.daemon import prepare
prepare()
import numpy as np
for _ in range(2):
    if os.fork() == 0:
        print(np.random.randint(2**31), flush=True)
        os._exit(0)
    os.wait()
"""


def test_what_workers_share_can_be_imported_and_starts_no_thread() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *SHARED, *PLANNERS], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["1"]


def test_two_workers_do_not_draw_the_same_numbers() -> None:
    done = subprocess.run([sys.executable, "-c", DRAWING], capture_output=True, text=True, check=True)
    first, second = done.stdout.split()
    assert first != second
