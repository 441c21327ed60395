"""``barnabas produce`` and ``barnabas consume``: files, filters, groups, transactions; and once as processes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from barnabas.cli.main import main
from barnabas.testing import Broker

SECONDS_MAX = 30


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


class Cli:
    """Runs commands in the process of the test; they read standard input from a file."""

    def __init__(self, broker: Broker, stdin: Path, patch: pytest.MonkeyPatch, capture: pytest.CaptureFixture[str]):
        self._servers = broker.bootstrap_servers
        self._stdin = stdin
        self._patch = patch
        self._capture = capture

    def run(self, *words: str, said: str = "") -> Done:
        self._stdin.write_text(said)
        with self._stdin.open() as stdin, self._patch.context() as patch:
            patch.setattr(sys, "stdin", stdin)
            code = main([*words, "-b", self._servers])
        return Done(code, *self._capture.readouterr())

    def __call__(self, *words: str, said: str = "") -> str:
        done = self.run(*words, said=said)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def cli(
    shared_broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Cli:
    return Cli(shared_broker, tmp_path / "stdin", monkeypatch, capfd)


def test_a_pipe_becomes_records_and_they_come_back(shared_broker: Broker, name: str) -> None:
    def process(*words: str, said: str) -> str:
        command = [sys.executable, "-m", "barnabas", *words, "-b", shared_broker.bootstrap_servers]
        done = subprocess.run(command, input=said, capture_output=True, text=True, timeout=SECONDS_MAX, check=True)
        return done.stdout

    assert process("produce", name, said="one\ntwo\n") == "partition 0 at offset 0\npartition 0 at offset 1\n"
    assert process("consume", name, "-e", said="") == "one\ntwo\n"


def test_lines_become_records_and_come_back(cli: Cli, name: str) -> None:
    said = cli("produce", name, "-k", "k", "-H", "region:eu", said="one\ntwo\n")
    assert said == "partition 0 at offset 0\npartition 0 at offset 1\n"
    assert cli("consume", name, "-e", "-f", "%o %k %v %h{%k=%v}\\n") == "0 k one region=eu\n1 k two region=eu\n"


def test_records_are_given_as_arguments(cli: Cli, name: str) -> None:
    assert cli("produce", name, "-v", "a", "-v", "b", "-o", "count") == "2\n"
    assert cli("consume", name, "--exit") == "a\nb\n"


def test_a_file_of_json_goes_round(cli: Cli, name: str, tmp_path: Path) -> None:
    cli("produce", name, "-k", "k", "-H", "h:1", said="x\n")
    file = tmp_path / "records.json"
    file.write_text(cli("consume", name, "-e", "--json"))
    cli("produce", f"{name}-copy", "-i", str(file), "-f", "json", "-o", "none")
    (row,) = [json.loads(line) for line in cli("consume", f"{name}-copy", "-e", "--json").splitlines()]
    assert (row["key"], row["value"], row["headers"]) == ("k", "x", [{"key": "h", "value": "1"}])


def test_a_file_of_csv_becomes_records(cli: Cli, name: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("key,value,header.region\na,1,eu\nb,2,us\n")
    assert cli("produce", name, "-i", str(tmp_path / "a.csv"), "-f", "csv", "-o", "count") == "2\n"
    assert cli("consume", name, "-e", "-H", "region:us", "-f", "%k=%v\\n") == "b=2\n"


def test_a_file_that_is_not_there_is_one_line(cli: Cli, name: str) -> None:
    done = cli.run("produce", name, "-i", "/nowhere")
    assert done.returncode == 1
    assert done.stderr == "barnabas: --input /nowhere: No such file or directory\n"


def test_filters_leave_out_what_does_not_hold(cli: Cli, name: str) -> None:
    lines = "".join(f'{{"total": {number}}}\n' for number in range(200))
    cli("produce", name, "-k", "a", "-o", "none", said=lines)
    cli("produce", name, "-k", "b", "-o", "none", said='{"total": 1000}\n')
    shown = cli("consume", name, "-e", "--filter", "value.total >= 198 && key == 'a'")
    assert shown == '{"total": 198}\n{"total": 199}\n'
    assert cli("consume", name, "-e", "--key", "b") == '{"total": 1000}\n'
    assert cli("consume", name, "-n", "2", "--grep", "9}") == '{"total": 9}\n{"total": 19}\n'


def test_starts_are_relative_to_both_ends(cli: Cli, name: str) -> None:
    cli("produce", name, "-o", "none", said="".join(f"{number}\n" for number in range(10)))
    assert cli("consume", name, "-o", "end-2", "-e") == "8\n9\n"
    assert cli("consume", name, "-o", "+8", "-e") == "8\n9\n"
    assert cli("consume", name, "-o", "-1", "-e") == "9\n"
    assert cli("consume", name, "-o", "2:4") == "2\n3\n"
    assert cli("consume", name, "-o", "-1h", "-n", "1") == "0\n"
    assert cli("consume", name, "-o", "@2020-01-01", "-n", "1") == "0\n"


def test_a_tombstone_is_sent_and_found(cli: Cli, name: str) -> None:
    cli("produce", name, "-k", "kept", "-v", "v")
    cli("produce", name, "-k", "gone", "-v", "", "--tombstone")
    assert cli("consume", name, "-e", "--tombstones", "-f", "%k\\n") == "gone\n"


def test_a_group_goes_on_where_it_stopped(cli: Cli, name: str) -> None:
    cli("produce", name, "-o", "none", said="1\n2\n3\n4\n5\n")
    assert cli("consume", name, "-g", f"{name}-g", "-n", "2") == "1\n2\n"
    assert cli("consume", name, "-g", f"{name}-g", "--exit") == "3\n4\n5\n"
    described = json.loads(cli("group", "describe", f"{name}-g", "-o", "json"))
    assert [each["lag"] for each in described[0]["partitions"]] == [0]


def test_a_group_and_a_partition_do_not_go_together(cli: Cli, name: str) -> None:
    done = cli.run("consume", name, "-g", "g", "-p", "0")
    assert done.returncode == 1
    assert "do not go together" in done.stderr
    assert cli.run("consume", name, "-g", "g", "-o", "-10m").returncode == 1


def test_a_transaction_is_all_or_nothing(cli: Cli, name: str) -> None:
    cli("produce", name, "--txn", f"{name}-id", "-o", "none", said="1\n2\n")
    done = cli.run("produce", name, "--txn", f"{name}-id", "-f", "%k=%v", "-o", "none", said="a=3\nbroken\n")
    assert done.returncode == 1
    assert "does not fit" in done.stderr
    assert cli("consume", name, "-e", "--read-committed") == "1\n2\n"


def test_a_rate_is_kept(cli: Cli, name: str) -> None:
    times = [line.split() for line in cli("produce", name, "--rate", "20", "-o", "%d\\n", said="x\n" * 7).splitlines()]
    assert int(times[-1][0]) - int(times[0][0]) >= 250


def test_many_records_are_sent_and_read_within_seconds(cli: Cli, name: str) -> None:
    assert cli("produce", name, "-o", "count", said=("x" * 50 + "\n") * 20_000) == "20000\n"
    assert len(cli("consume", name, "-e").splitlines()) == 20_000
