"""Pipelines on Spark: the format ``barnabas`` for reading and writing topics, and a session that is set up for it.

``spark = barnabas.spark.session()``, then ``spark.readStream.format("barnabas")``. Spark finds the format by itself;
the names below are imported when they are first used, and say what to install if it is missing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.spark.each_batch import each_batch
    from barnabas.spark.sessions import session

__all__ = ["each_batch", "session"]

_HOMES = {"each_batch": "each_batch", "session": "sessions"}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
