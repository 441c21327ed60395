"""How Spark finds the format ``barnabas`` by itself: it looks for modules of this name with a ``DefaultSource``."""

from __future__ import annotations

from barnabas.spark.connector.source import BarnabasSource as DefaultSource

__all__ = ["DefaultSource"]
