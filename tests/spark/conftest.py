"""One Spark for all tests of this folder, and a broker in a process of its own: workers of Spark must reach it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from barnabas import NewTopic, ProducerSettings, Settings, blocking
from barnabas.testing import BrokerProcess

pyspark = pytest.importorskip("pyspark")
# The tools of the repository, and the modules beside this file, are not installed anywhere.
sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]
QUERY_SECONDS_MAX = 120


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    import barnabas.spark

    made = barnabas.spark.session(
        "tests",
        master="local[2]",
        config={
            "spark.driver.memory": "768m",
            "spark.sql.python.filterPushdown.enabled": "true",
            # Tests are over before a compiler that thinks long would have paid.
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        },
    )
    yield made
    made.stop()


@pytest.fixture(scope="session")
def shared_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("broker")) as broker:
        yield broker


@pytest.fixture
def stage(spark: Any, shared_broker: BrokerProcess, tmp_path: Path, request: pytest.FixtureRequest) -> Stage:
    return Stage(spark, shared_broker.bootstrap_servers, tmp_path, request.node.name)


class Stage:
    """A test's own topics on the shared broker, and the few things that every test does with them."""

    def __init__(self, spark: Any, servers: str, directory: Path, name: str) -> None:
        self.spark = spark
        self.servers = servers
        self.directory = directory
        self._name = "".join(letter if letter.isalnum() else "-" for letter in name)[:80]

    def topic(self, name: str, partitions: int = 1, **configs: str) -> str:
        full = f"{name}-{self._name}"
        with self.admin() as admin:
            told = {key.replace("_", "."): value for key, value in configs.items()}
            admin.create_topic(NewTopic(full, partitions, configs=told))
        return full

    def admin(self) -> blocking.Admin:
        return blocking.Admin(Settings.of({"bootstrap.servers": self.servers}))

    def send(self, topic: str, values: Sequence[object], *, keys: Sequence[object] | None = None) -> None:
        with blocking.Producer(ProducerSettings.of({"bootstrap.servers": self.servers})) as producer:
            names = [None] * len(values) if keys is None else [str(key).encode() for key in keys]
            producer.send_many(topic, [(key, str(v).encode()) for key, v in zip(names, values, strict=True)])

    def values(self, topic: str) -> list[str]:
        """What a reader of committed records sees: another client than the one under test would see the same."""
        table = blocking.read(topic, bootstrap_servers=self.servers, isolation_level="read_committed")
        return sorted(value.decode() for value in table.column("value").to_pylist())

    def options(self, options: Mapping[str, object]) -> dict[str, str]:
        return {"kafka.bootstrap.servers": self.servers} | {name: str(value) for name, value in options.items()}

    def read(self, **options: object) -> Any:
        return self.spark.read.format("barnabas").options(**self.options(options)).load()

    def stream(self, **options: object) -> Any:
        return self.spark.readStream.format("barnabas").options(**self.options(options)).load()

    def run(self, frame: Any, topic: str, checkpoint: str = "checkpoint", **options: object) -> Any:
        """Everything that is there into a topic; answers the query, which has ended."""
        rows = frame.select("key", "value")  # a column partition would be obeyed
        writer = rows.writeStream.format("barnabas").options(**self.options({"topic": topic} | options))
        return self.finish(writer, checkpoint)

    def finish(self, writer: Any, checkpoint: str = "checkpoint") -> Any:
        location = str(self.directory / checkpoint)
        query = writer.option("checkpointLocation", location).trigger(availableNow=True).start()
        try:
            assert query.awaitTermination(QUERY_SECONDS_MAX), "the query did not end"
        finally:
            query.stop()
        return query

    def progress(self, query: Any) -> list[dict[str, Any]]:
        return [json.loads(each.json) for each in query.recentProgress]

    def committed(self, group: str) -> dict[str, int]:
        with self.admin() as admin:
            return {str(place): entry.offset for place, entry in admin.group_offsets(group).items()}
