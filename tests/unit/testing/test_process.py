"""A server in a process of its own that does not come up."""

from __future__ import annotations

import sys

import pytest

from barnabas.testing import process
from barnabas.testing.process import BrokerFailed, ServerProcess


def started(program: str) -> ServerProcess:
    server = ServerProcess()
    server.spawn([sys.executable, "-c", program])
    return server


def test_one_that_never_says_that_it_is_ready_is_not_waited_for_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "READY_SECONDS_MAX", 1)
    server = started("import time; print('half way', flush=True); time.sleep(600)")
    with pytest.raises(BrokerFailed, match="not ready within 1 seconds: half way"):
        server.until_ready()
    assert not server.is_running


def test_one_that_ends_is_told_with_its_last_words() -> None:
    with pytest.raises(BrokerFailed, match="ended with code 3: farewell"):
        started("print('farewell'); raise SystemExit(3)").until_ready()


def test_one_that_is_ready_is_left_alone() -> None:
    server = started("import time; print('READY here', flush=True); time.sleep(600)")
    try:
        assert server.until_ready() == "here"
        assert server.is_running
    finally:
        server.kill()
