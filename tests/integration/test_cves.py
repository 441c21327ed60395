"""What went wrong in other brokers and clients of this protocol, tried on ours, each with its number."""

from __future__ import annotations

import ast
import asyncio
import re
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from talk import Raw, Talk, batch, produce_request

from barnabas.broker.requests.routes import CONTROLLER_ROUTES, ROUTES
from barnabas.model.errors import BarnabasError
from barnabas.model.settings import InvalidSetting
from barnabas.testing import Broker
from barnabas.transport.channel import Channel
from barnabas.wire.api import ApiKey
from barnabas.wire.compression import Codec
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.describe_configs import DescribeConfigsRequest
from barnabas.wire.messages.fetch_snapshot import FetchSnapshotRequest
from barnabas.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.records import decode_all, encode_batch

ROOT = Path(__file__).parents[2]
# Every one that applies to a broker and clients in Python; those of Java's logging and of Connect's REST do not.
NUMBERS = (
    "2026-111108", "2026-111115", "2026-111073", "2026-83525", "2026-110985", "2026-33557", "2026-35554",
    "2026-10142", "2026-10143", "2025-27817", "2025-27818", "2025-27819", "2023-25194", "2024-56128", "2024-31141",
    "2024-27309", "2023-34455", "2022-34917", "2021-38153", "2019-12399", "2018-17196", "2018-1288", "2017-12610",
)  # fmt: skip


def test_each_number_is_in_the_name_of_a_test() -> None:
    text = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    names = re.findall(r"def (test_\w*cve_\w+)|class (Cve\w+)", text)
    joined = " ".join((first or second).replace("_", "") for first, second in names).lower()
    for number in NUMBERS:
        assert number.replace("-", "") in joined, number


# --- what only nodes ask each other -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def node() -> Iterator[Broker]:
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    }
    with Broker(settings=settings) as running:
        yield running


@pytest.mark.parametrize("key", sorted(CONTROLLER_ROUTES), ids=lambda key: ApiKey(key).name)
def test_cve_2026_83525_an_empty_request_between_nodes_kills_no_controller(node: Broker, key: int) -> None:
    route = CONTROLLER_ROUTES[key]
    for version in route.versions:
        with Talk(node.address_of("CONTROLLER")) as talk, suppress(BarnabasError):
            talk.ask(route.request(), version)  # hung up on: that is an answer, too
    assert not node.node.failed.is_set()
    with Talk(node.bootstrap_servers) as talk:
        talk.create(f"after-{ApiKey(key).name.lower().replace('_', '-')}")


def test_cve_2026_83525_a_snapshot_of_nothing_or_of_everything_twice(node: Broker) -> None:
    topic = FetchSnapshotRequest.TopicSnapshot(name="__cluster_metadata", partitions=[])
    part = FetchSnapshotRequest.PartitionSnapshot(
        partition=0, snapshot_id=FetchSnapshotRequest.SnapshotId(end_offset=2**62, epoch=2**30), position=-5
    )
    twice = FetchSnapshotRequest.TopicSnapshot(name="__cluster_metadata", partitions=[part, part])
    for topics in ([], [topic], [topic, topic], [twice], [twice, twice]):
        with Talk(node.address_of("CONTROLLER")) as talk, suppress(BarnabasError):
            talk.ask(FetchSnapshotRequest(replica_id=7, max_bytes=-1, topics=topics))
    assert not node.node.failed.is_set()
    with Talk(node.bootstrap_servers) as talk:
        talk.create("after-snapshots")


# --- memory that is used again ----------------------------------------------------------------------------------------


def test_cve_2026_35554_batches_checked_in_workers_are_written_as_they_came(shared_broker: Broker, name: str) -> None:
    """Frames live in pooled memory; while one batch is being checked elsewhere, others must not be read into it."""
    values = [bytes([65 + number]) * 200_000 for number in range(8)]
    records = [encode_batch([(0, None, value, ())], codec=Codec.LZ4) for value in values]
    large = [batch(value) for value in values]
    with Talk(shared_broker.bootstrap_servers) as first, Talk(shared_broker.bootstrap_servers) as second:
        first.create(name, partitions=2)
        requests = [produce_request(name, each, partition=0) for each in records]
        others = [produce_request(name, each, partition=1) for each in large]
        for one, other in zip(requests, others, strict=True):
            first.ask_all((one, 12), (one, 12))
            second.ask_all((other, 12), (other, 12))
        for partition in (0, 1):
            found: list[bytes] = []
            while len(found) < 16:
                row = first.fetch(name, len(found), partition=partition, partition_max_bytes=1 << 24)
                found += [record.value or b"" for record in decode_all(row.records or b"")]
            assert found == [value for value in values for _ in range(2)]


