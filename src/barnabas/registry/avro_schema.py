"""Avro schemas: parsing by fastavro, defaults checked, and the text that is kept.

The kept text has the order of attributes that Java's library prints, so that a schema has one text, and one id,
whatever registered it. Normalized text has full names and sorted properties as well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import fastavro
from fastavro.schema import SchemaParseException, UnknownType

from barnabas.registry.incompatibility import InvalidSchema

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")
PRIMITIVES: Final = frozenset(("null", "boolean", "int", "long", "float", "double", "bytes", "string"))
NAMED: Final = frozenset(("record", "error", "enum", "fixed"))
_REFUSED: Final = (SchemaParseException, UnknownType, ValueError, TypeError, KeyError, AttributeError, RecursionError)
_OWN: Final[Mapping[str, tuple[str, ...]]] = {
    "record": ("type", "name", "namespace", "doc", "fields", "aliases"),
    "error": ("type", "name", "namespace", "doc", "fields", "aliases"),
    "enum": ("type", "name", "namespace", "doc", "symbols", "default", "aliases"),
    "fixed": ("type", "name", "namespace", "doc", "size", "aliases"),
    "array": ("type", "items"),
    "map": ("type", "values"),
}
_OWN_OF_FIELD: Final = ("name", "type", "doc", "default", "order", "aliases")


class AvroSchema(NamedTuple):
    parsed: Any  # fastavro's form: names are full
    named: dict[str, Any]  # the definitions of named types
    said: Any  # the JSON as it was given


def parse(text: str, references: Sequence[str] = (), *, checks_defaults: bool = True) -> AvroSchema:
    """Raises InvalidSchema. ``references`` are texts of schemas whose names this one uses, in order of use."""
    named: dict[str, Any] = {}
    try:
        for each in references:
            fastavro.parse_schema(_read(each), named_schemas=named, _ignore_default_error=True)
        said = _read(text)
        before = set(named)
        parsed = fastavro.parse_schema(said, named_schemas=named, _ignore_default_error=True)
        for type_ in _types(parsed):
            _check_type(type_)
        if checks_defaults:
            for name in [each for each in named if each not in before]:
                _check_defaults(named[name], named)
    except _REFUSED as error:
        raise InvalidSchema(_reason(error)) from None
    return AvroSchema(parsed, named, said)


def _reason(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "the schema is nested too deeply"
    if isinstance(error, UnknownType):
        return f"the type {error.name!r} is not defined"
    if isinstance(error, KeyError):
        return f"the attribute {error.args[0]!r} is missing"
    if isinstance(error, TypeError | AttributeError):
        return "a type must be a name, an object with a type, or an array of types"
    return str(error)


def _read(text: str) -> Any:
    if text.strip() in PRIMITIVES:
        return text.strip()
    try:
        return json.loads(text)
    except ValueError as error:
        raise InvalidSchema(f"the schema is not JSON: {error}") from None


def _types(schema: Any) -> Iterator[Any]:
    """Every type that is defined in a parsed schema, from the outside in."""
    yield schema
    if isinstance(schema, list):
        inner: Any = schema
    elif isinstance(schema, dict):
        inner = [field["type"] for field in schema.get("fields", ())]
        inner += [schema[name] for name in ("items", "values") if name in schema]
    else:
        inner = ()
    for each in inner:
        yield from _types(each)


def _check_type(schema: Any) -> None:
    """What the specification asks for beyond fastavro's own checks."""
    if isinstance(schema, list):
        kinds = [_branch(each) for each in schema]
        if "union" in kinds or len(set(kinds)) < len(kinds):
            raise InvalidSchema(f"a union must have branches of different types and no union: {', '.join(kinds)}")
    elif isinstance(schema, dict) and schema["type"] in NAMED:
        names = [schema["name"]]
        if schema["type"] == "fixed" and not (isinstance(schema["size"], int) and schema["size"] >= 0):
            raise InvalidSchema(f"the size {schema['size']!r} of fixed {schema['name']} is not a whole number")
        fields = [each["name"] for each in schema.get("fields", ())]
        for name in (*names, *fields):
            if not _NAME.fullmatch(name):
                raise InvalidSchema(f"{name!r} is not a valid name")
        if len(set(fields)) < len(fields):
            raise InvalidSchema(f"record {schema['name']} has two fields of one name")


def _branch(schema: Any) -> str:
    if isinstance(schema, list):
        return "union"
    if isinstance(schema, str):
        return schema
    return str(schema["name"] if schema["type"] in NAMED else schema["type"])


def _check_defaults(schema: Any, named: Mapping[str, Any]) -> None:
    for field in schema.get("fields", ()):
        if "default" in field and not fits(field["default"], field["type"], named):
            place = f"field {field['name']!r} of {schema['name']}"
            raise InvalidSchema(f"the default {json.dumps(field['default'])} of {place} does not fit its type")
    if "default" in schema and schema.get("type") == "enum" and schema["default"] not in schema["symbols"]:
        raise InvalidSchema(f"the default {schema['default']!r} of enum {schema['name']} is not one of its symbols")


