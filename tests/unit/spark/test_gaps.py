"""What is freed before a fork is not used again by those who are forked."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("pyspark")

from barnabas.spark.processes.memory import c_library

PROGRAM = """
import ctypes
from barnabas.spark.processes.memory import c_library
from barnabas.spark.processes.gaps import fill_gaps
library = c_library()
library.malloc.restype = ctypes.c_void_p
for size in (40, 200, 1000, 5000):
    places = [library.malloc(size) for _ in range(1000)]
    freed = set(places[::2])
    for place in freed:
        library.free(ctypes.c_void_p(place))
    assert fill_gaps(library) >= len(freed)
    assert not freed & {library.malloc(size) for _ in range(1000)}, size
"""


@pytest.mark.skipif(not hasattr(c_library(), "mallinfo2"), reason="glibc's heap, since 2.33")
def test_gaps_that_are_filled_are_not_used_again() -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)
