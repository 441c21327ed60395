"""The recorded slice of the judge: answers of Apache Kafka on a few records, so that a test needs no Java.

``python -m conformance.streams.recorded`` records it again.
"""

from __future__ import annotations

import json
import lzma
import tempfile
from pathlib import Path
from typing import Any, Final

from conformance.streams.judge import run_kafka
from conformance.streams.records import generate, write
from conformance.streams.topologies import ALL

FILE: Final = Path(__file__).parents[2] / "tests" / "data" / "streams-judge.json.xz"
SEED: Final = 2026
RECORDS: Final = 160


def record() -> None:
    """Run all topologies with Kafka's test driver and write the descriptions and outputs."""
    answers = {}
    with tempfile.TemporaryDirectory() as directory:
        input_file, results = Path(directory, "records"), Path(directory, "results")
        write(generate(SEED, RECORDS), input_file)
        run_kafka(input_file, results, ALL)
        for name in ALL:
            answers[name] = {
                "description": (results / f"{name}.topology").read_text(),
                "output": (results / f"{name}.out").read_text().splitlines(),
            }
    FILE.write_bytes(lzma.compress(json.dumps(answers).encode(), preset=9))


def answers() -> dict[str, dict[str, Any]]:
    """Return what was recorded: description and output lines by the name of the topology."""
    found: dict[str, dict[str, Any]] = json.loads(lzma.decompress(FILE.read_bytes()))
    return found


if __name__ == "__main__":
    record()
