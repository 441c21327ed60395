"""Every example runs, in an order in which one finds what another has written, and prints what it promises."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from barnabas.testing import Broker

EXAMPLES = Path(__file__).parents[2] / "examples"
LINES_MAX = 30

# What the last line of each says; the order matters.
EXPECTED = {
    "produce.py": "100 more, the last at offset",
    "consume.py": "101 records in all",
    "group.py": "101 in all",
    "transaction.py": "bills committed",
    "arrow.py": "'counts': 50000",
}


def test_every_example_does_what_it_says() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(EXPECTED)
    with Broker() as broker:
        for name, line in EXPECTED.items():
            command = [sys.executable, "-W", "error", str(EXAMPLES / name), broker.bootstrap_servers]
            ran = subprocess.run(command, capture_output=True, text=True, timeout=60)
            assert ran.returncode == 0, f"{name}:\n{ran.stdout}{ran.stderr}"
            assert ran.stderr == ""
            assert line in ran.stdout.splitlines()[-1], ran.stdout


def test_an_example_is_short() -> None:
    for path in EXAMPLES.glob("*.py"):
        assert len(path.read_text().splitlines()) < LINES_MAX, path.name
