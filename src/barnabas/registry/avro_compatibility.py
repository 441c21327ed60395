"""Whether data of one Avro schema (the writer's) can be read with another (the reader's), by the specification's rules.

Works on fastavro's parsed schemas. Aliases of the reader count; logical types do not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from barnabas.registry.avro_schema import PRIMITIVES, AvroSchema
from barnabas.registry.incompatibility import Incompatibility

# What each primitive reader can read beside its own type.
PROMOTIONS: Final = {
    "long": ("int",),
    "float": ("int", "long"),
    "double": ("int", "long", "float"),
    "bytes": ("string",),
    "string": ("bytes",),
}


def incompatibilities(reader: AvroSchema, writer: AvroSchema) -> list[Incompatibility]:
    """Empty if everything that ``writer`` writes can be read with ``reader``."""
    return list(_Comparison(reader, writer).compare(reader.parsed, writer.parsed, ""))


class _Comparison:
    def __init__(self, reader: AvroSchema, writer: AvroSchema) -> None:
        self._reader_names = reader.named
        self._writer_names = writer.named
        self._seen: set[tuple[str, str]] = set()  # pairs of names under comparison or compared: recursion ends

    def compare(self, reader: Any, writer: Any, path: str) -> Iterator[Incompatibility]:
        reader, writer = _resolved(reader, self._reader_names), _resolved(writer, self._writer_names)
        if isinstance(writer, list):
            for index, branch in enumerate(writer):
                yield from self._compare_branch(reader, branch, f"{path}/{index}")
        elif isinstance(reader, list):
            yield from self._compare_branch(reader, writer, path)
        else:
            yield from self._compare_types(reader, writer, path)

    def _compare_branch(self, reader: Any, writer: Any, path: str) -> Iterator[Incompatibility]:
        """One type of the writer with all that the reader accepts."""
        if not isinstance(reader, list):
            yield from self.compare(reader, writer, path)
            return
        before = set(self._seen)
        for branch in reader:
            if not list(self.compare(branch, writer, path)):
                return
            self._seen = set(before)  # what a failed attempt believed of names is forgotten
        shown = _shown(_resolved(writer, self._writer_names))
        yield Incompatibility("MISSING_UNION_BRANCH", path, f"the reader's union has no branch that reads {shown}")

    def _compare_types(self, reader: dict[str, Any], writer: dict[str, Any], path: str) -> Iterator[Incompatibility]:
        kind, other = reader["type"], writer["type"]
        if kind != other:
            if other not in PROMOTIONS.get(kind, ()):
                yield Incompatibility(
                    "TYPE_MISMATCH", path, f"the reader type {kind} cannot read the writer type {other}"
                )
            return
        match kind:
            case "array":
                yield from self.compare(reader["items"], writer["items"], f"{path}/items")
            case "map":
                yield from self.compare(reader["values"], writer["values"], f"{path}/values")
            case "record" | "error" | "enum" | "fixed":
                yield from self._compare_named(kind, reader, writer, path)

    def _compare_named(
        self, kind: str, reader: dict[str, Any], writer: dict[str, Any], path: str
    ) -> Iterator[Incompatibility]:
        if not _same_name(reader, writer):
            names = f"the reader's name {reader['name']} is not the writer's {writer['name']}"
            yield Incompatibility("NAME_MISMATCH", f"{path}/name", names)
            if kind != "record":
                return
        if kind == "fixed":
            if reader["size"] != writer["size"]:
                sizes = f"the reader's size is {reader['size']}, the writer's {writer['size']}"
                yield Incompatibility("FIXED_SIZE_MISMATCH", f"{path}/size", sizes)
        elif kind == "enum":
            missing = [each for each in writer["symbols"] if each not in reader["symbols"]]
            if missing and reader.get("default") is None:
                symbols = f"the reader lacks the symbols {', '.join(missing)}"
                yield Incompatibility("MISSING_ENUM_SYMBOLS", f"{path}/symbols", symbols)
        else:
            pair = reader["name"], writer["name"]
            if pair not in self._seen:
                self._seen.add(pair)
                yield from self._compare_fields(reader, writer, path)

    def _compare_fields(self, reader: dict[str, Any], writer: dict[str, Any], path: str) -> Iterator[Incompatibility]:
        written = {each["name"]: each for each in writer["fields"]}
        for index, field in enumerate(reader["fields"]):
            names = (field["name"], *(field.get("aliases") or ()))
            found = next((written[name] for name in names if name in written), None)
            place = f"{path}/fields/{index}"
            if found is not None:
                yield from self.compare(field["type"], found["type"], f"{place}/type")
            elif "default" not in field and not self._is_enum_with_default(field["type"]):
                yield Incompatibility(
                    "READER_FIELD_MISSING_DEFAULT_VALUE",
                    place,
                    f"the field {field['name']} of the reader has no default and is not in the writer schema",
                )

    def _is_enum_with_default(self, schema: Any) -> bool:
        found = _resolved(schema, self._reader_names)
        return isinstance(found, dict) and found["type"] == "enum" and found.get("default") is not None


def _resolved(schema: Any, names: dict[str, Any]) -> Any:
    """A union as its list, everything else as a mapping with the type."""
    while True:
        if isinstance(schema, str):
            if schema in PRIMITIVES:
                return {"type": schema}
            schema = names[schema]
        elif isinstance(schema, dict) and (isinstance(schema["type"], dict | list) or schema["type"] in names):
            schema = schema["type"]
        else:
            return schema


def _same_name(reader: dict[str, Any], writer: dict[str, Any]) -> bool:
    if reader["name"].rpartition(".")[2] == writer["name"].rpartition(".")[2]:
        return True
    space = reader["name"].rpartition(".")[0]
    aliases = (each if "." in each or not space else f"{space}.{each}" for each in reader.get("aliases") or ())
    return writer["name"] in aliases


def _shown(schema: dict[str, Any]) -> str:
    return str(schema.get("name", schema["type"]))