# --- lengths ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [-1, -(2**31), 0, 2**31 - 1, 100 * 1024 * 1024 + 1])
def test_cve_2026_10142_a_broker_closes_at_once_on_a_length_that_cannot_be(shared_broker: Broker, size: int) -> None:
    with Raw(shared_broker.bootstrap_servers) as raw:
        raw.send(struct.pack(">i", size))
        assert raw.is_closed()


@pytest.mark.parametrize("size", [-1, -(2**31), 0, 2**31 - 1])
def test_cve_2026_10142_a_client_closes_at_once_on_a_length_that_cannot_be(size: int) -> None:
    async def run() -> None:
        async def lie(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(100)
            writer.write(struct.pack(">i", size))
            await reader.read()
            writer.close()

        server = await asyncio.start_server(lie, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server:
            channel = await Channel.connect("127.0.0.1", port, client_id=None)
            with pytest.raises(BarnabasError):
                await asyncio.wait_for(channel.post(ApiVersionsRequest(), 0), 10)
            assert not channel.is_open
            await channel.closed

    asyncio.run(run())


# --- names from settings ----------------------------------------------------------------------------------------------


def used(path: Path) -> tuple[set[str], set[str]]:
    """What a module imports, and what it calls."""
    imported, called = set[str](), set[str]()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add((node.module or "").split(".")[0])
        elif isinstance(node, ast.Call):
            called.add(node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", ""))
    return imported, called


def test_cve_2025_27818_cve_2025_27819_nothing_is_loaded_by_a_name_from_a_setting_or_a_topic() -> None:
    source = ROOT / "src" / "barnabas"
    rooms = ("broker", "coordinator", "metadata", "raft", "replication", "security", "transport", "model", "http",
             "observe")  # fmt: skip
    for path in (path for room in rooms for path in sorted((source / room).rglob("*.py"))):
        imported, called = used(path)
        if path == source / "broker" / "requests" / "routes.py":
            called -= {"import_module"}  # of the modules in broker/handlers, which no setting and no request names
        assert not imported & {"pickle", "marshal", "shelve", "runpy", "yaml"}, path
        assert not called & {"eval", "exec", "__import__", "import_module"}, path


def config(name: str, value: str, *, kind: int = 4, resource: str = "") -> IncrementalAlterConfigsRequest:
    row = IncrementalAlterConfigsRequest
    return row(
        resources=[
            row.AlterConfigsResource(
                resource_type=kind, resource_name=resource, configs=[row.AlterableConfig(name=name, value=value)]
            )
        ]
    )


@pytest.mark.parametrize("module", ["com.sun.security.auth.module.JndiLoginModule",
                                    "com.sun.security.auth.module.LdapLoginModule"])  # fmt: skip
def test_cve_2025_27818_cve_2025_27819_no_login_module_is_set_from_afar(shared_broker: Broker, module: str) -> None:
    with Talk(shared_broker.bootstrap_servers) as talk:
        for name in ("sasl.jaas.config", "plain.sasl.jaas.config", "listener.name.plaintext.plain.sasl.jaas.config"):
            (row,) = talk.ask(config(name, f"{module} required;")).responses
            assert row.error_code != 0


def test_cve_2024_31141_nothing_is_read_from_files_or_the_environment_for_a_setting(
    shared_broker: Broker, name: str
) -> None:
    with Talk(shared_broker.bootstrap_servers) as talk:
        talk.create(name)
        for value in ("${file:/etc/passwd:root}", "${env:HOME}", "${dir:/etc:passwd}"):
            (row,) = talk.ask(config("cleanup.policy", value, kind=2, resource=name)).responses
            assert row.error_code != 0, "it is no policy, and stands for none"
            (row,) = talk.ask(config("leader.replication.throttled.replicas", value, kind=2, resource=name)).responses
            assert row.error_code != 0 or value in str(
                talk.ask(
                    DescribeConfigsRequest(
                        resources=[DescribeConfigsRequest.DescribeConfigsResource(resource_type=2, resource_name=name)]
                    )
                )
            )
    with pytest.raises(InvalidSetting), Broker(settings={"num.partitions": "${env:SHLVL}"}):
        pass


def test_cve_2026_111073_telemetry_of_clients_is_not_taken(shared_broker: Broker) -> None:
    assert ApiKey.PUSH_TELEMETRY not in ROUTES
    with Raw(shared_broker.bootstrap_servers) as raw:
        raw.send_frame(struct.pack(">hhih", ApiKey.PUSH_TELEMETRY, 0, 1, -1) + bytes(100))
        assert raw.is_closed()
    with Talk(shared_broker.bootstrap_servers) as talk:
        assert talk.ask(MetadataRequest(topics=[])).brokers
