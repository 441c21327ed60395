"""One value as Arrow has it. ``pyarrow.scalar`` imports pandas first, to see whether the value is one of pandas': 35 MB
and half a second for a number or a name that is none. Used where columns are made of them."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from barnabas.wire.columns_headers import arrow

if TYPE_CHECKING:
    import pyarrow


def text(value: str) -> pyarrow.Scalar:
    pa = arrow()
    encoded = value.encode()
    bounds = struct.pack("=2i", 0, len(encoded))
    return pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(bounds), pa.py_buffer(encoded)])[0]


def int32(value: int) -> pyarrow.Scalar:
    pa = arrow()
    return pa.Array.from_buffers(pa.int32(), 1, [None, pa.py_buffer(struct.pack("=i", value))])[0]


def int64(value: int) -> pyarrow.Scalar:
    pa = arrow()
    return pa.Array.from_buffers(pa.int64(), 1, [None, pa.py_buffer(struct.pack("=q", value))])[0]


def null(of: pyarrow.DataType) -> pyarrow.Scalar:
    return arrow().nulls(1, of)[0]
