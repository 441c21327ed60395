"""JSON Schemas, drafts 4 to 2020-12: validation by jsonschema, references, and a model of what a schema accepts.

A reference is resolved within the schema and the schemas that the registry was given for it; nothing is ever fetched.
The model is what ``json_compatibility`` compares: one kind of constraint per node, several of them joined by ``all``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Final
from urllib.parse import unquote, urldefrag, urljoin

from barnabas.registry.incompatibility import InvalidSchema

DRAFTS: Final = {  # $schema without its fragment → name of jsonschema's validator
    "http://json-schema.org/draft-04/schema": "Draft4Validator",
    "http://json-schema.org/draft-06/schema": "Draft6Validator",
    "http://json-schema.org/draft-07/schema": "Draft7Validator",
    "https://json-schema.org/draft/2019-09/schema": "Draft201909Validator",
    "https://json-schema.org/draft/2020-12/schema": "Draft202012Validator",
}
DEFAULT_DRAFT: Final = "Draft7Validator"
MODERN: Final = ("Draft201909Validator", "Draft202012Validator")
VALUES: Final = ("enum", "const", "default", "examples", "example")  # keywords whose values are no schemas
REFERRING: Final = ("$ref", "$recursiveRef", "$dynamicRef")
DEPTH_MAX: Final = 500

STRING_KEYS: Final = frozenset(("minLength", "maxLength", "pattern", "format", "contentEncoding", "contentMediaType"))
NUMBER_KEYS: Final = frozenset(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"))
OBJECT_KEYS: Final = frozenset(
    (
        "properties",
        "required",
        "additionalProperties",
        "patternProperties",
        "minProperties",
        "maxProperties",
        "dependencies",
        "dependentRequired",
        "dependentSchemas",
        "propertyNames",
        "unevaluatedProperties",
    )
)
ARRAY_KEYS: Final = frozenset(
    (
        "items",
        "prefixItems",
        "additionalItems",
        "minItems",
        "maxItems",
        "uniqueItems",
        "contains",
        "minContains",
        "maxContains",
        "unevaluatedItems",
    )
)
COMBINATIONS: Final = {"allOf": "all", "anyOf": "any", "oneOf": "one"}


class JsonSchema:
    """A parsed schema; ``root`` is the model of all of it."""

    def __init__(self, text: str, references: Mapping[str, str] | None = None) -> None:
        """``references`` are texts of other schemas by the name under which this one refers to them."""
        self.said = _read(text)
        self._resources: dict[str, Any] = {}
        self._anchors: dict[tuple[str, str], Any] = {}
        self._bases: dict[int, str] = {}  # of every object in a schema
        self._nodes: dict[int, Node] = {}
        self._keep = [self.said]  # objects whose identity is a key above stay alive
        root_id = self.said.get("$id", self.said.get("id", "")) if isinstance(self.said, dict) else ""
        for name, each in (references or {}).items():
            other = _read(each)
            self._keep.append(other)
            for base in dict.fromkeys((name, urljoin(str(root_id), name))):
                self._index(other, base)
        self._index(self.said, "")
        self.draft = self._draft()

    def _draft(self) -> str:
        named = self.said.get("$schema", "") if isinstance(self.said, dict) else ""
        return DRAFTS.get(str(named).rstrip("#"), DEFAULT_DRAFT)

    def check(self) -> None:
        """Raises InvalidSchema: not valid by the draft's own schema, or a reference that leads nowhere."""
        import jsonschema

        try:
            getattr(jsonschema, self.draft).check_schema(self.said)
        except jsonschema.SchemaError as error:
            place = "/".join(map(str, error.absolute_path))
            raise InvalidSchema(f"at /{place}: {error.message[:500]}") from None
        for schema in _schemas(self.said):
            for keyword in REFERRING:
                if isinstance(schema.get(keyword), str):
                    self.resolve(schema[keyword], self._bases.get(id(schema), ""))

    @cached_property
    def root(self) -> Node:
        return self.node(self.said)

    def node(self, said: Any) -> Node:
        found = self._nodes.get(id(said)) if isinstance(said, dict) else None
        if found is None:
            found = Node(self, said)
            if isinstance(said, dict):
                self._nodes[id(said)] = found
        return found

    def base_of(self, said: Any) -> str:
        return self._bases.get(id(said), "")

    def keep(self, said: dict[str, Any], like: Any) -> dict[str, Any]:
        """A schema that was made from another one, with the other one's base."""
        self._keep.append(said)
        self._bases[id(said)] = self.base_of(like)
        return said

    # --- references -----------------------------------------------------------------------------------------------

    def _index(self, said: Any, base: str) -> None:
        self._resources.setdefault(base, said)
        pending = [(said, base)]
        while pending:
            each, base = pending.pop()
            if isinstance(each, list):
                pending.extend((inner, base) for inner in each)
            if not isinstance(each, dict):
                continue
            own = each.get("$id", each.get("id"))
            if isinstance(own, str):
                if own.startswith("#"):
                    self._anchors.setdefault((base, own[1:]), each)
                else:
                    base = urldefrag(urljoin(base, own)).url
                    self._resources.setdefault(base, each)
            for keyword in ("$anchor", "$dynamicAnchor"):
                if isinstance(each.get(keyword), str):
                    self._anchors.setdefault((base, each[keyword]), each)
            self._bases.setdefault(id(each), base)
            pending.extend((inner, base) for key, inner in each.items() if key not in VALUES)

    def resolve(self, reference: str, base: str) -> Any:
        """The schema that a reference means; raises InvalidSchema if it is not among those that are known."""
        url, fragment = urldefrag(urljoin(base, reference))
        candidates = (url, urldefrag(reference).url)
        resource = next((self._resources[each] for each in candidates if each in self._resources), None)
        if resource is None:
            raise InvalidSchema(f"the reference {reference!r} is not in the schema nor among its references")
        if fragment and not fragment.startswith("/"):
            for each in candidates:
                if (each, fragment) in self._anchors:
                    return self._anchors[each, fragment]
            raise InvalidSchema(f"the reference {reference!r} leads nowhere")
        return _at(resource, fragment, reference)


