"""Commands that look at batches: formats of epochs and producers, markers, ``topic analyze``, ``group peek``."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from talk import Talk

from barnabas.cli.main import main
from barnabas.client.producer import Producer
from barnabas.client.settings.producer import ProducerSettings
from barnabas.testing import Broker

Call = Callable[..., str]


@pytest.fixture
def call(shared_broker: Broker, capfdbinary: pytest.CaptureFixture[bytes]) -> Call:
    def call(*words: str, code: int = 0) -> str:
        assert main([*words, "-b", shared_broker.bootstrap_servers]) == code
        said = capfdbinary.readouterr()
        return (said.out if code == 0 else said.err).decode()

    return call


@pytest.fixture
def written(shared_broker: Broker, talk: Talk, name: str) -> str:
    """Three records in a transaction that was committed, one in one that was aborted, then one without any."""
    talk.create(name)

    async def work() -> None:
        settings = {"bootstrap.servers": shared_broker.bootstrap_servers}
        async with Producer(ProducerSettings.of({**settings, "transactional.id": name})) as producer:
            async with producer.transaction():
                for number in range(3):
                    await producer.send(name, b"c%d" % number, key=b"k", partition=0)
            with suppress(ZeroDivisionError):
                async with producer.transaction():
                    await producer.send(name, b"aborted", partition=0)
                    raise ZeroDivisionError
        async with Producer(ProducerSettings.of(settings)) as producer:
            await producer.send(name, b"plain", partition=0)

    asyncio.run(work())
    return name


def test_a_format_shows_what_batches_know(call: Call, written: str) -> None:
    shown = call("consume", written, "--exit", "-f", "%o %e %y %[ %| %] %v\\n").splitlines()
    assert [line.split()[0] for line in shown] == ["0", "1", "2", "4", "6"]
    assert shown[0].split()[1:] == ["0", "0", "0", "7", "7", "c0"]
    producers = call("consume", written, "--exit", "-f", "%x\\n", "--print-control").split()
    assert len(set(producers[:6])) == 1
    assert producers[6] != producers[0]


def test_markers_are_shown_when_asked_for(call: Call, written: str) -> None:
    shown = call("consume", written, "--exit", "-f", "%o %k %v\\n", "--print-control").splitlines()
    assert shown[3] == "3 (control) COMMIT"
    assert shown[5] == "5 (control) ABORT"


def test_batches_of_aborted_transactions_are_left_out_too(call: Call, written: str) -> None:
    words = ("consume", written, "--exit", "--read-committed", "-f", "%o:%e ")
    assert call(*words) == "0:0 1:0 2:0 6:0 "


@pytest.mark.parametrize(("where", "expected"), [("1:3", "1 2 "), ("-2", "6 "), ("+2", "2 4 6 "), (":2", "0 1 ")])
def test_starts_and_ends_hold_for_batches_too(call: Call, written: str, where: str, expected: str) -> None:
    shown = call("consume", written, "--exit", f"-o={where}", "-f", "%o:%e ")
    assert shown.replace(":0", "") == expected


def test_batches_are_not_read_as_a_member(call: Call, written: str) -> None:
    assert "--group reads records, not batches" in call("consume", written, "-g", "g", "-f", "%e", code=1)


def test_an_analysis_counts_what_is_there(call: Call, written: str) -> None:
    figures = json.loads(call("topic", "analyze", written, "--since", "start", "-o", "json"))
    assert (figures["records"], figures["transactional_batches"], figures["codecs"]) == (
        5,
        figures["batches"] - 1,
        {"none": figures["batches"]},
    )
    assert figures["producers"] == 2
    assert [row["partition"] for row in figures["partitions"]] == [0]
    shown = call("topic", "analyze", written, "--since", "-1h")
    assert "5 records in" in shown
    assert "nothing was written since end" in call("topic", "analyze", written, "--since", "end")


def test_a_group_is_shown_what_it_will_read(call: Call, written: str, tmp_path: Path) -> None:
    group = f"{written}-readers"
    call("consume", written, "-g", group, "-n", "2")
    assert call("group", "peek", group, "-f", "%o %v\\n") == "2 c2\n"
    assert call("group", "peek", group, "-n", "9", "-f", "%o ") == "2 4 6 "
    assert "has committed nothing" in call("group", "peek", f"{group}-none", code=1)
    offsets = tmp_path / "offsets"
    offsets.write_text(f"# topic partition offset\n{written} 0 1\n")
    assert call("group", "seek", group, "--to-file", str(offsets), "--execute").splitlines()[1].split()[2:] == [
        "2",
        "1",
        "-1",
    ]
    assert call("group", "peek", group, "-f", "%o ") == "1 "
    offsets.write_text("nonsense\n")
    assert "line 1: say topic, partition and offset" in call("group", "seek", group, "--to-file", str(offsets), code=1)


def test_a_group_is_summed_up_by_topic(call: Call, written: str) -> None:
    group = f"{written}-readers"
    call("consume", written, "-g", group, "-n", "2")
    assert call("group", "describe", group, "--by-topic").splitlines()[-1].split()[:3] == [written, "1", "5"]
    assert call("group", "describe", group, "--lag-only").splitlines()[-1].split()[:2] == [written, "0"]
    call("group", "seek", group, "--to", "end", "--execute")
    assert written not in call("group", "describe", group, "--lag-only").split("\n\n")[-1].splitlines()[1:]
