"""A SparkSession that is set up for pipelines: what was measured to matter, and nothing that a user would miss.

Local by default, with nothing to install but ``barnabas[spark]``; ``master`` names a cluster, or ``sc://…`` a Spark
Connect server. Where executors run elsewhere they need this package too: in their image, or in ``environment``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from barnabas.spark.errors import NotInstalled
from barnabas.spark.processes.converters import spare_numpy
from barnabas.spark.processes.fork_server import Nursery, nursery
from barnabas.spark.processes.java import ClassArchive, cache_directory, find_java
from barnabas.spark.processes.memory import ARENAS_MAX
from barnabas.spark.processes.spark_home import lean_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MISSING: Final = "{} is missing: `pip install 'barnabas[spark]'` brings all that pipelines need"
PYTHONS: Final = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
ARENAS: Final = "MALLOC_ARENA_MAX"  # for Java's threads, of which Spark has hundreds
PACKED: Final = "environment"  # where an archive is unpacked beside an executor
# Each of these may be changed while Spark runs, so they reach a Connect server too.
RUNTIME: Final = {
    # Exactly this number switches off a check that is quadratic for columns of lists, as headers are.
    "spark.sql.execution.arrow.maxBytesPerBatch": "2147483647",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
# Of two ways to a file the other, Spark's first choice, starts several processes (`chmod`, `readlink`) for each note of
# a batch on a local disk, for want of Hadoop's native library; this one fewer. A rename is as atomic with it.
LOCAL_CHECKPOINTS: Final = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    )
}
DRIVER_MEMORY: Final = "1g"
STATIC: Final = {
    "spark.python.daemon.module": "barnabas.spark.processes.daemon",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": DRIVER_MEMORY,
}
# For a heap of this size on one machine: Java would start with a 64th of the machine's memory, fill all of it before it
# collects any, and keep what it had at its largest.
SMALL_JAVA: Final = ("-XX:+UseSerialGC", "-Xms64m", "-XX:MinHeapFreeRatio=20", "-XX:MaxHeapFreeRatio=40")


def session(
    name: str = "barnabas",
    *,
    master: str | None = None,
    config: Mapping[str, str] | None = None,
    environment: str | Path | None = None,
    log_level: str = "ERROR",
    fast_start: bool = True,
) -> SparkSession:
    """A session, or the one that there is already.

    ``environment`` is a packed virtual environment (``venv-pack``, ``conda-pack``) that executors unpack and run;
    without it they run the Python of the same path as here. ``config`` overrides anything.
    """
    for package in ("pyspark", "pyarrow"):
        if find_spec(package) is None:
            raise NotInstalled(MISSING.format(package))
    from pyspark.sql import SparkSession

    if master is not None and master.startswith("sc://"):
        return _remote(SparkSession.builder, name, master, config)
    master = master or os.environ.get("MASTER") or "local[*]"
    settings = _settings(master, environment) | dict(config or {})
    young = None
    if SparkSession.getActiveSession() is None:
        settings = _with_java(settings, is_local=master.startswith("local"), fast_start=fast_start)
        _at_home(master)
        young = _nursery(master, environment)
        spare_numpy()
    builder: Any = SparkSession.builder.appName(name).master(master)
    for key, value in settings.items():
        builder = builder.config(key, value)
    arenas = {ARENAS: os.environ.get(ARENAS, str(ARENAS_MAX))} if master.startswith("local") else {}
    with _environment(arenas | ({} if young is None else young.environment)):
        made: SparkSession = builder.getOrCreate()
    if young is not None:
        young.wait()
    made.sparkContext.setLogLevel(log_level)
    return made


def _settings(master: str, environment: str | Path | None) -> dict[str, str]:
    settings = RUNTIME | STATIC
    if master.startswith("local"):
        settings |= LOCAL_CHECKPOINTS
        # What shuffles and joins cut their data into: as much as there is to work on it, not the 200 of a cluster.
        settings["spark.sql.shuffle.partitions"] = str(os.cpu_count() or 1)
        settings["spark.driver.host"] = settings["spark.driver.bindAddress"] = "127.0.0.1"
    if environment is not None:
        settings["spark.archives"] = f"{environment}#{PACKED}"
        settings["spark.pyspark.driver.python"] = sys.executable
        settings["spark.pyspark.python"] = f"./{PACKED}/bin/python"
    else:
        # Spark would take whatever `python3` is on the path, which need not be the one that runs here.
        for variable in PYTHONS:
            os.environ.setdefault(variable, sys.executable)
    return settings


def _with_java(settings: dict[str, str], *, is_local: bool, fast_start: bool) -> dict[str, str]:
    import pyspark

    java = find_java()
    os.environ["JAVA_HOME"] = str(java.home)
    options = [f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties')}"]
    options += ClassArchive(java, pyspark.__version__).options() if fast_start else []
    given = settings.get("spark.driver.extraJavaOptions", "")
    options += SMALL_JAVA if is_local and settings["spark.driver.memory"] == DRIVER_MEMORY and "GC" not in given else ()
    said = " ".join([*options, given]).strip()
    return settings | ({"spark.driver.extraJavaOptions": said} if said else {})


def _at_home(master: str) -> None:
    import pyspark

    if master.startswith("local") and "SPARK_HOME" not in os.environ:
        home = lean_home(Path(pyspark.__file__).parent, pyspark.__version__)
        if home is not None:
            os.environ["SPARK_HOME"] = str(home)


def _nursery(master: str, environment: str | Path | None) -> Nursery | None:
    """For Spark's processes of Python on this machine, unless somebody has chosen another Python for them."""
    chosen = {os.environ.get(name, sys.executable) for name in PYTHONS}
    if not master.startswith("local") or environment is not None or chosen != {sys.executable}:
        return None
    return nursery(cache_directory())


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """For what is started in between; other programs that this process starts later shall not see it."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def _remote(builder: Any, name: str, master: str, config: Mapping[str, str] | None) -> SparkSession:
    try:
        made: SparkSession = builder.remote(master).appName(name).getOrCreate()
    except ImportError as error:
        raise NotInstalled("Spark Connect needs more: `pip install 'pyspark[connect]'`") from error
    for key, value in (RUNTIME | dict(config or {})).items():
        made.conf.set(key, value)
    return made
