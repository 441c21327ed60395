"""A compacted log against a list of all that was ever written to it, through rounds of cleaning and power cuts.

Whatever the cleaner does, and wherever the power fails while it does it, a reader from the start sees the last
committed value of every key at the offset where it was written, and nothing that was not written there.
"""

from __future__ import annotations

import asyncio
import random

import pytest
from compaction_model import PARTITION, RETENTION_MS, Model
from cuttable_machine import PowerCut

from barnabas.testing.world import SeededEntropy


@pytest.mark.parametrize("seed", range(30))
def test_cleaning_keeps_the_last_of_every_key_and_nothing_comes_back(seed: int) -> None:
    async def main() -> None:
        model = Model(seed)
        await model.start()
        rounds = 0
        for _ in range(120):
            deed = model.chance.random()
            if deed < 0.75:
                model.append()
            elif deed < 0.87:
                model.end_transaction()
            elif deed < 0.9:
                model.clock.now_ms += model.chance.choice([10, RETENTION_MS + 1])
            else:
                rounds += await model.clean()
                model.check()
        for producer_id in sorted(model.open_transactions):
            model.open_transactions = {producer_id}
            model.end_transaction()
        model.log.roll(model.clock.now_ms)
        # Twice past the horizon: first the tombstones are dated, then they go.
        for _ in range(3):
            model.append()
            model.log.roll(model.clock.now_ms)
            while await model.clean():
                rounds += 1
            model.check()
            model.clock.now_ms += RETENTION_MS + 1
        assert rounds
        for status in [model.cleaner.status(PARTITION)]:
            assert status is not None
            assert status.state in ("clean", "waiting"), status
        if not model.open_transactions:
            model.check_clean()

    asyncio.run(main())


@pytest.mark.parametrize("seed", [*range(100), 1102, 1431, 1779])
def test_the_power_may_fail_at_any_point_of_a_round(seed: int) -> None:
    async def main() -> None:
        model = Model(seed)
        await model.start()
        for _ in range(4):
            for _ in range(model.chance.randrange(10, 40)):
                model.append() if model.chance.random() < 0.8 else model.end_transaction()
            model.clock.now_ms += model.chance.choice([10, RETENTION_MS + 1])
            await model.log.flush()
            await model.store.checkpoint()
            flushed = model.log.end_offset
            if model.chance.random() < 0.5:
                model.append()
            model.disk.changes_left = model.chance.randrange(40)
            try:
                while await model.cleaner.clean_dirtiest():
                    pass
            except PowerCut:
                pass
            model.timers.close()
            model.disk.crash(SeededEntropy(random.Random(seed)))
            model.lose_files()
            await model.start()
            model.after_crash(flushed)
            model.check()

    asyncio.run(main())
