"""``barnabas txn`` against a broker: what an administrator sees and does."""

from __future__ import annotations

import json

import pytest
from talk import Talk
from transactional import Transactional, committed_end

from barnabas.cli.main import main
from barnabas.model import errors
from barnabas.testing import Broker
from barnabas.wire.messages.write_txn_markers import WriteTxnMarkersRequest


class Cli:
    def __init__(self, broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
        self._broker = broker
        self._capsys = capsys

    def __call__(self, *words: str) -> tuple[int, str, str]:
        code = main(["txn", *words, "-b", self._broker.bootstrap_servers])
        said = self._capsys.readouterr()
        return code, said.out, said.err


@pytest.fixture
def cli(shared_broker: Broker, capsys: pytest.CaptureFixture[str]) -> Cli:
    return Cli(shared_broker, capsys)


def opened(talk: Talk, transactional_id: str, topic: str) -> Transactional:
    producer = Transactional(talk, transactional_id)
    assert producer.init() == 0
    assert producer.produce(topic, b"v") == 0
    return producer


def test_transactions_are_listed_and_described(talk: Talk, name: str, cli: Cli) -> None:
    talk.create(name)
    producer = opened(talk, f"{name}-id", name)
    code, out, _ = cli("list", f"{name}-.*")
    assert code == 0
    assert out.split() == [
        *("TRANSACTIONAL-ID", "STATE", "PRODUCER", "COORDINATOR"),
        *(f"{name}-id", "Ongoing", str(producer.id), "1"),
    ]
    code, out, _ = cli("list", "--open", "-o", "json")
    assert f"{name}-id" in [row["transactional_id"] for row in json.loads(out)]
    code, out, _ = cli("describe", f"{name}-id")
    assert code == 0
    assert f"{name}-0" in out
    assert "Ongoing" in out
    code, out, err = cli("describe", "nobody")
    assert (code, out) == (1, "")
    assert "nobody" in err
    assert cli("list", "-s", "Nowhere")[0] == 1


def test_readers_are_told_what_they_wait_for(talk: Talk, name: str, cli: Cli) -> None:
    talk.create(name)
    assert cli("why", name)[1] == f"{name}: no transaction is open; readers of committed records see everything\n"
    producer = opened(talk, f"{name}-id", name)
    code, out, _ = cli("why", name)
    assert code == 0
    assert out.startswith(
        f"{name}-0: readers of committed records wait at offset 0 for '{name}-id' "
        f"(producer {producer.id}, epoch {producer.epoch}): Ongoing for "
    )
    assert "aborted in" in out


def test_aborting_an_id_fences_its_producer(talk: Talk, cli: Cli) -> None:
    talk.create("t")
    producer = opened(talk, "to-abort", "t")
    assert cli("abort", "to-abort", "--yes")[:2] == (0, "to-abort: aborted, and its producer is fenced\n")
    assert committed_end(talk) == 2
    assert producer.end().error_code == errors.PRODUCER_FENCED.code
    code, _, err = cli("abort", "nobody", "--yes")
    assert code == 1
    assert "nobody" in err


def test_a_transaction_that_no_coordinator_knows_is_ended_where_it_hangs(talk: Talk, name: str, cli: Cli) -> None:
    talk.create(name)
    producer = opened(talk, f"{name}-id", name)
    # The coordinator believes that it is over: a marker is written again that was written once before.
    producer.end()
    answer = talk.ask(
        WriteTxnMarkersRequest(
            markers=[
                WriteTxnMarkersRequest.WritableTxnMarker(
                    producer_id=producer.id,
                    producer_epoch=producer.epoch + 1,
                    topics=[WriteTxnMarkersRequest.WritableTxnMarkerTopic(name=name, partition_indexes=[0])],
                )
            ]
        ),
        1,
    )
    assert answer.markers[0].topics[0].partitions[0].error_code == 0
    code, _, err = cli("abort", "--partition", f"{name}-0", "--producer", str(producer.id), "--yes")
    assert code == 1
    assert "no transaction open" in err
    producer.epoch += 1
    assert producer.produce(name, b"again") == 0
    code, out, _ = cli("abort", "--partition", f"{name}-0", "--producer", str(producer.id), "-y")
    assert (code, out) == (0, f"{name}-0: the transaction of producer {producer.id} is aborted\n")
    row = talk.fetch(name, isolation_level=1)
    assert row.last_stable_offset == row.high_watermark


@pytest.mark.parametrize(
    "words", [[], ["id", "--partition", "t-0"], ["--partition", "t-0"], ["--partition", "t", "--producer", "1"]]
)
def test_an_abort_of_nothing_is_explained(cli: Cli, words: list[str]) -> None:
    code, out, err = cli("abort", *words)
    assert (code, out) == (1, "")
    assert err.startswith("barnabas: ")
