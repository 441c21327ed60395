"""The Raft machine in a world that drops, delays, repeats and partitions, where disks lose what was not synced.

One seed is one run of ``raft_simulation``: after every step its judges look; at the end the world heals and the quorum
must elect a leader and commit. ``BARNABAS_SIM_SEEDS`` says how many seeds are tried, ``BARNABAS_SIM_SEED`` replays one.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import pytest
from raft_simulation import Simulation
from seeds import first_of, fresh_chunks

SEEDS = int(os.environ.get("BARNABAS_SIM_SEEDS", "80"))


def run(seed: int) -> None:
    simulation = Simulation(seed)
    try:
        simulation.run()
    except AssertionError as error:
        raise AssertionError(
            f"seed {seed} at {simulation.now_ms} ms, step {simulation.steps}: {error!r}\n{simulation.world}\n"
            f"replay: BARNABAS_SIM_SEED={seed} pytest tests/sim/test_raft_machine.py -k every_seed"
        ) from error


@pytest.mark.parametrize("seeds", fresh_chunks(5, SEEDS * 5), ids=first_of)
def test_the_quorum_holds_in_every_seed(seeds: Sequence[int]) -> None:
    for seed in seeds:
        run(seed)


def test_a_seed_replays_step_by_step() -> None:
    first, second = Simulation(7), Simulation(7)
    first.run()
    second.run()
    assert (first.steps, first.judges.committed) == (second.steps, second.judges.committed)
    assert first.judges.leaders == second.judges.leaders
    assert len(first.judges.committed) > 20
