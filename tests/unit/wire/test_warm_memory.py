"""Reading batch after batch takes no memory from the kernel again and again."""

from __future__ import annotations

import subprocess
import sys

import pytest

from barnabas.wire.warm_memory import ANCHORS_MAX, RECORDS_PER_ANCHOR, WarmMemory

# In a process of its own: in this one, some other object lives in every arena.
ROUNDS = 20
CODE = f"""
import resource
from barnabas.wire import records

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

batches = [
    records.encode_batch([(1_700_000_000_000 + index, None, b"x" * 100, ()) for index in range({{count}})])
    for _ in range(10_000 // {{count}})
]

def read():
    found = [records.decode_batch(batch) for batch in batches]

for _ in range(3):
    read()
before = faults()
for _ in range({ROUNDS}):
    read()
print(faults() - before)
"""


@pytest.mark.parametrize("count", [10_000, 300])
def test_memory_that_records_have_left_is_there_for_the_next(count: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(count=count)], capture_output=True, text=True, check=True, timeout=60
    )
    assert int(done.stdout) < 50 * ROUNDS, "pages come and go with every round"


def kept(memory: WarmMemory) -> list[int]:
    return list(memory._anchors)


def test_small_batches_count_together() -> None:
    memory = WarmMemory()
    offsets = iter(range(1_000_000))
    for size in (1, RECORDS_PER_ANCHOR - 2, 1, 0, 3 * RECORDS_PER_ANCHOR - 1, 1, 5):
        memory.keep([("topic", 0, next(offsets)) for _ in range(size)], 2)
    assert kept(memory) == [number * RECORDS_PER_ANCHOR - 1 for number in (1, 2, 3, 4)]


def test_what_is_kept_is_bounded() -> None:
    memory = WarmMemory()
    memory.keep([(offset,) for offset in range(100 * RECORDS_PER_ANCHOR)], 0)
    assert len(kept(memory)) == ANCHORS_MAX
    assert kept(memory)[-1] == 100 * RECORDS_PER_ANCHOR - 1, "the newest stay"
