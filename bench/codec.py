"""The record codec alone, on one core: 100-byte records a second, as tuples and as columns, both ways.

``python -m bench codec`` prints it, and the floor that each figure has; ``bench clients`` ends with it. Figures are of
CPU time, the best of many rounds, so that a busy machine distorts them little.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa

from barnabas.wire import columns, records

COUNT: Final = 10_000
ROUNDS: Final = 60
IMPORTS: Final = 9
FLOORS: Final = {"batch to Arrow": 20.0, "batch to tuples": 5.0, "tuples to batch": 15.0, "Arrow to batch": 15.0}


def best(call: Callable[[], Any]) -> float:
    """Millions of records a second."""
    found = float("inf")
    for _ in range(ROUNDS):
        start = time.process_time()
        call()
        found = min(found, time.process_time() - start)
    return COUNT / found / 1e6


def print_codec() -> bool:
    """Whether every figure is above its floor."""
    plain = [(1_700_000_000_000 + index, None, b"x" * 100, ()) for index in range(COUNT)]
    headed = [(timestamp, key, value, (("source", b"shop"),)) for timestamp, key, value, _ in plain]
    batch, batch_with_headers = records.encode_batch(plain), records.encode_batch(headed)
    value = pa.array([b"x" * 100] * COUNT, pa.binary())
    timestamp = pa.array([row[0] for row in plain], pa.int64())
    headers = columns.to_arrow(batch_with_headers, topic="t", partition=0, with_headers=True)["headers"]
    works: dict[str, Callable[[], Any]] = {
        "batch to Arrow": lambda: columns.to_arrow(batch, topic="t", partition=0),
        "batch to tuples": lambda: records.decode_batch(batch),
        "tuples to batch": lambda: records.encode_batch(plain),
        "Arrow to batch": lambda: columns.encode_columns(value, timestamp=timestamp),
        "with headers to Arrow": lambda: columns.to_arrow(
            batch_with_headers, topic="t", partition=0, with_headers=True
        ),
        "with headers from Arrow": lambda: columns.encode_columns(value, timestamp=timestamp, headers=headers),
    }
    print(f"{'the codec alone, millions/s':40}{'floor':>8}    {'compiled' if records.COMPILED else 'interpreted'}")
    is_above = True
    for name, work in works.items():
        rate, floor = best(work), FLOORS.get(name, 0.0)
        is_above = is_above and rate >= floor
        print(f"{name:32}{rate:8.1f}{floor or '':>8}")
    print(f"\n{'import barnabas':32}{_import_ms('import barnabas'):8.1f} ms over the interpreter")
    print(f"{'… Producer, Consumer, Admin':32}{_import_ms('from barnabas import Producer, Consumer, Admin'):8.1f} ms")
    return is_above


def _import_ms(code: str) -> float:
    def run(code: str) -> float:
        found = float("inf")
        for _ in range(IMPORTS):
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True)
            found = min(found, time.perf_counter() - start)
        return found

    run(code)  # bytecode is written, if it may be
    return 1000 * (run(code) - run("pass"))
