"""What the record codec needs of the name ``cython`` where Cython is not installed: decorators that do nothing.

Cython compiles the codec when the package is built and is not a dependency afterwards. Only
:mod:`barnabas.wire.record_codec` and the ``record_*`` modules beside it import this.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

compiled = False
longlong = ulonglong = Py_ssize_t = int


def cfunc(function: F) -> F:
    return function


inline = cclass = ccall = final = cfunc


class _NoGil:
    """Both a decorator and a block, as Cython's is."""

    def __call__(self, function: F) -> F:
        return function

    def __enter__(self) -> None:
        """There is no lock to let go of."""

    def __exit__(self, *_: object) -> None:
        """Nor to take again."""


nogil = _NoGil()


def returns(kind: object) -> Callable[[F], F]:
    return cfunc


def locals(**kinds: object) -> Callable[[F], F]:  # noqa: A001 - Cython's name
    return cfunc


def exceptval(value: int | None = None, *, check: bool) -> Callable[[F], F]:
    return cfunc
