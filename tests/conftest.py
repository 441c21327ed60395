"""What every test leaves as it found it: where log lines go, and from which level on. Properties have no deadline."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import hypothesis
import pytest

from barnabas.observe.log import ROOT

hypothesis.settings.register_profile("barnabas", deadline=None)  # a machine may be busy
hypothesis.settings.load_profile("barnabas")


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
