"""Values of numpy reach Java once somebody has some; nobody else pays for numpy and pandas."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("pyspark")

PROGRAM = """
import sys
from py4j import protocol
from barnabas.spark.processes.converters import Sparing, spare_numpy
spare_numpy()
spare_numpy()
mine = [each for each in protocol.INPUT_CONVERTER if isinstance(each, Sparing)]
print(len(mine), any(each.can_convert([1]) for each in mine), "pandas" in sys.modules)
import numpy as np
print([each.can_convert(value) for value in (np.arange(3), np.int64(3)) for each in mine])
"""


def test_numpy_is_looked_for_only_where_it_was_imported() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["2 False False", "[True, False, False, True]"]
