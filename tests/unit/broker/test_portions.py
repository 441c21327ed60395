"""Requests of many rows in portions: nothing is lost, doubled or reordered, however the rows are divided."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.broker.requests.portions import INNER_ROWS_MAX, Portions, Splitter, rows_in
from barnabas.model.errors import Malformed
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from barnabas.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from barnabas.world.real import RealClock
from barnabas.world.turns import Turns, until_waiting

LIST = Portions("topics.partitions", "topics.partitions")
FETCH = Portions("groups.topics.partition_indexes", "groups.topics.partitions")


def list_request(counts: list[int]) -> ListOffsetsRequest:
    return ListOffsetsRequest(
        topics=[
            ListOffsetsRequest.ListOffsetsTopic(
                name=f"t{number}",
                partitions=[ListOffsetsRequest.ListOffsetsPartition(partition_index=index) for index in range(count)],
            )
            for number, count in enumerate(counts)
        ]
    )


def list_answer(request: ListOffsetsRequest) -> ListOffsetsResponse:
    row, part = ListOffsetsResponse.ListOffsetsTopicResponse, ListOffsetsResponse.ListOffsetsPartitionResponse
    return ListOffsetsResponse(
        topics=[
            row(name=topic.name, partitions=[part(partition_index=each.partition_index) for each in topic.partitions])
            for topic in request.topics
        ]
    )


@given(st.lists(st.integers(0, 12), max_size=12), st.integers(1, 7))
def test_the_portions_of_a_request_make_the_answer_to_the_whole(counts: list[int], rows_max: int) -> None:
    request = list_request(counts)
    splitter = Splitter(request, LIST.path)
    splitter.rows_max = rows_max
    whole = ListOffsetsResponse()
    for piece, depth in splitter.portions():
        assert sum(max(1, len(topic.partitions)) for topic in piece.topics) <= rows_max
        LIST.merge(whole, list_answer(piece), depth)
    assert whole == list_answer(request)


def test_three_levels_are_divided_and_merged() -> None:
    topic = OffsetFetchRequest.OffsetFetchRequestTopics
    group = OffsetFetchRequest.OffsetFetchRequestGroup
    request = OffsetFetchRequest(
        groups=[
            group(
                group_id=name, topics=[topic(name=f"t{number}", partition_indexes=[*range(5)]) for number in range(3)]
            )
            for name in "ab"
        ]
    )
    splitter = Splitter(request, FETCH.path)
    splitter.rows_max = 4
    whole = OffsetFetchResponse()
    for piece, depth in splitter.portions():
        answer = OffsetFetchResponse(
            groups=[
                OffsetFetchResponse.OffsetFetchResponseGroup(
                    group_id=each.group_id,
                    topics=[
                        OffsetFetchResponse.OffsetFetchResponseTopics(
                            name=row.name,
                            partitions=[
                                OffsetFetchResponse.OffsetFetchResponsePartitions(partition_index=index)
                                for index in row.partition_indexes
                            ],
                        )
                        for row in each.topics
                    ],
                )
                for each in piece.groups
            ]
        )
        FETCH.merge(whole, answer, depth)
    assert [each.group_id for each in whole.groups] == ["a", "b"]
    for each in whole.groups:
        assert [row.name for row in each.topics] == ["t0", "t1", "t2"]
        assert all([part.partition_index for part in row.partitions] == [*range(5)] for row in each.topics)


def test_an_error_of_a_portion_is_an_error_of_the_whole() -> None:
    whole, failed = OffsetFetchResponse(), OffsetFetchResponse(error_code=16, throttle_time_ms=7)
    FETCH.merge(whole, failed, 0)
    assert (whole.error_code, whole.throttle_time_ms) == (16, 7)


def test_a_row_that_cannot_be_divided_has_a_limit() -> None:
    config = CreateTopicsRequest.CreatableTopicConfig(name="a", value="b")
    topic = CreateTopicsRequest.CreatableTopic(name="t", configs=[config] * (INNER_ROWS_MAX + 1))
    request = CreateTopicsRequest(topics=[topic])
    assert rows_in(request, 10) > 10
    with pytest.raises(Malformed, match="elements"):
        list(Splitter(request, ("topics",)).portions())


def test_portions_become_smaller_when_rows_are_expensive() -> None:
    splitter = Splitter(list_request([1]), LIST.path)
    splitter.took(150_000_000)
    assert splitter.rows_max == 1
    for _ in range(20):
        splitter.took(1)
    assert splitter.rows_max == 1000
    splitter.began(1)
    assert splitter.rows_max == 50


def test_work_of_many_turns_lets_others_in_between() -> None:
    async def run() -> list[str]:
        turns, seen = Turns(RealClock()), []

        def steps(name: str) -> object:
            for number in range(3):
                seen.append(f"{name}{number}")
                turns._until_ns = 0  # the turn is used up
                yield
            return name

        async def work(name: str) -> str:
            await turns.begin()
            found: str = await turns.run(steps(name))  # type: ignore[arg-type]
            return found

        assert await asyncio.gather(work("a"), work("b")) == ["a", "b"]
        return seen

    assert asyncio.run(run()) == ["a0", "b0", "a1", "b1", "a2", "b2"]


def test_the_first_wait_of_a_coroutine_is_noticed_and_its_errors_arrive() -> None:
    async def run() -> None:
        noticed: list[str] = []

        async def work() -> int:
            noticed.append("began")
            await asyncio.sleep(0)
            noticed.append("ended")
            return 3

        assert await until_waiting(work(), lambda: noticed.append("waits")) == 3
        assert noticed == ["began", "waits", "ended"]

        async def broken() -> int:
            await asyncio.sleep(0)
            raise ValueError("x")

        with pytest.raises(ValueError, match="x"):
            await until_waiting(broken(), lambda: None)

    asyncio.run(run())
