"""Spark's own Kafka connector from Maven, at the version of PySpark or the newest before it.

Maven resolves it into the cache once. PySpark sometimes reaches its index before the connector reaches Maven.
"""

from __future__ import annotations

import subprocess
import urllib.request
from pathlib import Path

from tools.cache import cache_directory, locked
from tools.kafka_jars import program

ARTIFACT = "spark-sql-kafka-0-10_2.13"
NEEDED = ("spark-sql-kafka", "spark-token-provider-kafka", "kafka-clients", "commons-pool2", "jsr305", "scala-parallel")
METADATA = f"https://repo.maven.apache.org/maven2/org/apache/spark/{ARTIFACT}/maven-metadata.xml"
FETCH_SECONDS_MAX = 600


def connector_version() -> str:
    """That of PySpark, or the newest release that Maven has."""
    import re

    import pyspark

    with urllib.request.urlopen(METADATA, timeout=60) as answer:
        versions = re.findall(r"<version>([\d.]+)</version>", answer.read().decode())
    ordered = sorted(versions, key=lambda version: [int(part) for part in version.split(".")])
    mine = [int(part) for part in pyspark.__version__.split(".")]
    return [version for version in ordered if [int(part) for part in version.split(".")] <= mine][-1]


def connector_jars() -> list[Path]:
    version = connector_version()
    directory = cache_directory("spark-kafka", version)
    with locked("spark-kafka-jars"):
        if not (directory / ".complete").exists():
            project = directory / "pom.xml"
            project.write_text(
                '<project xmlns="http://maven.apache.org/POM/4.0.0">\n  <modelVersion>4.0.0</modelVersion>\n'
                "  <groupId>barnabas.bench</groupId><artifactId>spark-jars</artifactId><version>1</version>\n"
                f"  <dependencies><dependency><groupId>org.apache.spark</groupId><artifactId>{ARTIFACT}</artifactId>"
                f"<version>{version}</version></dependency></dependencies>\n</project>\n"
            )
            copy = ("dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={directory / 'libs'}")
            subprocess.run(
                [program("mvn"), "-q", "-B", "-f", str(project), *copy], check=True, timeout=FETCH_SECONDS_MAX
            )
            (directory / ".complete").touch()
    return sorted(path for path in (directory / "libs").glob("*.jar") if path.name.startswith(NEEDED))