def fits(value: Any, schema: Any, named: Mapping[str, Any]) -> bool:
    """Whether a JSON value is a valid default of a type; that of a union must fit one of its branches."""
    if isinstance(schema, list):
        return any(fits(value, each, named) for each in schema)
    if isinstance(schema, str) and schema not in PRIMITIVES:
        schema = named[schema]
    kind = schema["type"] if isinstance(schema, dict) else schema
    if isinstance(kind, dict | list):
        return fits(value, kind, named)
    match kind:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "int" | "long":
            bits = 31 if kind == "int" else 63
            return isinstance(value, int) and not isinstance(value, bool) and -(2**bits) <= value < 2**bits
        case "float" | "double":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "string" | "bytes" | "fixed":
            return isinstance(value, str)
        case "enum":
            return value in schema["symbols"]
        case "array":
            return isinstance(value, list) and all(fits(each, schema["items"], named) for each in value)
        case "map":
            return isinstance(value, dict) and all(fits(each, schema["values"], named) for each in value.values())
        case _:
            return isinstance(value, dict) and all(
                fits(value[field["name"]], field["type"], named) if field["name"] in value else "default" in field
                for field in schema["fields"]
            )


def canonical(schema: AvroSchema, *, normalize: bool = False) -> str:
    return json.dumps(_Printer(normalize=normalize).shown(schema.said, ""), ensure_ascii=False, separators=(",", ":"))


def resolved(schema: AvroSchema) -> str:
    """The text with the definitions of the references in it, each where its name is used first."""
    defined: set[str] = set()

    def inlined(said: Any) -> Any:
        if isinstance(said, list):
            return [inlined(each) for each in said]
        if isinstance(said, str):
            return inlined(schema.named[said]) if said in schema.named and said not in defined else said
        found = {key: value for key, value in said.items() if not key.startswith("__")}
        if found["type"] in NAMED:
            defined.add(found["name"])
        if "fields" in found:
            found["fields"] = [{**each, "type": inlined(each["type"])} for each in found["fields"]]
        return found | {key: inlined(found[key]) for key in ("items", "values") if key in found}

    whole = _Printer(normalize=False).shown(inlined(schema.parsed), "")
    return json.dumps(whole, ensure_ascii=False, separators=(",", ":"))


class _Printer:
    def __init__(self, *, normalize: bool) -> None:
        self._normalize = normalize

    def shown(self, said: Any, space: str) -> Any:
        if isinstance(said, list):
            return [self.shown(each, space) for each in said]
        if isinstance(said, str):
            return said if said in PRIMITIVES else self._name(said, space)
        kind = said["type"]
        if isinstance(kind, dict | list):
            return self.shown(kind, space)
        if kind in PRIMITIVES:
            rest = self._rest(said, ("type",))
            return {"type": kind, **rest} if rest else kind
        if kind not in _OWN:
            return self._name(kind, space)
        return self._complex(said, kind, space)

    def _complex(self, said: dict[str, Any], kind: str, space: str) -> dict[str, Any]:
        found: dict[str, Any] = {"type": kind}
        if kind in NAMED:
            own_space, simple = _split(said, space)
            if self._normalize:
                found["name"] = f"{own_space}.{simple}" if own_space else simple
            else:
                found["name"] = simple
                if own_space != space:
                    found["namespace"] = own_space
            space = own_space
        if said.get("doc") is not None:
            found["doc"] = said["doc"]
        if kind in ("record", "error"):
            found["fields"] = [self._field(each, space) for each in said["fields"]]
        for name in ("symbols", "size"):
            if name in said:
                found[name] = said[name]
        for name in ("items", "values"):
            if name in said:
                found[name] = self.shown(said[name], space)
        if kind == "enum" and said.get("default") is not None:
            found["default"] = said["default"]
        found |= self._rest(said, _OWN[kind])
        if said.get("aliases"):
            found["aliases"] = said["aliases"]
        return found

    def _field(self, said: dict[str, Any], space: str) -> dict[str, Any]:
        found: dict[str, Any] = {"name": said["name"], "type": self.shown(said["type"], space)}
        for name in ("doc", "default"):
            if name in said and (name == "default" or said[name] is not None):
                found[name] = said[name]
        if said.get("order", "ascending") != "ascending":
            found["order"] = said["order"]
        if said.get("aliases"):
            found["aliases"] = said["aliases"]
        return found | self._rest(said, _OWN_OF_FIELD)

    def _rest(self, said: dict[str, Any], own: tuple[str, ...]) -> dict[str, Any]:
        rest = {name: value for name, value in said.items() if name not in own and name != "__fastavro_parsed__"}
        return dict(sorted(rest.items())) if self._normalize else rest

    def _name(self, name: str, space: str) -> str:
        full = name if "." in name or not space else f"{space}.{name}"
        if not self._normalize and space and full.rpartition(".")[0] == space:
            return full.rpartition(".")[2]
        return full


def _split(said: dict[str, Any], space: str) -> tuple[str, str]:
    """The namespace and the simple name of a definition."""
    name = said["name"]
    if "." in name:
        found, _, simple = name.rpartition(".")
        return found, simple
    own = said.get("namespace")
    return (space if own is None else own), name
