"""Column expressions: ``col("total") > 100`` is a function of a value, written as data that can be read and printed.

An expression goes wherever an operator takes a function of the value. Nulls follow SQL: a comparison or a sum with a
null is null, ``&`` and ``|`` know three values, and a predicate that is null keeps nothing. Fields are attributes of
structs, dataclasses and models, and entries of dicts; a field that a dict does not have is null.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

__all__ = ["Column", "col", "lit"]

Compiled: TypeAlias = Callable[[Any], Any]

_SYMBOLS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}


@dataclass(frozen=True, eq=False)
class Column:
    """An expression; made by :func:`col`, :func:`lit` and operators.

    kind: the operator. parts: its operands: expressions, or a name or constant.
    """

    kind: str
    parts: tuple[Any, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "_function", _COMPILERS.get(self.kind, _binary)(self))

    def __call__(self, value: Any) -> Any:
        """Return the result for a value."""
        return self._function(value)  # type: ignore[attr-defined]

    def __eq__(self, other: object) -> Column:  # type: ignore[override]
        return Column("==", (self, _column(other)))

    def __ne__(self, other: object) -> Column:  # type: ignore[override]
        return Column("!=", (self, _column(other)))

    __hash__ = object.__hash__

    def __lt__(self, other: object) -> Column:
        return Column("<", (self, _column(other)))

    def __le__(self, other: object) -> Column:
        return Column("<=", (self, _column(other)))

    def __gt__(self, other: object) -> Column:
        return Column(">", (self, _column(other)))

    def __ge__(self, other: object) -> Column:
        return Column(">=", (self, _column(other)))

    def __add__(self, other: object) -> Column:
        return Column("+", (self, _column(other)))

    def __radd__(self, other: object) -> Column:
        return Column("+", (_column(other), self))

    def __sub__(self, other: object) -> Column:
        return Column("-", (self, _column(other)))

    def __rsub__(self, other: object) -> Column:
        return Column("-", (_column(other), self))

    def __mul__(self, other: object) -> Column:
        return Column("*", (self, _column(other)))

    def __rmul__(self, other: object) -> Column:
        return Column("*", (_column(other), self))

    def __and__(self, other: object) -> Column:
        return Column("and", (self, _column(other)))

    def __or__(self, other: object) -> Column:
        return Column("or", (self, _column(other)))

    def __invert__(self) -> Column:
        return Column("not", (self,))

    def __bool__(self) -> bool:
        raise TypeError(f"{self} has no truth value of its own; combine expressions with &, | and ~, in parentheses")

    def is_null(self) -> Column:
        """Whether the result is null."""
        return Column("is null", (self,))

    def is_in(self, values: Iterable[Any]) -> Column:
        """Whether the result is one of some constants."""
        return Column("in", (self, frozenset(values)))

    def field(self, name: str) -> Column:
        """Return a field of the result, which is an object or a dict itself."""
        return Column("field", (self, name))

    def __repr__(self) -> str:
        if self.kind == "value":
            return "value"
        if self.kind == "constant":
            return repr(self.parts[0])
        if self.kind == "field":
            return self.parts[1] if self.parts[0].kind == "value" else f"{self.parts[0]}.{self.parts[1]}"
        if self.kind == "not":
            return f"(not {self.parts[0]})"
        if self.kind == "is null":
            return f"({self.parts[0]} is null)"
        shown = f"({', '.join(sorted(map(repr, self.parts[1])))})" if self.kind == "in" else self.parts[1]
        return f"({self.parts[0]} {self.kind} {shown})"


def col(name: str) -> Column:
    """Return a field of the value as an expression.

    name: name of the field; ``"address.city"`` is a field of a field.
    """
    found = Column("value", ())
    for part in name.split("."):
        found = Column("field", (found, part))
    return found


def lit(constant: Any) -> Column:
    """Return a constant as an expression."""
    return Column("constant", (constant,))


def _column(content: object) -> Column:
    return content if isinstance(content, Column) else lit(content)


def _field(column: Column) -> Compiled:
    inner, name = column.parts
    outer = None if inner.kind == "value" else inner

    def of_value(value: Any) -> Any:
        holder = value if outer is None else outer(value)
        if holder is None:
            return None
        return holder.get(name) if isinstance(holder, dict) else getattr(holder, name)

    return of_value


def _constant(column: Column) -> Compiled:
    constant = column.parts[0]
    return lambda value: constant


def _binary(column: Column) -> Compiled:
    left, right = column.parts
    function = _SYMBOLS[column.kind]

    def of_two(value: Any) -> Any:
        one, other = left(value), right(value)
        return None if one is None or other is None else function(one, other)

    return of_two


def _and(column: Column) -> Compiled:
    left, right = column.parts

    def both(value: Any) -> Any:
        one = left(value)
        if one is not None and not one:
            return False
        other = right(value)
        if other is not None and not other:
            return False
        return None if one is None or other is None else True

    return both


def _or(column: Column) -> Compiled:
    left, right = column.parts

    def either(value: Any) -> Any:
        one = left(value)
        if one:
            return True
        other = right(value)
        if other:
            return True
        return None if one is None or other is None else False

    return either


def _not(column: Column) -> Compiled:
    inner = column.parts[0]

    def negated(value: Any) -> Any:
        result = inner(value)
        return None if result is None else not result

    return negated


def _is_null(column: Column) -> Compiled:
    inner = column.parts[0]
    return lambda value: inner(value) is None


def _in(column: Column) -> Compiled:
    inner, constants = column.parts

    def is_one(value: Any) -> Any:
        result = inner(value)
        return None if result is None else result in constants

    return is_one


_COMPILERS: Final[Mapping[str, Callable[[Column], Compiled]]] = {
    "value": lambda column: lambda value: value,
    "field": _field,
    "constant": _constant,
    "and": _and,
    "or": _or,
    "not": _not,
    "is null": _is_null,
    "in": _in,
}
