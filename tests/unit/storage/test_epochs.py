"""The history of leader epochs answers as Kafka's does."""

from __future__ import annotations

import pytest

from barnabas.storage.checkpoints import CorruptCheckpoint
from barnabas.storage.epochs import LeaderEpochs


def history(*entries: tuple[int, int]) -> LeaderEpochs:
    epochs = LeaderEpochs()
    for entry in entries:
        epochs.assign(*entry)
    return epochs


def test_the_file_is_kafkas() -> None:
    epochs = history((0, 0), (3, 17))
    assert epochs.encode() == b"0\n2\n0 0\n3 17\n"
    assert LeaderEpochs.decode(epochs.encode()).entries() == [(0, 0), (3, 17)]


def test_an_epoch_that_goes_on_is_noted_once() -> None:
    epochs = history((1, 10))
    epochs.is_dirty = False
    epochs.assign(1, 20)
    assert epochs.entries() == [(1, 10)]
    assert not epochs.is_dirty


def test_entries_that_contradict_a_new_one_go() -> None:
    assert history((1, 10), (2, 20), (3, 30), (4, 20)).entries() == [(1, 10), (4, 20)]
    assert history((1, 10), (5, 20), (3, 30)).entries() == [(1, 10), (3, 30)]


@pytest.mark.parametrize(
    ("epoch", "answer"),
    [
        (-1, (-1, -1)),
        (2, (2, 10)),  # older than anything known: our history begins there
        (3, (3, 20)),
        (4, (3, 20)),  # never led here: the one before it
        (5, (5, 40)),
        (7, (7, 100)),  # the latest ends where the log does
        (8, (-1, -1)),
    ],
)
def test_the_end_of_an_epoch_is_the_start_of_the_next(epoch: int, answer: tuple[int, int]) -> None:
    assert history((3, 10), (5, 20), (7, 40)).end_of(epoch, end_offset=100) == answer


def test_the_epoch_of_an_offset_is_the_one_that_began_before_it() -> None:
    epochs = history((3, 10), (5, 20))
    assert [epochs.epoch_at(offset) for offset in (9, 10, 19, 20, 99)] == [-1, 3, 3, 5, 5]


def test_truncating_the_end_forgets_epochs_that_began_there() -> None:
    epochs = history((3, 10), (5, 20))
    epochs.truncate_end(20)
    assert epochs.entries() == [(3, 10)]
    assert epochs.latest_epoch == 3


def test_truncating_the_start_moves_the_epoch_of_that_offset() -> None:
    epochs = history((3, 10), (5, 20), (6, 30))
    epochs.truncate_start(25)
    assert epochs.entries() == [(5, 25), (6, 30)]
    epochs.truncate_start(30)
    assert epochs.entries() == [(6, 30)]
    epochs.truncate_start(3)
    assert epochs.entries() == [(6, 30)]


def test_nothing_is_known_at_first_and_after_clearing() -> None:
    epochs = history((3, 10))
    epochs.clear()
    assert epochs.latest_epoch == -1
    assert epochs.end_of(3, end_offset=5) == (-1, -1)


@pytest.mark.parametrize("content", [b"", b"1\n0\n", b"0\n2\n0 0\n", b"0\n1\n0 0 0\n", b"0\n1\nx 0\n", b"0\n1\n-3 0\n"])
def test_a_file_that_makes_no_sense_is_refused(content: bytes) -> None:
    with pytest.raises(CorruptCheckpoint):
        LeaderEpochs.decode(content)
