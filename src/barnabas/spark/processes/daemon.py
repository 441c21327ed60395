"""The process that an executor forks its workers of Python from, with all that they import imported already.

Spark's own forks first and lets every worker import Spark's, Arrow's and our modules by itself: half a second and half
of its memory each time. What is imported before the fork is shared by all of them. ``sessions.py`` names this module
as ``spark.python.daemon.module``; Spark runs it with the module of the workers as argument. On one machine it is
``nursery.py`` that imports, for these and for the driver's own processes.
"""

from __future__ import annotations

import gc
import os
import random
from collections.abc import Iterable
from importlib import import_module
from typing import Final

# None of these starts a thread of Python's, which a fork would leave behind.
SHARED: Final = (
    "pyspark.worker",
    "numpy.random",
    "pyarrow",
    "pyarrow.compute",
    "pyspark.sql.pandas.serializers",
    "pyspark.sql.pandas.types",
    "pyspark.daemon",
    "barnabas.spark.connector.source",
    "barnabas.spark.connector.reading",
    "barnabas.spark.connector.stream_reader",
    "barnabas.spark.connector.batch_reader",
    "barnabas.spark.connector.writers",
    "barnabas.spark.connector.writing",
    "crc32c",
    "uvloop",
)
# For functions of a user's. On one machine it is known whether the driver has imported it, and left out if not.
PANDAS: Final = ("pandas", "pyarrow.pandas_compat")
# What the client's processes say to brokers; a codec is made of Python code, which takes longer than to use it.
SPOKEN: Final = (
    "API_VERSIONS",
    "METADATA",
    "FETCH",
    "LIST_OFFSETS",
    "PRODUCE",
    "FIND_COORDINATOR",
    "INIT_PRODUCER_ID",
    "ADD_PARTITIONS_TO_TXN",
    "ADD_OFFSETS_TO_TXN",
    "TXN_OFFSET_COMMIT",
    "END_TXN",
    "OFFSET_FETCH",
    "OFFSET_COMMIT",
)


def main() -> None:
    from pyspark.daemon import manager

    prepare(PANDAS)
    manager()


def prepare(more: Iterable[str] = ()) -> None:
    """Everything that those who are forked from here would do first, done once."""
    from barnabas.spark.processes.arrays import spare_pandas
    from barnabas.spark.processes.gaps import fill_gaps
    from barnabas.spark.processes.memory import be_frugal, c_library
    from barnabas.wire.api import ApiKey
    from barnabas.wire.messages import request_of, response_of

    be_frugal()
    for name in (*SHARED, *more):
        import_module(name)
    spare_pandas()
    for name in SPOKEN:
        request, response = request_of(ApiKey[name]), response_of(ApiKey[name])
        _ = request.encoders[request.versions[-1]], response.decoders[response.versions[-1]]
    os.register_at_fork(after_in_child=_draw_anew)
    gc.collect()
    gc.freeze()  # or the first collection in a worker would write to, and so copy, what is shared
    fill_gaps(c_library())


def _draw_anew() -> None:
    """Numbers that a user's function draws must not be the same in every worker. Python's own ``random`` does so."""
    import numpy as np

    np.random.seed(random.SystemRandom().getrandbits(32))


if __name__ == "__main__":
    main()
