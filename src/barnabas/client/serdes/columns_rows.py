"""Columns of values that a library reads row by row: what JSON and Protobuf share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from barnabas.client.serdes.columns import ColumnDecoder, Malformed

if TYPE_CHECKING:
    import pyarrow


class RowDecoder(ColumnDecoder):
    """``read`` makes of a row's bytes what Arrow takes for ``kind``; ``refused`` is what it raises for bad ones."""

    def __init__(
        self, kind: pyarrow.DataType, read: Callable[[bytes], Any], refused: tuple[type[Exception], ...]
    ) -> None:
        self._kind, self._read, self._refused = kind, read, refused

    def decode(self, column: pyarrow.Array, *, head: int = 0) -> tuple[pyarrow.Array, Malformed]:
        import pyarrow as pa

        malformed: Malformed = []
        rows: list[Any] = []
        for row, data in enumerate(column.to_pylist()):
            content = None
            if data is not None:
                try:
                    content = self._read(data[head:])
                except self._refused as error:
                    malformed.append((row, str(error) or type(error).__name__))
            rows.append(content)
        return pa.array(rows, self._kind), malformed
