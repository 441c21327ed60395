"""Functions of users, brought to one shape: the key is passed only if the function has a parameter for it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

__all__ = ["accepts", "with_key", "with_key_first"]


def accepts(function: Callable[..., Any], count: int) -> bool:
    """Tell whether a function has at least ``count`` positional parameters without a default.

    Functions without a signature, for example some built-in types, are taken to have one parameter.
    """
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return count <= 1
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    required = [each for each in parameters if each.kind in kinds and each.default is inspect.Parameter.empty]
    return len(required) >= count


def with_key(function: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    """Return a function of key and value, from a function of the value or of key and value."""
    if accepts(function, 2):
        return function
    return lambda key, value: function(value)


def with_key_first(function: Callable[..., Any]) -> Callable[[Any, Any, Any], Any]:
    """Return a function of the key and two values, from a function of two values or of the key and two values."""
    if accepts(function, 3):
        return function
    return lambda key, first, second: function(first, second)
