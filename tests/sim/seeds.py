"""Which seeds a run tells its stories from: fresh ones for every state of the source, the same ones for the same state.

So each change of the product is tried on stories that nobody has seen, and a run that failed fails again until
something is mended. ``BARNABAS_SIM_SEED=n`` tells one story alone, ``BARNABAS_SIM_FIRST=n`` begins elsewhere.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import barnabas

ONLY = os.environ.get("BARNABAS_SIM_SEED")
FIRST = os.environ.get("BARNABAS_SIM_FIRST")
CHUNK = 25
SEEDS_MAX = 1_000_000  # of one kind of story; another kind begins after them


def fresh_seeds(kind: int, count: int) -> Sequence[int]:
    """As many seeds as asked for, of a kind of story; those of two kinds never meet."""
    assert count <= SEEDS_MAX
    if ONLY:
        return [int(ONLY)]
    first = (int(FIRST) if FIRST else _seed_of_source()) + kind * SEEDS_MAX
    return range(first, first + count)


def fresh_chunks(kind: int, count: int) -> list[Sequence[int]]:
    """The same, for stories so short that one test tells many of them."""
    seeds = fresh_seeds(kind, count)
    return [seeds[first : first + CHUNK] for first in range(0, len(seeds), CHUNK)]


def first_of(seeds: Sequence[int]) -> str:
    """The name of a chunk."""
    return str(seeds[0])


@cache
def _seed_of_source() -> int:
    digest = hashlib.blake2b(digest_size=4)
    root = Path(barnabas.__file__).parent
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode())
        digest.update(path.read_bytes())
    return int.from_bytes(digest.digest(), "big")
