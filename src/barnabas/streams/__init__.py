"""Kafka Streams in Python: streams and tables, joins, windows, state stores and processors, run by Spark.

Names are imported on first use, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from barnabas.streams.app import App
    from barnabas.streams.cogrouped import CogroupedStream
    from barnabas.streams.columns import Column, col, lit
    from barnabas.streams.driver import Driver
    from barnabas.streams.driving import drive
    from barnabas.streams.errors import ProcessingFailed, StreamsError, TopologyError
    from barnabas.streams.grouped import GroupedStream
    from barnabas.streams.grouped_table import GroupedTable
    from barnabas.streams.policies import Continue, DeadLetter, Fail
    from barnabas.streams.processor import (
        FixedKeyProcessor,
        Processor,
        Record,
        SessionStore,
        Store,
        VersionedStore,
        WindowStore,
        store,
    )
    from barnabas.streams.registry_serdes import Avro, JsonSchema, Protobuf
    from barnabas.streams.serdes import BYTES, DOUBLE, INTEGER, LONG, STR, Functions, Json
    from barnabas.streams.stream import Stream
    from barnabas.streams.table import GlobalTable, Table
    from barnabas.streams.windows import Windowed, hopping, session, sliding, tumbling

_MODULES = {
    "app": ("App",),
    "cogrouped": ("CogroupedStream",),
    "columns": ("Column", "col", "lit"),
    "driver": ("Driver",),
    "driving": ("drive",),
    "errors": ("ProcessingFailed", "StreamsError", "TopologyError"),
    "grouped": ("GroupedStream",),
    "grouped_table": ("GroupedTable",),
    "policies": ("Continue", "DeadLetter", "Fail"),
    "processor": (
        "FixedKeyProcessor",
        "Processor",
        "Record",
        "SessionStore",
        "Store",
        "VersionedStore",
        "WindowStore",
        "store",
    ),
    "registry_serdes": ("Avro", "JsonSchema", "Protobuf"),
    "serdes": ("BYTES", "DOUBLE", "INTEGER", "LONG", "STR", "Functions", "Json"),
    "stream": ("Stream",),
    "table": ("GlobalTable", "Table"),
    "windows": ("Windowed", "hopping", "session", "sliding", "tumbling"),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "BYTES",
    "DOUBLE",
    "INTEGER",
    "LONG",
    "STR",
    "App",
    "Avro",
    "CogroupedStream",
    "Column",
    "Continue",
    "DeadLetter",
    "Driver",
    "Fail",
    "FixedKeyProcessor",
    "Functions",
    "GlobalTable",
    "GroupedStream",
    "GroupedTable",
    "Json",
    "JsonSchema",
    "ProcessingFailed",
    "Processor",
    "Protobuf",
    "Record",
    "SessionStore",
    "Store",
    "Stream",
    "StreamsError",
    "Table",
    "TopologyError",
    "VersionedStore",
    "WindowStore",
    "Windowed",
    "col",
    "drive",
    "hopping",
    "lit",
    "session",
    "sliding",
    "store",
    "tumbling",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
