"""Driver, workers, broker and database are killed under change capture: nothing is lost, and nothing comes twice."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest
from capture_stage import Writer, check_events, check_lake, stage, until

KILLS = int(os.environ.get("BARNABAS_CONNECT_KILLS", "4"))
SEED = int(os.environ.get("BARNABAS_CONNECT_SEED", "1"))
PARTS = ("driver", "database", "worker", "broker")


@pytest.mark.slow
@pytest.mark.timeout(240 + 120 * KILLS)
def test_capture_and_sinks_survive_kills(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    with stage(tmp_path, SEED) as made:
        writer = Writer(made.server, SEED)
        try:
            for number in range(KILLS):
                made.flows() if chance.random() < 0.8 else time.sleep(chance.random() * 5)
                part = PARTS[number % len(PARTS)] if number < len(PARTS) else chance.choice(PARTS)
                print(f"kill {number + 1}: {part}, {writer.committed} transactions", flush=True)
                made.kill(part)
            made.flows()
        finally:
            writer.stop()
        books = made.rows("postgres")
        until(lambda: made.rows("copy") == books, made.statuses)
        records = made.events()
        check_events(records, books)
        until(lambda: len(made.lake()) >= sum(each.value is not None for each in records), made.statuses)
        check_lake(made.lake(), records)
        print(f"{KILLS} kills, {writer.committed} transactions, {len(records)} records, {len(books)} rows", flush=True)