class Node:
    """What one schema accepts. ``kind`` decides which of the properties say something."""

    def __init__(self, schema: JsonSchema, said: Any) -> None:
        self.schema = schema
        self.said: Any = said
        self.kind = "true"
        self.parts: list[Node] = []  # of all, any and one
        seen = 0
        while isinstance(self.said, dict) and (target := self._target()) is not None:
            self.said = target
            seen += 1
            if seen > DEPTH_MAX:
                raise InvalidSchema("a reference leads to itself")
        self._classify()

    def _target(self) -> Any:
        """The schema that this one is by reference; None if it says something itself."""
        keyword = next((each for each in REFERRING if isinstance(self.said.get(each), str)), None)
        if keyword is None:
            return None
        target = self.schema.resolve(self.said[keyword], self.schema.base_of(self.said))
        if self.schema.draft in MODERN:
            rest = {key: value for key, value in self.said.items() if key != keyword}
            if rest.keys() & (STRING_KEYS | NUMBER_KEYS | OBJECT_KEYS | ARRAY_KEYS | {"type", "enum", *COMBINATIONS}):
                return self.schema.keep({"allOf": [target, self.schema.keep(rest, self.said)]}, self.said)
        return target

    def _classify(self) -> None:
        said = self.said
        if said is False:
            self.kind = "false"
            return
        if said is True or not isinstance(said, dict):
            return
        pieces = list(_pieces(said))
        if len(pieces) > 1:
            self.kind = "all"
            self.parts = [self._part(kind, piece) for kind, piece in pieces]
        elif pieces:
            self.kind, self.said = pieces[0][0], {**said, **pieces[0][1]} if pieces[0][0] != "types" else pieces[0][1]
            self._expand()

    def _part(self, kind: str, piece: dict[str, Any]) -> Node:
        node = object.__new__(Node)
        node.schema, node.kind, node.parts = self.schema, kind, []
        node.said = self.schema.keep(piece, self.said)
        node._expand()
        return node

    def _expand(self) -> None:
        if self.kind == "types":
            self.kind = "any"
            self.parts = [self._of_type(each) for each in self.said["type"]]
        for keyword, kind in COMBINATIONS.items():
            if self.kind == kind and not self.parts:
                self.parts = [self.schema.node(each) for each in self.said[keyword]]

    def _of_type(self, name: str) -> Node:
        return Node(self.schema, self.schema.keep({**self.said, "type": name}, self.said))

    def number(self, keyword: str) -> float | None:
        value = self.said.get(keyword)
        return value if isinstance(value, int | float) and not isinstance(value, bool) else None

    def limit(self, keyword: str) -> float | None:
        """A bound; a boolean ``exclusiveMinimum`` of draft 4 makes ``minimum`` an exclusive one."""
        exclusive = "exclusive" + keyword[0].upper() + keyword[1:]
        if keyword.startswith("exclusive"):
            plain = keyword.removeprefix("exclusive").lower()
            return self.number(plain) if self.said.get(keyword) is True else self.number(keyword)
        return None if self.said.get(exclusive) is True else self.number(keyword)

    def children(self, keyword: str) -> dict[str, Node]:
        found = self.said.get(keyword)
        return {name: self.schema.node(each) for name, each in found.items()} if isinstance(found, dict) else {}

    def child(self, keyword: str) -> Node | None:
        return self.schema.node(self.said[keyword]) if isinstance(self.said.get(keyword), dict | bool) else None

    @property
    def required(self) -> frozenset[str]:
        found = self.said.get("required")
        return frozenset(map(str, found)) if isinstance(found, list) else frozenset()

    @property
    def has_default(self) -> bool:
        return isinstance(self.said, dict) and "default" in self.said

    @cached_property
    def tuple_items(self) -> list[Node] | None:
        found = self.said.get("prefixItems", self.said.get("items"))
        return [self.schema.node(each) for each in found] if isinstance(found, list) else None

    @property
    def all_items(self) -> Node | None:
        return None if self.tuple_items is not None else self.child("items")

    @property
    def more_items(self) -> Node | None:
        """The schema of the items behind those of a tuple; None if it does not say."""
        return self.child("items" if "prefixItems" in self.said else "additionalItems")


