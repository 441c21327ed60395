"""Files as Kafka lays them out, sound and damaged, seen by ``barnabas dump``."""

from __future__ import annotations

import json
from pathlib import Path
from struct import pack
from typing import Any

import pytest
from crc32c import crc32c

from barnabas.cli.main import main
from barnabas.storage.producer_snapshot import encode_snapshot
from barnabas.storage.producers import AppendedBatch, Producer
from barnabas.wire.compression import Codec
from barnabas.wire.records import encode_batch

SEGMENT = "00000000000000000005"
EARLIER_BYTES = 8 + 9 + 24  # what one batch before the last takes in a snapshot


def batch(base_offset: int, *values: bytes, codec: Codec = Codec.NONE) -> bytes:
    records = [(1_700_000_000_000, b"k", value, (("h", b"1"),)) for value in values]
    return bytes(encode_batch(records, base_offset=base_offset, leader_epoch=2, codec=codec))


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    first, second = batch(5, b"a", b"b"), batch(7, b"c", codec=Codec.GZIP)
    (folder / f"{SEGMENT}.log").write_bytes(first + second)
    (folder / f"{SEGMENT}.index").write_bytes(pack(">ii", 2, len(first)) + bytes(80))
    (folder / f"{SEGMENT}.timeindex").write_bytes(pack(">qi", 1_700_000_000_000, 2))
    (folder / f"{SEGMENT}.txnindex").write_bytes(pack(">hqqqq", 0, 7, 5, 6, 8))
    producers = pack(">i", 1) + pack(">qhiqiqiq", 7, 0, 1, 6, 1, 1_700_000_000_000, 0, -1)
    snapshot = pack(">hI", 1, crc32c(producers)) + producers
    (folder / "00000000000000000008.snapshot").write_bytes(snapshot)
    (folder / "leader-epoch-checkpoint").write_text("0\n1\n2 5\n")
    (folder / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA")
    return folder


def dumped(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, list[dict[str, Any]]]:
    code = main(["dump", "--json", *map(str, words)])
    return code, [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_sound_directory_is_shown_whole(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, rows = dumped(capsys, directory)
    assert code == 0
    kinds = [row["kind"] for row in rows]
    assert kinds.count("batch") == 2
    assert {"entry", "aborted", "producer", "setting", "total"} <= set(kinds)
    total = next(row for row in rows if row["kind"] == "total")
    assert (total["batches"], total["records"], total["next_offset"]) == (2, 3, 8)


def test_records_are_shown_when_asked_for(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, rows = dumped(capsys, "--records", directory / f"{SEGMENT}.log")
    records = [row for row in rows if row["kind"] == "record"]
    assert [(row["offset"], row["value"]) for row in records] == [(5, "a"), (6, "b"), (7, "c")]
    assert records[0]["headers"] == {"h": "1"}


def test_the_text_for_people_names_the_file(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = directory / f"{SEGMENT}.log"
    assert main(["dump", str(log)]) == 0
    out = capsys.readouterr().out
    assert out.startswith(str(log))
    assert "base_offset 5" in out
    assert "codec gzip" in out


def broken(rows: list[dict[str, Any]]) -> list[tuple[int | None, str]]:
    return [(row["position"], row["why"]) for row in rows if row["kind"] == "broken"]


def test_a_flipped_bit_is_found_and_reading_goes_on_behind_it(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = directory / f"{SEGMENT}.log"
    content = bytearray(log.read_bytes())
    content[70] ^= 1
    log.write_bytes(content)
    code, rows = dumped(capsys, log)
    assert code == 1
    assert [position for position, _ in broken(rows)] == [0]
    assert [row["crc"] for row in rows if row["kind"] == "batch"] == ["WRONG", "ok"]


def test_a_torn_end_is_found(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = directory / f"{SEGMENT}.log"
    content = log.read_bytes()
    log.write_bytes(content[:-3])
    code, rows = dumped(capsys, log)
    assert code == 1
    assert "cut off" in broken(rows)[0][1]
    assert broken(rows)[0][0] == len(batch(5, b"a", b"b"))


def test_garbage_where_a_batch_should_begin_is_found(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = directory / f"{SEGMENT}.log"
    size = log.stat().st_size
    log.write_bytes(log.read_bytes() + b"\x07" * 100)
    code, rows = dumped(capsys, log)
    assert (code, broken(rows)[0][0]) == (1, size)


def test_zeros_at_the_end_are_no_damage(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = directory / f"{SEGMENT}.log"
    log.write_bytes(log.read_bytes() + bytes(5000))
    code, rows = dumped(capsys, log)
    assert (code, rows[-1]["kind"], rows[-1]["bytes"]) == (0, "padding", 5000)


def test_offsets_that_go_back_are_found(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = directory / f"{SEGMENT}.log"
    log.write_bytes(batch(7, b"a") + batch(6, b"b"))
    code, rows = dumped(capsys, log)
    assert code == 1
    assert "at least 8" in broken(rows)[0][1]


def test_an_index_that_points_elsewhere_is_found(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    index = directory / f"{SEGMENT}.index"
    index.write_bytes(pack(">ii", 2, 3))
    assert dumped(capsys, index)[0] == 1
    index.write_bytes(pack(">ii", 2, 1 << 20))
    assert dumped(capsys, index)[0] == 1


@pytest.mark.parametrize("name", [f"{SEGMENT}.index", f"{SEGMENT}.timeindex", f"{SEGMENT}.txnindex"])
def test_half_an_entry_is_found(directory: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    path = directory / name
    path.write_bytes(path.read_bytes()[:34].rstrip(b"\0") + b"\x01")
    assert dumped(capsys, path)[0] == 1


@pytest.mark.parametrize("change", [b"", b"\0\2", b"\0\1\0\0\0\0\0\0\0\0", b"\0\1\0\0\0\0\0\0\0\x63"])
def test_a_damaged_snapshot_is_found(directory: Path, capsys: pytest.CaptureFixture[str], change: bytes) -> None:
    path = directory / "00000000000000000008.snapshot"
    path.write_bytes(change + path.read_bytes()[len(change) :] if change else b"")
    assert dumped(capsys, path)[0] == 1


def test_batches_before_the_last_of_a_producer_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    producer = Producer(7)
    producer.batches.extend(AppendedBatch(number, 10 + number, 0, 5) for number in (1, 2))
    path = tmp_path / "00000000000000000013.snapshot"
    path.write_bytes(encode_snapshot([producer]))
    code, rows = dumped(capsys, path)
    assert code == 0
    assert [(row["kind"], row["producer_id"], row["last_offset"]) for row in rows] == [
        ("producer", 7, 12),
        ("earlier", 7, 11),
    ]
    content = path.read_bytes()
    for cut_bytes in range(1, EARLIER_BYTES + 1):
        body = content[6:-cut_bytes]
        path.write_bytes(pack(">hI", 1, crc32c(body)) + body)
        is_whole = cut_bytes in (EARLIER_BYTES, EARLIER_BYTES - 8)  # without that part, or with none in it
        assert dumped(capsys, path)[0] == (0 if is_whole else 1), cut_bytes


def test_a_checkpoint_that_lacks_lines_is_found(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = directory / "leader-epoch-checkpoint"
    path.write_text("0\n2\n2 5\n")
    code, rows = dumped(capsys, path)
    assert code == 1
    assert "announces 2" in broken(rows)[0][1]


def test_what_is_not_there_or_not_ours_is_said_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    foreign = tmp_path / "photo.jpg"
    foreign.write_bytes(b"x")
    for path in (foreign, tmp_path / "nowhere"):
        assert main(["dump", str(path)]) == 1
        assert capsys.readouterr().err.count("\n") == 1
