"""The process from which an executor forks its Python workers, with their modules imported before the fork.

Spark's own daemon forks first, so every worker imports PySpark, Arrow and this package by itself: half a second and
half of its memory each time. Modules that are imported before the fork are shared. ``fast_start.py`` sets this module
as ``spark.python.daemon.module``; Spark runs it with the module of the workers as argument. On one machine
``fork_server.py`` imports the modules, for the workers and for the driver's own processes.
"""

from __future__ import annotations

import gc
import os
import random
from collections.abc import Iterable
from importlib import import_module
from typing import Final

# None of these modules starts a Python thread, which a fork would not copy. Arrow imports pandas as soon as it makes an
# array of Python objects, which Spark does for every task of a sink.
SHARED: Final = (
    "pyspark.worker",
    "numpy.random",
    "pandas",
    "pyarrow",
    "pyarrow.compute",
    "pyarrow.pandas_compat",
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
# APIs that the client uses in Spark's processes. Their codecs are generated Python code: generating one takes longer
# than using it.
APIS: Final = (
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

    prepare()
    manager()


def prepare(modules: Iterable[str] = ()) -> None:
    """Import the shared modules and ``modules``, and generate codecs, once for all processes forked from this one."""
    from barnabas.spark.processes.memory import limit_arenas
    from barnabas.wire.api import ApiKey
    from barnabas.wire.messages import request_of, response_of

    limit_arenas()
    for name in (*SHARED, *modules):
        import_module(name)
    for name in APIS:
        request, response = request_of(ApiKey[name]), response_of(ApiKey[name])
        _ = request.encoders[request.versions[-1]], response.decoders[response.versions[-1]]
    os.register_at_fork(after_in_child=_seed_numpy)
    gc.collect()
    gc.freeze()  # the first collection in a worker would otherwise write to, and so copy, all shared pages


def _seed_numpy() -> None:
    """Seed numpy's generator in each worker; Python's ``random`` does this by itself after a fork."""
    import numpy as np

    np.random.seed(random.SystemRandom().getrandbits(32))


if __name__ == "__main__":
    main()
