"""Spark's own Kafka connector from Maven: at the version of PySpark, or the newest before it that is there.

Four jars, fetched one by one into the cache: resolving the connector's project would fetch most of Spark again, which
PySpark has brought already. Not every repository has every part at every version, so each is looked for by itself.
"""

from __future__ import annotations

import re
import urllib.request
from pathlib import Path

from tools.cache import cache_directory, locked

REPOSITORY = "https://repo.maven.apache.org/maven2"
SPARK_PARTS = ("spark-sql-kafka-0-10_2.13", "spark-token-provider-kafka-0-10_2.13")
FETCH_SECONDS_MAX = 300


def versions() -> dict[str, str]:
    """What is taken of each part."""
    found = {part: _newest(part) for part in SPARK_PARTS}
    parent = f"org/apache/spark/spark-parent_2.13/{found[SPARK_PARTS[0]]}/spark-parent_2.13-{found[SPARK_PARTS[0]]}.pom"
    project = _get(parent).decode()
    for name, artifact in (("kafka", "kafka-clients"), ("commons-pool2", "commons-pool2")):
        said = re.search(rf"<{name}\.version>(.+?)</{name}\.version>", project)
        assert said is not None, f"{parent} does not say which {name} it wants"
        found[artifact] = said[1]
    return found


def connector_jars() -> list[Path]:
    groups = {"kafka-clients": "org/apache/kafka", "commons-pool2": "org/apache/commons"}
    jars = []
    with locked("spark-kafka-jars"):
        for artifact, version in versions().items():
            name = f"{artifact}-{version}.jar"
            jar = cache_directory("spark-kafka") / name
            if not jar.exists():
                group = groups.get(artifact, "org/apache/spark")
                fresh = jar.with_suffix(".part")
                fresh.write_bytes(_get(f"{group}/{artifact}/{version}/{name}"))
                fresh.rename(jar)
            jars.append(jar)
    return jars


def _newest(artifact: str) -> str:
    import pyspark

    told = _get(f"org/apache/spark/{artifact}/maven-metadata.xml").decode()
    known = sorted(_numbers(version) for version in re.findall(r"<version>([\d.]+)</version>", told))
    mine = _numbers(pyspark.__version__)
    return ".".join(map(str, [version for version in known if version <= mine][-1]))


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def _get(path: str) -> bytes:
    with urllib.request.urlopen(f"{REPOSITORY}/{path}", timeout=FETCH_SECONDS_MAX) as answer:
        body: bytes = answer.read()
        return body
