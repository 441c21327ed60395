"""Values as Arrow makes them, and columns of them, none of which imports pandas."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pytest

from barnabas.wire import scalars

PROGRAM = """
import sys
import pyarrow as pa
from barnabas.client.produce.arrow_rows import by_value, _masked
from barnabas.wire.columns import encode_columns, to_arrow
made = to_arrow(encode_columns(pa.repeat(pa.nulls(1, pa.binary())[0], 3), timestamp=7), topic="straße", partition=2)
table = pa.Table.from_batches([made])
other = table.set_column(3, "partition", pa.nulls(3, pa.int32()))
pieces = list(by_value(pa.concat_tables([table, other]), "partition"))
assert [(value, len(piece)) for value, piece in pieces] == [(2, 3), (None, 3)], pieces
assert _masked(made["partition"], made["key"]).null_count == 3
assert made["topic"].to_pylist() == ["straße"] * 3
print("pandas" in sys.modules)
"""


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (scalars.text("straße"), pa.scalar("straße")),
        (scalars.text(""), pa.scalar("")),
        (scalars.int32(-(2**31)), pa.scalar(-(2**31), pa.int32())),
        (scalars.int64(2**63 - 1), pa.scalar(2**63 - 1, pa.int64())),
        (scalars.null(pa.int32()), pa.scalar(None, pa.int32())),
    ],
)
def test_they_are_what_arrow_makes(made: pa.Scalar, expected: pa.Scalar) -> None:
    assert made.type == expected.type
    assert made == expected


def test_columns_need_no_pandas() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]