def _pieces(said: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The constraints of a schema, one kind at a time, each with the keywords of its kind."""
    about: dict[str, Any] = {key: said[key] for key in ("title", "description", "default", "$id", "id") if key in said}
    if "const" in said:
        yield "const", {**about, "const": said["const"]}
    if "enum" in said:
        yield "enum", {**about, "enum": said["enum"]}
    types = said.get("type")
    if isinstance(types, list) and len(types) == 1:
        types = types[0]
    if isinstance(types, list):
        kept = STRING_KEYS | NUMBER_KEYS | OBJECT_KEYS | ARRAY_KEYS | {"type"}
        yield "types", {**about, **{key: value for key, value in said.items() if key in kept}}
    else:
        yield from _typed(said, types, about)
    for keyword, kind in COMBINATIONS.items():
        if isinstance(said.get(keyword), list):
            yield kind, {keyword: said[keyword]}
    if "not" in said:
        yield "not", {"not": said["not"]}
    if "if" in said:
        yield "conditional", {key: said[key] for key in ("if", "then", "else") if key in said}


def _typed(said: dict[str, Any], name: Any, about: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for kind, keys, names in (
        ("string", STRING_KEYS, ("string",)),
        ("number", NUMBER_KEYS, ("number", "integer")),
        ("object", OBJECT_KEYS, ("object",)),
        ("array", ARRAY_KEYS, ("array",)),
    ):
        if name in names or (name is None and said.keys() & keys):
            yield kind, {**about, **{key: value for key, value in said.items() if key in keys or key == "type"}}
    if name in ("boolean", "null"):
        yield name, dict(about)


def _schemas(said: Any) -> Iterator[dict[str, Any]]:
    """Every object of a schema that may be a schema itself."""
    pending = [said]
    while pending:
        each = pending.pop()
        if isinstance(each, list):
            pending.extend(each)
        elif isinstance(each, dict):
            yield each
            pending.extend(inner for key, inner in each.items() if key not in VALUES)


def _at(resource: Any, pointer: str, reference: str) -> Any:
    found = resource
    for step in pointer.split("/")[1:]:
        key = unquote(step).replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict) and key in found:
            found = found[key]
        elif isinstance(found, list) and key.isdecimal() and int(key) < len(found):
            found = found[int(key)]
        else:
            raise InvalidSchema(f"the reference {reference!r} leads nowhere")
    return found


def _read(text: str) -> Any:
    try:
        said = json.loads(text)
    except ValueError as error:
        raise InvalidSchema(f"the schema is not JSON: {error}") from None
    if not isinstance(said, dict | bool):
        raise InvalidSchema("a JSON Schema is an object, true or false")
    return said


def canonical(schema: JsonSchema, *, normalize: bool = False) -> str:
    return json.dumps(schema.said, ensure_ascii=False, separators=(",", ":"), sort_keys=normalize)
