"""Values in Confluent's wire format as typed Arrow columns, without an object for a record where Avro is concerned.

A reader has the schema that columns are of; rows are grouped by the id of the schema that they were written with, and
each group is decoded with it. ``columns_avro``, ``columns_json`` and ``columns_protobuf`` are the kinds of readers,
``column_readers`` makes them. A row that cannot be decoded is a null, and its reason is returned beside the column.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from struct import Struct as Layout
from typing import TYPE_CHECKING, Final, TypeAlias

from barnabas.client.errors import RegistryRefused, Undecodable
from barnabas.client.serdes.registered import MAGIC, NOT_FOUND
from barnabas.client.serdes.registry import Registry

if TYPE_CHECKING:
    import pyarrow

_HEAD: Final = Layout(">bI")
HEAD_BYTES: Final = _HEAD.size
Malformed: TypeAlias = list[tuple[int, str]]  # rows, with the reason of each


class ColumnDecoder(ABC):
    """Decodes a column of bytes, each row after ``head`` bytes that are not data."""

    @abstractmethod
    def decode(self, column: pyarrow.Array, *, head: int = 0) -> tuple[pyarrow.Array, Malformed]:
        """A row for each row; malformed rows and nulls become nulls."""


class ColumnReader(ABC):
    """A reader's schema: the Arrow type of its values, and decoders of what was written with others. Can be pickled."""

    kind: str  # avro, json or protobuf
    type: pyarrow.DataType

    @abstractmethod
    async def decoder(self, registry: Registry, schema_id: int) -> ColumnDecoder:
        """For values of a writer's schema; :class:`Undecodable` if they cannot be read with this one."""


class TypedColumns:
    def __init__(self, registry: Registry, reader: ColumnReader) -> None:
        self.reader = reader
        self._registry = registry
        self._decoders: dict[int, ColumnDecoder] = {}

    async def decode(self, column: pyarrow.Array) -> tuple[pyarrow.Array, Malformed]:
        """The column's values; asks the registry for schemas that have not come before."""
        import pyarrow as pa
        import pyarrow.compute as pc

        heads = pc.binary_slice(column, 0, HEAD_BYTES).dictionary_encode()
        known = [each.as_py() for each in heads.dictionary]
        if len(known) == 1 and not isinstance(decoder := await self._decoder(known[0]), str):
            return decoder.decode(column, head=HEAD_BYTES)
        arrays, places, malformed = [], [], []
        for index, head in enumerate(known):
            rows = pc.indices_nonzero(pc.equal(heads.indices, index))
            array, wrong = await self._group(head, column.take(rows))
            arrays.append(array)
            places.append(rows.cast(pa.int64()))
            malformed += [(rows[row].as_py(), reason) for row, reason in wrong]
        empty = pc.indices_nonzero(pc.is_null(column))
        arrays.append(pa.nulls(len(empty), self.reader.type))
        places.append(empty.cast(pa.int64()))
        order = pc.sort_indices(pa.concat_arrays(places))
        return pa.concat_arrays(arrays).take(order), sorted(malformed)

    async def _group(self, head: bytes, column: pyarrow.Array) -> tuple[pyarrow.Array, Malformed]:
        import pyarrow as pa

        decoder = await self._decoder(head)
        if isinstance(decoder, str):
            return pa.nulls(len(column), self.reader.type), [(row, decoder) for row in range(len(column))]
        return decoder.decode(column, head=HEAD_BYTES)

    async def _decoder(self, head: bytes) -> ColumnDecoder | str:
        """The decoder of values that begin so, or why there is none."""
        if len(head) < HEAD_BYTES or head[0] != MAGIC:
            return "there is no schema id in front"
        schema_id = _HEAD.unpack(head)[1]
        found = self._decoders.get(schema_id)
        if found is None:
            try:
                found = self._decoders[schema_id] = await self.reader.decoder(self._registry, schema_id)
            except RegistryRefused as error:
                if error.status != NOT_FOUND:
                    raise
                return f"the registry knows no schema {schema_id}"
            except Undecodable as error:
                return str(error)
        return found
