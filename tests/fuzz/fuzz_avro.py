"""Bytes from nowhere into the Avro decoder: columns or reasons, the same compiled and interpreted, and no more.

``python tests/fuzz/fuzz_avro.py -runs=1000000`` hands the choice of bytes to atheris; the property tests call
``check_data`` with mutations of sound data. What the decoder takes for sound, fastavro must be able to read as well.
"""

from __future__ import annotations

import importlib.util
import io
import random
import sys
from contextlib import suppress
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import fastavro
import pyarrow as pa

from barnabas.wire.avro import arrays, columns, decoder, plan, schema, values

MODULES = ("columns", "values", "decoder", "arrays", "plan")
COMPILED = SimpleNamespace(columns=columns, values=values, decoder=decoder, arrays=arrays, plan=plan)


def load_interpreted() -> SimpleNamespace:
    """The modules from their sources, each importing the others of them and not the compiled ones."""
    package = "barnabas.wire.avro"
    before = {name: sys.modules[f"{package}.{name}"] for name in MODULES}
    loaded: dict[str, ModuleType] = {}
    try:
        for name in MODULES:
            source = Path(schema.__file__).with_name(f"{name}.py")
            spec = importlib.util.spec_from_file_location(f"{package}.{name}", source)
            assert spec is not None
            assert spec.loader is not None
            loaded[name] = sys.modules[f"{package}.{name}"] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(loaded[name])
    finally:
        for name, module in before.items():
            sys.modules[f"{package}.{name}"] = module
    return SimpleNamespace(**loaded)


INTERPRETED = load_interpreted()

SCALARS: list[Any] = [
    "null",
    "boolean",
    "int",
    "long",
    "float",
    "double",
    "bytes",
    "string",
    {"type": "int", "logicalType": "date"},
    {"type": "int", "logicalType": "time-millis"},
    {"type": "long", "logicalType": "time-micros"},
    {"type": "long", "logicalType": "timestamp-millis"},
    {"type": "long", "logicalType": "local-timestamp-micros"},
    {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
]


class Schemas:
    """Random schemas, each of which has a place in Arrow."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._count = 0

    def record(self, depth: int = 3) -> dict[str, Any]:
        fields = [{"name": f"f{index}", "type": self.any(depth - 1)} for index in range(self._random.randint(0, 4))]
        return {"type": "record", "name": self._name("R"), "fields": fields}

    def any(self, depth: int) -> Any:
        choice = self._random.randint(0, 9 if depth > 0 else 3)
        if choice == 3:
            return self._named()
        if choice == 4:
            return {"type": "array", "items": self.any(depth - 1)}
        if choice == 5:
            return {"type": "map", "values": self.any(depth - 1)}
        if choice == 6:
            return self.record(depth - 1)
        if choice == 7:
            return ["null", self._random.choice(SCALARS[1:])]
        if choice == 8:
            return self._random.sample(SCALARS[:8], self._random.randint(1, 4))
        return self._random.choice(SCALARS)

    def _named(self) -> Any:
        if self._random.random() < 0.5:
            return {"type": "enum", "name": self._name("E"), "symbols": ["A", "B", "C"]}
        return {"type": "fixed", "name": self._name("F"), "size": self._random.choice([0, 1, 3, 16])}

    def _name(self, letter: str) -> str:
        self._count += 1
        return f"{letter}{self._count}"

    def reader_of(self, writer: dict[str, Any]) -> dict[str, Any]:
        """The same record with fields left out, moved, and one more that has a default."""
        fields = [field for field in writer["fields"] if self._random.random() < 0.7]
        self._random.shuffle(fields)
        more = {"name": "more", "type": {"type": "array", "items": "string"}, "default": ["x", "yé"]}
        return writer | {"fields": [*fields, more]}


def outcome(twin: SimpleNamespace, writer: Any, reader: Any, rows: list[bytes | None]) -> Any:
    array, malformed = twin.plan.Decoder(writer, reader).decode(pa.array(rows, pa.binary()))
    array.validate(full=True)
    return array, malformed


def check_data(writer: Any, reader: Any, rows: list[bytes | None]) -> tuple[pa.Array, list[tuple[int, str]]]:
    """Both forms of the decoder agree, and fastavro reads what they take for sound."""
    writer, reader = fastavro.parse_schema(writer), None if reader is None else fastavro.parse_schema(reader)
    array, malformed = outcome(COMPILED, writer, reader, rows)
    other, also_malformed = outcome(INTERPRETED, writer, reader, rows)
    assert array.to_string(window=len(rows)) == other.to_string(window=len(rows))  # as text: NaN is not equal to itself
    assert malformed == also_malformed
    assert len(array) == len(rows)
    bad = {row for row, _ in malformed}
    for row, data in enumerate(rows):
        if data is not None and row not in bad:
            source = io.BytesIO(data)
            with suppress(OverflowError, ValueError):  # Python's dates end in 9999
                fastavro.schemaless_reader(source, writer, None)
                assert source.tell() == len(data), (writer, data)
    return array, malformed


def check(data: bytes) -> None:
    if len(data) < 2:
        return
    schemas = Schemas(data[0] | data[1] << 8)
    writer = schemas.record()
    middle = 2 + (len(data) - 2) // 2
    rows = [data[2:], data[2:middle], None, data[middle:]]
    check_data(writer, None, rows)
    check_data(writer, schemas.reader_of(writer), rows)


def main() -> None:
    import atheris

    # The compiled form shows no coverage; its twin leads the way for both.
    for module in (INTERPRETED.values, INTERPRETED.decoder):
        for kind in vars(module).values():
            if isinstance(kind, type) and "read" in vars(kind):
                kind.read = atheris.instrument_func(kind.read)  # type: ignore[attr-defined]
    atheris.Setup(sys.argv, check)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
