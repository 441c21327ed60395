"""Apache Kafka's jars from Maven: the broker, the clients, the tools and everything that they need at run time.

Maven resolves a project file which is written into the cache, and copies the closure there once per version; later
calls only look. Called by the Kafka peer of the benchmarks and by the Java side of the compatibility tests. Run it as
a program (`python -m tools.kafka_jars`) to fetch ahead of time and print the class path.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tools.cache import cache_directory, locked

KAFKA_VERSION = "4.3.1"
# Kafka compiles against a logging facade only, and leaves the choice of the logger to its distribution.
LOG4J_VERSION = "2.25.3"
FETCH_SECONDS_MAX = 900

_ARTIFACTS = (
    ("org.apache.kafka", "kafka_2.13", KAFKA_VERSION),
    ("org.apache.kafka", "kafka-tools", KAFKA_VERSION),
    ("org.apache.logging.log4j", "log4j-slf4j-impl", LOG4J_VERSION),
    ("org.apache.logging.log4j", "log4j-core", LOG4J_VERSION),
)

# The tools print their results on standard output, so the logger speaks on the other one, and only of what is wrong.
_LOG4J = """\
Configuration:
  Appenders:
    Console:
      name: STDERR
      target: SYSTEM_ERR
      PatternLayout:
        pattern: "[%d] %p %m (%c)%n"
  Loggers:
    Root:
      level: WARN
      AppenderRef:
        - ref: STDERR
"""


class JavaMissing(Exception):
    """A program that the Java side needs is not on this machine."""


def program(name: str) -> str:
    """The full path of a program of the Java world, or a sentence that says what to install."""
    path = shutil.which(name)
    if path is None:
        raise JavaMissing(f"`{name}` is not installed: Apache Kafka needs a JDK of at least 17 and Maven")
    return path


def kafka_libraries() -> Path:
    """The directory with all jars of Apache Kafka, fetched on first use."""
    directory = cache_directory("kafka", KAFKA_VERSION)
    complete = directory / ".complete"
    if complete.exists():
        return directory / "libs"
    with locked("kafka-jars"):
        if not complete.exists():
            _fetch(directory)
            complete.touch()
    return directory / "libs"


def class_path() -> str:
    return f"{kafka_libraries()}/*"


def java_command(main_class: str, *arguments: str, options: tuple[str, ...] = (), classes: str = "") -> list[str]:
    """A command line that runs one of Kafka's mains; `classes` puts a directory of ours in front of Kafka's jars."""
    path = f"{classes}:{class_path()}" if classes else class_path()
    logging = cache_directory("kafka", KAFKA_VERSION) / "log4j2.yaml"
    return [program("java"), *options, f"-Dlog4j2.configurationFile={logging}", "-cp", path, main_class, *arguments]


def _fetch(directory: Path) -> None:
    dependencies = "\n".join(
        f"    <dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
        f"<version>{version}</version></dependency>"
        for group, artifact, version in _ARTIFACTS
    )
    project = directory / "pom.xml"
    project.write_text(
        '<project xmlns="http://maven.apache.org/POM/4.0.0">\n  <modelVersion>4.0.0</modelVersion>\n'
        "  <groupId>barnabas.bench</groupId><artifactId>kafka-jars</artifactId><version>1</version>\n"
        f"  <dependencies>\n{dependencies}\n  </dependencies>\n</project>\n"
    )
    (directory / "log4j2.yaml").write_text(_LOG4J)
    subprocess.run(
        [
            *(program("mvn"), "-q", "-B", "-f", str(project), "dependency:copy-dependencies"),
            *("-DincludeScope=runtime", f"-DoutputDirectory={directory / 'libs'}"),
        ],
        check=True,
        timeout=FETCH_SECONDS_MAX,
    )


def main() -> None:
    print(class_path())


if __name__ == "__main__":
    main()
