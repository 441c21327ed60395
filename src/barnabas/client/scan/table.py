"""The records of a search as an Arrow table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from barnabas.client.scan.expression import compile_expression
from barnabas.client.scan.needles import Probe
from barnabas.wire.columns import schema

if TYPE_CHECKING:
    import pyarrow

    from barnabas.client.consumer import Consumer


class TableSearch:
    """``probe`` is for the consumer's assignment; ``read`` takes the rows for which the expression holds."""

    def __init__(self, where: str, *, with_headers: bool) -> None:
        expression = compile_expression(where)
        self._holds = expression.holds
        self._with_headers = with_headers
        self.probe = Probe(expression.needles) if expression.needles else None

    async def read(self, consumer: Consumer[bytes, bytes]) -> pyarrow.Table:
        import pyarrow as pa

        tables = [schema(with_headers=True).empty_table()]
        while not consumer.is_at_end:
            table = await consumer.poll_arrow(with_headers=True)
            tables.append(table.filter(pa.array(self._mask(table), pa.bool_())))
        found = pa.concat_tables(tables)
        return found if self._with_headers else found.drop_columns(["headers"])

    def _mask(self, table: pyarrow.Table) -> list[bool]:
        import pyarrow as pa

        columns = {name: table.column(name).to_pylist() for name in table.column_names if name != "timestamp"}
        times = table.column("timestamp").cast(pa.int64()).to_pylist()  # in microseconds
        return [
            self._holds(
                {
                    "topic": columns["topic"][row],
                    "partition": columns["partition"][row],
                    "offset": columns["offset"][row],
                    "timestamp": times[row] // 1000,
                    "key": _text(columns["key"][row]),
                    "value": _text(columns["value"][row]),
                    "headers": {each["key"]: _text(each["value"]) for each in columns["headers"][row] or ()},
                }
            )
            for row in range(table.num_rows)
        ]


def _text(data: Any) -> str | None:
    return None if data is None else data.decode(errors="replace")
