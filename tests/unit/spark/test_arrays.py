"""What a sink's task tells the driver becomes an array without pandas, and the same array as with it."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa

from barnabas.spark.processes.arrays import binary_array

PROGRAM = """
import sys
import pyarrow as pa
plain = pa.array
from barnabas.spark.processes.arrays import spare_pandas
spare_pandas()
assert pa.array([b"told"]).to_pylist() == [b"told"]
print("pandas" in sys.modules)
assert pa.array([b"x", None], pa.large_binary()) == plain([b"x", None], pa.large_binary())
assert pa.array([1, 2]) == plain([1, 2]) and pa.array([]) == plain([])
"""


@pytest.mark.parametrize("values", [[b"one"], [b"", b"two", b""], [b"\x00" * 1000, b"x"]])
def test_it_is_the_array_that_arrow_makes(values: list[bytes]) -> None:
    made = binary_array(values)
    made.validate(full=True)
    assert made.equals(pa.array(values))


def test_bytes_need_no_pandas_and_all_else_is_arrows() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]
