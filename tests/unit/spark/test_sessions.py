"""What a session tells Java, and when it leaves that to the user."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark")

from barnabas.spark import sessions


@pytest.mark.parametrize(
    ("is_local", "memory", "given", "is_small"),
    [
        (True, sessions.DRIVER_MEMORY, "-Dmine=1", True),
        (True, "8g", "", False),
        (True, sessions.DRIVER_MEMORY, "-XX:+UseG1GC", False),
        (False, sessions.DRIVER_MEMORY, "", False),
    ],
)
def test_java_is_kept_small_where_nobody_said_otherwise(
    is_local: bool, memory: str, given: str, is_small: bool
) -> None:
    settings = {"spark.driver.memory": memory, "spark.driver.extraJavaOptions": given}
    told = sessions._with_java_options(settings, None, is_local=is_local)["spark.driver.extraJavaOptions"].split()
    assert set(sessions.SMALL_JAVA).issubset(told) == is_small
    assert set(given.split()).issubset(told)
