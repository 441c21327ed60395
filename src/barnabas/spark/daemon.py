"""The process that an executor forks its workers of Python from, with all that they import imported already.

Spark's own forks first and lets every worker import Spark's, Arrow's and our modules by itself: half a second and half
of its memory each time. What is imported before the fork is shared by all of them. ``sessions.py`` names this module
as ``spark.python.daemon.module``; Spark runs it with the module of the workers as argument.
"""

from __future__ import annotations

import gc
from importlib import import_module
from typing import Final

# None of these starts a thread of Python's, which a fork would leave behind. Pandas is imported by Arrow whenever it
# makes an array of Python's objects, as Spark does of what a sink's task tells the driver.
SHARED: Final = (
    "pyspark.worker",
    "pandas",
    "pyarrow",
    "pyarrow.compute",
    "pyspark.sql.pandas.serializers",
    "pyspark.sql.pandas.types",
    "barnabas.spark.reading",
    "barnabas.spark.stream_reader",
    "barnabas.spark.batch_reader",
    "barnabas.spark.writers",
    "barnabas.spark.writing",
)


def main() -> None:
    from pyspark.daemon import manager

    for name in SHARED:
        import_module(name)
    gc.collect()
    gc.freeze()  # or the first collection in a worker would write to, and so copy, what is shared
    manager()


if __name__ == "__main__":
    main()
