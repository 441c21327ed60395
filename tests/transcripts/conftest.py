"""``pytest tests/transcripts --rewrite`` writes down what happens now; read the difference before you keep it."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="write transcripts anew with what happens now")
