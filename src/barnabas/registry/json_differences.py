"""The differences between two JSON Schemas of one kind: string, number, enumeration, object, array, combination."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Protocol, TypeAlias

import re2

from barnabas.registry.json_schema import Node

Diffs: TypeAlias = "list[tuple[str, str]]"  # names and paths
Found: TypeAlias = "Iterator[tuple[str, str]]"


class Comparison(Protocol):
    """What compares the schemas inside of two schemas."""

    def compare(self, original: Node | None, update: Node | None, path: str) -> Diffs: ...

    def is_compatible(self, found: Diffs) -> bool: ...


def _bound(keyword: str, name: str, original: Any, update: Any, path: str) -> Found:
    if original == update:
        return
    if original is None:
        yield f"{name}_ADDED", f"{path}/{keyword}"
    elif update is None:
        yield f"{name}_REMOVED", f"{path}/{keyword}"
    else:
        yield f"{name}_{'INCREASED' if original < update else 'DECREASED'}", f"{path}/{keyword}"


def _bounds(names: dict[str, str], original: Node, update: Node, path: str) -> Found:
    for keyword, name in names.items():
        yield from _bound(keyword, name, original.number(keyword), update.number(keyword), path)


def strings(original: Node, update: Node, path: str) -> Found:
    yield from _bounds({"maxLength": "MAX_LENGTH", "minLength": "MIN_LENGTH"}, original, update, path)
    before, after = original.said.get("pattern"), update.said.get("pattern")
    if before != after:
        name = "ADDED" if before is None else "REMOVED" if after is None else "CHANGED"
        yield f"PATTERN_{name}", f"{path}/pattern"


def numbers(original: Node, update: Node, path: str) -> Found:
    for keyword, name in (
        ("maximum", "MAXIMUM"),
        ("minimum", "MINIMUM"),
        ("exclusiveMaximum", "EXCLUSIVE_MAXIMUM"),
        ("exclusiveMinimum", "EXCLUSIVE_MINIMUM"),
    ):
        yield from _bound(keyword, name, original.limit(keyword), update.limit(keyword), path)
    before, after = _decimal(original.number("multipleOf")), _decimal(update.number("multipleOf"))
    if before != after:
        if before is None or after is None:
            name = "ADDED" if before is None else "REMOVED"
        elif before and after % before == 0:
            name = "EXPANDED"
        elif after and before % after == 0:
            name = "REDUCED"
        else:
            name = "CHANGED"
        yield f"MULTIPLE_OF_{name}", f"{path}/multipleOf"
    was_integer, is_integer = original.said.get("type") == "integer", update.said.get("type") == "integer"
    if was_integer != is_integer:
        yield ("TYPE_EXTENDED" if was_integer else "TYPE_NARROWED"), path


def enums(original: Node, update: Node, path: str) -> Found:
    before = {json.dumps(each, sort_keys=True) for each in original.said["enum"]}
    after = {json.dumps(each, sort_keys=True) for each in update.said["enum"]}
    if before != after:
        name = "EXTENDED" if after > before else "NARROWED" if before > after else "CHANGED"
        yield f"ENUM_ARRAY_{name}", f"{path}/enum"


def objects(comparison: Comparison, original: Node, update: Node, path: str) -> Found:
    before, after = original.children("properties"), update.children("properties")
    for name in before:
        if name in after and (name in original.required) != (name in update.required):
            place = f"{path}/required/{name}"
            if name in original.required:
                yield "REQUIRED_ATTRIBUTE_REMOVED", place
            else:
                yield f"REQUIRED_ATTRIBUTE{'_WITH_DEFAULT' if after[name].has_default else ''}_ADDED", place
    for name in dict.fromkeys((*before, *after)):
        place = f"{path}/properties/{name}"
        if name not in after:
            yield from _property_removed(comparison, before[name], update, name, place)
        elif name not in before:
            yield from _property_added(comparison, original, update, after[name], name, place)
        else:
            yield from comparison.compare(before[name], after[name], place)
    yield from _dependencies(comparison, original, update, f"{path}/dependencies")
    yield from _additional(
        comparison,
        "ADDITIONAL_PROPERTIES",
        original.child("additionalProperties"),
        update.child("additionalProperties"),
        f"{path}/additionalProperties",
    )
    yield from _unevaluated(
        comparison, "UNEVALUATED_PROPERTIES", original, update, "unevaluatedProperties", f"{path}/unevaluatedProperties"
    )
    names = {"maxProperties": "MAX_PROPERTIES", "minProperties": "MIN_PROPERTIES"}
    yield from _bounds(names, original, update, path)


def _is_true(node: Node | None) -> bool:
    return node is None or node.kind == "true"


def _is_open_object(node: Node) -> bool:
    """Any further property is accepted."""
    if not _is_true(node.child("additionalProperties")) or node.said.get("patternProperties"):
        return False
    return "additionalProperties" in node.said or _is_true(node.child("unevaluatedProperties"))


def _schema_of_more(node: Node, name: str) -> Node | None:
    """The schema of a property that the object does not name; None if it says nothing or forbids it."""
    for pattern, schema in node.children("patternProperties").items():
        if _matches(pattern, name):
            return schema
    additional = node.child("additionalProperties")
    if additional is None:
        additional = node.child("unevaluatedProperties")
    return additional if additional is not None and additional.kind not in ("true", "false") else None


def _property_removed(comparison: Comparison, before: Node, update: Node, name: str, place: str) -> Found:
    if _is_open_object(update):
        yield "PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL", place
        return
    schema = _schema_of_more(update, name)
    if schema is not None:
        found = comparison.compare(before, schema, place)
        yield from found
        covered = "IS" if comparison.is_compatible(found) else "NOT"
        yield f"PROPERTY_REMOVED_{covered}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", place
    elif before.kind == "false":
        yield "PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL", place
    else:
        yield "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL", place


def _property_added(comparison: Comparison, original: Node, update: Node, after: Node, name: str, place: str) -> Found:
    is_required = name in update.required
    default = "_WITH_DEFAULT" if after.has_default else ""
    if _is_open_object(original):
        if after.kind == "true":
            yield "PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL", place
        elif is_required:
            yield f"REQUIRED_PROPERTY{default}_ADDED_TO_OPEN_CONTENT_MODEL", place
        else:
            yield "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL", place
        return
    schema = _schema_of_more(original, name)
    if schema is not None:
        found = comparison.compare(schema, after, place)
        yield from found
        covered = "IS" if comparison.is_compatible(found) else "NOT"
        yield f"PROPERTY_ADDED_{covered}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", place
    if is_required:
        yield f"REQUIRED_PROPERTY{default}_ADDED_TO_UNOPEN_CONTENT_MODEL", place
    else:
        yield "OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL", place


def _additional(comparison: Comparison, name: str, before: Node | None, after: Node | None, path: str) -> Found:
    """Properties or items that are not named: whether any, none or those of a schema are accepted."""
    was_allowed = before is None or before.kind != "false"
    is_allowed = after is None or after.kind != "false"
    if was_allowed != is_allowed:
        yield f"{name}_{'ADDED' if is_allowed else 'REMOVED'}", path
    elif is_allowed and _is_true(before) != _is_true(after):
        yield f"{name}_{'NARROWED' if _is_true(before) else 'EXTENDED'}", path
    elif not _is_true(before):
        yield from comparison.compare(before, after, path)


def _unevaluated(comparison: Comparison, name: str, original: Node, update: Node, keyword: str, path: str) -> Found:
    before, after = original.child(keyword), update.child(keyword)
    if before is not None or after is not None:
        yield from _additional(comparison, name, before, after, path)


def _dependencies(comparison: Comparison, original: Node, update: Node, path: str) -> Found:
    before, after = _required_with(original), _required_with(update)
    for name in dict.fromkeys((*before, *after)):
        place = f"{path}/{name}"
        if name not in after:
            yield "DEPENDENCY_ARRAY_REMOVED", place
        elif name not in before:
            yield "DEPENDENCY_ARRAY_ADDED", place
        elif before[name] != after[name]:
            wider, narrower = after[name] > before[name], before[name] > after[name]
            yield f"DEPENDENCY_ARRAY_{'EXTENDED' if wider else 'NARROWED' if narrower else 'CHANGED'}", place
    was, is_ = _schemas_with(original), _schemas_with(update)
    for name in dict.fromkeys((*was, *is_)):
        place = f"{path}/{name}"
        if name not in is_:
            yield "DEPENDENCY_SCHEMA_REMOVED", place
        elif name not in was:
            yield "DEPENDENCY_SCHEMA_ADDED", place
        else:
            yield from comparison.compare(was[name], is_[name], place)


def _required_with(node: Node) -> dict[str, frozenset[str]]:
    found = {**(node.said.get("dependencies") or {}), **(node.said.get("dependentRequired") or {})}
    return {name: frozenset(map(str, each)) for name, each in found.items() if isinstance(each, list)}


def _schemas_with(node: Node) -> dict[str, Node]:
    old = {name: each for name, each in (node.said.get("dependencies") or {}).items() if not isinstance(each, list)}
    return {name: node.schema.node(each) for name, each in old.items()} | node.children("dependentSchemas")


def arrays(comparison: Comparison, original: Node, update: Node, path: str) -> Found:
    yield from comparison.compare(original.all_items, update.all_items, f"{path}/items")
    yield from _tuples(comparison, original, update, path)
    place = f"{path}/additionalItems"
    yield from _additional(comparison, "ADDITIONAL_ITEMS", original.more_items, update.more_items, place)
    yield from _unevaluated(
        comparison, "UNEVALUATED_ITEMS", original, update, "unevaluatedItems", f"{path}/unevaluatedItems"
    )
    if "contains" in original.said or "contains" in update.said:
        yield from comparison.compare(original.child("contains"), update.child("contains"), f"{path}/contains")
    names = {"maxItems": "MAX_ITEMS", "minItems": "MIN_ITEMS", "maxContains": "MAX_CONTAINS"}
    yield from _bounds({**names, "minContains": "MIN_CONTAINS"}, original, update, path)
    was_unique, is_unique = original.said.get("uniqueItems") is True, update.said.get("uniqueItems") is True
    if was_unique != is_unique:
        yield f"UNIQUE_ITEMS_{'REMOVED' if was_unique else 'ADDED'}", f"{path}/uniqueItems"


def _tuples(comparison: Comparison, original: Node, update: Node, path: str) -> Found:
    before, after = original.tuple_items or [], update.tuple_items or []
    for index in range(max(len(before), len(after))):
        place = f"{path}/items/{index}"
        if index < len(before) and index < len(after):
            yield from comparison.compare(before[index], after[index], place)
            continue
        is_removed = index < len(before)
        item, other = (before[index], update) if is_removed else (after[index], original)
        name = "ITEM_REMOVED" if is_removed else "ITEM_ADDED"
        if _is_open_array(other):
            if not is_removed and item.kind == "true":
                yield "ITEM_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL", place
            else:
                yield f"{name}_{'FROM' if is_removed else 'TO'}_OPEN_CONTENT_MODEL", place
            continue
        schema = _schema_of_more_items(other)
        if schema is not None:
            found = comparison.compare(item, schema, place) if is_removed else comparison.compare(schema, item, place)
            yield from found
            covered = "IS" if comparison.is_compatible(found) else "NOT"
            yield f"{name}_{covered}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", place
        elif is_removed:
            false = "_WITH_FALSE" if item.kind == "false" else ""
            yield f"ITEM{false}_REMOVED_FROM_CLOSED_CONTENT_MODEL", place
        else:
            yield "ITEM_ADDED_TO_CLOSED_CONTENT_MODEL", place


def _is_open_array(node: Node) -> bool:
    return _is_true(node.more_items) and _is_true(node.child("unevaluatedItems"))


def _schema_of_more_items(node: Node) -> Node | None:
    for each in (node.more_items, node.child("unevaluatedItems")):
        if each is not None and each.kind not in ("true", "false"):
            return each
    return None


def combinations(comparison: Comparison, original: Node, update: Node, path: str) -> Found:
    before, after = _distinct(original.parts), _distinct(update.parts)
    if original.kind != update.kind:
        is_extended = (
            update.kind == "any"
            or (len(before) == 1 and len(after) == 1)
            or (len(before) == 1 and update.kind == "one")
            or (len(after) == 1 and original.kind == "all")
        )
        yield ("COMBINED_TYPE_EXTENDED" if is_extended else "COMBINED_TYPE_CHANGED"), path
        if not is_extended:
            return
    if len(before) < len(after):
        yield ("PRODUCT_TYPE_EXTENDED" if update.kind == "all" else "SUM_TYPE_EXTENDED"), path
    elif len(before) > len(after):
        yield ("PRODUCT_TYPE_NARROWED" if original.kind == "all" else "SUM_TYPE_NARROWED"), path
    edges: list[dict[int, list[tuple[str, str]]]] = []
    for index, each in enumerate(before):
        found = {
            to: comparison.compare(each, other, f"{path}/{original.kind}Of/{index}") for to, other in enumerate(after)
        }
        edges.append({to: diffs for to, diffs in found.items() if comparison.is_compatible(diffs)})
    matched = _matching(edges)
    for to, index in matched.items():
        yield from edges[index][to]
    if len(matched) < min(len(before), len(after)):
        yield "COMBINED_TYPE_SUBSCHEMAS_CHANGED", path


def _distinct(nodes: list[Node]) -> list[Node]:
    found: dict[str, Node] = {}
    for each in nodes:
        found.setdefault(json.dumps([each.kind, each.said], sort_keys=True, default=str), each)
    return list(found.values())


def _matching(edges: list[dict[int, list[tuple[str, str]]]]) -> dict[int, int]:
    """The most pairs in which each side takes part at most once: by augmenting paths."""
    matched: dict[int, int] = {}

    def augment(index: int, visited: set[int]) -> bool:
        for to in edges[index]:
            if to not in visited:
                visited.add(to)
                if to not in matched or augment(matched[to], visited):
                    matched[to] = index
                    return True
        return False

    for index in range(len(edges)):
        augment(index, set())
    return matched


def _matches(pattern: str, name: str) -> bool:
    """Whether a pattern of ``patternProperties`` is found in a name; one that RE2 does not know matches nothing."""
    try:
        return re2.search(pattern, name) is not None
    except re2.error:
        return False


def _decimal(value: float | None) -> Decimal | None:
    return None if value is None else Decimal(str(value))
