"""What the record codec needs of the name ``cython`` where Cython is not installed: decorators that do nothing.

Cython compiles the codec when the package is built and is not a dependency afterwards. Only
:mod:`barnabas.wire.record_codec` imports this.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

compiled = False
longlong = ulonglong = Py_ssize_t = int


def cfunc(function: F) -> F:
    return function


inline = nogil = cclass = final = cfunc


def returns(kind: object) -> Callable[[F], F]:
    return cfunc


def locals(**kinds: object) -> Callable[[F], F]:  # noqa: A001 - Cython's name
    return cfunc


def exceptval(value: int | None = None, *, check: bool) -> Callable[[F], F]:
    return cfunc
