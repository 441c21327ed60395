"""What a coordinator asks the leaders of partitions elsewhere: bounded, each time of a record once, nothing stale."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from barnabas.broker.lag import remote_queries as far_questions
from barnabas.broker.lag.offset_times import UNKNOWN
from barnabas.broker.lag.remote_queries import Questions, Standing
from barnabas.model import errors
from barnabas.model.ids import NO_TIMESTAMP, TopicPartition
from barnabas.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse

PLACE = TopicPartition("t", 0)
Row = ListOffsetsResponse.ListOffsetsPartitionResponse


def asked_of(request: ListOffsetsRequest) -> list[tuple[str, int, int, list[int] | None]]:
    return [
        (topic.name, row.partition_index, row.current_leader_epoch, row.unread_offsets)
        for topic in request.topics
        for row in topic.partitions
    ]


def answer(row: Row, topic: str = "t") -> ListOffsetsResponse:
    return ListOffsetsResponse(topics=[ListOffsetsResponse.ListOffsetsTopicResponse(name=topic, partitions=[row])])


def asking(offset: int, before: Mapping[TopicPartition, Standing], epoch: int = 3) -> list[int] | None:
    questions = Questions(before)
    questions.add(PLACE, epoch, offset)
    (request,) = questions.requests()
    ((_, _, _, offsets),) = asked_of(request)
    return offsets


def test_each_partition_is_named_once_with_what_groups_have_committed_there() -> None:
    questions = Questions({})
    questions.add(PLACE, 3, 7)
    questions.add(TopicPartition("s", 1), 2, 0)
    questions.add(PLACE, 3, 5)
    questions.add(PLACE, 3, 7)
    (request,) = questions.requests()
    assert asked_of(request) == [("s", 1, 2, [0]), ("t", 0, 3, [5, 7])]
    assert request.replica_id == -1


def test_a_request_names_few_partitions_and_few_offsets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(far_questions, "PARTITIONS_PER_REQUEST_MAX", 2)
    monkeypatch.setattr(far_questions, "OFFSETS_PER_REQUEST_MAX", 3)
    questions = Questions({TopicPartition("t", 4): Standing(0, 0, 9, 5, {0: 5})})
    for offset in range(4):
        questions.add(PLACE, 0, offset)
    for index in (1, 2, 4):
        questions.add(TopicPartition("t", index), 0, 0)
    assert [asked_of(request) for request in questions.requests()] == [
        [("t", 0, 0, [0, 1, 2])],
        [("t", 0, 0, [3]), ("t", 1, 0, [0])],
        [("t", 2, 0, [0]), ("t", 4, 0, [])],
    ]


def test_a_leader_is_asked_nothing_if_nothing_is_there() -> None:
    assert list(Questions({}).requests()) == []


def test_the_time_of_a_record_is_asked_for_once() -> None:
    questions = Questions({})
    questions.add(PLACE, 3, 5)
    (request,) = questions.requests()
    row = Row(partition_index=0, offset=9, log_start_offset=1, newest_timestamp=800, unread_timestamps=[600])
    questions.take(answer(row), request)
    standing = questions.standings[PLACE]
    assert (standing.end_offset, standing.newest_ms, standing.time_of(5)) == (9, 800, 600)
    assert standing.time_of(9) == NO_TIMESTAMP  # the group has read everything
    assert asking(5, questions.standings) == []
    assert asking(6, questions.standings) == [6]
    assert asking(5, questions.standings, epoch=4) == [5]  # another leader may have another record there


def test_what_is_known_goes_on_to_the_next_round() -> None:
    questions = Questions({PLACE: Standing(3, 1, 9, 800, {5: 600, 6: 650})})
    questions.add(PLACE, 3, 5)
    (request,) = questions.requests()
    questions.take(answer(Row(partition_index=0, offset=20, log_start_offset=1, newest_timestamp=900)), request)
    standing = questions.standings[PLACE]
    assert standing == Standing(3, 1, 20, 900, {5: 600})  # nobody has committed 6 any more


def test_a_record_that_was_deleted_is_not_the_first_unread_one() -> None:
    questions = Questions({PLACE: Standing(3, 1, 9, 800, {5: 600})})
    questions.add(PLACE, 3, 5)
    (request,) = questions.requests()
    questions.take(answer(Row(partition_index=0, offset=20, log_start_offset=7, newest_timestamp=900)), request)
    assert questions.standings[PLACE].time_of(5) == UNKNOWN
    again = Questions(questions.standings)
    again.add(PLACE, 3, 5)
    (request,) = again.requests()
    assert asked_of(request) == [("t", 0, 3, [5])]
    row = Row(partition_index=0, offset=20, log_start_offset=7, newest_timestamp=900, unread_timestamps=[700])
    again.take(answer(row), request)
    assert again.standings[PLACE].time_of(5) == 700
    assert asking(5, again.standings) == [5]  # the start of the log may move on


def test_that_there_is_no_record_does_not_last() -> None:
    questions = Questions({})
    questions.add(PLACE, 3, 8)
    (request,) = questions.requests()
    row = Row(partition_index=0, offset=9, log_start_offset=0, newest_timestamp=8, unread_timestamps=[NO_TIMESTAMP])
    questions.take(answer(row), request)
    assert questions.standings[PLACE].time_of(8) == NO_TIMESTAMP
    assert asking(8, questions.standings) == [8]


@pytest.mark.parametrize(
    "response",
    [
        answer(Row(partition_index=0, offset=9, error_code=errors.NOT_LEADER_OR_FOLLOWER.code)),
        answer(Row(partition_index=1, offset=9)),
        answer(Row(partition_index=0, offset=9), topic="s"),
        ListOffsetsResponse(),
    ],
)
def test_errors_and_strange_rows_tell_nothing(response: ListOffsetsResponse) -> None:
    questions = Questions({})
    questions.add(PLACE, 3, 5)
    (request,) = questions.requests()
    questions.take(response, request)
    assert questions.standings == {}


def test_a_leader_that_does_not_know_the_question_still_tells_the_end() -> None:
    questions = Questions({})
    questions.add(PLACE, 3, 5)
    (request,) = questions.requests()
    questions.take(answer(Row(partition_index=0, offset=9)), request)
    assert questions.standings[PLACE].end_offset == 9
    assert questions.standings[PLACE].time_of(5) == UNKNOWN
