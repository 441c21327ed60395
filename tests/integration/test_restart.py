"""A broker as a process: it stops when told, comes back as it was, and says in one line why it cannot start."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from talk import Raw, Talk, batch, creatable, fetch_request, joined

from barnabas.cli.main import main
from barnabas.testing import Broker, BrokerProcess
from barnabas.testing.process import BrokerFailed
from barnabas.wire.frame import encode_request
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.delete_records import DeleteRecordsRequest
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest
from barnabas.wire.messages.describe_configs import DescribeConfigsRequest
from barnabas.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from barnabas.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from barnabas.wire.messages.metadata import MetadataRequest

SECONDS_MAX = 20
TOPIC, BROKER = 2, 4


@pytest.fixture
def process(tmp_path: Path) -> Iterator[BrokerProcess]:
    broker = BrokerProcess(tmp_path / "data")
    broker.start()
    yield broker
    broker.stop()


def alter(talk: Talk, kind: int, name: str, key: str, value: str) -> None:
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[IncrementalAlterConfigsRequest.AlterableConfig(name=key, value=value)],
    )
    assert talk.ask(IncrementalAlterConfigsRequest(resources=[resource])).responses[0].error_code == 0


def setting(talk: Talk, kind: int, name: str, key: str) -> str:
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=[key]
    )
    value: str = talk.ask(DescribeConfigsRequest(resources=[resource])).results[0].configs[0].value
    return value


def test_everything_is_there_after_a_clean_stop(process: BrokerProcess) -> None:
    with Talk(process.bootstrap_servers) as talk:
        topic_id = talk.create("kept", 2, retention_ms="-1")
        talk.create("gone")
        alter(talk, TOPIC, "kept", "max.message.bytes", "5000")
        alter(talk, BROKER, "", "num.partitions", "3")
        producer_id = talk.ask(InitProducerIdRequest(transactional_id=None)).producer_id
        for number in range(5):
            sent = batch(b"%d" % number, producer_id=producer_id, producer_epoch=0, base_sequence=number)
            assert talk.produce("kept", bytes(sent)).base_offset == number
        rows = [DeleteRecordsRequest.DeleteRecordsPartition(partition_index=0, offset=2)]
        topics = [DeleteRecordsRequest.DeleteRecordsTopic(name="kept", partitions=rows)]
        assert talk.ask(DeleteRecordsRequest(topics=topics)).topics[0].partitions[0].low_watermark == 2
    process.stop()
    process.start()
    with Talk(process.bootstrap_servers) as talk:
        assert talk.topic_id("kept") == topic_id
        assert setting(talk, TOPIC, "kept", "max.message.bytes") == "5000"
        assert setting(talk, TOPIC, "kept", "retention.ms") == "-1"
        assert setting(talk, BROKER, "1", "num.partitions") == "3"
        assert talk.offset("kept", -2).offset == 2
        assert [record.value for record in talk.read("kept", 2)] == [b"2", b"3", b"4"]
        last = batch(b"4", producer_id=producer_id, producer_epoch=0, base_sequence=4)
        assert talk.produce("kept", bytes(last)).base_offset == 4, "the last batch of a producer is still known"
        following = batch(b"5", producer_id=producer_id, producer_epoch=0, base_sequence=5)
        assert talk.produce("kept", bytes(following)).base_offset == 5
        assert talk.ask(InitProducerIdRequest(transactional_id=None)).producer_id != producer_id


def test_what_was_acknowledged_is_there_after_a_kill(process: BrokerProcess) -> None:
    with Talk(process.bootstrap_servers) as talk:
        topic_id = talk.create("kept", 2)
        alter(talk, TOPIC, "kept", "max.message.bytes", "5000")
        for number in range(20):
            assert talk.produce("kept", batch(b"%d" % number)).base_offset == number
        before = talk.ask(InitProducerIdRequest(transactional_id=None)).producer_id
        process.kill()
    process.start()
    with Talk(process.bootstrap_servers) as talk:
        assert talk.topic_id("kept") == topic_id
        assert setting(talk, TOPIC, "kept", "max.message.bytes") == "5000"
        assert [record.value for record in talk.read("kept")] == [b"%d" % number for number in range(20)]
        assert talk.offset("kept", -1).offset == 20
        assert talk.produce("kept", batch(b"next")).base_offset == 20
        assert talk.ask(InitProducerIdRequest(transactional_id=None)).producer_id > before, (
            "an id that was given out is not given again"
        )


def test_topics_made_and_deleted_just_before_a_kill(process: BrokerProcess) -> None:
    with Talk(process.bootstrap_servers) as talk:
        for number in range(10):
            talk.create(f"t{number}", 2)
        for number in range(0, 10, 2):
            state = DeleteTopicsRequest.DeleteTopicState(name=f"t{number}")
            assert talk.ask(DeleteTopicsRequest(topics=[state], timeout_ms=5000)).responses[0].error_code == 0
        process.kill()
    process.start()
    with Talk(process.bootstrap_servers) as talk:
        names = [topic.name for topic in talk.ask(MetadataRequest(topics=None)).topics]
        assert names == [f"t{number}" for number in range(1, 10, 2)]
        for name in names:
            assert talk.produce(name, batch(b"x"), partition=1).error_code == 0
    left = {path.name for path in process.data_dir.iterdir() if path.is_dir() and path.name.startswith("t")}
    assert {name for name in left if not name.endswith("-delete")} == {
        f"t{number}-{partition}" for number in range(1, 10, 2) for partition in range(2)
    }


def test_a_topic_made_again_keeps_nothing_of_the_old_one(process: BrokerProcess) -> None:
    with Talk(process.bootstrap_servers) as talk:
        talk.create("t", 1, max_message_bytes="5000")
        talk.produce("t", batch(b"old"))
        state = DeleteTopicsRequest.DeleteTopicState(name="t")
        talk.ask(DeleteTopicsRequest(topics=[state], timeout_ms=5000))
        new = talk.create("t")
        process.kill()
    process.start()
    with Talk(process.bootstrap_servers) as talk:
        assert talk.topic_id("t") == new
        assert talk.read("t") == []
        assert setting(talk, TOPIC, "t", "max.message.bytes") == "1048588"


# --- the command ------------------------------------------------------------------------------------------------------


Up = Callable[..., "Refused"]


class Refused(NamedTuple):
    code: int
    output: str
    errors: list[str]


@pytest.fixture
def up(capfd: pytest.CaptureFixture[str]) -> Callable[..., Refused]:
    """A start that is expected to fail, in this process: a process of its own for each would take a second."""

    def start(*options: str | Path) -> Refused:
        code = main(["up", *map(str, options)])
        output, said = capfd.readouterr()
        return Refused(code, output, said.splitlines())

    return start


def says(result: Refused, *words: str) -> None:
    """One line on standard error, with these words in it, and exit code 1."""
    assert (result.code, result.output, len(result.errors)) == (1, "", 1), result
    for word in ("barnabas: ", *words):
        assert word in result.errors[0], result


def test_a_directory_in_use_is_refused(up: Up, process: BrokerProcess) -> None:
    says(up("--port", "0", "--data-dir", process.data_dir), str(process.data_dir), "use")
    with Talk(process.bootstrap_servers) as talk:
        assert talk.ask(MetadataRequest(topics=[])).brokers


def test_a_directory_of_another_node_is_refused(up: Up, tmp_path: Path) -> None:
    with Broker(data_dir=tmp_path):
        pass
    says(up("--port", "0", "--data-dir", tmp_path, "--set", "node.id=2"), str(tmp_path), "node")
    with Broker(data_dir=tmp_path):
        pass


def test_directories_of_two_clusters_are_refused(up: Up, tmp_path: Path) -> None:
    for name in ("one", "two"):
        with Broker(data_dir=tmp_path / name):
            pass
    both = f"log.dirs={tmp_path / 'one'},{tmp_path / 'two'}"
    says(up("--port", "0", "--set", both), str(tmp_path), "cluster")


@pytest.mark.parametrize("content", [b"", b"rubbish", b"version=1\nnode.id=x\ncluster.id=y\n", b"\xff\xfe" * 100])
def test_an_identity_that_cannot_be_read_is_refused(up: Up, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "meta.properties").write_bytes(content)
    says(up("--port", "0", "--data-dir", tmp_path), "meta.properties")
    assert (tmp_path / "meta.properties").read_bytes() == content, "what is not understood is not overwritten"


def test_a_directory_that_cannot_be_written_is_refused(up: Up, tmp_path: Path) -> None:
    # A file where the directory should be fails for every user; permissions do not stop the superuser.
    place = tmp_path / "file"
    place.write_text("in the way")
    says(up("--port", "0", "--data-dir", place), str(place))
    says(up("--port", "0", "--data-dir", place / "below"), str(place))


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write anywhere")
def test_a_read_only_directory_is_refused(up: Up, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    says(up("--port", "0", "--data-dir", tmp_path), str(tmp_path))


def test_a_read_only_file_system_is_refused(up: Up) -> None:
    says(up("--port", "0", "--data-dir", "/proc/barnabas"), "/proc/barnabas")


def test_a_port_in_use_is_refused(up: Up, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        says(up("--port", str(port), "--data-dir", tmp_path), str(port), "in use")


def test_a_start_that_fails_is_no_crash(up: Up, tmp_path: Path) -> None:
    mark = tmp_path / ".kafka_cleanshutdown"
    with Broker(data_dir=tmp_path):
        pass
    before = mark.read_text()
    assert '"brokerEpoch":-1' not in before
    with socket.create_server(("127.0.0.1", 0)) as taken:
        says(up("--port", str(taken.getsockname()[1]), "--data-dir", tmp_path))
    assert mark.read_text() == before


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("log.retention.hour=1", ("log.retention.hour", "did you mean", "log.retention.hours")),
        ("num.partitions=0", ("num.partitions", "at least 1")),
        ("num.partitions=many", ("num.partitions", "many")),
        ("listeners=nonsense", ("listeners", "NAME://host:port")),
        ("num.partitions", ("name=value",)),
        ("listeners=PLAINTEXT://127.0.0.1:99999", ("listeners",)),
        ("listeners=PLAINTEXT://192.0.2.1:0", ("192.0.2.1:0",)),
        ("log.dirs=", ("log.dirs",)),
        ("log.dirs=a,a", ("log.dirs", "twice")),
    ],
)
def test_a_wrong_setting_is_named(up: Up, tmp_path: Path, option: str, words: tuple[str, ...]) -> None:
    says(up("--port", "0", "--data-dir", tmp_path / "data", "--set", option), *words)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("server.properties", "num.partition=3\n", ("num.partition", "num.partitions")),
        ("broker.toml", "num.partitions = [\n", ("broker.toml",)),
        ("broker.toml", "[num]\npartitions = 'x'\n", ("num.partitions",)),
    ],
)
def test_a_wrong_file_is_named(up: Up, tmp_path: Path, name: str, content: str, words: tuple[str, ...]) -> None:
    path = tmp_path / name
    path.write_text(content)
    says(up("--config", path, "--data-dir", tmp_path / "data"), *words)


def test_a_file_that_is_not_there_is_named(up: Up, tmp_path: Path) -> None:
    says(up("--config", tmp_path / "nowhere.properties"), "nowhere.properties")


PROPERTIES = """\
# a comment
! another
node.id=7
listeners=PLAINTEXT://127.0.0.1:0
num.partitions = 4
log.retention.hours:48
compression.type=\\
    lz4
