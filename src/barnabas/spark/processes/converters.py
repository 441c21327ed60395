"""What Spark looks at before it hands a value of Python to Java, without importing what the value cannot be of.

Spark asks of every list and dictionary whether it is an array of numpy, and for that imports its own tools for tests,
and with them pandas, Arrow and numpy: 40 MB in a driver that uses none of them. Called by ``sessions.py``.
"""

from __future__ import annotations

import sys
from typing import Any


class Sparing:
    """A converter for numpy's values. Who has not imported numpy has none."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def can_convert(self, value: Any) -> bool:
        return "numpy" in sys.modules and bool(self._inner.can_convert(value))

    def convert(self, value: Any, gateway_client: Any) -> Any:
        return self._inner.convert(value, gateway_client)


def spare_numpy() -> None:
    from py4j import protocol  # type: ignore[import-untyped]
    from pyspark.sql.types import NumpyArrayConverter, NumpyScalarConverter

    converters = protocol.INPUT_CONVERTER  # the gateway to Java holds this very list
    for index, each in enumerate(converters):
        if isinstance(each, NumpyArrayConverter | NumpyScalarConverter):
            converters[index] = Sparing(each)
