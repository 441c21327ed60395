"""Whether everything that one JSON Schema accepts (the original) is accepted by another (the update).

Differences have the names that clients of Confluent's registry know. A pair of schemas that is met again while it is
being compared is believed to be compatible; where that belief was used, the comparison is repeated with what it found.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

from barnabas.registry import json_differences as of
from barnabas.registry.incompatibility import Incompatibility
from barnabas.registry.json_schema import JsonSchema, Node

Diffs: TypeAlias = "list[tuple[str, str]]"  # name and path
_Pair: TypeAlias = "tuple[int, int]"

# Differences after which everything that was valid is still valid.
STRICT: Final = frozenset(
    """
    TYPE_EXTENDED MAX_LENGTH_INCREASED MAX_LENGTH_REMOVED MIN_LENGTH_DECREASED MIN_LENGTH_REMOVED PATTERN_REMOVED
    MAXIMUM_INCREASED MAXIMUM_REMOVED MINIMUM_DECREASED MINIMUM_REMOVED EXCLUSIVE_MAXIMUM_INCREASED
    EXCLUSIVE_MAXIMUM_REMOVED EXCLUSIVE_MINIMUM_DECREASED EXCLUSIVE_MINIMUM_REMOVED MULTIPLE_OF_REDUCED
    MULTIPLE_OF_REMOVED REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED REQUIRED_ATTRIBUTE_REMOVED DEPENDENCY_ARRAY_NARROWED
    DEPENDENCY_ARRAY_REMOVED DEPENDENCY_SCHEMA_REMOVED MAX_PROPERTIES_INCREASED MAX_PROPERTIES_REMOVED
    MIN_PROPERTIES_DECREASED MIN_PROPERTIES_REMOVED ADDITIONAL_PROPERTIES_ADDED ADDITIONAL_PROPERTIES_EXTENDED
    UNEVALUATED_PROPERTIES_ADDED UNEVALUATED_PROPERTIES_EXTENDED PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL
    REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_UNOPEN_CONTENT_MODEL OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL
    PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL
    PROPERTY_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL
    PROPERTY_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL MAX_ITEMS_INCREASED MAX_ITEMS_REMOVED
    MIN_ITEMS_DECREASED MIN_ITEMS_REMOVED MAX_CONTAINS_INCREASED MAX_CONTAINS_REMOVED MIN_CONTAINS_DECREASED
    MIN_CONTAINS_REMOVED UNIQUE_ITEMS_REMOVED ADDITIONAL_ITEMS_ADDED ADDITIONAL_ITEMS_EXTENDED UNEVALUATED_ITEMS_ADDED
    UNEVALUATED_ITEMS_EXTENDED ITEM_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL ITEM_ADDED_TO_CLOSED_CONTENT_MODEL
    ITEM_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL
    ITEM_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL ITEM_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL
    ENUM_ARRAY_EXTENDED COMBINED_TYPE_EXTENDED PRODUCT_TYPE_NARROWED SUM_TYPE_EXTENDED NOT_TYPE_NARROWED SCHEMA_REMOVED
    """.split()  # noqa: SIM905
)
# The compatibility policy LENIENT accepts these too: a reader ignores properties that it does not know.
LENIENT: Final = STRICT | frozenset(
    """
    ADDITIONAL_PROPERTIES_NARROWED ADDITIONAL_PROPERTIES_REMOVED UNEVALUATED_PROPERTIES_NARROWED
    UNEVALUATED_PROPERTIES_REMOVED REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL
    OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL
    PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL
    PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL
    """.split()  # noqa: SIM905
)
ROUNDS_MAX: Final = 100


def incompatibilities(update: JsonSchema, original: JsonSchema, *, lenient: bool = False) -> list[Incompatibility]:
    """Empty if ``update`` accepts all that ``original`` accepts."""
    compatible = LENIENT if lenient else STRICT
    return [
        Incompatibility(name, path, name.replace("_", " ").lower())
        for name, path in differences(update, original, compatible)
        if name not in compatible
    ]


def differences(update: JsonSchema, original: JsonSchema, compatible: frozenset[str] = STRICT) -> Diffs:
    known: dict[_Pair, Diffs] = {}
    for _ in range(ROUNDS_MAX):
        comparison = Comparison(compatible, known)
        found = comparison.compare(original.root, update.root, "#")
        refuted = comparison.refuted()
        if not comparison.has_believed or refuted.keys() == known.keys():
            break
        known = refuted
    return found


class Comparison:
    def __init__(self, compatible: frozenset[str], known: dict[_Pair, Diffs]) -> None:
        self._compatible = compatible
        self._known = known  # pairs that an earlier round found to be incompatible
        self._done: dict[_Pair, Diffs] = {}
        self._open: set[_Pair] = set()
        self.has_believed = False

    def refuted(self) -> dict[_Pair, Diffs]:
        return {pair: found for pair, found in self._done.items() if not self.is_compatible(found)}

    def is_compatible(self, found: Diffs) -> bool:
        return all(name in self._compatible for name, _ in found)

    def compare(self, original: Node | None, update: Node | None, path: str) -> Diffs:
        """Paths of the result begin with ``path``."""
        if original is None and update is None:
            return []
        if original is None:
            return [("SCHEMA_ADDED", path)]
        if update is None:
            return [("SCHEMA_REMOVED", path)]
        pair = id(original), id(update)
        if pair in self._open:
            if pair in self._known:
                return [(name, path + rest) for name, rest in self._known[pair]]
            self.has_believed = True
            return []
        if pair not in self._done:
            self._open.add(pair)
            try:
                self._done[pair] = list(self._compare(original, update, ""))
            finally:
                self._open.discard(pair)
        return [(name, path + rest) for name, rest in self._done[pair]]

    def _compare(self, original: Node, update: Node, path: str) -> Iterator[tuple[str, str]]:
        special = self._compare_single(original, update, path)
        if special is not None:
            yield from special
            return
        if original.kind != update.kind and not (original.parts and update.parts):
            if original.kind != "false" and update.kind != "true":
                yield "TYPE_CHANGED", path
            return
        match original.kind:
            case "string":
                yield from of.strings(original, update, path)
            case "number":
                yield from of.numbers(original, update, path)
            case "const":
                if original.said["const"] != update.said["const"]:
                    yield "ENUM_ARRAY_CHANGED", f"{path}/const"
            case "enum":
                yield from of.enums(original, update, path)
            case "not":
                turned = self.compare(update.child("not"), original.child("not"), f"{path}/not")
                is_narrowed = self.is_compatible(turned)
                yield ("NOT_TYPE_NARROWED" if is_narrowed else "NOT_TYPE_EXTENDED"), f"{path}/not"
            case "object":
                yield from of.objects(self, original, update, path)
            case "array":
                yield from of.arrays(self, original, update, path)
            case "conditional":
                if original.said != update.said:
                    yield "COMBINED_TYPE_SUBSCHEMAS_CHANGED", f"{path}/if"
            case "all" | "any" | "one":
                yield from of.combinations(self, original, update, path)

    def _compare_single(self, original: Node, update: Node, path: str) -> Diffs | None:
        """A combination on one side only: its one part, or the part that fits, stands for it."""
        if update.parts and not original.parts:
            if len(update.parts) == 1 or update.kind in ("any", "one"):
                for each in update.parts:
                    found = self.compare(original, each, path)
                    if self.is_compatible(found):
                        return found if len(update.parts) == 1 else [*found, ("SUM_TYPE_EXTENDED", path)]
        elif original.parts and not update.parts and (len(original.parts) == 1 or original.kind == "all"):
            for each in original.parts:
                found = self.compare(each, update, path)
                if self.is_compatible(found):
                    return found if len(original.parts) == 1 else [*found, ("PRODUCT_TYPE_NARROWED", path)]
        return None
