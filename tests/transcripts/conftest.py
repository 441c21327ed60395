"""``pytest tests/transcripts --rewrite`` writes down what happens now; read the difference before you keep it.

The play beside the tests is not installed anywhere.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent)]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="write transcripts anew with what happens now")
