"""More fetches at once than the broker looks at in one turn: all are answered, in order, and none is forgotten."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from talk import Talk, batch, fetch_request

from barnabas.broker.fetching.turns import FETCHES_PER_TURN_MAX
from barnabas.testing import Broker
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse
from barnabas.wire.records import decode_all

MANY = 5 * FETCHES_PER_TURN_MAX


def values(answer: FetchResponse) -> list[bytes | None]:
    return [
        record.value
        for topic in answer.responses
        for row in topic.partitions
        for record in decode_all(row.records or b"")
    ]


def test_one_batch_wakes_all_who_wait_for_it(talk: Talk, shared_broker: Broker, name: str) -> None:
    talk.create(name)
    with ExitStack() as stack:
        readers = [stack.enter_context(Talk(shared_broker.bootstrap_servers)) for _ in range(MANY)]
        pool = stack.enter_context(ThreadPoolExecutor(MANY))
        waiting = fetch_request(name, max_wait_ms=15_000, min_bytes=1)
        answers = [pool.submit(reader.ask, waiting, 12) for reader in readers]
        talk.produce(name, batch(b"news"))
        assert [values(answer.result()) for answer in answers] == [[b"news"]] * MANY


def test_fetches_that_come_at_once_are_answered_in_order(talk: Talk, name: str) -> None:
    talk.create(name)
    for number in range(MANY):
        talk.produce(name, batch(b"%d" % number))
    one = [(fetch_request(name, offset, max_bytes=1), 12) for offset in range(MANY)]
    assert [values(answer)[0] for answer in talk.ask_all(*one)] == [b"%d" % number for number in range(MANY)]


def test_a_fetch_that_waits_only_for_its_turn_ends_at_once_where_there_is_nothing(talk: Talk, name: str) -> None:
    talk.create(name)
    answers = talk.ask_all(*[(fetch_request(name), 12)] * MANY)
    assert [values(answer) for answer in answers] == [[]] * MANY


def test_the_requests_of_a_session_do_not_wait_for_each_other(talk: Talk, name: str) -> None:
    """The first ones are superseded while they still queue, as are those that wait for records."""
    talk.create(name)
    opened = talk.ask(fetch_request(name, session_epoch=0), 12)
    assert opened.session_id

    def next_one(epoch: int, wait_ms: int) -> tuple[FetchRequest, int]:
        request = fetch_request(name, session_id=opened.session_id, session_epoch=epoch, max_wait_ms=wait_ms)
        request.min_bytes = 1
        request.topics = []
        return request, 12

    count = MANY
    answers = talk.ask_all(*[next_one(epoch, 15_000) for epoch in range(1, count)], next_one(count, 50))
    assert [answer.error_code for answer in answers] == [0] * count
