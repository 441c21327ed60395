"""Reading over the wire: limits, long polls, sessions, divergence, and every way to ask for an offset."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from talk import Talk, batch, fetch_request

from barnabas.model import errors
from barnabas.model.ids import ZERO_UUID, Uuid
from barnabas.testing import Broker
from barnabas.wire.batch import iterate
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse
from barnabas.wire.messages.list_offsets import ListOffsetsRequest
from barnabas.wire.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from barnabas.wire.records import decode_all

UNKNOWN = Uuid(b"\x01" * 16)


def several(wanted: dict[tuple[str, int], int], **more: Any) -> FetchRequest:
    """One fetch of several partitions: (topic, partition) -> offset."""
    request = fetch_request("", **more)
    request.topics = [
        FetchRequest.FetchTopic(
            topic=topic,
            partitions=[
                FetchRequest.FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
                for (name, index), offset in wanted.items()
                if name == topic
            ],
        )
        for topic in dict.fromkeys(name for name, _ in wanted)
    ]
    return request


def rows(answer: FetchResponse) -> dict[tuple[str, int], FetchResponse.PartitionData]:
    return {(topic.topic, row.partition_index): row for topic in answer.responses for row in topic.partitions}


def with_records(talk: Talk, name: str, count: int = 5, partitions: int = 1, size: int = 100) -> str:
    talk.create(name, partitions)
    for partition in range(partitions):
        for number in range(count):
            assert talk.produce(name, batch(b"%d" % number * size), partition=partition).error_code == 0
    return name


# --- what one fetch gives ---------------------------------------------------------------------------------------------


def test_a_fetch_gives_records_and_watermarks(talk: Talk, name: str) -> None:
    row = talk.fetch(with_records(talk, name), 2)
    assert [record.offset for record in decode_all(row.records or b"")] == [2, 3, 4]
    assert (row.high_watermark, row.last_stable_offset, row.log_start_offset) == (5, 5, 0)


def test_the_end_is_empty_and_beyond_it_is_an_error(talk: Talk, name: str) -> None:
    with_records(talk, name)
    assert (talk.fetch(name, 5).error_code, talk.fetch(name, 5).records) == (0, b"")
    for offset in (6, -1, -2, 2**63 - 1, -(2**63)):
        row = talk.fetch(name, offset)
        assert (row.error_code, row.high_watermark) == (errors.OFFSET_OUT_OF_RANGE.code, -1), offset


def test_what_is_not_there_cannot_be_fetched(talk: Talk, name: str) -> None:
    talk.create(name)
    assert talk.fetch("nowhere").error_code == errors.UNKNOWN_TOPIC_OR_PARTITION.code
    assert talk.fetch(name, partition=3).error_code == errors.UNKNOWN_TOPIC_OR_PARTITION.code
    assert talk.fetch(name, partition=-1).error_code == errors.UNKNOWN_TOPIC_OR_PARTITION.code
    for topic_id in (UNKNOWN, ZERO_UUID):
        (row,) = talk.ask(fetch_request("", topic_id=topic_id), 13).responses[0].partitions
        assert row.error_code == errors.UNKNOWN_TOPIC_ID.code


@pytest.mark.parametrize("limit", [0, 1, -1, -(2**31), 150])
def test_a_limit_below_one_batch_still_gives_one(talk: Talk, name: str, limit: int) -> None:
    with_records(talk, name)
    for more in ({"max_bytes": limit}, {"partition_max_bytes": limit}):
        row = talk.fetch(name, 1, **more)
        whole = [header for _, header in iterate(row.records or b"")]
        assert [header.base_offset for header in whole][:1] == [1], more


def test_the_limit_of_a_fetch_covers_all_its_partitions(talk: Talk, name: str) -> None:
    with_records(talk, name, partitions=3, size=1000)
    answer = talk.ask(several({(name, index): 0 for index in range(3)}, max_bytes=1), 12)
    sizes = [len(row.records or b"") for row in rows(answer).values()]
    assert sizes[0] > 0
    assert sizes[1:] == [0, 0]
    answer = talk.ask(several({(name, index): 0 for index in range(3)}, max_bytes=1 << 20), 12)
    assert all(len(row.records or b"") > 5000 for row in rows(answer).values())


def test_the_order_of_the_client_counts(talk: Talk, name: str) -> None:
    with_records(talk, name, partitions=3, size=1000)
    answer = talk.ask(several({(name, index): 0 for index in (2, 0, 1)}, max_bytes=1), 12)
    assert [index for (_, index), row in rows(answer).items() if row.records] == [2]


def test_a_broker_has_a_limit_of_its_own() -> None:
    with Broker(settings={"fetch.max.bytes": "1024"}) as broker, Talk(broker.bootstrap_servers) as talk:
        with_records(talk, "t", count=10, size=500)
        row = talk.fetch("t", max_bytes=1 << 24)
        assert 0 < len(row.records or b"") <= 1024


def test_a_follower_that_nobody_knows_is_refused(talk: Talk, name: str) -> None:
    with_records(talk, name)
    request = fetch_request(name)
    request.replica_id = 7
    (row,) = talk.ask(request, 12).responses[0].partitions
    assert (row.error_code, row.records) == (errors.NOT_LEADER_OR_FOLLOWER.code, b"")


# --- waiting ----------------------------------------------------------------------------------------------------------


def later(seconds: float, work: Callable[[], object]) -> threading.Timer:
    timer = threading.Timer(seconds, work)
    timer.start()
    return timer


def test_a_long_poll_ends_when_there_is_something(talk: Talk, shared_broker: Broker, name: str) -> None:
    talk.create(name)
    with Talk(shared_broker.bootstrap_servers) as writer:
        writer.topic_id(name)
        timer = later(0.1, lambda: writer.produce(name, batch(b"news")))
        started = time.monotonic()
        row = talk.fetch(name, max_wait_ms=15_000, min_bytes=1)
        timer.join()
    assert [record.value for record in decode_all(row.records or b"")] == [b"news"]
    assert time.monotonic() - started < 10


def test_a_long_poll_ends_when_its_time_is_up(talk: Talk, name: str) -> None:
    talk.create(name)
    started = time.monotonic()
    row = talk.fetch(name, max_wait_ms=200, min_bytes=1)
    assert (row.error_code, row.records) == (0, b"")
    assert 0.15 < time.monotonic() - started < 5


def test_a_long_poll_waits_for_enough(talk: Talk, shared_broker: Broker, name: str) -> None:
    talk.create(name)
    with Talk(shared_broker.bootstrap_servers) as writer:
        done = threading.Event()

        def write() -> None:
            for number in range(20):
                writer.produce(name, batch(b"%d" % number * 100))
                if done.wait(0.01):
                    break

        timer = later(0.05, write)
        row = talk.fetch(name, max_wait_ms=15_000, min_bytes=1000)
        done.set()
        timer.join()
    assert len(row.records or b"") >= 1000


def test_a_long_poll_tells_of_all_its_partitions(talk: Talk, shared_broker: Broker, name: str) -> None:
    with_records(talk, name, partitions=3)
    with Talk(shared_broker.bootstrap_servers) as writer:
        writer.topic_id(name)
        timer = later(0.1, lambda: writer.produce(name, batch(b"news"), partition=1))
        request = several({(name, 2): 5, (name, 1): 5, (name, 0): 5}, max_wait_ms=15_000, min_bytes=1)
        answer = talk.ask(request, 12)
        timer.join()
    found = rows(answer)
    assert list(found) == [(name, 2), (name, 1), (name, 0)], "in the client's order, though only one has news"
    assert [row.high_watermark for row in found.values()] == [5, 6, 5]
    assert [len(list(decode_all(row.records or b""))) for row in found.values()] == [0, 1, 0]


def test_an_error_ends_the_wait_at_once(talk: Talk, name: str) -> None:
    talk.create(name)
    started = time.monotonic()
    answer = talk.ask(several({(name, 0): 0, ("nowhere", 0): 0}, max_wait_ms=15_000, min_bytes=1), 12)
    assert time.monotonic() - started < 10
    assert rows(answer)["nowhere", 0].error_code == errors.UNKNOWN_TOPIC_OR_PARTITION.code
    assert rows(answer)[name, 0].error_code == 0


def test_requests_behind_a_long_poll_keep_their_order(talk: Talk, name: str) -> None:
    talk.create(name)
    waiting = fetch_request(name, max_wait_ms=300, min_bytes=1)
    first, second = talk.ask_all((waiting, 12), (fetch_request(name), 12))
    assert isinstance(first, FetchResponse)
    assert isinstance(second, FetchResponse)


# --- epochs -----------------------------------------------------------------------------------------------------------


def test_a_reader_in_another_epoch_is_told(talk: Talk, name: str) -> None:
    with_records(talk, name)
    assert talk.fetch(name, current_leader_epoch=0).error_code == 0
    assert talk.fetch(name, current_leader_epoch=3).error_code == errors.UNKNOWN_LEADER_EPOCH.code
    assert talk.offset(name, -1, current_leader_epoch=3).error_code == errors.UNKNOWN_LEADER_EPOCH.code


def test_a_reader_that_diverged_is_told_where(talk: Talk, name: str) -> None:
    with_records(talk, name)
    assert talk.fetch(name, 3, last_fetched_epoch=0).diverging_epoch.epoch == -1
    started = time.monotonic()
    row = talk.fetch(name, 7, last_fetched_epoch=0, max_wait_ms=10_000, min_bytes=1)
    assert time.monotonic() - started < 5
    assert (row.error_code, row.diverging_epoch.epoch, row.diverging_epoch.end_offset) == (0, 0, 5)
    assert row.records == b""


def test_where_an_epoch_ended(talk: Talk, name: str) -> None:
    with_records(talk, name)

    def end_of(epoch: int, *, partition: int = 0, current: int = -1) -> tuple[int, int, int]:
        asked = OffsetForLeaderEpochRequest.OffsetForLeaderPartition(
            partition=partition, current_leader_epoch=current, leader_epoch=epoch
        )
        topics = [OffsetForLeaderEpochRequest.OffsetForLeaderTopic(topic=name, partitions=[asked])]
        (row,) = talk.ask(OffsetForLeaderEpochRequest(topics=topics)).topics[0].partitions
        return row.error_code, row.leader_epoch, row.end_offset

    assert end_of(0) == (0, 0, 5)
    assert end_of(9) == (0, -1, -1)
    assert end_of(0, partition=4)[0] == errors.UNKNOWN_TOPIC_OR_PARTITION.code
    assert end_of(0, current=5)[0] == errors.UNKNOWN_LEADER_EPOCH.code


# --- sessions ---------------------------------------------------------------------------------------------------------


def test_a_session_tells_only_what_is_new(talk: Talk, new_name: Callable[[], str]) -> None:
    quiet, busy = with_records(talk, new_name()), with_records(talk, new_name())
    first = talk.ask(several({(quiet, 0): 5, (busy, 0): 5}, session_epoch=0), 12)
    assert first.session_id != 0
    assert set(rows(first)) == {(quiet, 0), (busy, 0)}

    def incremental(epoch: int, wanted: dict[tuple[str, int], int] | None = None) -> Any:
        return talk.ask(several(wanted or {}, session_id=first.session_id, session_epoch=epoch), 12)

    assert incremental(1).responses == []
    talk.produce(busy, batch(b"news"))
    answer = incremental(2)
    assert [record.value for record in decode_all(rows(answer)[busy, 0].records or b"")] == [b"news"]
    assert set(rows(answer)) == {(busy, 0)}
    assert incremental(3, {(busy, 0): 6}).responses == []
    assert incremental(3).error_code == errors.INVALID_FETCH_SESSION_EPOCH.code
    assert incremental(4).error_code == 0, "a wrong epoch does not spoil the session"


def test_partitions_leave_a_session(talk: Talk, new_name: Callable[[], str]) -> None:
    one, two = with_records(talk, new_name()), with_records(talk, new_name())
    first = talk.ask(several({(one, 0): 5, (two, 0): 5}, session_epoch=0), 12)
    forget = several({}, session_id=first.session_id, session_epoch=1)
    forget.forgotten_topics_data = [FetchRequest.ForgottenTopic(topic=one, partitions=[0])]
    talk.ask(forget, 12)
    talk.produce(one, batch(b"unheard"))
    talk.produce(two, batch(b"heard"))
    answer = talk.ask(several({}, session_id=first.session_id, session_epoch=2), 12)
    assert set(rows(answer)) == {(two, 0)}


def test_an_unknown_session_is_told_to_start_again(talk: Talk) -> None:
    answer = talk.ask(several({}, session_id=12345, session_epoch=4), 12)
    assert (answer.error_code, answer.responses) == (errors.FETCH_SESSION_ID_NOT_FOUND.code, [])


def test_a_session_of_ids_cannot_go_on_with_names(talk: Talk, name: str) -> None:
    topic_id = talk.create(name)
    first = talk.ask(fetch_request("", topic_id=topic_id, session_epoch=0), 13)
    answer = talk.ask(several({}, session_id=first.session_id, session_epoch=1), 12)
    assert answer.error_code == errors.FETCH_SESSION_TOPIC_ID_ERROR.code


def test_a_closed_session_is_gone(talk: Talk, name: str) -> None:
    talk.create(name)
    first = talk.ask(several({(name, 0): 0}, session_epoch=0), 12)
    assert talk.ask(several({(name, 0): 0}, session_id=first.session_id, session_epoch=-1), 12).session_id == 0
    again = talk.ask(several({}, session_id=first.session_id, session_epoch=1), 12)
    assert again.error_code == errors.FETCH_SESSION_ID_NOT_FOUND.code


def test_no_slots_no_sessions() -> None:
    settings = {"max.incremental.fetch.session.cache.slots": "0"}
    with Broker(settings=settings) as broker, Talk(broker.bootstrap_servers) as talk:
        talk.create("t")
        assert talk.ask(several({("t", 0): 0}, session_epoch=0), 12).session_id == 0


def test_a_session_keeps_its_place_when_a_wait_is_cut_short(talk: Talk, shared_broker: Broker, name: str) -> None:
    talk.create(name)
    first = talk.ask(several({(name, 0): 0}, session_epoch=0), 12)
    with Talk(shared_broker.bootstrap_servers) as writer:
        timer = later(0.1, lambda: writer.produce(name, batch(b"news")))
        waiting = several({}, session_id=first.session_id, session_epoch=1, max_wait_ms=15_000, min_bytes=1)
        answer = talk.ask(waiting, 12)
        timer.join()
    assert [record.value for record in decode_all(rows(answer)[name, 0].records or b"")] == [b"news"]


# --- ListOffsets ------------------------------------------------------------------------------------------------------


@pytest.fixture
def timed(talk: Talk, name: str) -> str:
    """Offsets 0–2 at 1000, 1001, 1002; offsets 3–4 at 900, 901; offset 5 at 5000."""
    talk.create(name, segment_ms=str(10**12))
    for values, timestamp in (((b"a", b"b", b"c"), 1000), ((b"d", b"e"), 900), ((b"f",), 5000)):
        assert talk.produce(name, batch(*values, timestamp=timestamp)).error_code == 0
    return name


@pytest.mark.parametrize(
    ("timestamp", "offset", "found"),
    [
        (-1, 6, -1),
        (-2, 0, -1),
        (-3, 5, 5000),
        (-4, 0, -1),
        (-5, -1, -1),
        (-6, -1, -1),
        (0, 0, 1000),
        (1001, 1, 1001),
        (1002, 2, 1002),
        (1003, 5, 5000),
        (5000, 5, 5000),
        (5001, -1, -1),
        (2**63 - 1, -1, -1),
    ],
)
def test_every_way_to_ask_for_an_offset(talk: Talk, timed: str, timestamp: int, offset: int, found: int) -> None:
    row = talk.offset(timed, timestamp)
    assert (row.error_code, row.offset, row.timestamp) == (0, offset, found)


@pytest.mark.parametrize(("timestamp", "version"), [(-3, 6), (-4, 7), (-5, 8), (-6, 10), (-7, 11), (-(2**63), 11)])
def test_a_question_that_the_version_does_not_know(talk: Talk, timed: str, timestamp: int, version: int) -> None:
    row = talk.offset(timed, timestamp, version=version)
    assert (row.error_code, row.offset) == (errors.UNSUPPORTED_VERSION.code, -1)


def test_an_empty_partition_has_no_times(talk: Talk, name: str) -> None:
    talk.create(name)
    assert [talk.offset(name, asked).offset for asked in (-1, -2, -3, 0, 2**63 - 1)] == [0, 0, -1, -1, -1]


def test_the_same_partition_twice_is_refused(talk: Talk, name: str) -> None:
    talk.create(name)
    asked = ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=-1)
    topics = [ListOffsetsRequest.ListOffsetsTopic(name=name, partitions=[asked, asked])]
    codes = [row.error_code for row in talk.ask(ListOffsetsRequest(topics=topics)).topics[0].partitions]
    assert errors.INVALID_REQUEST.code in codes


def test_committed_readers_see_the_same_without_transactions(talk: Talk, timed: str) -> None:
    asked = ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=-1)
    topics = [ListOffsetsRequest.ListOffsetsTopic(name=timed, partitions=[asked])]
    (row,) = talk.ask(ListOffsetsRequest(isolation_level=1, topics=topics)).topics[0].partitions
    assert row.offset == 6
    assert talk.fetch(timed, isolation_level=1).last_stable_offset == 6
