"""``drive()``: runs an application for a test, in this process or on Spark.

::

    with drive(app) as driver:
        driver.send("lines", value="a b a", at=0)
        assert driver.table("word-counts") == {"a": 2, "b": 1}
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Literal

from barnabas.streams.app import App
from barnabas.streams.driver import Driver

__all__ = ["drive"]


@contextmanager
def drive(
    app: App,
    *,
    partitions: Mapping[str, int] | int = 1,
    start: int | datetime = 0,
    on: Literal["python", "spark"] = "python",
) -> Iterator[Driver]:
    """Run an application for a test, without a broker, and without Spark unless ``on`` is ``"spark"``.

    app: the application.
    partitions: number of partitions of the topics, for all of them or by topic.
    start: wall-clock time at the start, in milliseconds or as a datetime.
    on: ``"spark"`` runs the plan of production on the active Spark session. Records are then processed when results
        are read, those that were sent in between as one batch.
    """
    driver: Driver
    if on == "spark":
        from barnabas.streams.host.driver import SparkDriver

        driver = SparkDriver(app, partitions=partitions, start=start)
    else:
        driver = Driver(app, partitions=partitions, start=start)
    try:
        yield driver
    finally:
        driver.close()
