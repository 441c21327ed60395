"""Numbers at their limits in requests to a coordinator: an answer, and the coordinator of all other groups lives on."""

from __future__ import annotations

import time

import pytest
from talk import Talk

from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.offset_commit import OffsetCommitRequest

INT64_MAX = 2**63 - 1


def committed(talk: Talk, topic_name: str, retention_time_ms: int) -> int:
    partition = OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=INT64_MAX)
    topic = OffsetCommitRequest.OffsetCommitRequestTopic(name=topic_name, partitions=[partition])
    request = OffsetCommitRequest(group_id="g", retention_time_ms=retention_time_ms, topics=[topic])
    code: int = talk.ask(request, 4).topics[0].partitions[0].error_code
    return code


@pytest.mark.parametrize("retention_time_ms", [INT64_MAX, INT64_MAX - 1, 0, -(2**63)])
def test_a_retention_at_the_limit_does_not_break_the_coordinator(
    talk: Talk, name: str, caplog: pytest.LogCaptureFixture, retention_time_ms: int
) -> None:
    talk.create(name)
    deadline = time.monotonic() + 10
    while talk.ask(FindCoordinatorRequest(key="g"), 3).error_code or committed(talk, name, -1):
        assert time.monotonic() < deadline, "the coordinator is not there"
    assert committed(talk, name, retention_time_ms) == 0
    assert "broke" not in caplog.text
