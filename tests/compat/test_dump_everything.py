"""Kafka's DumpLogSegments reads every kind of file that a broker leaves, and finds nothing to complain about."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from kafka_tools import dump_log_segments

from barnabas.testing import Broker

pytestmark = pytest.mark.java

SECONDS_MAX = 30.0
COMPLAINTS = (
    "isvalid: false",
    "Mismatches in",
    "timestamp mismatch",
    "Index timestamp",
    "out of order",
    "Exception",
    "corrupt",
    "Could not",
)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Plain, compressed, compacted and transactional topics, groups of both kinds, after a clean stop."""
    directory = tmp_path_factory.mktemp("dumped") / "data"
    settings = {
        "log.segment.bytes": str(1 << 20),
        "log.cleaner.backoff.ms": "100",
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.num.partitions": "1",
        "metadata.log.max.record.bytes.between.snapshots": "2000",
    }
    with Broker(data_dir=directory, settings=settings) as broker:
        servers = {"bootstrap.servers": broker.bootstrap_servers, "log_level": 2}
        admin = AdminClient(servers)
        topics = [
            NewTopic("plain", 1, 1),
            NewTopic("keyed", 1, 1, config={"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}),
            NewTopic("transactional", 1, 1),
        ]
        for future in admin.create_topics(topics).values():
            future.result(SECONDS_MAX)
        for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
            producer = Producer({**servers, "compression.type": codec, "enable.idempotence": True})
            for number in range(400):
                producer.produce("plain", bytes(1000) + b"%d" % number, headers=[("a", b"b")])
                producer.produce("keyed", bytes(1000) + b"%d" % number, b"%d" % (number % 50))
            assert producer.flush(SECONDS_MAX) == 0
        producer = Producer({**servers, "transactional.id": "t"})
        producer.init_transactions(SECONDS_MAX)
        for turn in range(6):
            producer.begin_transaction()
            for number in range(100):
                producer.produce("transactional", bytes(3000), b"%d" % number)
            producer.flush(SECONDS_MAX)
            if turn % 2:
                producer.abort_transaction(SECONDS_MAX)
            else:
                producer.commit_transaction(SECONDS_MAX)
        for group, protocol in (("classic", "classic"), ("modern", "consumer")):
            consumer = Consumer(
                {**servers, "group.id": group, "group.protocol": protocol, "auto.offset.reset": "earliest"}
            )
            consumer.subscribe(["plain"])
            assert consumer.consume(10, timeout=SECONDS_MAX)
            consumer.commit(offsets=[TopicPartition("plain", 0, 7)], asynchronous=False)
            consumer.close()
        broker.run(broker.node.services.cleaner.clean_dirtiest())
    return directory


def files(data: Path, pattern: str) -> list[Path]:
    found = sorted(path for path in data.glob(pattern) if path.stat().st_size)
    assert found, f"there is nothing like {pattern}"
    return found


@pytest.mark.parametrize(
    ("pattern", "flags"),
    [
        ("plain-0/*.log", ("--deep-iteration", "--print-data-log")),
        ("keyed-0/*.log", ("--deep-iteration", "--print-data-log")),
        ("transactional-0/*.log", ("--deep-iteration", "--print-data-log")),
        ("[pkt]*-0/*.index", ("--index-sanity-check",)),
        ("[pkt]*-0/*.index", ("--verify-index-only",)),
        ("[pkt]*-0/*.timeindex", ("--index-sanity-check",)),
        ("[pkt]*-0/*.timeindex", ()),
        ("transactional-0/*.txnindex", ()),
        ("*-0/*.snapshot", ()),
        ("__consumer_offsets-0/*.log", ("--offsets-decoder", "--deep-iteration")),
        ("__transaction_state-0/*.log", ("--transaction-log-decoder", "--deep-iteration")),
        ("__cluster_metadata-0/*.log", ("--cluster-metadata-decoder", "--deep-iteration")),
        ("__cluster_metadata-0/*.checkpoint", ("--cluster-metadata-decoder",)),
    ],
)
def test_kafka_reads_it(data: Path, pattern: str, flags: tuple[str, ...]) -> None:
    found = files(data, pattern)
    code, text = dump_log_segments(found, *flags)
    assert code == 0, text[-2000:]
    assert not [complaint for complaint in COMPLAINTS if complaint in text], text[-3000:]
    for path in found:
        assert f"Dumping {path}" in text


def test_the_decoders_show_what_is_in_the_logs_of_coordinators(data: Path) -> None:
    _, offsets = dump_log_segments(files(data, "__consumer_offsets-0/*.log"), "--offsets-decoder")
    assert '"group":"classic"' in offsets
    assert '"groupId":"modern"' in offsets
    assert '"offset":7' in offsets
    _, state = dump_log_segments(files(data, "__transaction_state-0/*.log"), "--transaction-log-decoder")
    assert '"transactionalId":"t"' in state


def test_the_indexes_of_a_segment_that_is_being_written_are_read_too(tmp_path: Path) -> None:
    with Broker(data_dir=tmp_path / "data") as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 2, "batch.size": 5000})

        def judged(*flags: str) -> str:
            code, text = dump_log_segments([log.with_suffix(suffix) for suffix in (".index", ".timeindex")], *flags)
            assert code == 0, text[-2000:]
            assert not [complaint for complaint in COMPLAINTS if complaint in text], text[-3000:]
            return text

        for number in range(100):
            producer.produce("live", bytes(1000) + b"%d" % number)
        assert producer.flush(SECONDS_MAX) == 0
        [log] = (tmp_path / "data").glob("live-0/*.log")
        assert judged("--index-sanity-check").count("is empty") == 1
        broker.run(broker.node.services.store.checkpoint())
        assert judged("--index-sanity-check").count("passed sanity check") == 2
        assert "offset: " in judged()
