"""What Spark's workers make arrays of, without importing pandas for it.

Arrow imports pandas, 35 MB, before it makes an array of anything of Python's, since it could be one of pandas' own
values. Spark makes one of what a task of a sink tells the driver: bytes, which are none. Called by ``daemon.py``.
"""

from __future__ import annotations

import itertools
import struct
import sys
from typing import Any


def spare_pandas() -> None:
    import pyarrow

    plain = pyarrow.array

    def array(obj: Any, *args: Any, **kwargs: Any) -> Any:
        is_plain = not args and not kwargs and type(obj) is list and obj and all(type(each) is bytes for each in obj)
        return binary_array(obj) if is_plain and "pandas" not in sys.modules else plain(obj, *args, **kwargs)

    pyarrow.array = array


def binary_array(values: list[bytes]) -> Any:
    import pyarrow as pa

    ends = struct.pack(f"={len(values) + 1}i", 0, *itertools.accumulate(map(len, values)))
    return pa.Array.from_buffers(pa.binary(), len(values), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(values))])