"""
TOML = """\
node.id = 7
listeners = ["PLAINTEXT://127.0.0.1:0"]
compression.type = "lz4"
[num]
partitions = 4
[log.retention]
hours = 48
"""


class Running:
    """``barnabas up`` with its READY line read."""

    def __init__(self, *options: str | Path) -> None:
        command = [sys.executable, "-m", "barnabas", "up", *map(str, options)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("READY "), self.process.communicate()
        self.bootstrap_servers = line.split()[1]

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        self.process.send_signal(number)
        _, said = self.process.communicate(timeout=SECONDS_MAX)
        return self.process.returncode, said


@pytest.mark.parametrize(("name", "content"), [("server.properties", PROPERTIES), ("broker.toml", TOML)])
def test_settings_come_from_a_file(tmp_path: Path, name: str, content: str) -> None:
    path = tmp_path / name
    path.write_text(content)
    running = Running("--config", path, "--data-dir", tmp_path / "data")
    try:
        with Talk(running.bootstrap_servers) as talk:
            (node,) = talk.ask(MetadataRequest(topics=[])).brokers
            assert node.node_id == 7
            assert len(talk.ask(CreateTopicsRequest(topics=[creatable("t", -1, -1)])).topics) == 1
            assert talk.produce("t", batch(b"x"), partition=3).error_code == 0
            assert setting(talk, TOPIC, "t", "retention.ms") == str(48 * 3_600_000)
            assert setting(talk, TOPIC, "t", "compression.type") == "lz4"
    finally:
        code, said = running.end()
        unexpected = [line for line in said.splitlines() if " barnabas.audit " not in line]
        assert (code, unexpected) == (0, [])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_cleanly(tmp_path: Path, number: int) -> None:
    running = Running("--port", "0", "--data-dir", tmp_path)
    with Talk(running.bootstrap_servers) as talk:
        talk.create("t")
        talk.produce("t", batch(b"x"))
        assert running.end(number) == (0, "")
        talk.until_closed()
    assert (tmp_path / ".kafka_cleanshutdown").exists()


def test_a_long_poll_does_not_hold_up_the_end(tmp_path: Path) -> None:
    running = Running("--port", "0", "--data-dir", tmp_path)
    with Talk(running.bootstrap_servers) as talk, Raw(running.bootstrap_servers) as waiting:
        talk.create("t")
        request = fetch_request("t", max_wait_ms=60_000, min_bytes=1)
        waiting.send(joined(encode_request(request, 12, correlation_id=1, client_id=None)))
        talk.produce("t", batch(b"x"), partition=0)
        started = time.monotonic()
        assert running.end() == (0, "")
        assert time.monotonic() - started < 5


def test_an_ephemeral_broker_leaves_nothing(tmp_path: Path) -> None:
    running = Running("--port", "0", "--ephemeral", "--set", f"broker.rack={tmp_path.name}")
    with Talk(running.bootstrap_servers) as talk:
        talk.create("t")
        (directory,) = talk_dirs(talk)
    assert directory.exists()
    assert running.end() == (0, "")
    assert not directory.exists()


def talk_dirs(talk: Talk) -> list[Path]:
    return [Path(row.log_dir) for row in talk.ask(DescribeLogDirsRequest(topics=None)).results]


def test_a_process_that_does_not_start_leaves_nothing_open(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path, settings={"num.partitions": "0"})
    with pytest.raises(BrokerFailed, match="code 1"):
        broker.start()
    assert broker.process is None
    broker.stop()
