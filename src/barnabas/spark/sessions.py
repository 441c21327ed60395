"""A SparkSession that is set up for pipelines: what was measured to matter, and nothing that a user would miss.

Local by default, with nothing to install but ``barnabas[spark]``; ``master`` names a cluster, or ``sc://…`` a Spark
Connect server. Where executors run elsewhere they need this package too: in their image, or in ``environment``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from barnabas.spark.errors import NotInstalled
from barnabas.spark.java import ClassArchive, find_java
from barnabas.spark.spark_home import lean_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MISSING: Final = "{} is missing: `pip install 'barnabas[spark]'` brings all that pipelines need"
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
STATIC: Final = {
    "spark.python.daemon.module": "barnabas.spark.daemon",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "1g",
}


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
    if SparkSession.getActiveSession() is None:
        settings = _with_java(settings, fast_start=fast_start)
        _at_home(master)
    builder: Any = SparkSession.builder.appName(name).master(master)
    for key, value in settings.items():
        builder = builder.config(key, value)
    made: SparkSession = builder.getOrCreate()
    made.sparkContext.setLogLevel(log_level)
    return made


def _settings(master: str, environment: str | Path | None) -> dict[str, str]:
    settings = RUNTIME | STATIC
    if master.startswith("local"):
        # What shuffles and joins cut their data into: as much as there is to work on it, not the 200 of a cluster.
        settings["spark.sql.shuffle.partitions"] = str(os.cpu_count() or 1)
        settings["spark.driver.host"] = settings["spark.driver.bindAddress"] = "127.0.0.1"
    if environment is not None:
        settings["spark.archives"] = f"{environment}#{PACKED}"
        settings["spark.pyspark.driver.python"] = sys.executable
        settings["spark.pyspark.python"] = f"./{PACKED}/bin/python"
    else:
        # Spark would take whatever `python3` is on the path, which need not be the one that runs here.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    return settings


def _with_java(settings: dict[str, str], *, fast_start: bool) -> dict[str, str]:
    import pyspark

    java = find_java()
    os.environ["JAVA_HOME"] = str(java.home)
    options = [f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties')}"]
    options += ClassArchive(java, pyspark.__version__).options() if fast_start else []
    given = settings.get("spark.driver.extraJavaOptions", "")
    said = " ".join([*options, given]).strip()
    return settings | ({"spark.driver.extraJavaOptions": said} if said else {})


def _at_home(master: str) -> None:
    import pyspark

    if master.startswith("local") and "SPARK_HOME" not in os.environ:
        home = lean_home(Path(pyspark.__file__).parent, pyspark.__version__)
        if home is not None:
            os.environ["SPARK_HOME"] = str(home)


def _remote(builder: Any, name: str, master: str, config: Mapping[str, str] | None) -> SparkSession:
    try:
        made: SparkSession = builder.remote(master).appName(name).getOrCreate()
    except ImportError as error:
        raise NotInstalled("Spark Connect needs more: `pip install 'pyspark[connect]'`") from error
    for key, value in (RUNTIME | dict(config or {})).items():
        made.conf.set(key, value)
    return made
