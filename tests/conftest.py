"""What every test leaves as it found it: where log lines go, and from which level on. Properties have no deadline.

What tests of several folders share stands in ``shared``, which is not installed anywhere, as the tools at the top of
the repository are not. Tests marked ``java`` are skipped unless they are asked for with ``-m``.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from barnabas.observe.log import ROOT

sys.path[:0] = [str(Path(__file__).with_name("shared")), str(Path(__file__).parents[1])]

hypothesis.settings.register_profile("barnabas", deadline=None)  # a machine may be busy
hypothesis.settings.load_profile("barnabas")

# Programs which a shell starts in the background ignore Ctrl-C, and so would all that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "PYTEST_XDIST_WORKER" in os.environ:
        from scheduling import rank

        items.sort(key=lambda item: rank(item.nodeid))  # after pytest-randomly; files stay in their random order
    if "java" in (config.option.markexpr or ""):
        return
    skip = pytest.mark.skip(reason="needs Java and Maven: ask for it with `-m java`")
    for item in items:
        if item.get_closest_marker("java") is not None:
            item.add_marker(skip)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Return what spreads the tests over workers; see ``scheduling``."""
    if config.getvalue("dist") != "loadfile":
        return None
    from scheduling import Scheduling

    return Scheduling(config, log)


def pytest_collection_finish() -> None:
    """Exclude the collected tests, over a million objects, from all later runs of the garbage collector."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    gc.unfreeze()  # some extension modules report objects that are still alive at the exit as leaks


@pytest.fixture(autouse=True)
def _logs_as_before() -> Iterator[None]:
    """A command that runs in the test's process sets them up for the process."""
    root = logging.getLogger(ROOT)
    handlers, propagates, level = root.handlers[:], root.propagate, root.level
    audit = logging.getLogger(f"{ROOT}.audit")
    audit_level = audit.level
    yield
    for handler in root.handlers:
        if handler not in handlers:
            handler.close()
    root.handlers, root.propagate = handlers, propagates
    if (root.level, audit.level) != (level, audit_level):  # it empties a cache of every logger
        root.setLevel(level)
        audit.setLevel(audit_level)
