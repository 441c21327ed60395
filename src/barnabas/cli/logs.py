"""Where log lines go when a broker runs from the command line: standard error, one line each, with time and level."""

from __future__ import annotations

import logging
import sys

from barnabas.observe.log import ROOT


def write_logs(level: int = logging.WARNING) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    root = logging.getLogger(ROOT)
    root.handlers = [handler]
    root.setLevel(level)
    root.propagate = False
