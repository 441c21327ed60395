"""Who a directory belongs to, in Kafka's small files."""

from __future__ import annotations

import pytest

from barnabas.model.ids import Uuid
from barnabas.storage.identity import (
    MetaProperties,
    WrongDirectory,
    decode_clean_shutdown,
    decode_meta_properties,
    decode_partition_metadata,
    encode_clean_shutdown,
    encode_meta_properties,
    encode_partition_metadata,
)

TOPIC_ID = Uuid(bytes(range(16)))


def test_meta_properties_round_trip() -> None:
    properties = MetaProperties("MkU3OEVBNTcwNTJENDM2Qg", 4, TOPIC_ID)
    assert decode_meta_properties(encode_meta_properties(properties)) == properties


def test_a_file_written_by_java_is_read() -> None:
    content = (
        b"#\n#Mon Jan 05 10:00:00 UTC 2026\nnode.id=1\nversion=1\ncluster.id=a\\=b\\:c\ndirectory.id="
        + str(TOPIC_ID).encode()
    )
    assert decode_meta_properties(content) == MetaProperties("a=b:c", 1, TOPIC_ID)


@pytest.mark.parametrize("content", [b"", b"version=1\nnode.id=1\n", b"version=1\ncluster.id=x\nnode.id=one\n"])
def test_an_incomplete_identity_is_refused(content: bytes) -> None:
    with pytest.raises(WrongDirectory):
        decode_meta_properties(content)


def test_partition_metadata_is_kafkas() -> None:
    assert encode_partition_metadata(TOPIC_ID) == b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"
    assert decode_partition_metadata(encode_partition_metadata(TOPIC_ID)) == TOPIC_ID


@pytest.mark.parametrize("content", [b"", b"version: 0\ntopic_", b"version: 0\ntopic_id: AAE", b"\xff\xfe"])
def test_torn_partition_metadata_names_no_topic(content: bytes) -> None:
    assert decode_partition_metadata(content) is None


def test_the_mark_of_a_clean_shutdown_carries_the_broker_epoch() -> None:
    assert encode_clean_shutdown(42) == b'{"version":0,"brokerEpoch":42}'
    assert decode_clean_shutdown(encode_clean_shutdown(42)) == (42, frozenset())
    assert decode_clean_shutdown(b"") == (-1, frozenset())
    assert decode_clean_shutdown(b"[]") == (-1, frozenset())


def test_the_mark_of_a_clean_shutdown_names_the_logs_that_could_not_be_closed() -> None:
    assert decode_clean_shutdown(encode_clean_shutdown(42, {"b-0", "a-1"})) == (42, {"a-1", "b-0"})
