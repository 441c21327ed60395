"""Apache Kafka's jars from Maven: the broker, the clients, the tools and everything that they need at run time.

Maven resolves a project file which is written into the cache, and copies the closure there once per version; later
calls only look. Called by the Kafka peer of the benchmarks and by the Java side of the compatibility tests. Run it as
a program (`python -m tools.kafka_jars`) to fetch ahead of time and print the class path.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from tools.cache import cache_directory, locked

KAFKA_VERSION = "4.3.1"
# Brokers of these versions are what the tests of our clients talk to besides.
OLDER_VERSIONS = ("3.9.1", "2.8.2")
# Kafka compiles against a logging facade only, and leaves the choice of the logger to its distribution.
LOG4J_VERSION = "2.25.3"
RELOAD4J_VERSION = "1.7.36"
FETCH_SECONDS_MAX = 900


def _artifacts(version: str) -> tuple[tuple[str, str, str], ...]:
    if version == KAFKA_VERSION:
        return (
            ("org.apache.kafka", "kafka_2.13", version),
            ("org.apache.kafka", "kafka-tools", version),
            ("org.apache.logging.log4j", "log4j-slf4j-impl", LOG4J_VERSION),
            ("org.apache.logging.log4j", "log4j-core", LOG4J_VERSION),
        )
    # Before 4.0 Kafka named the classes of the first log4j, which lives on as reload4j.
    return (("org.apache.kafka", "kafka_2.13", version), ("org.slf4j", "slf4j-reload4j", RELOAD4J_VERSION))


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

_LOG4J_1 = """\
log4j.rootLogger=WARN, STDERR
log4j.appender.STDERR=org.apache.log4j.ConsoleAppender
log4j.appender.STDERR.Target=System.err
log4j.appender.STDERR.layout=org.apache.log4j.PatternLayout
log4j.appender.STDERR.layout.ConversionPattern=[%d] %p %m (%c)%n
"""


class JavaMissing(Exception):
    """A program that the Java side needs is not on this machine."""


def program(name: str) -> str:
    """The full path of a program of the Java world, or a sentence that says what to install."""
    path = shutil.which(name)
    if path is None:
        raise JavaMissing(f"`{name}` is not installed: Apache Kafka needs a JDK of at least 17 and Maven")
    return path


def kafka_libraries(version: str = KAFKA_VERSION) -> Path:
    """The directory with all jars of Apache Kafka, fetched on first use."""
    directory = cache_directory("kafka", version)
    complete = directory / ".complete"
    if complete.exists():
        return directory / "libs"
    with locked("kafka-jars"):
        if not complete.exists():
            fetch(directory, _artifacts(version))
            complete.touch()
    return directory / "libs"


def streams_libraries() -> Path:
    """Return the directory with the jars of Kafka Streams and of its test driver, fetched on first use."""
    directory = cache_directory("kafka-streams", KAFKA_VERSION)
    complete = directory / ".complete"
    with locked("kafka-streams-jars"):
        if not complete.exists():
            fetch(directory, (("org.apache.kafka", "kafka-streams-test-utils", KAFKA_VERSION),))
            complete.touch()
    return directory / "libs"


def class_path(version: str = KAFKA_VERSION) -> str:
    return f"{kafka_libraries(version)}/*"


def java_command(
    main_class: str,
    *arguments: str,
    options: tuple[str, ...] = (),
    classes: str = "",
    version: str = KAFKA_VERSION,
) -> list[str]:
    """A command line that runs one of Kafka's mains; `classes` puts a directory of ours in front of Kafka's jars."""
    path = f"{classes}:{class_path(version)}" if classes else class_path(version)
    logging = cache_directory("kafka", version)
    told = (
        f"-Dlog4j2.configurationFile={logging / 'log4j2.yaml'}",
        f"-Dlog4j.configuration=file:{logging / 'log4j.properties'}",
    )
    named = told[:1] if version == KAFKA_VERSION else told[1:]
    return [program("java"), *options, *named, "-cp", path, main_class, *arguments]


def fetch(directory: Path, artifacts: tuple[tuple[str, str, str], ...]) -> None:
    dependencies = "\n".join(
        f"    <dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
        f"<version>{number}</version></dependency>"
        for group, artifact, number in artifacts
    )
    project = directory / "pom.xml"
    project.write_text(
        '<project xmlns="http://maven.apache.org/POM/4.0.0">\n  <modelVersion>4.0.0</modelVersion>\n'
        "  <groupId>barnabas.bench</groupId><artifactId>kafka-jars</artifactId><version>1</version>\n"
        f"  <dependencies>\n{dependencies}\n  </dependencies>\n</project>\n"
    )
    (directory / "log4j2.yaml").write_text(_LOG4J)
    (directory / "log4j.properties").write_text(_LOG4J_1)
    subprocess.run(
        [
            *(program("mvn"), "-q", "-B", "-f", str(project), "dependency:copy-dependencies"),
            *("-DincludeScope=runtime", f"-DoutputDirectory={directory / 'libs'}"),
        ],
        check=True,
        timeout=FETCH_SECONDS_MAX,
    )


def main() -> None:
    for version in sys.argv[1:] or [KAFKA_VERSION]:
        print(class_path(version))


if __name__ == "__main__":
    main()
