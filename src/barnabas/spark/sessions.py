"""Creates a SparkSession with the settings that pipelines need.

Spark runs on this machine by default, with nothing to install but ``barnabas[spark]``; ``master`` names a cluster, or
``sc://…`` a Spark Connect server. Executors elsewhere need this package too: in their image, or in ``environment``.
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
from barnabas.spark.processes.fast_start import PYTHONS, FastStart, is_on
from barnabas.spark.processes.java import find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MISSING: Final = "{} is missing: run `pip install 'barnabas[spark]'`"
PACKED: Final = "environment"  # directory into which Spark unpacks the archive beside an executor
# Settings that may change while Spark runs, so that they reach a Connect server too.
RUNTIME: Final = {
    # Exactly this number disables a check whose time is quadratic for columns of lists, such as headers.
    "spark.sql.execution.arrow.maxBytesPerBatch": "2147483647",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
DRIVER_MEMORY: Final = "1g"
STATIC: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": DRIVER_MEMORY,
}
# For a heap of DRIVER_MEMORY on one machine. By default Java starts with a 64th of the machine's memory, fills it
# before it collects, and keeps its largest size.
SMALL_JAVA: Final = ("-XX:+UseSerialGC", "-Xms64m", "-XX:MinHeapFreeRatio=20", "-XX:MaxHeapFreeRatio=40")


def session(
    name: str = "barnabas",
    *,
    master: str | None = None,
    config: Mapping[str, str] | None = None,
    environment: str | Path | None = None,
    log_level: str = "ERROR",
) -> SparkSession:
    """Return a new session, or the one that is active already.

    ``environment`` is a packed virtual environment (``venv-pack``, ``conda-pack``) that executors unpack and run;
    without it they run the Python of the same path as here. ``config`` overrides every setting;
    ``spark.barnabas.fastStart=false`` starts Spark's processes as Spark does it by itself.
    """
    for package in ("pyspark", "pyarrow"):
        if find_spec(package) is None:
            raise NotInstalled(MISSING.format(package))
    import pyspark
    from pyspark.sql import SparkSession

    given = dict(config or {})
    if master is not None and master.startswith("sc://"):
        return _remote(SparkSession.builder, name, master, given)
    master = master or os.environ.get("MASTER") or "local[*]"
    settings = _settings(master, environment) | given
    fast = None
    if SparkSession.getActiveSession() is None:
        java = find_java()
        os.environ["JAVA_HOME"] = str(java.home)
        if is_on(given, pyspark.__version__):
            fast = FastStart(master, java, pyspark.__version__, has_own_python=environment is not None)
            settings = fast.settings | settings
        settings = _with_java_options(settings, fast, is_local=master.startswith("local"))
    builder: Any = SparkSession.builder.appName(name).master(master)
    for key, value in settings.items():
        builder = builder.config(key, value)
    with _environment({} if fast is None else fast.environment):
        made: SparkSession = builder.getOrCreate()
    if fast is not None:
        fast.wait()
    made.sparkContext.setLogLevel(log_level)
    return made


def _settings(master: str, environment: str | Path | None) -> dict[str, str]:
    settings = RUNTIME | STATIC
    if master.startswith("local"):
        # Partitions of shuffles and joins: one for each core, not the 200 of a cluster.
        settings["spark.sql.shuffle.partitions"] = str(os.cpu_count() or 1)
        settings["spark.driver.host"] = settings["spark.driver.bindAddress"] = "127.0.0.1"
    if environment is not None:
        settings["spark.archives"] = f"{environment}#{PACKED}"
        settings["spark.pyspark.driver.python"] = sys.executable
        settings["spark.pyspark.python"] = f"./{PACKED}/bin/python"
    else:
        # Spark's default is `python3` on the path, which need not be the Python that runs here.
        for variable in PYTHONS:
            os.environ.setdefault(variable, sys.executable)
    return settings


def _with_java_options(settings: dict[str, str], fast: FastStart | None, *, is_local: bool) -> dict[str, str]:
    options = [f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties')}"]
    options += [] if fast is None else fast.java_options
    given = settings.get("spark.driver.extraJavaOptions", "")
    options += SMALL_JAVA if is_local and settings["spark.driver.memory"] == DRIVER_MEMORY and "GC" not in given else ()
    return settings | {"spark.driver.extraJavaOptions": " ".join([*options, given]).strip()}


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Set variables for processes that are started within the block only."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def _remote(builder: Any, name: str, master: str, config: Mapping[str, str]) -> SparkSession:
    try:
        made: SparkSession = builder.remote(master).appName(name).getOrCreate()
    except ImportError as error:
        raise NotInstalled("Spark Connect needs more packages: run `pip install 'pyspark[connect]'`") from error
    for key, value in (RUNTIME | dict(config)).items():
        made.conf.set(key, value)
    return made
