"""Pipelines on Spark: the format ``barnabas`` for reading and writing topics, and a session that is set up for it.

``spark = barnabas.spark.session()``, then ``spark.readStream.format("barnabas")``. Spark finds the format by itself;
the names below are imported when they are first used, and say what to install if it is missing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.spark.connector.foreach_batch import each_batch
    from barnabas.spark.pipelines.pipeline import Files, Pipeline, Topic, pipeline
    from barnabas.spark.pipelines.runner import start
    from barnabas.spark.registry import from_registry, registry_error, to_registry
    from barnabas.spark.sessions import session

__all__ = [
    "Files",
    "Pipeline",
    "Topic",
    "each_batch",
    "from_registry",
    "pipeline",
    "registry_error",
    "session",
    "start",
    "to_registry",
]

_HOMES = {
    "Files": "pipelines.pipeline",
    "Pipeline": "pipelines.pipeline",
    "Topic": "pipelines.pipeline",
    "each_batch": "connector.foreach_batch",
    "from_registry": "registry",
    "pipeline": "pipelines.pipeline",
    "registry_error": "registry",
    "session": "sessions",
    "start": "pipelines.runner",
    "to_registry": "registry",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
